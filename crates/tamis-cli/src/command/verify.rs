//! `tamis verify`: reads every byte of a store and checks every checksum.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tamis::{Db, Fault, WalTruncation};

use crate::{failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis verify store
  tamis verify store --json

Each fault is reported with file and offset, and the check continues after it. The store may be too
damaged to open. The exit code is 3 if there is a fault; `tamis repair` repairs the store.";

/// Check every byte of a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl VerifyArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let report = Db::verify_folder(&self.dir).map_err(Failure::of_existing)?;
        if self.json {
            let line = json!({
                "files": report.file_count, "entries": report.entry_count, "bytes": report.bytes,
                "faults": report.faults.iter().map(fault_json).collect::<Vec<_>>(),
                "torn_tails": report.torn_tails.iter().map(torn_tail_json).collect::<Vec<_>>(),
            });
            writeln!(output, "{line}")?;
        } else {
            for fault in &report.faults {
                writeln!(output, "{}", fault_text(fault))?;
            }
            for torn in &report.torn_tails {
                writeln!(output, "{}", torn_tail_text(torn))?;
            }
            writeln!(
                output,
                "{}, {}, {} read; {}",
                terminal::amount(report.file_count as u64, "file", "files"),
                terminal::amount(report.entry_count, "entry", "entries"),
                terminal::bytes(report.bytes),
                if report.faults.is_empty() { "no faults".to_owned() } else { faults(report.faults.len()) }
            )?;
        }
        match report.faults.len() {
            0 => Ok(()),
            count => Err(Failure::Damage(format!(
                "{}: {}; restore the store from a copy, or run `tamis repair` to keep all readable entries",
                self.dir.display(),
                faults(count)
            ))),
        }
    }
}

pub(super) fn faults(count: usize) -> String {
    if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
}

/// Formats a fault as text: file, offset, description.
pub(super) fn fault_text(fault: &Fault) -> String {
    let place = fault.offset.map_or_else(String::new, |offset| format!("offset {offset}: "));
    format!("{}: {place}{}", fault.file.display(), fault.what)
}

/// Formats the torn end of a log segment, which is no fault, as text.
pub(super) fn torn_tail_text(torn: &WalTruncation) -> String {
    let WalTruncation { file, offset, bytes, .. } = torn;
    let amount = terminal::amount(*bytes, "byte", "bytes");
    format!("{}: offset {offset}: torn tail, {amount}, dropped at the next open", file.display())
}

/// The same as JSON.
pub(super) fn torn_tail_json(torn: &WalTruncation) -> Value {
    json!({ "file": torn.file.display().to_string(), "offset": torn.offset, "bytes": torn.bytes })
}

/// Formats a fault as JSON.
pub(super) fn fault_json(fault: &Fault) -> Value {
    json!({ "file": fault.file.display().to_string(), "offset": fault.offset, "what": fault.what })
}
