//! `tamis repair`: repairs a damaged store so that it can be opened.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;
use tamis::{Db, LostRange, RepairReport};

use super::verify::{fault_json, fault_text, faults};
use crate::{bytes::Format, failure::Failure, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis repair store
  tamis repair store --json
  tamis verify store                                     check without changes

Repair rebuilds the store from everything that is readable. It deletes nothing: files that the
repaired store does not use are moved to its folder `quarantine`. The report lists each key range in
which writes may be lost; if deletes may be lost, deleted keys may reappear. If there is no damage,
nothing is changed. The exit code is 0 if the store can be opened again, even if writes may be lost:
scripts should check `lost_ranges` in the output of --json.";

/// Repair a damaged store, and report the key ranges in which writes may be lost
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RepairArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Format of keys
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    key_format: Format,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

impl RepairArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        let report = Db::repair(&self.dir).map_err(Failure::of_existing)?;
        if self.json {
            return self.show_json(&report, output);
        }
        if report.was_sound() {
            return Ok(writeln!(output, "no faults; the store was not changed")?);
        }
        for fault in &report.faults {
            writeln!(output, "{}", fault_text(fault))?;
        }
        for left in &report.quarantined {
            writeln!(output, "{}: quarantined: {}", left.file.display(), left.why)?;
        }
        for range in &report.lost_ranges {
            writeln!(output, "{}", self.lost_text(range))?;
        }
        for name in &report.default_options {
            writeln!(output, "keyspace {name}: its options were lost; it now has the default options")?;
        }
        writeln!(
            output,
            "{} repaired: {}, {} of them rewritten, {} from the log; {} quarantined",
            faults(report.faults.len()),
            terminal::amount(report.table_count as u64, "table", "tables"),
            terminal::count(report.rewritten_table_count as u64),
            terminal::amount(report.log_entry_count, "entry", "entries"),
            terminal::amount(report.quarantined.len() as u64, "file", "files")
        )?;
        Ok(())
    }

    fn lost_text(&self, range: &LostRange) -> String {
        let what = if range.may_lose_deletes { "writes and deletes" } else { "writes" };
        let keyspace = match &range.keyspace {
            Some(name) => format!("keyspace {name}"),
            None => "any keyspace".to_owned(),
        };
        let lower = self.key_format.show(&range.lower);
        let keys = match &range.upper {
            Some(upper) => format!("from {lower:?} to {:?}", self.key_format.show(upper)),
            None => format!("from {lower:?} to the last key"),
        };
        format!("{what} may be lost: {keyspace}, {keys}: {}", range.why)
    }

    fn show_json(&self, report: &RepairReport, output: &mut dyn Write) -> Result<(), Failure> {
        let lost = report.lost_ranges.iter().map(|range| {
            json!({
                "keyspace": range.keyspace,
                "lower": self.key_format.json(&range.lower),
                "upper": range.upper.as_ref().map(|upper| self.key_format.json(upper)),
                "may_lose_deletes": range.may_lose_deletes,
                "why": range.why,
            })
        });
        let left = report
            .quarantined
            .iter()
            .map(|left| json!({ "file": left.file.display().to_string(), "why": left.why }));
        let line = json!({
            "sound": report.was_sound(),
            "faults": report.faults.iter().map(fault_json).collect::<Vec<_>>(),
            "tables": report.table_count, "rewritten_tables": report.rewritten_table_count,
            "log_entries": report.log_entry_count,
            "quarantined": left.collect::<Vec<_>>(),
            "lost_ranges": lost.collect::<Vec<_>>(),
            "default_options": report.default_options,
        });
        Ok(writeln!(output, "{line}")?)
    }
}
