//! `tamis checkpoint`: a copy of a store in another folder.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;

use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis checkpoint store copy
  tamis checkpoint /data/store /data/before-the-upgrade

Tables are hard links where both folders lie in one file system: the copy takes little time and, until
the stores differ, little space. It is a store of its own. A program that has the store open makes
copies while it writes, with Db::checkpoint.";

/// Copy a store into a folder that is new or empty
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckpointArgs {
    /// The store's folder
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The folder of the copy
    #[arg(value_name = "COPY")]
    copy: PathBuf,
    /// What was done as a JSON object
    #[arg(long)]
    json: bool,
}

impl CheckpointArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let db = store::open_to_read(&self.dir)?;
        let report = db.checkpoint(&self.copy)?;
        let (linked, copied) = (report.linked_file_count, report.copied_file_count);
        if self.json {
            let line = json!({
                "linked_files": linked, "copied_files": copied, "copied_bytes": report.copied_bytes,
                "sequence": report.sequence,
            });
            return Ok(writeln!(output, "{line}")?);
        }
        let bytes = terminal::bytes(report.copied_bytes);
        let [linked, copied] = [linked, copied].map(|count| terminal::count(count as u64));
        Ok(writeln!(output, "{linked} files linked, {copied} copied ({bytes})")?)
    }
}
