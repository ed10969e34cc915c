//! `tamis backup list`: the backups of a target.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use tamis_backup::{Backup, Kind};

use super::{TargetArgs, failure};
use crate::{failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis backup list /mnt/backups
  tamis backup list s3://bucket/path --json";

/// List the backups of a target, the newest last
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print a JSON object for each backup
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let backups = self.target.open()?.backups().map_err(failure)?;
        if self.json {
            for backup in &backups.intact {
                writeln!(output, "{}", backup_json(backup, []))?;
            }
        } else {
            let header = ["backup", "kind", "time (UTC)", "sequence number", "uploaded", "store"];
            let rows = backups.intact.iter().map(|backup| {
                let kind = kind_text(backup);
                let [uploaded, store] = [backup.uploaded_bytes, backup.store_bytes].map(terminal::bytes);
                vec![backup.id(), kind, backup.time(), terminal::count(backup.sequence), uploaded, store]
            });
            writeln!(output, "{}", terminal::table(3, &header, rows))?;
        }
        match backups.damaged.first() {
            None => Ok(()),
            Some((object, what)) => Err(Failure::Damage(format!(
                "{}/{object}: {what}; this backup can't be restored, the others can",
                self.target.target
            ))),
        }
    }
}

/// Formats a backup as JSON, with more or other fields.
pub(super) fn backup_json<const N: usize>(backup: &Backup, more: [(&str, Value); N]) -> Value {
    let kind = match backup.kind {
        Kind::Whole => "whole",
        Kind::Log => "log",
    };
    let fields = [
        ("backup", json!(backup.number)),
        ("id", json!(backup.id())),
        ("time", json!(backup.time())),
        ("kind", json!(kind)),
        ("base", json!(backup.base)),
        ("sequence", json!(backup.sequence)),
        ("uploaded_bytes", json!(backup.uploaded_bytes)),
        ("store_bytes", json!(backup.store_bytes)),
    ];
    fields.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The kind of a backup for people.
pub(super) fn kind_text(backup: &Backup) -> String {
    match backup.kind {
        Kind::Whole => "whole".to_owned(),
        Kind::Log => format!("log since {}", backup.base),
    }
}
