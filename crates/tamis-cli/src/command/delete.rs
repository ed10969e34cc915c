//! `tamis delete`: deletes entries by their keys, or all entries of a range.

use std::ffi::OsString;

use clap::Args;
use tamis::{Durability, WriteBatch};

use crate::{
    bytes::Format,
    failure::Failure,
    range::{Range, RangeArgs},
    store::StoreArgs,
};

const EXAMPLES: &str = "\
Examples:
  tamis delete store apple
  tamis delete store --keyspace fruit apple pear
  tamis delete store --key-format hex 0x00ff
  tamis delete store --prefix 2025-11-
  tamis delete store --key-format u64 --upper-exclusive 1000
  tamis delete store --keyspace fruit --all";

/// Delete entries by their keys, or all entries of a range
///
/// All keys are deleted in one atomic batch; a range of any number of keys is deleted by one record. Deleting
/// absent keys is not an error. When the command returns, the deletes are durable: they survive a power failure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Keys to delete
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    range: RangeArgs,
    /// Delete all entries of the keyspace
    #[arg(long)]
    all: bool,
    /// Format of keys
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    key_format: Format,
}

impl DeleteArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        let keys: Vec<_> =
            self.keys.iter().map(|key| self.key_format.argument("KEY", key)).collect::<Result<_, _>>()?;
        let is_given = [!keys.is_empty(), self.range.is_limited(), self.all];
        if is_given.iter().filter(|&&is_given| is_given).count() != 1 {
            let advice = "give only one of these: keys, a range (--prefix, --lower, --upper), --all";
            return Err(Failure::Usage(advice.to_owned()));
        }
        let range = self.range.range(self.key_format)?;
        if matches!(&range, Range::Prefix(prefix) if prefix.is_empty()) {
            let advice = "--prefix: the prefix is empty, so it selects all keys; give --all to delete them";
            return Err(Failure::Usage(advice.to_owned()));
        }
        let range = range.bounds();
        let (db, keyspace) = self.store.open_existing()?;
        let mut batch = WriteBatch::new();
        if keys.is_empty() {
            batch.delete_range(&keyspace, range)?;
        }
        for key in &keys {
            batch.delete(&keyspace, key)?;
        }
        db.write_with(batch, Durability::Synced)?;
        Ok(db.close()?)
    }
}
