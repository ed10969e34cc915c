//! The approximate number of keys in a range, without reading a block.
//!
//! The index of a table gives the number of entries before a bound, to within a block. A tombstone counts as -1, for itself and for
//! the key that it deletes. Entries in memtables are counted one by one. Versions of a key that are not merged yet count
//! separately. Entries that a range tombstone of a newer source covers do not count. In a compacted store the result is exact to
//! within two blocks per table.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use super::ReadPath;
use crate::{
    cursor::{
        Cursor,
        bounded::{Bounds, KeyRange},
    },
    error::Result,
    key::{Kind, SEQUENCE_MAX},
    keyspace_state::KeyspaceState,
    memtable::{Memtable, Spans},
    range_tombstone::{compare_uppers, is_below_upper},
    table::reader::TableReader,
    version::key_bounds::{KeyBounds, compare_ends, overlap},
};

impl ReadPath {
    /// See [`crate::Keyspace::approximate_count`].
    pub(crate) fn approximate_count(&self, keyspace: &KeyspaceState, bounds: &Bounds) -> Result<u64> {
        self.context.check_open()?;
        keyspace.check()?;
        let (lower, upper) = (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        if (KeyRange { lower: bounds.0.clone(), upper: bounds.1.clone() }).is_empty() {
            return Ok(0);
        }
        let (read_state, sequence) = keyspace.read_point(&self.snapshots);
        let mut count = 0.0;
        let mut deleted = DeletedSpans::default();
        for memtable in read_state.memtables() {
            let memtable = &memtable.memtable;
            let spans = memtable.range_tombstones().spans_at(sequence);
            count += count_in_memory(memtable, &spans, &deleted, (lower, upper))?;
            spans.iter().for_each(|span| deleted.add(&span.lower, &span.upper));
        }
        for partition in read_state.version.partitions_within((lower, upper)) {
            for (_, run) in partition.runs() {
                let tables = run.tables_within((lower, upper));
                for table in tables {
                    let summary = table.summary();
                    let share = 2.0 * summary.tombstone_count as f64 / summary.entry_count.max(1) as f64;
                    let reader = self.tables.reader(table)?;
                    let mut entries = count_in_table(&reader, (lower, upper))?;
                    let spans = deleted.within((lower, upper));
                    for span in spans.filter(|span| overlap(*span, table.bounds())) {
                        entries -= count_in_table(&reader, span)?;
                    }
                    count += entries.max(0.0) * (1.0 - share);
                }
                for table in tables.iter().filter(|table| table.has_range_tombstones()) {
                    let reader = self.tables.reader(table)?;
                    let fragments = reader.range_tombstones().into_iter().flat_map(|all| all.list());
                    fragments.for_each(|fragment| deleted.add(&fragment.lower, &fragment.upper));
                }
            }
        }
        Ok(count.max(0.0).round() as u64)
    }
}

/// Disjoint spans of keys whose older entries are deleted.
#[derive(Default)]
struct DeletedSpans {
    /// By lower bound; the upper bound is excluded, empty: no end.
    spans: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl DeletedSpans {
    fn add(&mut self, lower: &[u8], upper: &[u8]) {
        let (mut from, mut to) = (lower.to_vec(), upper.to_vec());
        let before = self.spans.range(..=from.clone()).next_back();
        let is_joined = |end: &[u8], start: &[u8]| end.is_empty() || start <= end;
        if let Some((start, end)) = before.filter(|(_, end)| is_joined(end, &from)) {
            from = start.clone();
            to = greatest_upper(&to, end).to_vec();
        }
        while let Some((start, end)) = self.spans.range(from.clone()..).next() {
            if !is_joined(&to, start) {
                break;
            }
            let start = start.clone();
            to = greatest_upper(&to, end).to_vec();
            self.spans.remove(&start);
        }
        self.spans.insert(from, to);
    }

    fn contains(&self, key: &[u8]) -> bool {
        let below = (Bound::Unbounded, Bound::Included(key));
        let span = self.spans.range::<[u8], _>(below).next_back();
        span.is_some_and(|(_, upper)| is_below_upper(key, upper))
    }

    /// The parts of the spans within bounds.
    fn within<'a>(&'a self, (lower, upper): KeyBounds<'a>) -> impl Iterator<Item = KeyBounds<'a>> {
        self.spans.iter().filter_map(move |(from, to)| {
            let to = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to.as_slice()) };
            let from = match lower {
                Bound::Included(key) | Bound::Excluded(key) if key >= from.as_slice() => lower,
                _ => Bound::Included(from.as_slice()),
            };
            let to = if compare_ends(to, upper).is_lt() { to } else { upper };
            overlap((from, to), (lower, upper)).then_some((from, to))
        })
    }
}

fn greatest_upper<'a>(left: &'a [u8], right: &'a [u8]) -> &'a [u8] {
    if compare_uppers(left, right).is_ge() { left } else { right }
}

/// The number of puts minus the number of deletes, of entries that no range tombstone covers.
fn count_in_memory(
    memtable: &Arc<Memtable>,
    spans: &Spans,
    deleted: &DeletedSpans,
    (lower, upper): KeyBounds<'_>,
) -> Result<f64> {
    let mut cursor = memtable.cursor();
    match lower {
        Bound::Unbounded => cursor.seek_first()?,
        Bound::Included(key) | Bound::Excluded(key) => cursor.seek(key, SEQUENCE_MAX)?,
    }
    let mut count = 0.0;
    while cursor.is_valid() {
        let key = cursor.key();
        let is_past = match upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => key > upper,
            Bound::Excluded(upper) => key >= upper,
        };
        if is_past {
            break;
        }
        let is_covered = spans.cover_at(key).sequence > cursor.sequence() || deleted.contains(key);
        if lower != Bound::Excluded(key) && !is_covered {
            count += if cursor.kind() == Kind::Put { 1.0 } else { -1.0 };
        }
        cursor.next()?;
    }
    Ok(count)
}

/// The number of entries between the bounds, from the index alone.
fn count_in_table(table: &Arc<TableReader>, (lower, upper): KeyBounds<'_>) -> Result<f64> {
    let summary = &table.properties().summary;
    let before = match lower {
        Bound::Included(key) | Bound::Excluded(key) if key > summary.smallest_key.as_slice() => {
            table.entries_about_before(key)?
        }
        _ => 0.0,
    };
    let up_to = match upper {
        Bound::Included(key) | Bound::Excluded(key) if key <= summary.largest_key.as_slice() => {
            table.entries_about_before(key)?
        }
        _ => summary.entry_count as f64,
    };
    Ok((up_to - before).max(0.0))
}
