//! `tamis compact`: compacts a range of keys into its deepest level.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::{bytes::Format, failure::Failure, progress, range::RangeArgs, store::StoreArgs, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis compact store
  tamis compact store --prefix 2025-
  tamis compact store --keyspace events --key-format u64 --upper-exclusive 1000

The memtables are flushed first. Obsolete versions and tombstones are dropped. An interrupted
compaction leaves the store intact.";

/// Compact a range of keys into its deepest level
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Format of keys
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    key_format: Format,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl CompactArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let bounds = self.range.range(self.key_format)?.bounds();
        let (db, keyspace) = self.store.open_existing()?;
        let bytes_of =
            || db.statistics().keyspaces.iter().flat_map(|k| &k.levels).map(|level| level.bytes).sum();
        let spinner = progress::items(None);
        spinner.set_message("compacting");
        db.flush()?;
        let before: u64 = bytes_of();
        let result = db.compact_range(&keyspace, bounds);
        spinner.finish_and_clear();
        result?;
        let after: u64 = bytes_of();
        let written = db.statistics().compaction_bytes_written;
        db.close()?;
        if self.json {
            let line = json!({ "bytes_before": before, "bytes_after": after, "bytes_written": written });
            return Ok(writeln!(output, "{line}")?);
        }
        let [before, after, written] = [before, after, written].map(terminal::bytes);
        Ok(writeln!(output, "table size {before} before, {after} after; {written} written")?)
    }
}
