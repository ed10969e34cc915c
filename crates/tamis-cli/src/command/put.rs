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
  tamis put store -- -key -value                        arguments that begin with a dash";

/// Write one entry; the store is created if missing
///
/// Replaces the value if the key exists. When the command returns, the write is durable: it survives a power failure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Key, 1 to 65,535 bytes
    key: OsString,
    /// Value, up to 256 MiB
    #[arg(required_unless_present = "file")]
    value: Option<OsString>,
    /// Read the value from a file, unchanged; `-` is standard input
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
            (None, None) => return Err(Failure::Usage("no value; give VALUE or --file FILE".to_owned())),
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
    // Reads one byte more than a value may have, so that the store rejects a longer value.
    let limit = tamis::VALUE_LENGTH_MAX as u64 + 1;
    let read = if file.as_os_str() == "-" {
        io::stdin().take(limit).read_to_end(&mut value)
    } else {
        open_file(file)?.take(limit).read_to_end(&mut value)
    };
    read.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
    Ok(value)
}
