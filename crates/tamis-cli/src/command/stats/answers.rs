//! Five questions about a store, answered in 80 columns.

use std::fmt::Write as _;

use tamis::{KeyspaceStatistics, Layout, LevelStatistics, QuerySampleStatistics, Statistics};

use super::sampled_kinds;
use crate::{store::FileKind, terminal};

#[cfg(test)]
mod tests;

/// The width of the text.
const WIDTH: usize = 80;

/// An open store as its statistics describe it.
pub(crate) struct Found<'a> {
    pub(crate) statistics: &'a Statistics,
    pub(crate) files: &'a [FileKind],
    pub(crate) unreadable_count: usize,
}

/// The questions with their answers.
pub(crate) fn answers(found: &Found<'_>) -> String {
    let questions = [
        ("Where is the data?", data(found)),
        ("How many blocks does a read cost?", costs(found)),
        ("How many blocks did the filters save?", savings(found)),
        ("Does anything wait, and why?", waits(found)),
        ("Does anything keep files?", keepers(found)),
    ];
    text(&questions) + "`tamis stats --all` prints every number.\n"
}

/// Questions and the lines of their answers.
pub(crate) fn text(questions: &[(&str, Vec<String>)]) -> String {
    let mut text = String::new();
    for (question, lines) in questions {
        let _ = writeln!(text, "{question}");
        lines.iter().for_each(|line| text.push_str(&folded(line)));
    }
    text
}

/// A line with its indent, folded between words; the rest is indented further.
fn folded(line: &str) -> String {
    let indent = line.len() - line.trim_start().len() + 2;
    let mut text = " ".repeat(indent);
    let mut width = indent;
    for (index, word) in line.trim_start().split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && width + 1 + length > WIDTH {
            let _ = write!(text, "\n{}", " ".repeat(indent + 2));
            width = indent + 2;
        } else if index > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn total(keyspace: &KeyspaceStatistics, size: impl Fn(&LevelStatistics) -> u64) -> u64 {
    keyspace.levels.iter().map(size).sum()
}

pub(crate) fn data(found: &Found<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for keyspace in &found.statistics.keyspaces {
        let bytes = total(keyspace, |level| level.bytes);
        let tables = total(keyspace, |level| level.table_count as u64);
        let layout = keyspace.layout.to_string();
        lines.push(format!(
            "{}: {} in {}, {} in memory ({})",
            terminal::name(&keyspace.name),
            terminal::bytes(bytes),
            terminal::amount(tables, "table", "tables"),
            terminal::bytes(keyspace.memtable_bytes),
            layout.split(':').next().unwrap_or_default(),
        ));
        for (number, level) in keyspace.levels.iter().enumerate().filter(|(_, level)| level.table_count > 0) {
            let deleted = level.tombstone_count + level.range_tombstone_count;
            let deletes = if deleted == 0 {
                String::new()
            } else {
                format!(", {} of them deletes", terminal::count(deleted))
            };
            lines.push(format!(
                "  L{number:<3} {:>10}  {:>3.0} %  {}, {}{deletes}",
                terminal::bytes(level.bytes),
                100.0 * level.bytes as f64 / bytes.max(1) as f64,
                terminal::amount(level.run_count as u64, "run", "runs"),
                terminal::amount(level.entry_count, "entry", "entries"),
            ));
        }
    }
    lines
}

/// The kinds of sampled queries of each keyspace that has some.
fn sampled<'a>(
    found: &'a Found<'_>,
) -> impl Iterator<Item = (&'a KeyspaceStatistics, Vec<(&'static str, QuerySampleStatistics)>)> {
    found.statistics.keyspaces.iter().filter_map(|keyspace| {
        let kinds = sampled_kinds(&keyspace.sample);
        let kinds: Vec<_> = kinds.into_iter().filter(|(_, sample)| sample.kept > 0).collect();
        (!kinds.is_empty()).then_some((keyspace, kinds))
    })
}

fn per_query(count: u64, sample: &QuerySampleStatistics) -> f64 {
    count as f64 / sample.kept.max(1) as f64
}

pub(crate) const NOT_SAMPLED: &str = "Not known: no queries of this store are sampled yet.";

pub(crate) fn costs(found: &Found<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (keyspace, kinds) in sampled(found) {
        lines.push(format!(
            "{}, by its sampled queries; a range reads one block per table or more:",
            terminal::name(&keyspace.name)
        ));
        for (kind, sample) in kinds {
            let (hits, misses) = (
                per_query(sample.tables_true_positive, &sample),
                per_query(sample.tables_false_positive, &sample),
            );
            lines.push(format!(
                "  {kind:<14} {:>7.2} blocks: {hits:.2} with a key, {misses:.2} false positives",
                hits + misses
            ));
        }
    }
    if lines.is_empty() { vec![NOT_SAMPLED.to_owned()] } else { lines }
}

fn savings(found: &Found<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (keyspace, kinds) in sampled(found) {
        let bytes: u64 = keyspace.filters.iter().map(|filters| filters.bytes).sum();
        let entries: u64 = keyspace.filters.iter().map(|filters| filters.entry_count).sum();
        lines.push(format!(
            "{}, with {} of filters ({:.1} bits per entry):",
            terminal::name(&keyspace.name),
            terminal::bytes(bytes),
            8.0 * bytes as f64 / entries.max(1) as f64
        ));
        for (kind, sample) in kinds {
            let saved = per_query(sample.tables_rejected, &sample);
            let all = saved + per_query(sample.tables_true_positive + sample.tables_false_positive, &sample);
            lines.push(format!("  {kind:<14} {saved:>7.2} of {all:.2} blocks per query"));
        }
    }
    if lines.is_empty() { vec![NOT_SAMPLED.to_owned()] } else { lines }
}

pub(crate) fn waits(found: &Found<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for keyspace in &found.statistics.keyspaces {
        if keyspace.immutable_memtable_count > 0 {
            let memtables =
                terminal::amount(keyspace.immutable_memtable_count as u64, "memtable", "memtables");
            lines.push(format!("{}: {memtables} for a flush: they are full", terminal::name(&keyspace.name)));
        }
        if keyspace.pending_compaction_bytes > 0 {
            let bytes = terminal::bytes(keyspace.pending_compaction_bytes);
            lines.push(format!(
                "{}: compactions of about {bytes}: {}",
                terminal::name(&keyspace.name),
                reason(keyspace)
            ));
        }
    }
    if found.statistics.log_bytes > 0 {
        let bytes = terminal::bytes(found.statistics.log_bytes);
        lines.push(format!("The next open, for {bytes} of log that are not in tables yet"));
    }
    if found.unreadable_count > 0 {
        let tables = terminal::amount(found.unreadable_count as u64, "table", "tables");
        lines.push(format!("Repair: {tables} cannot be opened; see `tamis verify`"));
    }
    if lines.is_empty() { vec!["Nothing.".to_owned()] } else { lines }
}

/// Why compactions of a keyspace are due.
fn reason(keyspace: &KeyspaceStatistics) -> String {
    let runs = keyspace.levels.first().map_or(0, |level| level.run_count);
    match keyspace.layout {
        // A store with default options compacts L0 from four runs on.
        Layout::Leveled if runs >= 4 => {
            format!("L0 has {}", terminal::amount(runs as u64, "run", "runs"))
        }
        Layout::Leveled => "a level is larger than its limit".to_owned(),
        Layout::Partitioned { .. } => "partitions have too many tables".to_owned(),
        _ => "a level has too many runs".to_owned(),
    }
}

pub(crate) fn keepers(found: &Found<'_>) -> Vec<String> {
    let statistics = found.statistics;
    let all: u64 = found.files.iter().map(|kind| kind.bytes).sum();
    let live: u64 = statistics.keyspaces.iter().map(|keyspace| total(keyspace, |level| level.bytes)).sum();
    let mut lines = vec![format!(
        "The folder has {}, of which tables that the store reads have {}.",
        terminal::bytes(all),
        terminal::bytes(live)
    )];
    for kind in found.files.iter().filter(|kind| kind.name == "*.obsolete") {
        let files = terminal::amount(kind.count, "obsolete file", "obsolete files");
        lines.push(format!("{files} of {} will be deleted by the next open.", terminal::bytes(kind.bytes)));
    }
    if statistics.snapshots > 0 || statistics.open_scans > 0 {
        lines.push(format!(
            "{} (oldest {:.0} s) and {} keep {} of obsolete tables.",
            terminal::amount(statistics.snapshots, "snapshot", "snapshots"),
            statistics.oldest_snapshot.as_secs_f64(),
            terminal::amount(statistics.open_scans, "scan", "scans"),
            terminal::bytes(statistics.held_bytes)
        ));
    } else {
        lines.push(
            "No snapshot and no scan keeps others: only programs that have the store open can.".to_owned(),
        );
    }
    for reader in &statistics.readers {
        lines.push(format!(
            "A reader in process {} keeps {} of obsolete files, for {:.0} s.",
            reader.process_id,
            terminal::bytes(reader.held_bytes),
            reader.age.as_secs_f64()
        ));
    }
    for dropped in &statistics.dropped_keyspaces {
        lines.push(format!("Handles of a dropped keyspace keep {}.", terminal::bytes(dropped.bytes)));
    }
    lines
}
