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
//! A lookup is cached with the keys for which it is valid, so that a scan searches once per span and not once per entry. Only
//! the tables at the scan's position are opened.
//!
//! Cost: a lookup takes one binary search per source that has range tombstones.

use std::sync::Arc;

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

/// See the head of this file.
pub(crate) struct Coverage {
    /// With their ranks, in ascending order.
    sources: Vec<(usize, CoverSource)>,
    tables: Arc<TableCache>,
    snapshot: Sequence,
    span: CoveredSpan,
    /// The keys for which `span` is valid; `None` before the first lookup.
    valid: Option<(Vec<u8>, Vec<u8>)>,
}

impl Coverage {
    /// `None` if no source has range tombstones. `sources` are in the order of their ranks.
    pub(crate) fn new(
        sources: Vec<(usize, CoverSource)>,
        tables: &Arc<TableCache>,
        snapshot: Sequence,
    ) -> Option<Self> {
        let span =
            CoveredSpan { sequence: 0, rank: 0, lower: Vec::new(), upper: Vec::new(), has_newer: false };
        let tables = Arc::clone(tables);
        (!sources.is_empty()).then_some(Self { sources, tables, snapshot, span, valid: None })
    }

    /// The span of `key`, with the newest tombstone over it.
    pub(crate) fn span_at(&mut self, key: &[u8]) -> Result<&CoveredSpan> {
        let is_known =
            |(lower, upper): &(Vec<u8>, Vec<u8>)| lower.as_slice() <= key && is_below_upper(key, upper);
        if !self.valid.as_ref().is_some_and(is_known) {
            self.look_up(key)?;
        }
        Ok(&self.span)
    }

    fn look_up(&mut self, key: &[u8]) -> Result<()> {
        self.valid = None;
        self.span.sequence = 0;
        let (mut lower, mut upper): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        for (rank, source) in &self.sources {
            let mut take = |cover: Cover<'_>, has_newer: bool| {
                if cover.lower > lower.as_slice() {
                    lower = cover.lower.to_vec();
                }
                upper = least_upper(&upper, cover.upper).to_vec();
                if cover.sequence > self.span.sequence {
                    self.span = CoveredSpan {
                        sequence: cover.sequence,
                        rank: *rank,
                        lower: cover.lower.to_vec(),
                        upper: cover.upper.to_vec(),
                        has_newer,
                    };
                }
            };
            match source {
                CoverSource::Empty(known) => take(known.cover_at(key, self.snapshot), false),
                CoverSource::Memtable(spans) => {
                    let (cover, has_newer) = spans.cover_at(key);
                    take(cover, has_newer);
                }
                CoverSource::Run(run) => cover_of_run(run, &self.tables, key, self.snapshot, &mut take)?,
            }
        }
        self.valid = Some((lower, upper));
        Ok(())
    }
}

/// The cover of `key` by the range tombstones of a run.
fn cover_of_run(
    run: &Run,
    tables: &TableCache,
    key: &[u8],
    snapshot: Sequence,
    take: &mut impl FnMut(Cover<'_>, bool),
) -> Result<()> {
    let (table, next) = run.begun_at(key);
    let next = next.map_or(&[][..], |next| next.smallest_key());
    let Some(table) = table else {
        take(Cover { sequence: 0, lower: &[], upper: next }, false);
        return Ok(());
    };
    let smallest = table.smallest_key();
    if !table.has_range_tombstones() {
        take(Cover { sequence: 0, lower: smallest, upper: next }, false);
        return Ok(());
    }
    let reader = tables.reader(table)?;
    if let Some(fragments) = reader.range_tombstones() {
        let cover = fragments.cover_at(key, snapshot);
        let lower = cover.lower.max(smallest);
        take(Cover { lower, upper: least_upper(cover.upper, next), ..cover }, true);
    }
    Ok(())
}
