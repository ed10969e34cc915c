//! `tamis backup prune`: removes old backups.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tamis_backup::{Keep, prune};

use super::{Bar, TargetArgs, failure};
use crate::{failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis backup prune /mnt/backups --keep 7d        restores to the last 7 days stay possible
  tamis backup prune s3://bucket/path --keep 20    the newest 20

The newest backup always stays. A prune waits for running backups and restores.";

/// Remove old backups, and objects that no backup needs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Backups to keep: a number, or a time such as 12h, 7d, 4w
    #[arg(long, value_name = "N|TIME")]
    keep: Keep,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let target = self.target.open()?;
        let bar = Bar::new("prune")?;
        let result = prune(&target, self.keep, &*bar);
        bar.0.finish_and_clear();
        let report = result.map_err(failure)?;
        if self.json {
            let line = json!({
                "removed": report.removed, "kept": report.kept_count,
                "removed_objects": report.object_count, "removed_bytes": report.bytes,
            });
            return Ok(writeln!(output, "{line}")?);
        }
        Ok(writeln!(
            output,
            "{} and {} ({}) removed, {} kept",
            terminal::amount(report.removed.len() as u64, "backup", "backups"),
            terminal::amount(report.object_count as u64, "object", "objects"),
            terminal::bytes(report.bytes),
            terminal::amount(report.kept_count as u64, "backup", "backups"),
        )?)
    }
}
