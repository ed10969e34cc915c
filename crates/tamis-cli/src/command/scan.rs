//! `tamis scan`: reads entries in key order.

use std::{ffi::OsString, io::Write, ops::Bound};

use clap::Args;
use serde_json::{Map, Value};
use tamis::{Keyspace, Result, Scan, Slice};

use crate::{bytes::Formats, failure::Failure, store::StoreArgs};

const EXAMPLES: &str = "\
Examples:
  tamis scan store --limit 10
  tamis scan store --prefix /usr/bin/ --keys-only
  tamis scan store --lower apple --upper-exclusive pear
  tamis scan store --reverse --limit 1                  the last entry
  tamis scan store --key-format u64 --lower 1000 --upper 2000 --json > part.jsonl";

/// Read entries in key order, forward or backward
///
/// Each line has a key, a tab and a value. What --json writes, `tamis load` reads back exactly (with the same formats).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// From this key on
    #[arg(long, value_name = "KEY", conflicts_with = "lower_exclusive")]
    lower: Option<OsString>,
    /// From the first key above this one on
    #[arg(long, value_name = "KEY")]
    lower_exclusive: Option<OsString>,
    /// Up to this key, which is still shown
    #[arg(long, value_name = "KEY", conflicts_with = "upper_exclusive")]
    upper: Option<OsString>,
    /// Up to the last key below this one
    #[arg(long, value_name = "KEY")]
    upper_exclusive: Option<OsString>,
    /// Only keys that begin with these bytes
    #[arg(long, value_name = "KEY", conflicts_with_all = ["lower", "lower_exclusive", "upper", "upper_exclusive"])]
    prefix: Option<OsString>,
    /// From the greatest key down
    #[arg(long)]
    reverse: bool,
    /// At most this many entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Show no values
    #[arg(long)]
    keys_only: bool,
    #[command(flatten)]
    formats: Formats,
    /// A JSON object a line: key, value
    #[arg(long)]
    json: bool,
}

impl ScanArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let range = self.range()?;
        let (_db, keyspace) = self.store.open_to_read()?;
        let mut scan = range.scan(&keyspace);
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

    fn range(&self) -> Result<Range, Failure> {
        let format = self.formats.key_format;
        if let Some(prefix) = &self.prefix {
            return Ok(Range::Prefix(format.argument("--prefix", prefix)?));
        }
        let bound = |name: &str, inclusive: &Option<OsString>, exclusive: &Option<OsString>| match (
            inclusive, exclusive,
        ) {
            (Some(key), _) => format.argument(&format!("--{name}"), key).map(Bound::Included),
            (None, Some(key)) => format.argument(&format!("--{name}-exclusive"), key).map(Bound::Excluded),
            (None, None) => Ok(Bound::Unbounded),
        };
        let lower = bound("lower", &self.lower, &self.lower_exclusive)?;
        let upper = bound("upper", &self.upper, &self.upper_exclusive)?;
        Ok(Range::Bounds(lower, upper))
    }
}

enum Range {
    Prefix(Vec<u8>),
    Bounds(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl Range {
    fn scan(self, keyspace: &Keyspace) -> Scan {
        match self {
            Self::Prefix(prefix) => keyspace.prefix(&prefix),
            Self::Bounds(lower, upper) => keyspace.range((lower, upper)),
        }
    }
}
