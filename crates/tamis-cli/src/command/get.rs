//! `tamis get`: reads single entries.

use std::{ffi::OsString, io::Write};

use clap::Args;
use serde_json::json;

use crate::{bytes::Formats, failure::Failure, store::StoreArgs};

const EXAMPLES: &str = "\
Examples:
  tamis get store apple
  tamis get store apple pear --json
  tamis get store picture --raw > picture.png
  tamis get store --key-format u64 17

The exit code is 1 if a key is not found.";

/// Read entries by their keys
///
/// For one key, prints its value. For several keys, prints a line with key, tab and value for each key that is found.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Keys to read
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    formats: Formats,
    /// Print the values unchanged, without separators or line feeds
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print one JSON object per line: key, found, value
    #[arg(long)]
    json: bool,
}

impl GetArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let Formats { key_format, value_format } = self.formats;
        let keys: Vec<_> =
            self.keys.iter().map(|key| key_format.argument("KEY", key)).collect::<Result<_, _>>()?;
        let (_db, keyspace) = self.store.open_to_read()?;
        let mut is_missing = false;
        for key in &keys {
            let value = keyspace.get(key)?;
            is_missing |= value.is_none();
            match value {
                _ if self.json => {
                    let found = value.is_some();
                    let value = value.map(|value| value_format.json(&value));
                    let line = json!({ "key": key_format.json(key), "found": found, "value": value });
                    writeln!(output, "{line}")?;
                }
                Some(value) if self.raw => output.write_all(&value)?,
                Some(value) if keys.len() == 1 => writeln!(output, "{}", value_format.show(&value))?,
                Some(value) => writeln!(output, "{}\t{}", key_format.show(key), value_format.show(&value))?,
                None => {}
            }
        }
        if is_missing { Err(Failure::NotFound) } else { Ok(()) }
    }
}
