//! The size of the pages of a view before it is built: some of its pages are encoded, and the others take as many bytes.
//!
//! The anchors and the escaped differences of a page depend on how much neighboring keys share. Keys of a run that are far apart do not show
//! this: pages of a web site share more than two addresses of a site do. So **windows** of neighboring entries are read. They begin at
//! keys that are evenly distributed among the entries. In each window the runs are merged as in [`super::build`], until the writer of views has
//! written one page.
//!
//! Cost: a seek in each run for each window, and at least [`ENTRY_COUNT_MIN`] entries.
//! Views of fewer entries are encoded as a whole.

use tamis_filter::Digester;

use super::{
    build::{add_entry, summarize},
    entry_heap::EntryHeap,
    format::segments_per_page,
    run::OrdinalRun,
    size::ViewCounts,
    writer::{ViewOptions, ViewWriter},
};
use crate::{cursor::Cursor, error::Result};

/// Entries that are read of each view. Pages differ: in addresses one that begins at another host takes twice the bytes of others, because
/// it has no long prefix. The mean of 64 pages was up to 19 % wrong, that of 256 pages up to 5 %.
const ENTRY_COUNT_MIN: u64 = 1 << 16;
/// Windows in a view of many runs, whose pages have many entries.
const WINDOW_COUNT_MIN: u64 = 64;
/// Of larger views, one of so many entries is read.
const SAMPLE_INTERVAL: u64 = 64;

/// The keys at which windows begin, in order: of all runs, from the number of entries of each run and some of its keys in order,
/// which are evenly distributed among its entries. Empty if all entries are read.
pub(crate) fn window_starts(segment_size: usize, runs: &[(u64, &[Vec<u8>])]) -> Vec<Vec<u8>> {
    let entry_count: u64 = runs.iter().map(|(entry_count, _)| entry_count).sum();
    let page_entries = (segments_per_page(runs.len()) * segment_size) as u64;
    let read_count = ENTRY_COUNT_MIN.max(WINDOW_COUNT_MIN * page_entries).max(entry_count / SAMPLE_INTERVAL);
    if entry_count <= read_count {
        return Vec::new();
    }
    // Each key represents the entries of its run up to the next one.
    let weighted = |(entry_count, keys): &(u64, &[Vec<u8>])| *entry_count as f64 / keys.len().max(1) as f64;
    let mut keys: Vec<(&[u8], f64)> =
        runs.iter().flat_map(|run| run.1.iter().map(|key| (key.as_slice(), weighted(run)))).collect();
    keys.sort_unstable_by(|left, right| left.0.cmp(right.0));
    let window_count = read_count.div_ceil(page_entries.max(1));
    let step = keys.iter().map(|(_, weight)| weight).sum::<f64>() / window_count as f64;
    let (mut starts, mut passed) = (Vec::new(), 0.0);
    for (key, weight) in keys {
        passed += weight;
        if passed >= step * (starts.len() as f64 + 0.5) {
            starts.push(key.to_vec());
        }
    }
    starts
}

/// The counts of the pages of a view that begin at these keys; without keys, those of all pages.
///
/// # Errors
/// Those of the runs.
pub(crate) fn sample_pages<R: OrdinalRun>(
    options: ViewOptions,
    runs: &[R],
    starts: &[Vec<u8>],
) -> Result<ViewCounts> {
    let summaries = (0..).zip(runs).map(|(id, run)| summarize(id, run)).collect();
    let mut discard = |_: &[u8]| Ok(());
    let mut sampler = Sampler {
        digester: Digester::new(options.digest_seed),
        writer: ViewWriter::new(options, summaries, None, &mut discard)?,
        options,
        entries: EntryHeap::new(runs.iter().map(OrdinalRun::cursor).enumerate())?,
        last: Vec::new(),
    };
    if starts.is_empty() {
        while sampler.add_entry()? {}
    }
    for start in starts {
        if start.as_slice() > sampler.last.as_slice() {
            sampler.seek(start)?;
        }
        while !sampler.writer.end_full_page()? && sampler.add_entry()? {}
    }
    // Pages of other windows are whole.
    let is_at_end = sampler.entries.peek().is_none();
    if !is_at_end {
        sampler.writer.discard_segments();
    }
    sampler.writer.finish_sample()
}

struct Sampler<'a, C: Cursor> {
    options: ViewOptions,
    digester: Digester,
    writer: ViewWriter<'a>,
    entries: EntryHeap<C>,
    /// The key before the next entry.
    last: Vec<u8>,
}

impl<C: Cursor> Sampler<'_, C> {
    /// Moves to the second key from `start` on, whose anchor depends on the key before it.
    fn seek(&mut self, start: &[u8]) -> Result<()> {
        self.writer.discard_segments();
        self.entries.seek(start)?;
        let first = self.entries.peek().map(|(_, cursor)| cursor.key().to_vec());
        self.last = first.unwrap_or_default();
        // If there are more versions, the window begins with them.
        for _ in 0..self.options.segment_size {
            if self.entries.peek().is_none_or(|(_, cursor)| cursor.key() != self.last.as_slice()) {
                return Ok(());
            }
            self.entries.advance()?;
        }
        self.writer.continue_key(&self.last, 0);
        Ok(())
    }

    /// Adds the next entry; `false` if there is none.
    fn add_entry(&mut self) -> Result<bool> {
        let Some(entry) = self.entries.peek() else { return Ok(false) };
        add_entry(&mut self.writer, (&self.options, &self.digester), &mut self.last, entry)?;
        self.entries.advance()?;
        Ok(true)
    }
}
