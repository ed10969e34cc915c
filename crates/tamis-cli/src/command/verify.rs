//! `tamis verify`: reads everything and checks every checksum.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;
use tamis::VerifyReport;

use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis verify store
  tamis verify store --json

Every fault is named with its file and offset, and the check goes on behind it. The exit code is 3
when there is one.";

/// Check every byte of a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The store's folder
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The report as a JSON object
    #[arg(long)]
    json: bool,
}

impl VerifyArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let report = self.check()?;
        if self.json {
            let fault = |fault: &ShownFault| json!({ "file": fault.file.display().to_string(), "offset": fault.offset, "what": fault.what });
            let line = json!({
                "files": report.file_count, "entries": report.entry_count, "bytes": report.bytes,
                "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
            });
            writeln!(output, "{line}")?;
        } else {
            for fault in &report.faults {
                let place = fault.offset.map_or_else(String::new, |offset| format!("offset {offset}: "));
                writeln!(output, "{}: {place}{}", fault.file.display(), fault.what)?;
            }
            writeln!(
                output,
                "{} files, {} entries, {} read; {}",
                terminal::count(report.file_count as u64),
                terminal::count(report.entry_count),
                terminal::bytes(report.bytes),
                if report.faults.is_empty() { "no faults".to_owned() } else { faults(report.faults.len()) }
            )?;
        }
        match report.faults.len() {
            0 => Ok(()),
            count => Err(Failure::Damage(format!("{}: {}", self.dir.display(), faults(count)))),
        }
    }

    /// Damage that keeps the store from being opened is the first and only fault found.
    fn check(&self) -> Result<Shown, Failure> {
        let db = match store::open_to_read(&self.dir) {
            Ok(db) => db,
            Err(Failure::Store(tamis::Error::Corruption(found))) => {
                let what = format!("{}: expected {}, got {}", found.what, found.expected, found.got);
                let fault = ShownFault { file: found.file, offset: Some(found.offset), what };
                return Ok(Shown { file_count: 0, entry_count: 0, bytes: 0, faults: vec![fault] });
            }
            Err(failure) => return Err(failure),
        };
        let VerifyReport { file_count, bytes, entry_count, faults, .. } = db.verify()?;
        let faults = faults.into_iter().map(|fault| ShownFault {
            file: fault.file,
            offset: fault.offset,
            what: fault.what,
        });
        Ok(Shown { file_count, entry_count, bytes, faults: faults.collect() })
    }
}

/// What is shown, whether or not the store could be opened.
struct Shown {
    file_count: usize,
    entry_count: u64,
    bytes: u64,
    faults: Vec<ShownFault>,
}

struct ShownFault {
    file: PathBuf,
    offset: Option<u64>,
    what: String,
}

fn faults(count: usize) -> String {
    if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
}
