//! The report that the demo prints at its end.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};
use tamis::Statistics;

use super::Step;
use crate::{
    command::stats::{
        files_json, files_table, filters_json, filters_text, keyspaces_table, reads_json, reads_table,
    },
    store::FileKind,
    terminal,
};

/// The content of the report.
pub(super) struct Report<'a> {
    pub(super) steps: &'a [Step],
    /// Statistics of the handle that loaded the store.
    pub(super) written: &'a Statistics,
    /// Statistics of the handle that read it.
    pub(super) read: &'a Statistics,
    pub(super) files: &'a [FileKind],
    pub(super) folder: &'a Path,
    pub(super) source: &'a Path,
    pub(super) skipped_count: u64,
    pub(super) is_kept: bool,
}

impl Report<'_> {
    /// Prints the report for people.
    pub(super) fn show(&self, output: &mut dyn Write) -> io::Result<()> {
        let header = ["step", "operations", "time", "per second", "entries", "blocks read", "from memory"];
        writeln!(output, "{}", terminal::table(1, &header, self.steps.iter().map(row)))?;
        writeln!(
            output,
            "Block counts are per operation. \"blocks read\": first use since the store was opened; \"from memory\": already\n\
             verified. Every step found exactly the entries that were stored.\n"
        )?;
        write!(output, "{}", filters_text(&self.read.keyspaces))?;
        if let Some(table) = reads_table(&self.read.reads) {
            writeln!(output, "\nReads of tables of both keyspaces, by level:\n{table}")?;
        }
        writeln!(output, "\n{}", keyspaces_table(&self.read.keyspaces))?;
        writeln!(output, "{}", files_table(self.files))?;
        writeln!(
            output,
            "Written per byte of keys and values: {:.2} bytes (log {}, tables {}, compactions {}).",
            self.written.write_amplification(),
            terminal::bytes(self.written.log_bytes_written),
            terminal::bytes(self.written.flush_bytes_written),
            terminal::bytes(self.written.compaction_bytes_written),
        )?;
        if self.skipped_count > 0 {
            let (count, source) = (terminal::count(self.skipped_count), self.source.display());
            writeln!(output, "{count} files or folders below {source} were not readable and were skipped.")?;
        }
        let folder = self.folder.display();
        if self.is_kept {
            let source = self.source.display();
            writeln!(output, "The store is in {folder}. Try:")?;
            writeln!(output, "  tamis scan {folder} --keyspace paths --prefix {source} --reverse --limit 5")?;
            writeln!(output, "  tamis verify {folder}")
        } else {
            writeln!(output, "The store in {folder} was deleted; keep it with --keep.")
        }
    }

    /// Returns the report for programs.
    pub(super) fn json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!({
                "step": step.name,
                "operations": step.operation_count,
                "entries": step.entry_count,
                "seconds": step.seconds,
                "blocks_read": step.blocks.map(|(read, _)| read),
                "blocks_from_memory": step.blocks.map(|(_, memory)| memory),
            })
        });
        json!({
            "steps": steps.collect::<Vec<_>>(),
            "filters": self.read.keyspaces.iter().map(|keyspace| json!({
                "keyspace": keyspace.name,
                "filters": filters_json(keyspace),
            })).collect::<Vec<_>>(),
            "reads": reads_json(&self.read.reads),
            "write_amplification": self.written.write_amplification(),
            "files": files_json(self.files),
            "folder": self.folder.display().to_string(),
            "kept": self.is_kept,
            "skipped": self.skipped_count,
        })
    }
}

fn row(step: &Step) -> Vec<String> {
    let per_operation = |count: u64| format!("{:.2}", count as f64 / step.operation_count.max(1) as f64);
    // For a step with one long operation, the rate is entries per second.
    let unit_count = if step.operation_count == 1 { step.entry_count } else { step.operation_count };
    let dash = || "-".to_owned();
    vec![
        step.name.to_owned(),
        terminal::count(step.operation_count),
        terminal::seconds(step.seconds),
        if unit_count > 0 { terminal::rate(unit_count, step.seconds) } else { dash() },
        terminal::count(step.entry_count),
        step.blocks.map_or_else(dash, |(read, _)| per_operation(read)),
        step.blocks.map_or_else(dash, |(_, memory)| per_operation(memory)),
    ]
}
