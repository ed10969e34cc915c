//! Point reads: memtables, then the runs of the key's partition from new to old. The first version found is the result.
//!
//! The key's digest is computed for the first filter and shared by the filters of all levels; a key found in a memtable is not
//! hashed. A run is skipped without reading a block if no table of it covers the key, or if the table's filter rejects the key.
//!
//! If the first version is an operand or an expiring put, the search continues below it, down to a full value ([`ReadPath::resolve`]).
//!
//! A read counts without atomics. [`PointRead::end_level`] is the only place that adds to the counters of the store: once for each level.

use std::{mem, sync::Arc};

use tamis_filter::{KeyRange, Probe, auto::QueryKind};

use super::{ReadPath, snapshot::SnapshotPoint};
use crate::{
    error::Result,
    expiry,
    key::{Kind, Sequence, check_key},
    merge_operator::{FoldStep, Operands},
    observe::{
        metrics::{Metrics, ReadKind, ReadPlace},
        query_sample::{Positive, QueryOutcome, Sampling},
    },
    slice::Slice,
    store::keyspace_state::{KeyspaceState, ReadState},
    table::{
        environment::ReadCost,
        filter_set::FilterQuery,
        lazy_reader::NamedTable,
        reader::{Found, TableReader},
    },
    transaction::own_writes::OwnWrites,
    version::{handle::Table, level::Run, partition::Partition, version::KeyspaceVersion},
};

/// The reads of the tables of one level.
#[derive(Default)]
struct LevelReads {
    level: usize,
    answers: QueryOutcome,
    cost: ReadCost,
}

/// One point read, with what it has counted.
struct PointRead<'a> {
    probe: &'a Probe<'a>,
    sequence: Sequence,
    sampling: Sampling,
    /// The answers of the filters in the levels that were left.
    outcome: QueryOutcome,
    here: LevelReads,
}

impl<'a> PointRead<'a> {
    fn new(probe: &'a Probe<'a>, sequence: Sequence, sampling: Sampling) -> Self {
        Self { probe, sequence, sampling, outcome: QueryOutcome::default(), here: LevelReads::default() }
    }

    /// Continues in a level.
    #[inline]
    fn enter_level(&mut self, level: usize, metrics: &Metrics) {
        if level != self.here.level {
            self.end_level(metrics);
            self.here.level = level;
        }
    }

    /// Adds the reads of the current level to the counters.
    fn end_level(&mut self, metrics: &Metrics) {
        let LevelReads { level, answers, mut cost } = mem::take(&mut self.here);
        let place = ReadPlace::new(level, ReadKind::Point);
        if let Some(reads) = metrics.reads(place) {
            let QueryOutcome { rejected, there, nothing_there } = answers;
            reads.rejected.add(rejected.into());
            reads.admitted.add(u64::from(there) + u64::from(nothing_there));
            reads.true_positives.add(there.into());
        }
        cost.add_to(metrics, Some(place));
        self.outcome += answers;
    }

    /// Prefetches the filters of a table that is open.
    #[inline]
    fn prefetch(&self, table: &Table) {
        if let Some(reader) = table.slot().get() {
            reader.prefetch(self.probe);
        }
    }

    /// Whether the filters of a table reject the key.
    #[inline]
    fn is_rejected(&mut self, reader: &TableReader, table: &Table) -> bool {
        if !reader.has_filter() || reader.may_contain(self.probe) {
            return false;
        }
        self.here.answers.add_rejected();
        let weight = self.sampling.tally_weight;
        if weight > 0 {
            table.filter_tally().points.add_rejected(weight);
        }
        true
    }
}

/// Looks a key up in the memtables: `None` if no memtable has it.
#[inline]
fn get_in_memory<'a>(read_state: &'a ReadState, key: &[u8], sequence: Sequence) -> Option<(Kind, &'a [u8])> {
    read_state.memtables().find_map(|memtable| memtable.memtable.look_up(key, sequence))
}

impl ReadPath {
    /// The value of `key` at `snapshot`, or now.
    pub(crate) fn get(
        &self,
        keyspace: &KeyspaceState,
        key: &[u8],
        snapshot: Option<SnapshotPoint>,
    ) -> Result<Option<Slice>> {
        check_key(key)?;
        self.context.check_open()?;
        keyspace.check()?;
        let (read_state, visible) = keyspace.read_point_now(&self.snapshots);
        let point = snapshot.unwrap_or(SnapshotPoint::now(visible));
        let number = self.metrics.point_reads.number();
        match get_in_memory(&read_state, key, point.sequence) {
            Some((Kind::Put, value)) => Ok(Some(Slice::from(value))),
            Some(found) => self.value_of(&read_state, key, found, point),
            None => self.get_in_tables(
                &read_state,
                &self.probe(key),
                point,
                read_state.query_sample.sampling(QueryKind::Point, number),
            ),
        }
    }

    /// The value of a key at a point in time, for a transaction with these writes.
    pub(crate) fn get_with_own(
        &self,
        keyspace: &KeyspaceState,
        own: &OwnWrites,
        key: &[u8],
        point: SnapshotPoint,
    ) -> Result<Option<Slice>> {
        let (read_state, _) = keyspace.read_point_now(&self.snapshots);
        self.resolve(&read_state, Some(own), key, point)
    }

    /// The value of a key whose newest version is an operand or an expiring put, from all its versions down to a full value; `own` are the writes of the
    /// transaction that reads.
    ///
    /// Cost: a lookup for each version in tables, of which there is mostly one in each run: flushes and compactions merge them.
    #[cold]
    fn resolve(
        &self,
        read_state: &ReadState,
        own: Option<&OwnWrites>,
        key: &[u8],
        point: SnapshotPoint,
    ) -> Result<Option<Slice>> {
        let clock = &self.context.expiry;
        let fixed = if point.time == 0 { clock.now() } else { point.time };
        let time = || {
            clock.note_used();
            fixed
        };
        let mut operands = Operands::default();
        let base = 'found: {
            if let Some(own) = own
                && let Some(base) = own.memtable.add_versions((key, own.newest), &mut operands, &time)?
            {
                break 'found base;
            }
            // The numbers of own writes are above all others.
            operands.forget_numbers();
            for memtable in read_state.memtables() {
                let found = memtable.memtable.add_versions((key, point.sequence), &mut operands, &time)?;
                if let Some(base) = found {
                    break 'found base;
                }
            }
            self.add_versions(read_state, &self.probe(key), point.sequence, &mut operands, &time)?
        };
        if operands.is_empty() {
            return Ok(base.as_deref().map(Slice::from));
        }
        let KeyspaceVersion { options, name, .. } = &*read_state.version;
        let merged = operands.merge(options.merge.as_ref(), name, key, base.as_deref())?;
        Ok(Some(Slice::from(merged.as_slice())))
    }

    /// The value of a key whose newest version is this one. Puts, the common case, need no call.
    #[cold]
    fn value_of(
        &self,
        read_state: &ReadState,
        key: &[u8],
        (kind, stored): (Kind, &[u8]),
        point: SnapshotPoint,
    ) -> Result<Option<Slice>> {
        match kind {
            Kind::Put => Ok(Some(Slice::from(stored))),
            Kind::Tombstone | Kind::RangeTombstone => Ok(None),
            Kind::Operand => self.resolve(read_state, None, key, point),
            Kind::ExpiringPut => Ok(self.live_value(stored, point)),
        }
    }

    /// The value of an expiring put.
    fn live_value(&self, stored: &[u8], point: SnapshotPoint) -> Option<Slice> {
        let clock = &self.context.expiry;
        clock.note_used();
        expiry::live_value(stored, || point.with_time(clock).time).map(Slice::from)
    }

    /// Adds the versions of a key in tables at `sequence` to the operands of memtables, down to a full value. Returns this value.
    fn add_versions(
        &self,
        read_state: &ReadState,
        probe: &Probe<'_>,
        sequence: Sequence,
        operands: &mut Operands,
        time: &dyn Fn() -> u64,
    ) -> Result<Option<Vec<u8>>> {
        let Some(partition) = read_state.version.partition_of(probe.key()) else { return Ok(None) };
        let mut read = PointRead::new(probe, sequence, Sampling::default());
        let mut base = Ok(None);
        for (level, run) in partition.runs() {
            let step = self.add_versions_of_run((level, run), &mut read, operands, time);
            if let Ok(None) = step {
                continue;
            }
            base = step.map(Option::flatten);
            break;
        }
        read.end_level(&self.metrics);
        base
    }

    /// As [`Self::add_versions`], for a run; `None`: older runs decide.
    fn add_versions_of_run(
        &self,
        (level, run): (usize, &Run),
        read: &mut PointRead<'_>,
        operands: &mut Operands,
        time: &dyn Fn() -> u64,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let covered = self.covered_sequence(run, read)?;
        if let Some(table) = run.table_of(read.probe.key()) {
            let mut found = self.find_in_table(table, level, read)?;
            let reader = self.tools.tables.reader(table)?;
            while let Some(version) = found.filter(|found| found.sequence >= covered) {
                let entry = (version.sequence, version.kind);
                if let FoldStep::Base(base) = operands.add(entry, &version.value, time) {
                    return Ok(Some(base.map(<[u8]>::to_vec)));
                }
                let below = version.sequence.saturating_sub(1);
                found = reader.get(read.probe.key(), below, &mut read.here.cost)?;
            }
        }
        Ok((covered > 0).then_some(None))
    }

    /// The values of several keys at one point in time.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceState,
        keys: impl IntoIterator<Item = K>,
        snapshot: Option<SnapshotPoint>,
    ) -> Result<Vec<Option<Slice>>> {
        self.context.check_open()?;
        keyspace.check()?;
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        let point = snapshot.unwrap_or(SnapshotPoint::now(visible)).with_time(&self.context.expiry);
        let mut values = Vec::new();
        let mut keys = keys.into_iter();
        loop {
            // The filters of so many keys are prefetched together.
            let group: Vec<K> = keys.by_ref().take(16).collect();
            if group.is_empty() {
                return Ok(values);
            }
            let first = self.metrics.point_reads.numbers(group.len() as u64);
            let probes: Vec<Probe<'_>> = group.iter().map(|key| self.probe(key.as_ref())).collect();
            let mut found = Vec::with_capacity(probes.len());
            for probe in &probes {
                check_key(probe.key())?;
                found.push(get_in_memory(&read_state, probe.key(), point.sequence));
            }
            let is_open = |(_, found): &(&Probe<'_>, &Option<(Kind, &[u8])>)| found.is_none();
            for (probe, _) in probes.iter().zip(&found).filter(is_open) {
                self.prefetch(&read_state, probe)?;
            }
            for ((probe, found), number) in probes.iter().zip(found).zip(first..) {
                values.push(match found {
                    Some((Kind::Put, value)) => Some(Slice::from(value)),
                    Some(found) => self.value_of(&read_state, probe.key(), found, point)?,
                    None => self.get_in_tables(
                        &read_state,
                        probe,
                        point,
                        read_state.query_sample.sampling(QueryKind::Point, number),
                    )?,
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

    fn get_in_tables(
        &self,
        read_state: &ReadState,
        probe: &Probe<'_>,
        point: SnapshotPoint,
        sampling: Sampling,
    ) -> Result<Option<Slice>> {
        let mut read = PointRead::new(probe, point.sequence, sampling);
        let partition = read_state.version.partition_of(probe.key());
        let found = partition.map_or(Ok(None), |partition| self.find_in_partition(partition, &mut read));
        read.end_level(&self.metrics);
        self.metrics.digests.add(u64::from(probe.digest_count()));
        if sampling.weight > 0 {
            self.record(read_state, partition, &read);
        }
        match found? {
            Some(found) if found.kind == Kind::Put => Ok(Some(found.value)),
            Some(found) => self.value_of(read_state, probe.key(), (found.kind, &found.value), point),
            None => Ok(None),
        }
    }

    /// Adds a sampled get to the sample and to the losses of its partition.
    #[cold]
    fn record(&self, read_state: &ReadState, partition: Option<&Arc<Partition>>, read: &PointRead<'_>) {
        let (weight, outcome, range) =
            (read.sampling.weight, read.outcome, KeyRange::point(read.probe.key()));
        read_state.query_sample.record(QueryKind::Point, &range, weight, outcome);
        if let Some(partition) = partition {
            let read_ns = self.metrics.read_times.price_of_any(self.context.options.table_access);
            let runs = usize::from(outcome.there) + usize::from(outcome.nothing_there);
            partition.losses.add_gets(weight.into(), runs, read_ns);
        }
    }

    fn find_in_partition(&self, partition: &Partition, read: &mut PointRead<'_>) -> Result<Option<Found>> {
        if partition.has_range_tombstones() {
            return self.find_with_range_tombstones(partition, read);
        }
        let tables = partition.tables_of(read.probe.key());
        // The filters of the next runs are prefetched, so that their cache misses overlap.
        let mut ahead = tables.clone().skip(1);
        // The filters of the next five runs are prefetched before those of the first one are probed.
        ahead.by_ref().take(5).for_each(|(.., table)| read.prefetch(table));
        for (level, _, table) in tables {
            if let Some((.., table)) = ahead.next() {
                read.prefetch(table);
            }
            if let Some(found) = self.find_in_table(table, level, read)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// As `find_in_partition`, if some runs have range tombstones: those of a run are checked before its filter, and end the search
    /// if they cover the key.
    fn find_with_range_tombstones(
        &self,
        partition: &Partition,
        read: &mut PointRead<'_>,
    ) -> Result<Option<Found>> {
        let key = read.probe.key();
        for (level, run) in partition.runs() {
            let covered = self.covered_sequence(run, read)?;
            let found = match run.table_of(key) {
                Some(table) => self.find_in_table(table, level, read)?,
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

    /// The number of the newest range tombstone of a run that covers the key; 0 without one.
    fn covered_sequence(&self, run: &Run, read: &PointRead<'_>) -> Result<Sequence> {
        let (key, sequence) = (read.probe.key(), read.sequence);
        let Some(table) = run.range_deleting_table_of(key) else { return Ok(0) };
        let fragments = self.tools.tables.reader(table)?.range_tombstones();
        Ok(fragments.map_or(0, |fragments| fragments.sequence_at(key, sequence)))
    }

    /// Reads a table unless its filters reject the key.
    #[inline(always)]
    fn find_in_table(
        &self,
        table: &Arc<Table>,
        level: usize,
        read: &mut PointRead<'_>,
    ) -> Result<Option<Found>> {
        let reader = self.tools.tables.reader(table)?;
        read.enter_level(level, &self.metrics);
        if read.is_rejected(reader, table) { Ok(None) } else { self.read_table(reader, table, read) }
    }

    /// Reads a table that its filters do not reject. Not inlined, so that most tables of an absent key do not move a result.
    #[inline(never)]
    fn read_table(
        &self,
        reader: &TableReader,
        table: &Table,
        read: &mut PointRead<'_>,
    ) -> Result<Option<Found>> {
        let began = if read.sampling.weight > 0 { self.metrics.read_times.begin() } else { None };
        let found = reader.get(read.probe.key(), read.sequence, &mut read.here.cost);
        if let Some(began) = began {
            self.metrics.read_times.end(read.here.level, began);
        }
        let found = found?;
        let has_filter = reader.has_filter();
        if has_filter && found.is_none() {
            reader.record_false_positive();
        }
        // An evicted filter admits all keys: its answers are not counted.
        if has_filter && !reader.are_filters_asked(FilterQuery::Point) {
            return Ok(found);
        }
        let positive = Positive::of(found.as_ref());
        if has_filter {
            read.here.answers.add_positive(positive);
        }
        // Tables without filters are due for a check, too.
        let weight = read.sampling.tally_weight;
        if weight > 0 {
            table.filter_tally().points.add_admitted(weight);
            table.filter_tally().points.add_positive(positive, weight);
        }
        Ok(found)
    }
}
