//! Loads what the picker knows of range tombstones, because the picker does no I/O: the tombstones of each table, and the approximate
//! bytes that they delete of each older table. Programs get the largest ranges ([`deleted_ranges`]).
//!
//! The bytes follow from the index of the older table, accurate to a block per tombstone, and with an average error of none: no data
//! block is read. A table that the tombstones cover completely is not opened.
//!
//! Cost: two searches in an index for each range tombstone and each older table that it overlaps, once for each pair of tables.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use crate::{
    cache::table::TableCache,
    error::Result,
    key::{SEQUENCE_MAX, Sequence},
    observe::metrics::{DeletedRange, LISTED_MAX},
    range_tombstone::{Fragment, Fragments, is_below_upper},
    version::{
        handle::Table, key_bounds::span_bounds, level::Run, partition::Partition, version::KeyspaceVersion,
    },
};

/// Loads what is missing for the tables of a version.
pub(super) fn load(version: &KeyspaceVersion, tables: &TableCache) {
    for partition in version.partitions.iter().filter(|partition| partition.has_range_tombstones()) {
        for table in partition.tables_to_load() {
            // A table that can't be read deletes no other table; its next compaction reports the error.
            let reader = tables.reader(table);
            let fragments = reader.ok().and_then(|reader| reader.range_tombstones().cloned());
            table.set_range_tombstones(fragments.unwrap_or_default());
        }
        load_covered_bytes(partition, tables);
    }
}

fn load_covered_bytes(partition: &Partition, tables: &TableCache) {
    let runs: Vec<_> = partition.runs().map(|(_, run)| run).collect();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.has_range_tombstones()) {
        for deleting in run.tables() {
            let Some(fragments) = deleting.range_tombstones() else { continue };
            let known = deleting.covered_bytes();
            let older = runs.iter().skip(index + 1).flat_map(|run| run.tables_within(deleting.bounds()));
            let bytes_of = |table: &Table| known.get(&table.number()).copied();
            let covered: BTreeMap<u64, u64> = older
                .map(|table| {
                    let bytes = bytes_of(table).map_or_else(|| covered_bytes(fragments, table, tables), Ok);
                    (table.number(), bytes.unwrap_or(0))
                })
                .collect();
            deleting.set_covered_bytes(covered);
        }
    }
}

/// The ranges that the range tombstones of each table delete, adjacent ones of a table joined: those that delete the most bytes, the largest first.
pub(crate) fn deleted_ranges(version: &KeyspaceVersion, tables: &TableCache) -> Result<Vec<DeletedRange>> {
    let mut found = Vec::new();
    for partition in version.partitions.iter().filter(|partition| partition.has_range_tombstones()) {
        let runs: Vec<_> = partition.runs().map(|(_, run)| &**run).collect();
        let mut rest = runs.as_slice();
        while let Some((run, older)) = rest.split_first() {
            for deleting in run.tables().iter().filter(|table| table.has_range_tombstones()) {
                found.extend(ranges_of(deleting, older, tables)?);
            }
            rest = older;
        }
    }
    found.sort_by_key(|range| Reverse(range.bytes));
    found.truncate(LISTED_MAX);
    Ok(found)
}

/// Those of one table, with the bytes that they delete in older runs.
fn ranges_of(deleting: &Arc<Table>, older: &[&Run], tables: &TableCache) -> Result<Vec<DeletedRange>> {
    let Some(fragments) = tables.reader(deleting)?.range_tombstones() else { return Ok(Vec::new()) };
    let range_of = |span: Fragment| {
        let Fragment { lower, upper, .. } = span.clone();
        let range = Fragments::new(vec![span])?;
        let tables_within = older.iter().flat_map(|run| run.tables_within(span_bounds(&lower, &upper)));
        let bytes: Result<u64> = tables_within.map(|table| covered_bytes(&range, table, tables)).sum();
        Some(bytes.map(|bytes| DeletedRange { lower, upper, bytes }))
    };
    joined(fragments).into_iter().filter_map(range_of).collect()
}

/// The spans without a gap between them, with the sequence numbers of their first fragments.
fn joined(fragments: &Fragments) -> Vec<Fragment> {
    let mut spans: Vec<Fragment> = Vec::new();
    for fragment in fragments.list() {
        match spans.last_mut() {
            Some(last) if last.upper == fragment.lower => last.upper.clone_from(&fragment.upper),
            _ => spans.push(fragment.clone()),
        }
    }
    spans
}

/// The approximate bytes of the entries of a table that range tombstones of a newer one cover.
fn covered_bytes(fragments: &Fragments, table: &Table, tables: &TableCache) -> Result<u64> {
    const OLDEST: Sequence = 0;
    let (smallest, upper) = (table.smallest_key(), table.upper());
    if fragments.cover_all(smallest, &upper, OLDEST, SEQUENCE_MAX) {
        return Ok(table.file_bytes());
    }
    let within = fragments.within(smallest, &upper);
    if within.is_empty() {
        return Ok(0);
    }
    let reader = tables.reader(table)?;
    let entry_count = table.summary().entry_count as f64;
    let mut covered = 0.0;
    for fragment in within {
        let before = match fragment.lower.as_slice() {
            lower if lower <= smallest => 0.0,
            lower => reader.entries_about_before(lower)?,
        };
        let is_inside = is_below_upper(&fragment.upper, &upper) && !fragment.upper.is_empty();
        let up_to = if is_inside { reader.entries_about_before(&fragment.upper)? } else { entry_count };
        covered += up_to - before;
    }
    let share = (covered / entry_count.max(1.0)).clamp(0.0, 1.0);
    Ok((share * table.file_bytes() as f64) as u64)
}
