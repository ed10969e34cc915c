//! Point reads: memtables, then the runs of the key's partition from new to old. The first version found is the result.
//!
//! The key's digest is computed for the first filter and shared by the filters of all levels; a key found in a memtable is not
//! hashed. A run is skipped without reading a block if no table of it covers the key, or if the table's filter rejects the key.

use tamis_filter::{KeyRange, Probe, auto::QueryKind};

use super::ReadPath;
use crate::{
    error::Result,
    key::{Kind, Sequence, check_key},
    keyspace_state::{KeyspaceState, ReadState},
    metrics::{ReadKind, ReadPlace},
    query_sample::{Positive, QueryOutcome, Sampling},
    slice::Slice,
    table::{
        environment::ReadCost,
        filter_set::FilterQuery,
        lazy_reader::NamedTable,
        reader::{Found, TableReader},
    },
    version::{handle::Table, partition::Partition},
};

/// Keys of a [`ReadPath::multi_get`] whose filters are prefetched together.
const GROUP_COUNT: usize = 16;
/// Runs whose filters a get prefetches together.
const PREFETCHED_RUNS: usize = 6;

/// The state of one point read: its cost, and the answers of the filters for the sample of queries.
#[derive(Default)]
struct PointRead {
    cost: ReadCost,
    sampling: Sampling,
    outcome: QueryOutcome,
}

/// Looks a key up in the memtables: `None` if no memtable has it, `Some(None)` if it is deleted.
fn get_in_memory(read_state: &ReadState, key: &[u8], sequence: Sequence) -> Option<Option<Slice>> {
    for memtable in read_state.memtables() {
        let covered = memtable.memtable.range_tombstones().sequence_at(key, sequence);
        match memtable.memtable.get(key, sequence) {
            Some((kind, found, value)) if found >= covered => {
                return Some((kind == Kind::Put).then(|| Slice::from(value)));
            }
            _ if covered > 0 => return Some(None),
            _ => {}
        }
    }
    None
}

impl ReadPath {
    /// The value of `key` at `snapshot`, or now.
    pub(crate) fn get(
        &self,
        keyspace: &KeyspaceState,
        key: &[u8],
        snapshot: Option<Sequence>,
    ) -> Result<Option<Slice>> {
        check_key(key)?;
        self.context.check_open()?;
        keyspace.check()?;
        let (read_state, visible) = keyspace.read_point_now(&self.snapshots);
        let sampling = Sampling::of(self.metrics.point_reads.number());
        self.get_in(&read_state, &self.probe(key), snapshot.unwrap_or(visible), sampling)
    }

    /// The values of several keys at one point in time.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceState,
        keys: impl IntoIterator<Item = K>,
        snapshot: Option<Sequence>,
    ) -> Result<Vec<Option<Slice>>> {
        self.context.check_open()?;
        keyspace.check()?;
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        let sequence = snapshot.unwrap_or(visible);
        let mut values = Vec::new();
        let mut keys = keys.into_iter();
        loop {
            let group: Vec<K> = keys.by_ref().take(GROUP_COUNT).collect();
            if group.is_empty() {
                return Ok(values);
            }
            let first = self.metrics.point_reads.numbers(group.len() as u64);
            let probes: Vec<Probe<'_>> = group.iter().map(|key| self.probe(key.as_ref())).collect();
            let mut found = Vec::with_capacity(probes.len());
            for probe in &probes {
                check_key(probe.key())?;
                found.push(get_in_memory(&read_state, probe.key(), sequence));
            }
            let is_open = |(_, found): &(&Probe<'_>, &Option<Option<Slice>>)| found.is_none();
            for (probe, _) in probes.iter().zip(&found).filter(is_open) {
                self.prefetch(&read_state, probe)?;
            }
            for ((probe, found), number) in probes.iter().zip(found).zip(first..) {
                values.push(match found {
                    Some(value) => value,
                    None => self.get_in_tables(&read_state, probe, sequence, Sampling::of(number))?,
                });
            }
        }
    }

    /// Prefetches the filters of a key's tables. A group prefetches all its filters before it probes the first, so that their
    /// cache misses overlap.
    fn prefetch(&self, read_state: &ReadState, probe: &Probe<'_>) -> Result<()> {
        let Some(partition) = read_state.version.partition_of(probe.key()) else { return Ok(()) };
        for (.., table) in partition.tables_of(probe.key()) {
            self.tools.tables.reader(table)?.prefetch(probe);
        }
        Ok(())
    }

    fn get_in(
        &self,
        read_state: &ReadState,
        probe: &Probe<'_>,
        sequence: Sequence,
        sampling: Sampling,
    ) -> Result<Option<Slice>> {
        match get_in_memory(read_state, probe.key(), sequence) {
            Some(value) => Ok(value),
            None => self.get_in_tables(read_state, probe, sequence, sampling),
        }
    }

    fn get_in_tables(
        &self,
        read_state: &ReadState,
        probe: &Probe<'_>,
        sequence: Sequence,
        sampling: Sampling,
    ) -> Result<Option<Slice>> {
        let mut read = PointRead { sampling, ..PointRead::default() };
        let found = self.find_in_tables(read_state, probe, sequence, &mut read);
        read.cost.add_to(&self.metrics, None);
        let weight = read_state.query_sample.weight(sampling);
        if weight > 0 && self.context.options.sample_queries {
            let range = KeyRange::point(probe.key());
            read_state.query_sample.record(QueryKind::Point, &range, weight, read.outcome);
        }
        self.metrics.digests.add(u64::from(probe.digest_count()));
        Ok(found?.filter(|found| found.kind == Kind::Put).map(|found| found.value))
    }

    fn find_in_tables(
        &self,
        read_state: &ReadState,
        probe: &Probe<'_>,
        sequence: Sequence,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        let key = probe.key();
        let Some(partition) = read_state.version.partition_of(key) else { return Ok(None) };
        if partition.has_range_tombstones() {
            return self.find_with_range_tombstones(partition, probe, sequence, read);
        }
        let mut tables = partition.tables_of(key);
        loop {
            // Prefetches the filters of several runs, so that their cache misses overlap.
            let mut next = [None; PREFETCHED_RUNS];
            let mut count = 0;
            for (slot, (level, _, table)) in next.iter_mut().zip(tables.by_ref()) {
                *slot = Some((level, table, table.slot().get()));
                count += 1;
            }
            if count > 1 {
                for (.., open) in next.iter().flatten() {
                    open.iter().for_each(|reader| reader.prefetch(probe));
                }
            }
            for &(level, table, open) in next.iter().flatten() {
                let reader = match open {
                    Some(reader) => reader,
                    None => self.tools.tables.reader(table)?,
                };
                if let Some(found) = self.find_in_table(reader, (level, table), probe, sequence, read)? {
                    return Ok(Some(found));
                }
            }
            if count < PREFETCHED_RUNS {
                return Ok(None);
            }
        }
    }

    /// As `find_in_tables`, if some runs have range tombstones: those of a run are checked before its filter, and end the search
    /// if they cover the key.
    fn find_with_range_tombstones(
        &self,
        partition: &Partition,
        probe: &Probe<'_>,
        sequence: Sequence,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        let key = probe.key();
        for (level, run) in partition.runs() {
            let covered = match run.range_deleting_table_of(key) {
                Some(table) => {
                    let reader = self.tools.tables.reader(table)?;
                    reader.range_tombstones().map_or(0, |fragments| fragments.sequence_at(key, sequence))
                }
                None => 0,
            };
            let found = match run.table_of(key) {
                Some(table) => {
                    let reader = self.tools.tables.reader(table)?;
                    self.find_in_table(reader, (level, table), probe, sequence, read)?
                }
                None => None,
            };
            match found {
                Some(found) if found.sequence >= covered => return Ok(Some(found)),
                _ if covered > 0 => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Reads a table unless its filters reject the key.
    #[inline(always)]
    fn find_in_table(
        &self,
        reader: &TableReader,
        place: (usize, &Table),
        probe: &Probe<'_>,
        sequence: Sequence,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        match self.is_rejected(reader, place, probe, read) {
            true => Ok(None),
            false => self.read_table(reader, place, probe, sequence, read),
        }
    }

    /// Whether the filters of a table reject the key.
    #[inline]
    fn is_rejected(
        &self,
        reader: &TableReader,
        (level, table): (usize, &Table),
        probe: &Probe<'_>,
        read: &mut PointRead,
    ) -> bool {
        if !reader.has_filter() || reader.may_contain(probe) {
            return false;
        }
        self.metrics.reads(ReadPlace::new(level, ReadKind::Point)).inspect(|reads| reads.denied.add(1));
        read.outcome.add_denied();
        let weight = read.sampling.tally_weight;
        if weight > 0 {
            table.filter_tally().points.add_denied(weight);
        }
        true
    }

    /// Reads a table that its filters do not reject. Not inlined, so that most tables of an absent key do not move a result.
    #[inline(never)]
    fn read_table(
        &self,
        reader: &TableReader,
        (level, table): (usize, &Table),
        probe: &Probe<'_>,
        sequence: Sequence,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        let counters = self.metrics.reads(ReadPlace::new(level, ReadKind::Point));
        let get = |read: &mut PointRead| {
            let began = if read.sampling.weight > 0 { self.metrics.read_times.begin() } else { None };
            let found = reader.get(probe.key(), sequence, &mut read.cost);
            if let Some(began) = began {
                self.metrics.read_times.end(level, began);
            }
            counters.inspect(|reads| read.cost.move_blocks_to(reads));
            found
        };
        let weight = read.sampling.tally_weight;
        if !reader.has_filter() {
            let found = get(read)?;
            if weight > 0 {
                add_admitted(table, weight, Positive::of(found.as_ref()));
            }
            return Ok(found);
        }
        // An evicted filter admits all keys: its answers are not counted.
        let are_filters_asked = reader.are_filters_asked(FilterQuery::Point);
        if are_filters_asked {
            counters.inspect(|reads| reads.admitted.add(1));
        }
        let found = get(read)?;
        if found.is_some() {
            if are_filters_asked {
                counters.inspect(|reads| reads.right.add(1));
                read.outcome.add_positive(Positive::True);
            }
        } else {
            reader.record_false_positive();
            if are_filters_asked {
                read.outcome.add_positive(Positive::False);
            }
        }
        if weight > 0 && are_filters_asked {
            add_admitted(table, weight, Positive::of(found.as_ref()));
        }
        Ok(found)
    }
}

/// Counts a key that the filters of a table admit; so do tables without filters, which are due for a check, too.
fn add_admitted(table: &Table, weight: u32, positive: Positive) {
    table.filter_tally().points.add_admitted(weight);
    table.filter_tally().points.add_positive(positive, weight);
}
