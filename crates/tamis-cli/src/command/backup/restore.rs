//! `tamis backup restore`: restores a backup into a new folder.

use std::{io::Write, path::PathBuf};

use clap::Args;
use tamis_backup::{RestoreOptions, restore};

use super::{Bar, TargetArgs, failure};
use crate::{failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis backup restore /mnt/backups restored
  tamis backup restore /mnt/backups restored --to 12
  tamis backup restore s3://bucket/path restored --to 2026-11-30T09:20

--to takes a number or id of `tamis backup list`, or a time in UTC: the newest backup at that time.
Every byte is checked, and the restored store is opened once.";

/// Restore a backup into a new or empty folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Folder of the restored store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Backup or time [default: the newest]
    #[arg(long, value_name = "BACKUP|TIME")]
    to: Option<String>,
    /// Print the backup as a JSON object
    #[arg(long)]
    json: bool,
}

impl RestoreArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let target = self.target.open()?;
        let bar = Bar::new("restore")?;
        let mut options = RestoreOptions::default();
        options.to = self.to;
        options.progress = bar.clone();
        let result = restore(&target, &self.dir, &options);
        bar.0.finish_and_clear();
        let backup = result.map_err(failure)?;
        if self.json {
            return Ok(writeln!(output, "{}", super::list::backup_json(&backup, []))?);
        }
        Ok(writeln!(
            output,
            "backup {} of {} restored: sequence number {}, {}",
            backup.number,
            backup.time(),
            terminal::count(backup.sequence),
            terminal::bytes(backup.store_bytes)
        )?)
    }
}
