//! Builds a view of runs from scratch: one pass through all entries, in bounded memory.

use tamis_filter::Digester;

use super::{
    entry_heap::EntryHeap,
    filter_builder::{FilterJob, GroupBuilder, WrittenFilters},
    key_bits::{difference, infix},
    reader::tag,
    run::{OrdinalRun, are_sequences_disjoint, for_builder},
    size::ViewCounts,
    spool::Spool,
    writer::{KeyHead, RunSummary, ViewOptions, ViewWriter},
};
use crate::{coding::length_u32, cursor::Cursor, error::Result};

/// The run as a view names it.
pub(super) fn summarize<R: OrdinalRun>(id: u64, run: &R) -> RunSummary {
    RunSummary { id, largest_sequence: run.largest_sequence(), entry_count: run.entry_count() }
}

/// The head of a key after `last`, which is empty before the first key.
pub(super) fn head_of(options: &ViewOptions, digester: &Digester, last: &[u8], key: &[u8]) -> KeyHead {
    let difference = if last.is_empty() { 0 } else { difference(last, key).unwrap_or_default() };
    KeyHead { difference, infix: infix(key, difference), tag: tag(digester, options.tag_bytes, key) }
}

/// Adds the entry of a run to a view, after the key `last`, which becomes its key. Returns whether it is the newest entry of the key.
pub(super) fn add_entry<C: Cursor>(
    writer: &mut ViewWriter<'_>,
    (options, digester): (&ViewOptions, &Digester),
    last: &mut Vec<u8>,
    (run, cursor): (usize, &C),
) -> Result<bool> {
    let (key, kind) = (cursor.key(), cursor.kind());
    if key == last.as_slice() && !last.is_empty() {
        writer.add_old(run, kind)?;
        return Ok(false);
    }
    writer.begin_key(head_of(options, digester, last, key), Some(key))?;
    writer.add_newest(run, kind);
    last.clear();
    last.extend_from_slice(key);
    Ok(true)
}

/// As [`build_view_with_filters`], without filters.
///
/// # Errors
/// As there.
#[cfg(any(test, feature = "bench-internals"))]
pub(crate) fn build_view<R: OrdinalRun>(
    options: ViewOptions,
    runs: &[(u64, R)],
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<ViewCounts> {
    build_view_with_filters(options, runs, None, Spool::in_memory(), sink).map(|(counts, _)| counts)
}

/// Writes the view of runs with these ids to `sink`, part by part, with the filters of a job over all keys. The page index waits in
/// `spool`. Also returns why filters were not built; the view has those that were.
///
/// # Errors
/// A limit of views that the runs exceed, an error of a run, of a spool, or of the sink.
pub(crate) fn build_view_with_filters<R: OrdinalRun>(
    options: ViewOptions,
    runs: &[(u64, R)],
    filters: Option<FilterJob<'_>>,
    spool: Spool,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<(ViewCounts, Vec<String>)> {
    let summaries = runs.iter().map(|(id, run)| summarize(*id, run)).collect();
    let mut writer = ViewWriter::new(options, summaries, Some(spool), sink)?;
    let digester = Digester::new(options.digest_seed);
    let has_filters = filters.is_some();
    let mut group = GroupBuilder::new(filters, options.digest_seed);
    let are_disjoint = are_sequences_disjoint(None, runs.iter().map(|(_, run)| run));
    let sources: Vec<R> = runs.iter().map(|(_, run)| run.clone()).collect();
    let sources = for_builder(&sources, runs.len(), are_disjoint, has_filters);
    let mut entries = EntryHeap::new(sources.iter().map(OrdinalRun::cursor_once).enumerate())?;
    let mut last = Vec::new();
    while let Some(entry) = entries.peek() {
        if add_entry(&mut writer, (&options, &digester), &mut last, entry)? {
            group.add(&last)?;
        }
        entries.advance()?;
    }
    let mut new = group.finish()?;
    let refusals = std::mem::take(&mut new.refusals);
    let filters = WrittenFilters { old: None, new, new_runs: 0..length_u32(runs.len()) };
    Ok((writer.finish(&filters)?, refusals))
}
