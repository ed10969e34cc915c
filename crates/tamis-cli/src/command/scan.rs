//! `tamis scan`: reads entries in key order.

use std::io::Write;

use clap::Args;
use serde_json::{Map, Value};
use tamis::{Result, Scan, Slice};

use crate::{bytes::Formats, failure::Failure, range::RangeArgs, store::StoreArgs};

const EXAMPLES: &str = "\
Examples:
  tamis scan store --limit 10
  tamis scan store --prefix /usr/bin/ --keys-only
  tamis scan store --lower apple --upper-exclusive pear
  tamis scan store --reverse --limit 1                  the last entry
  tamis scan store --key-format u64 --lower 1000 --upper 2000 --json > part.jsonl";

/// Read entries in key order, forward or backward
///
/// Each line has key, tab and value. `tamis load` restores the output of --json exactly (with the same formats).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Read in descending key order
    #[arg(long)]
    reverse: bool,
    /// Maximum number of entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print keys without values
    #[arg(long)]
    keys_only: bool,
    #[command(flatten)]
    formats: Formats,
    /// Print one JSON object per line: key, value
    #[arg(long)]
    json: bool,
}

impl ScanArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let range = self.range.range(self.formats.key_format)?;
        let (_db, keyspace) = self.store.open_to_read()?;
        self.show_all(range.scan(&keyspace), output)
    }

    fn show_all(&self, mut scan: Scan, output: &mut dyn Write) -> Result<(), Failure> {
        let mut remaining = self.limit.unwrap_or(u64::MAX);
        while remaining > 0 {
            let entry = if self.reverse { scan.next_back() } else { scan.next() };
            let Some((key, value)) = entry.transpose()? else { break };
            self.show(output, &key, &value)?;
            remaining -= 1;
        }
        Ok(())
    }

    fn show(&self, output: &mut dyn Write, key: &Slice, value: &Slice) -> Result<(), Failure> {
        let Formats { key_format, value_format } = self.formats;
        if self.json {
            let mut entry = Map::new();
            entry.insert("key".to_owned(), key_format.json(key));
            if !self.keys_only {
                entry.insert("value".to_owned(), value_format.json(value));
            }
            writeln!(output, "{}", Value::Object(entry))?;
        } else if self.keys_only {
            writeln!(output, "{}", key_format.show(key))?;
        } else {
            writeln!(output, "{}\t{}", key_format.show(key), value_format.show(value))?;
        }
        Ok(())
    }
}
