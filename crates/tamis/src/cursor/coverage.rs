//! The spans that range tombstones cover, over all sources of a scan.
//!
//! Sources have ranks, the newest first: of two sources with entries of a key, all entries and range tombstones of the one
//! with the lower rank are newer. So the covering source of the lowest rank has the newest tombstone, and all entries of
//! sources of higher rank within its span are deleted: a scan jumps over them without reading. A sorted view is a source of several runs. It
//! has the rank of its newest run in the merge, and the range tombstones of each run have the rank of this run: the view skips the entries
//! of older runs itself (`view_source.rs`).
//!
//! Ranges in which scans have found no entry ([`crate::empty_ranges`]) count as a source that is newer than all others.
//!
//! The span that was found last in each source is kept, so that a scan searches once per span of a source and not once per entry. Only
//! the tables at the scan's position are opened.
//!
//! Cost: a lookup takes one binary search for each source whose last span does not have the key.

use std::{ops::Bound, sync::Arc};

use tamis_filter::Direction;

use crate::{
    cache::table::TableCache,
    empty_ranges::KnownRanges,
    error::Result,
    key::Sequence,
    memtable::SpanTree,
    range_tombstone::{Cover, is_below_upper, least_upper},
    version::level::Run,
};

/// The rank of the newest memtable; the other sources follow. Rank 0 is that of ranges without entries: they hide the entries of all
/// sources.
pub(crate) const FIRST_RANK: usize = 1;

/// The range tombstones of one source, or the ranges without entries.
pub(crate) enum CoverSource {
    Empty(Arc<KnownRanges>),
    Memtable(SpanTree),
    Run(Arc<Run>),
}

/// A span of keys whose entries are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoveredSpan {
    /// Entries at or above this number are not deleted; 0 if no entry is deleted.
    pub(crate) sequence: Sequence,
    /// The source of the tombstone.
    pub(crate) rank: usize,
    /// Included; empty: from the first key.
    pub(crate) lower: Vec<u8>,
    /// Excluded; empty: no end.
    pub(crate) upper: Vec<u8>,
    /// Whether the source itself may have newer entries in the span.
    pub(crate) has_newer: bool,
}

impl CoveredSpan {
    const fn new(rank: usize) -> Self {
        Self { sequence: 0, rank, lower: Vec::new(), upper: Vec::new(), has_newer: false }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && is_below_upper(key, &self.upper)
    }

    fn set(&mut self, cover: Cover<'_>, has_newer: bool) {
        self.sequence = cover.sequence;
        self.has_newer = has_newer;
        cover.lower.clone_into(&mut self.lower);
        cover.upper.clone_into(&mut self.upper);
    }
}

/// A source, with the span of its last lookup.
struct SpanSource {
    source: CoverSource,
    /// Without a tombstone: the keys that none covers.
    span: CoveredSpan,
    /// There was a lookup.
    is_known: bool,
}

impl SpanSource {
    fn look_up(&mut self, key: &[u8], tables: &TableCache, snapshot: Sequence) -> Result<()> {
        self.is_known = false;
        match &self.source {
            CoverSource::Empty(known) => self.span.set(known.cover_at(key, snapshot), false),
            CoverSource::Memtable(spans) => {
                let (cover, has_newer) = spans.cover_at(key);
                self.span.set(cover, has_newer);
            }
            CoverSource::Run(run) => self.span.set(cover_of_run(run, tables, key, snapshot)?, true),
        }
        self.is_known = true;
        Ok(())
    }
}

/// See the head of this file.
pub(crate) struct Coverage {
    /// In the order of their ranks, at least one.
    sources: Vec<SpanSource>,
    tables: Arc<TableCache>,
    snapshot: Sequence,
    /// The source with the newest tombstone at the keys of the last lookup.
    newest: usize,
    /// These keys; none before the first lookup.
    lower: Vec<u8>,
    upper: Vec<u8>,
    is_known: bool,
}

impl Coverage {
    /// `None` if no source has range tombstones. `sources` are in the order of their ranks.
    pub(crate) fn new(
        sources: Vec<(usize, CoverSource)>,
        tables: &Arc<TableCache>,
        snapshot: Sequence,
    ) -> Option<Self> {
        if sources.is_empty() {
            return None;
        }
        let with_span = |(rank, source)| SpanSource { source, span: CoveredSpan::new(rank), is_known: false };
        let sources = sources.into_iter().map(with_span).collect();
        let (tables, lower, upper) = (Arc::clone(tables), Vec::new(), Vec::new());
        Some(Self { sources, tables, snapshot, newest: 0, lower, upper, is_known: false })
    }

    /// Whether `key` is one of the keys of the last lookup.
    fn is_known_at(&self, key: &[u8]) -> bool {
        self.is_known && self.lower.as_slice() <= key && is_below_upper(key, &self.upper)
    }

    /// The span of `key`, with the newest tombstone over it.
    pub(crate) fn span_at(&mut self, key: &[u8]) -> Result<&CoveredSpan> {
        if !self.is_known_at(key) {
            self.look_up(key)?;
        }
        Ok(&self.sources.get(self.newest).expect("there is at least one source").span)
    }

    /// Whether it is known from the last lookup that no range tombstone covers `key`.
    pub(super) fn is_clear_at(&self, key: &[u8]) -> bool {
        let is_clear = self.sources.get(self.newest).is_some_and(|source| source.span.sequence == 0);
        is_clear && self.is_known_at(key)
    }

    /// The end of the keys of the last lookup, to which the same range tombstones belong.
    pub(super) fn end_of_span(&self, direction: Direction) -> Bound<&[u8]> {
        match direction {
            Direction::Forward if self.upper.is_empty() => Bound::Unbounded,
            Direction::Forward => Bound::Excluded(&self.upper),
            Direction::Backward => Bound::Included(&self.lower),
        }
    }

    /// Searches the sources whose spans end before `key` or begin after it.
    fn look_up(&mut self, key: &[u8]) -> Result<()> {
        self.is_known = false;
        for source in &mut self.sources {
            if !(source.is_known && source.span.has(key)) {
                source.look_up(key, &self.tables, self.snapshot)?;
            }
        }
        let spans = || self.sources.iter().map(|source| &source.span);
        let newest = spans().enumerate().rev().max_by_key(|(_, span)| span.sequence);
        self.newest = newest.map_or(0, |(index, _)| index);
        let lower = spans().map(|span| span.lower.as_slice()).max();
        lower.unwrap_or_default().clone_into(&mut self.lower);
        let upper = spans().map(|span| span.upper.as_slice()).reduce(least_upper);
        upper.unwrap_or_default().clone_into(&mut self.upper);
        self.is_known = true;
        Ok(())
    }
}

/// The cover of `key` by the range tombstones of a run.
fn cover_of_run<'a>(
    run: &'a Run,
    tables: &'a TableCache,
    key: &[u8],
    snapshot: Sequence,
) -> Result<Cover<'a>> {
    let (table, next) = run.begun_at(key);
    let next = next.map_or(&[][..], |next| next.smallest_key());
    let smallest = table.map_or(&[][..], |table| table.smallest_key());
    let fragments = match table.filter(|table| table.has_range_tombstones()) {
        Some(table) => tables.reader(table)?.range_tombstones(),
        None => None,
    };
    let none = Cover { sequence: 0, lower: &[], upper: &[] };
    let cover = fragments.map_or(none, |fragments| fragments.cover_at(key, snapshot));
    // The tables before and behind may have others.
    Ok(Cover { lower: cover.lower.max(smallest), upper: least_upper(cover.upper, next), ..cover })
}
