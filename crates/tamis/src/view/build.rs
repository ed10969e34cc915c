//! Builds a view of runs from scratch: one pass through all entries. In memory are a page and the page index.

use super::{
    entry_heap::EntryHeap,
    key_bits::{difference, infix},
    run::OrdinalRun,
    writer::{KeyHead, RunSummary, ViewOptions, ViewWriter},
};
use crate::{cursor::Cursor, error::Result};

/// The run as a view names it.
pub(super) fn summarize<R: OrdinalRun>(id: u64, run: &R) -> RunSummary {
    RunSummary { id, largest_sequence: run.largest_sequence(), entry_count: run.entry_count() }
}

/// The head of a key after `last`, which is empty before the first key.
pub(super) fn head_of(last: &[u8], key: &[u8]) -> KeyHead {
    let difference = if last.is_empty() { 0 } else { difference(last, key).unwrap_or_default() };
    KeyHead { difference, infix: infix(key, difference) }
}

/// Writes the view of runs with these ids to `sink`, part by part.
///
/// # Errors
/// A limit of views that the runs exceed, an error of a run, or of the sink.
pub(crate) fn build_view<R: OrdinalRun>(
    options: ViewOptions,
    runs: &[(u64, R)],
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let summaries = runs.iter().map(|(id, run)| summarize(*id, run)).collect();
    let mut writer = ViewWriter::new(options, summaries, sink)?;
    let mut entries = EntryHeap::new(runs.iter().map(|(_, run)| run.cursor_once()).enumerate())?;
    let mut last = Vec::new();
    while let Some((run, cursor)) = entries.peek() {
        let (key, kind) = (cursor.key(), cursor.kind());
        if key == last.as_slice() && !last.is_empty() {
            writer.add_old(run, kind)?;
        } else {
            writer.begin_key(head_of(&last, key), Some(key))?;
            writer.add_newest(run, kind);
            last.clear();
            last.extend_from_slice(key);
        }
        entries.advance()?;
    }
    writer.finish()
}
