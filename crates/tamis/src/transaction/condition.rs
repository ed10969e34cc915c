//! The condition of a commit: no entry of some key ranges is newer than a sequence number.
//!
//! An entry of any kind counts: a put with the same value is a change. Versions that a compaction has dropped left no trace, and need not:
//! the snapshot of the transaction is registered, so what it has read is what it would read now.
//!
//! Cost: usually a comparison with each write since the snapshot ([`super::recent_commits`]). Otherwise a lookup in each memtable with newer entries for each key or range; in each table with newer entries a probe of its filters, and for what they do not
//! reject a lookup, or a scan of the range.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use tamis_filter::{Digester, KeyRange, Probe, RangeProbe};

use super::{
    key_ranges::{KeyRanges, Keys},
    recent_commits::RecentCommits,
};
use crate::{
    batch::{BatchEntry, WriteBatch},
    cache::table::TableCache,
    cursor::Cursor,
    error::{ConflictKeys, Error, Result},
    key::{Kind, SEQUENCE_MAX, Sequence},
    range_tombstone::{Cover, is_below_upper},
    store::{
        keyspace_state::{KeyspaceState, Keyspaces, LoggedMemtable, ReadState},
        parts::StoreParts,
    },
    sync::sim_fault,
    table::{environment::ReadCost, reader::TableReader},
    version::{handle::Table, key_bounds::span_bounds, level::Run},
};

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    /// The number of the snapshot.
    snapshot: Sequence,
    /// No change up to here was found.
    since: Sequence,
    /// By keyspace.
    ranges: BTreeMap<u32, KeyRanges>,
}

impl Condition {
    /// No key of `ranges` has changed since the snapshot at `snapshot`.
    pub(crate) const fn new(snapshot: Sequence, ranges: BTreeMap<u32, KeyRanges>) -> Self {
        Self { snapshot, since: snapshot, ranges }
    }

    /// Checks it without a lock, if the commits since the snapshot are many. Later ones are left for [`Condition::check_now`].
    ///
    /// # Errors
    /// As [`Condition::check_now`].
    pub(crate) fn check_early(&mut self, store: &StoreParts, recent: &RecentCommits) -> Result<()> {
        let visible = store.snapshots.visible();
        if visible <= self.since || recent.are_few(self.since, visible) {
            return Ok(());
        }
        let keyspaces = store.keyspaces.load();
        let mut visible = Sequence::MAX;
        let mut read_states = BTreeMap::new();
        for &id in self.ranges.keys() {
            let keyspace = keyspaces.get(&id).ok_or(Error::KeyspaceDropped)?;
            let (read_state, sequence) = keyspace.read_point(&store.snapshots);
            visible = visible.min(sequence);
            read_states.insert(id, read_state);
        }
        ChangeFinder::of(store).check(self, &keyspaces, |id| read_states.get(&id).cloned())?;
        self.since = visible.max(self.since);
        Ok(())
    }

    /// Checks it as a part of a commit: nothing else is committed meanwhile.
    ///
    /// # Errors
    /// [`Error::Conflict`]; [`Error::KeyspaceDropped`]; those of reads.
    pub(crate) fn check_now(&self, store: &StoreParts, recent: &RecentCommits) -> Result<()> {
        if sim_fault!("commit-unchecked") {
            return Ok(());
        }
        let keyspaces = store.keyspaces.load();
        if self.ranges.keys().any(|id| !keyspaces.contains_key(id)) {
            return Err(Error::KeyspaceDropped);
        }
        let visible = store.snapshots.visible();
        if visible <= self.since {
            return Ok(());
        }
        let found = recent.find((self.since, visible), |entry| {
            self.is_met_by(entry).then(|| conflict(&keyspaces, entry.keyspace, keys_of(entry)))
        });
        if let Some(found) = found {
            return found.map_or(Ok(()), Err);
        }
        ChangeFinder::of(store).check(self, &keyspaces, |id| {
            keyspaces.get(&id).map(|keyspace: &Arc<KeyspaceState>| keyspace.read_state.load_full())
        })
    }

    /// Whether these batches write to the keys.
    pub(crate) fn meets(&self, batches: &[WriteBatch]) -> bool {
        batches.iter().flat_map(WriteBatch::unnumbered).any(|entry| self.is_met_by(&entry))
    }

    fn is_met_by(&self, entry: &BatchEntry<'_>) -> bool {
        self.ranges.get(&entry.keyspace).is_some_and(|ranges| match keys_of(entry) {
            Keys::One(key) => ranges.has_key(key),
            Keys::Range(lower, upper) => ranges.meets(lower, upper),
        })
    }
}

/// The keys that a write changes.
fn keys_of<'a>(entry: &BatchEntry<'a>) -> Keys<'a> {
    match entry.kind {
        Kind::RangeTombstone => Keys::Range(entry.key, entry.value),
        _ => Keys::One(entry.key),
    }
}

/// The error of a transaction of which these keys were changed.
fn conflict(keyspaces: &Keyspaces, id: u32, keys: Keys<'_>) -> Error {
    let keyspace = keyspaces.get(&id).map(|keyspace| keyspace.name.clone()).unwrap_or_default();
    let keys = match keys {
        Keys::One(key) => ConflictKeys::Key(key.to_vec()),
        Keys::Range(lower, upper) => {
            ConflictKeys::Range { lower: lower.to_vec(), upper: (!upper.is_empty()).then(|| upper.to_vec()) }
        }
    };
    Error::Conflict { keyspace, keys }
}

/// Searches the sources of a store for changes.
struct ChangeFinder<'a> {
    tables: &'a TableCache,
    digester: Digester,
}

impl<'a> ChangeFinder<'a> {
    fn of(store: &'a StoreParts) -> Self {
        Self { tables: &store.tables, digester: Digester::new(store.versions.database().1) }
    }

    /// # Errors
    /// [`Error::Conflict`] if the condition does not hold in these keyspaces, which `read_state_of` returns; [`Error::KeyspaceDropped`]; those of reads.
    fn check(
        &self,
        condition: &Condition,
        keyspaces: &Keyspaces,
        read_state_of: impl Fn(u32) -> Option<Arc<ReadState>>,
    ) -> Result<()> {
        for (&id, ranges) in &condition.ranges {
            let read_state = read_state_of(id).ok_or(Error::KeyspaceDropped)?;
            let since = condition.since;
            for keys in ranges.iter() {
                let mut memtables = read_state.memtables();
                if memtables.any(|memtable| has_changed_in_memory(memtable, keys, since))
                    || self.has_changed_in_tables(&read_state, keys, condition)?
                {
                    return Err(conflict(keyspaces, id, keys));
                }
            }
        }
        Ok(())
    }

    fn has_changed_in_tables(
        &self,
        read_state: &ReadState,
        keys: Keys<'_>,
        condition: &Condition,
    ) -> Result<bool> {
        let version = &read_state.version;
        let &Condition { snapshot, since, .. } = condition;
        // A job lowers the numbers of range tombstones, but not to that of a snapshot: each one above it may be newer than `since`.
        let is_newer_run = |run: &&Arc<Run>| run.sequence_range().1 > snapshot;
        let is_newer = |table: &&Arc<Table>| table.summary().largest_sequence > snapshot;
        match keys {
            Keys::One(key) => {
                let Some(partition) = version.partition_of(key) else { return Ok(false) };
                // The runs share its digest.
                let probe = Probe::new(key, &self.digester);
                for run in partition.runs().map(|(_, run)| run).filter(is_newer_run) {
                    let is_newer_table = |table: &&Arc<Table>| table.summary().largest_sequence > since;
                    if let Some(table) = run.table_of(key).filter(is_newer_table)
                        && has_newer_version(self.tables.reader(table)?, &probe, since)?
                    {
                        return Ok(true);
                    }
                    if let Some(table) = run.range_deleting_table_of(key).filter(is_newer)
                        && tombstone_of(self.tables.reader(table)?, key) > snapshot
                    {
                        return Ok(true);
                    }
                }
            }
            Keys::Range(lower, upper) => {
                let bounds = span_bounds(lower, upper);
                let partitions = version.partitions_within(bounds).iter();
                let runs = partitions.flat_map(|partition| partition.runs()).map(|(_, run)| run);
                let tables = runs.filter(is_newer_run).flat_map(|run| run.tables_within(bounds));
                for table in tables.filter(is_newer) {
                    if self.has_newer_entry(table, (lower, upper), (snapshot, since))? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn has_newer_entry(
        &self,
        table: &Arc<Table>,
        (lower, upper): (&[u8], &[u8]),
        (snapshot, since): (Sequence, Sequence),
    ) -> Result<bool> {
        let reader = self.tables.reader(table)?;
        let cover_at = |key: &[u8]| {
            let fragments = reader.range_tombstones();
            fragments.map(|fragments| fragments.cover_at(key, SEQUENCE_MAX)).map_or((0, Vec::new()), end_of)
        };
        if is_covered_since((lower, upper), snapshot, cover_at) {
            return Ok(true);
        }
        if table.summary().largest_sequence <= since {
            return Ok(false);
        }
        if !upper.is_empty() {
            let range = KeyRange::new(Bound::Included(lower), Bound::Excluded(upper));
            if !reader.may_contain_range(&RangeProbe::new(range, &self.digester)) {
                return Ok(false);
            }
        }
        has_entry_since(&mut reader.cursor(), (lower, upper), since)
    }
}

/// Whether a table has a version of a key above `since`.
fn has_newer_version(reader: &TableReader, probe: &Probe<'_>, since: Sequence) -> Result<bool> {
    if reader.has_filter() && !reader.may_contain(probe) {
        return Ok(false);
    }
    let found = reader.get(probe.key(), SEQUENCE_MAX, &mut ReadCost::default())?;
    Ok(found.is_some_and(|found| found.sequence > since))
}

fn tombstone_of(reader: &TableReader, key: &[u8]) -> Sequence {
    reader.range_tombstones().map_or(0, |fragments| fragments.sequence_at(key, SEQUENCE_MAX))
}

fn has_changed_in_memory(memtable: &LoggedMemtable, keys: Keys<'_>, since: Sequence) -> bool {
    let entries = &memtable.memtable;
    if entries.sequence_range().is_none_or(|(_, newest)| newest <= since) && !memtable.has_received() {
        return false;
    }
    match keys {
        Keys::One(key) => {
            let newest = entries.get(key, SEQUENCE_MAX).map_or(0, |(_, sequence, _)| sequence);
            newest > since || entries.range_tombstones().sequence_at(key, SEQUENCE_MAX) > since
        }
        Keys::Range(lower, upper) => {
            let spans = entries.range_tombstones().spans_at(SEQUENCE_MAX);
            // The cursor of a memtable reads no file: it can't fail.
            is_covered_since((lower, upper), since, |key| end_of(spans.cover_at(key).0))
                || has_entry_since(&mut entries.cursor(), (lower, upper), since).unwrap_or(true)
        }
    }
}

/// Whether an entry of the range is newer, in any version.
fn has_entry_since(
    cursor: &mut impl Cursor,
    (lower, upper): (&[u8], &[u8]),
    since: Sequence,
) -> Result<bool> {
    cursor.seek(lower, SEQUENCE_MAX)?;
    while cursor.is_valid() && is_below_upper(cursor.key(), upper) {
        if cursor.sequence() > since {
            return Ok(true);
        }
        cursor.next()?;
    }
    Ok(false)
}

/// The number of the range tombstone over a key, and the end of the keys that it covers.
fn end_of(cover: Cover<'_>) -> (Sequence, Vec<u8>) {
    (cover.sequence, cover.upper.to_vec())
}

/// Whether a range tombstone over a part of the range is newer.
fn is_covered_since(
    (lower, upper): (&[u8], &[u8]),
    since: Sequence,
    cover_at: impl Fn(&[u8]) -> (Sequence, Vec<u8>),
) -> bool {
    let mut key = lower.to_vec();
    loop {
        let (sequence, end) = cover_at(&key);
        if sequence > since {
            return true;
        }
        if end.is_empty() || !is_below_upper(&end, upper) {
            return false;
        }
        key = end;
    }
}
