//! `tamis delete`: deletes entries.

use std::ffi::OsString;

use clap::Args;
use tamis::{Durability, WriteBatch};

use crate::{bytes::Format, failure::Failure, store::StoreArgs};

const EXAMPLES: &str = "\
Examples:
  tamis delete store apple
  tamis delete store --keyspace fruit apple pear
  tamis delete store --key-format hex 0x00ff";

/// Delete entries by their keys
///
/// All keys are deleted in one atomic batch. Deleting an absent key is not an error. When the command returns, the
/// deletes are durable: they survive a power failure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Keys to delete
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// Format of keys
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    key_format: Format,
}

impl DeleteArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        let keys: Vec<_> =
            self.keys.iter().map(|key| self.key_format.argument("KEY", key)).collect::<Result<_, _>>()?;
        let (db, keyspace) = self.store.open_existing()?;
        let mut batch = WriteBatch::new();
        for key in &keys {
            batch.delete(&keyspace, key)?;
        }
        db.write_with(batch, Durability::Synced)?;
        Ok(db.close()?)
    }
}
