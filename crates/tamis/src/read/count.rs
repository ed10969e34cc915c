//! The approximate number of keys in a range, from indexes alone.
//!
//! A sorted view counts the keys of its runs exactly ([`super::counting_view`]); it replaces the estimates of these runs. It reads at
//! most a block for each bound; nothing else reads one.
//!
//! The index of a table gives the number of entries before a bound, to within a block. A tombstone counts as -1, for itself and for
//! the key that it deletes. Up to 512 entries of a memtable are counted one by one, more by a random sample. Versions of a key that are not merged yet count
//! separately. Entries that a range tombstone of a newer source covers do not count. In a compacted store the result is exact to
//! within two blocks per table.

use std::{ops::Bound, sync::Arc};

use super::{ReadPath, counting_view::CountingView};
use crate::{
    cursor::bounded::{Bounds, KeyRange, as_slice},
    error::Result,
    key::SEQUENCE_MAX,
    memtable::{Memtable, SpanTree},
    range_tombstone::{Fragments, RangeTombstone, fragment},
    store::keyspace_state::KeyspaceState,
    table::reader::TableReader,
    version::{
        key_bounds::{KeyBounds, compare_ends, overlap, span_bounds},
        level::Run,
        partition::Partition,
        version::KeyspaceVersion,
    },
};

impl ReadPath {
    /// See [`crate::Keyspace::approximate_count`].
    pub(crate) fn approximate_count(&self, keyspace: &KeyspaceState, bounds: &Bounds) -> Result<u64> {
        self.context.check_open()?;
        keyspace.check()?;
        let (lower, upper) = (as_slice(&bounds.0), as_slice(&bounds.1));
        if (KeyRange { lower: bounds.0.clone(), upper: bounds.1.clone() }).is_empty() {
            return Ok(0);
        }
        let (read_state, sequence) = keyspace.read_point(&self.snapshots);
        let mut count = 0.0;
        let mut deleted = fragment([], &[]);
        for memtable in read_state.memtables() {
            let memtable = &memtable.memtable;
            let spans = memtable.range_tombstones().spans_at(sequence);
            count += count_in_memory(memtable, &spans, &deleted, (lower, upper));
            if !spans.is_empty() {
                deleted = with_spans(&deleted, spans.iter().map(|span| (&*span.lower, &*span.upper)));
            }
        }
        for partition in read_state.version.partitions_within((lower, upper)) {
            count += self.count_in_partition(&read_state.version, partition, (lower, upper), &mut deleted)?;
        }
        Ok(count.max(0.0).round() as u64)
    }
    /// The number of keys in the runs of a partition. Adds their range tombstones to `deleted`.
    fn count_in_partition(
        &self,
        version: &KeyspaceVersion,
        partition: &Partition,
        bounds: KeyBounds<'_>,
        deleted: &mut Fragments,
    ) -> Result<f64> {
        let mut view = partition.view.as_ref().and_then(|named| {
            let view =
                self.tools.views.reader(named, partition, self.tools.tables.environment(), version.id)?;
            CountingView::new(partition, named, view)
        });
        let (mut count, mut in_view) = (0.0, None);
        for (_, run) in partition.runs() {
            if let Some(counting) = view.as_ref().filter(|view| view.covers(run)) {
                if in_view.is_none() {
                    let spans: Vec<_> = spans_within(deleted, bounds).collect();
                    in_view = counting.count(&self.tools.tables, bounds, &spans)?;
                }
                if in_view.is_some() {
                    continue;
                }
                view = None;
            }
            count += self.count_in_run(run, bounds, deleted)?;
        }
        Ok(count + in_view.unwrap_or(0.0))
    }

    /// The number of keys in a run. Adds its range tombstones to `deleted`.
    fn count_in_run(&self, run: &Run, bounds: KeyBounds<'_>, deleted: &mut Fragments) -> Result<f64> {
        let mut count = 0.0;
        let tables = run.tables_within(bounds);
        for table in tables {
            let summary = table.summary();
            let share = 2.0 * summary.tombstone_count as f64 / summary.entry_count.max(1) as f64;
            let reader = self.tools.tables.reader(table)?;
            let mut entries = count_in_table(reader, bounds)?;
            let spans = spans_within(deleted, bounds);
            for span in spans.filter(|span| overlap(*span, table.bounds())) {
                entries -= count_in_table(reader, span)?;
            }
            count += entries.max(0.0) * (1.0 - share);
        }
        for table in tables.iter().filter(|table| table.has_range_tombstones()) {
            let reader = self.tools.tables.reader(table)?;
            let fragments = reader.range_tombstones().into_iter().flat_map(|all| all.list());
            *deleted = with_spans(deleted, fragments.map(|span| (&*span.lower, &*span.upper)));
        }
        Ok(count)
    }
}

/// The spans of `deleted` and further ones, each with a lower and an excluded upper bound, as disjoint fragments.
fn with_spans<'a>(deleted: &'a Fragments, spans: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Fragments {
    let known = deleted.list().iter().map(|span| (span.lower.as_slice(), span.upper.as_slice()));
    // Only the spans matter: one number for all makes spans that touch one fragment.
    let tombstone = |(lower, upper): (&[u8], &[u8])| RangeTombstone {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
        sequence: 1,
    };
    fragment(known.chain(spans).map(tombstone), &[])
}

/// The parts of the spans within bounds.
fn spans_within<'a>(
    deleted: &'a Fragments,
    (lower, upper): KeyBounds<'a>,
) -> impl Iterator<Item = KeyBounds<'a>> {
    deleted.list().iter().filter_map(move |span| {
        let (_, to) = span_bounds(&span.lower, &span.upper);
        let from = match lower {
            Bound::Included(key) | Bound::Excluded(key) if key >= span.lower.as_slice() => lower,
            _ => Bound::Included(span.lower.as_slice()),
        };
        let to = if compare_ends(to, upper).is_lt() { to } else { upper };
        overlap((from, to), (lower, upper)).then_some((from, to))
    })
}

/// The approximate number of puts minus the number of deletes, of entries that no range tombstone covers.
fn count_in_memory(memtable: &Memtable, spans: &SpanTree, deleted: &Fragments, bounds: KeyBounds<'_>) -> f64 {
    let (entries, weight) = memtable.sample_within(bounds);
    let counts = entries.map(|(key, sequence, kind)| {
        let is_covered =
            spans.cover_at(key).0.sequence > sequence || deleted.sequence_at(key, SEQUENCE_MAX) > 0;
        match kind {
            _ if is_covered => 0.0,
            kind if kind.sets_value() => weight,
            _ => -weight,
        }
    });
    counts.sum()
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
