//! `tamis put`: writes one entry.

use std::{
    ffi::OsString,
    io::{self, Read},
    path::PathBuf,
};

use clap::Args;
use tamis::{Durability, WriteBatch};

use crate::{bytes::Formats, failure::Failure, input::open_file, store::StoreArgs};

const EXAMPLES: &str = "\
Examples:
  tamis put store apple red
  tamis put store --key-format u64 17 seventeen
  tamis put store --value-format hex picture 0x89504e47
  tamis put store picture --file picture.png
  tamis put store -- -key -value                        what begins with a dash comes after --";

/// Write one entry; the store is made if it is not there
///
/// The entry replaces an earlier one with the same key. When the command ends, the entry survives a power failure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key: 1 to 65,535 bytes
    key: OsString,
    /// The value: up to 256 MiB
    #[arg(required_unless_present = "file")]
    value: Option<OsString>,
    /// Take the value from a file, byte for byte; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    file: Option<PathBuf>,
    #[command(flatten)]
    formats: Formats,
}

impl PutArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        let key = self.formats.key_format.argument("KEY", &self.key)?;
        let value = match (&self.value, &self.file) {
            (Some(value), _) => self.formats.value_format.argument("VALUE", value)?,
            (None, Some(file)) => read_value(file)?,
            (None, None) => return Err(Failure::Usage("give a VALUE or --file".to_owned())),
        };
        let (db, keyspace) = self.store.open_to_write()?;
        let mut batch = WriteBatch::new();
        batch.put(&keyspace, &key, &value)?;
        db.write_with(batch, Durability::Synced)?;
        Ok(db.close()?)
    }
}

fn read_value(file: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    // One byte more than a value may have, so that the store can refuse it.
    let limit = tamis::VALUE_LENGTH_MAX as u64 + 1;
    let read = if file.as_os_str() == "-" {
        io::stdin().take(limit).read_to_end(&mut value)
    } else {
        open_file(file)?.take(limit).read_to_end(&mut value)
    };
    read.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
    Ok(value)
}
