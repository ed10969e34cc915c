//! `tamis checkpoint`: copies a store into another folder.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;

use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis checkpoint store copy
  tamis checkpoint /data/store /data/before-the-upgrade

The copy is an independent store. If both folders are on one file system, tables are hard-linked:
the copy is fast and needs almost no space at first. No other process may have the store open; a
program that has it open can copy it with Db::checkpoint.";

/// Copy a store into a new or empty folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckpointArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Folder of the copy
    #[arg(value_name = "COPY")]
    copy: PathBuf,
    /// Also verify every byte of the tables
    #[arg(long)]
    verify: bool,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl CheckpointArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        if self.copy.exists() && !self.copy.is_dir() {
            let text = format!("{}: is a file; name a folder that is new or empty", self.copy.display());
            return Err(Failure::Input(text));
        }
        let db = store::open_to_read(&self.dir)?;
        let report = match self.verify {
            true => db.checkpoint_verified(&self.copy),
            false => db.checkpoint(&self.copy),
        }
        .map_err(|error| Failure::of_target(error, &self.copy))?;
        let (linked, copied) = (report.linked_file_count, report.copied_file_count);
        if self.json {
            let line = json!({
                "linked_files": linked, "copied_files": copied, "copied_bytes": report.copied_bytes,
                "sequence": report.sequence,
            });
            return Ok(writeln!(output, "{line}")?);
        }
        let bytes = terminal::bytes(report.copied_bytes);
        let (linked, copied) =
            (terminal::amount(linked as u64, "file", "files"), terminal::count(copied as u64));
        Ok(writeln!(output, "{linked} linked, {copied} copied ({bytes})")?)
    }
}
