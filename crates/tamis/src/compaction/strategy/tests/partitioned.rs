//! A simulated store of the partitioned layout: tables are sets of (key, sequence number), flushed by partition and compacted by the
//! picker. A month of writes of each workload of the REMIX paper (5.2), without files: what is written, how many tables and partitions
//! there are, and that each key reads as its newest write.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use tamis_workload::{ScrambledZipfian, SplitMix64, ZipfianComposite};

use super::super::{RangePick, pick, pick_aborted, pick_range};
use crate::{
    compaction::plan::{Action, InProgress, Plan, RangeRequest, Reason},
    key::Readers,
    observe::steps::{self, Step},
    options::{KeyspaceOptions, Layout, tables_after_split},
    table::properties::TableSummary,
    version::{
        catalog::Catalog,
        edit::{Change, RunPlace, VersionEdit},
        handle::ObsoleteFiles,
        partition::Partition,
        test_support::first_edit,
        version::KeyspaceVersion,
    },
};

const TABLE_BYTES: u64 = 64 << 10;
const TABLE_ENTRIES: usize = 16;
const ENTRY_BYTES: u64 = TABLE_BYTES / TABLE_ENTRIES as u64;
/// Tables of a memtable, as in the paper: 4 GiB and 64 MiB.
const MEMTABLE_TABLES: usize = 64;

type Entries = BTreeMap<u64, u64>;

#[derive(Clone)]
struct Store {
    state: Catalog,
    obsolete_files: Arc<ObsoleteFiles>,
    tables: BTreeMap<u64, Entries>,
    newest: Entries,
    /// Entries that the last flush left in memory, and the first and last key of those of each partition.
    retained: Entries,
    retained_spans: Vec<(Vec<u8>, Vec<u8>)>,
    aborted_partition_count: usize,
    number: u64,
    partition: u64,
    sequence: u64,
    written_bytes: u64,
    /// Of these, the bytes of merges within a partition, and of splits.
    merged_bytes: u64,
    split_bytes: u64,
    user_bytes: u64,
    /// The greatest number of runs that a partition had after the compactions of a flush.
    run_count_max: usize,
    /// Files have this many times the bytes that the options promise.
    size_factor: f64,
}

fn bytes_of(key: u64) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

fn key_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

impl Store {
    fn new(layout: Layout) -> Self {
        let options = KeyspaceOptions::default()
            .table_bytes(TABLE_BYTES)
            .memtable_bytes(TABLE_BYTES * MEMTABLE_TABLES as u64)
            .layout(layout);
        let obsolete_files = Arc::default();
        let edit = first_edit(options);
        let state = Catalog::default().apply(&edit, &obsolete_files).expect("the first edit fits").catalog;
        Self {
            state,
            obsolete_files,
            tables: BTreeMap::new(),
            newest: Entries::new(),
            retained: Entries::new(),
            retained_spans: Vec::new(),
            aborted_partition_count: 0,
            number: 1,
            partition: 2,
            sequence: 0,
            written_bytes: 0,
            merged_bytes: 0,
            split_bytes: 0,
            user_bytes: 0,
            run_count_max: 0,
            size_factor: 1.0,
        }
    }

    fn version(&self) -> Arc<KeyspaceVersion> {
        Arc::clone(self.state.keyspaces.get(&1).expect("keyspace 1"))
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let edit = VersionEdit { changes };
        let applied = self.state.apply(&edit, &self.obsolete_files).expect("the edit fits");
        assert_eq!(applied.check_invariants(), None);
        self.state = applied.catalog;
    }

    /// Writes entries as tables and returns their summaries.
    fn write(&mut self, entries: &Entries) -> Vec<TableSummary> {
        let all: Vec<(u64, u64)> = entries.iter().map(|(&key, &sequence)| (key, sequence)).collect();
        let mut summaries = Vec::new();
        for chunk in all.chunks(TABLE_ENTRIES) {
            let sequences = || chunk.iter().map(|(_, sequence)| *sequence);
            let keys = || chunk.iter().map(|(key, _)| *key);
            let summary = TableSummary {
                number: self.number,
                file_bytes: (chunk.len() as f64 * ENTRY_BYTES as f64 * self.size_factor) as u64,
                entry_count: chunk.len() as u64,
                block_count: 1,
                smallest_sequence: sequences().min().unwrap_or(0),
                largest_sequence: sequences().max().unwrap_or(0),
                smallest_key: bytes_of(keys().min().unwrap_or(0)),
                largest_key: bytes_of(keys().max().unwrap_or(0)),
                ..TableSummary::default()
            };
            self.tables.insert(self.number, chunk.iter().copied().collect());
            self.number += 1;
            self.written_bytes += summary.file_bytes;
            summaries.push(summary);
        }
        summaries
    }

    /// Writes a memtable's entries by partition, but those that the picker leaves in memory.
    fn flush(&mut self, keys: impl Iterator<Item = u64>) {
        let mut entries = std::mem::take(&mut self.retained);
        self.retained_spans.clear();
        for key in keys {
            self.sequence += 1;
            self.user_bytes += ENTRY_BYTES;
            entries.insert(key, self.sequence);
            self.newest.insert(key, self.sequence);
        }
        let (version, mut changes) = (self.version(), Vec::new());
        let mut parts: Vec<Entries> = Vec::new();
        for (index, partition) in version.partitions.iter().enumerate().rev() {
            parts.push(if index == 0 {
                std::mem::take(&mut entries)
            } else {
                entries.split_off(&key_of(&partition.lower))
            });
        }
        parts.reverse();
        let sizes: Vec<u64> = parts.iter().map(|part| part.len() as u64 * ENTRY_BYTES).collect();
        let plan = pick_aborted(&version, (&sizes, sizes.iter().sum()), &Readers::at([self.sequence]));
        for index in plan.partitions {
            let part = parts.get_mut(index).map(std::mem::take).unwrap_or_default();
            let ends = part.first_key_value().zip(part.last_key_value());
            self.retained_spans
                .extend(ends.map(|((first, _), (last, _))| (bytes_of(*first), bytes_of(*last))));
            // To the log.
            self.written_bytes += part.len() as u64 * ENTRY_BYTES;
            self.retained.extend(part);
            self.aborted_partition_count += 1;
        }
        for (partition, within) in version.partitions.iter().zip(parts) {
            let place = RunPlace { keyspace: 1, partition: partition.id, level: 0, run_age: self.sequence };
            let summaries = self.write(&within);
            changes.extend(summaries.into_iter().map(|summary| added(place, summary)));
        }
        self.apply(changes);
    }

    fn merged(&self, plan: &Plan) -> Entries {
        let mut merged = Entries::new();
        for table in plan.merged_tables() {
            for (&key, &sequence) in self.tables.get(&table.number()).expect("a table") {
                let slot = merged.entry(key).or_default();
                *slot = (*slot).max(sequence);
            }
        }
        merged
    }

    fn execute(&mut self, plan: &Plan) {
        let before = self.written_bytes;
        self.work(plan);
        let bytes = self.written_bytes - before;
        match plan.action {
            Action::Merge => self.merged_bytes += bytes,
            Action::Split => self.split_bytes += bytes,
            _ => {}
        }
    }

    fn work(&mut self, plan: &Plan) {
        match plan.action {
            Action::Merge => {
                let (mut merged, mut changes) = (self.merged(plan), plan.move_edit().changes);
                let mut summaries = Vec::new();
                for cut in &plan.split_keys {
                    let behind = merged.split_off(&key_of(cut));
                    summaries.extend(self.write(&std::mem::replace(&mut merged, behind)));
                }
                summaries.extend(self.write(&merged));
                changes.extend(summaries.into_iter().map(|summary| added(plan.output_place(), summary)));
                self.apply(changes);
            }
            Action::Move | Action::Drop => self.apply(plan.move_edit().changes),
            Action::Split | Action::Divide | Action::Unite => self.repartition(plan),
        }
    }

    fn repartition(&mut self, plan: &Plan) {
        let version = self.version();
        let is_replaced = |partition: &&Arc<Partition>| plan.replaced_partitions.contains(&partition.id);
        let old: Vec<&Arc<Partition>> = version.partitions.iter().filter(is_replaced).collect();
        assert_eq!(old.len(), plan.replaced_partitions.len(), "partitions are replaced once");
        let mut bounds = vec![old.first().expect("a partition").lower.clone()];
        bounds.extend(plan.split_keys.iter().cloned());
        let merged = self.merged(plan);
        let outputs = self.write(&merged);
        if plan.action == Action::Split {
            let Layout::Partitioned { tables_per_partition } = version.options.layout else {
                panic!("only this layout splits")
            };
            let later = outputs.iter().step_by(tables_after_split(tables_per_partition)).skip(1);
            bounds.extend(later.map(|summary| summary.smallest_key.clone()));
        }
        let (mut removals, mut additions) = (Vec::new(), Vec::new());
        let first_id = self.partition;
        self.partition += bounds.len() as u64;
        let id_of = |key: &[u8]| {
            first_id + bounds.partition_point(|bound| bound.as_slice() <= key).saturating_sub(1) as u64
        };
        let place = |level: usize, run_age: u64, summary: &TableSummary| RunPlace {
            keyspace: 1,
            partition: id_of(&summary.smallest_key),
            level: level as u8,
            run_age,
        };
        for summary in outputs {
            additions.push(added(place(plan.output_level, plan.output_run_age, &summary), summary));
        }
        for partition in &old {
            for (level, run) in partition.runs() {
                let from =
                    RunPlace { keyspace: 1, partition: partition.id, level: level as u8, run_age: run.age() };
                for table in run.tables() {
                    removals.push(Change::RemoveTable { place: from, number: table.number() });
                    if plan.action == Action::Split {
                        continue;
                    }
                    let is_whole = id_of(table.smallest_key()) == id_of(table.largest_key());
                    let parts = if is_whole {
                        vec![table.summary().clone()]
                    } else {
                        self.cut(table.number(), &bounds)
                    };
                    additions
                        .extend(parts.into_iter().map(|part| added(place(level, run.age(), &part), part)));
                }
            }
            removals.push(Change::RemovePartition { keyspace: 1, partition: partition.id });
        }
        let partitions = (first_id..).zip(&bounds).map(|(partition, lower)| Change::AddPartition {
            keyspace: 1,
            partition,
            lower: lower.clone(),
            flushed_sequence: 0,
        });
        self.apply(removals.into_iter().chain(partitions).chain(additions).collect());
    }

    fn cut(&mut self, number: u64, bounds: &[Vec<u8>]) -> Vec<TableSummary> {
        let mut rest = self.tables.get(&number).expect("a table").clone();
        let mut parts = Vec::new();
        for bound in bounds.iter().skip(1).rev() {
            let behind = rest.split_off(&key_of(bound));
            parts.extend(self.write(&behind));
        }
        parts.extend(self.write(&rest));
        parts
    }

    /// Runs jobs until none is due; up to four are in progress at a time.
    fn compact(&mut self) {
        let mut in_progress = InProgress::default().with_retained(self.retained_spans.clone());
        let mut running = Vec::<Plan>::new();
        let mut count = 0;
        loop {
            while running.len() < 4
                && let Some(plan) = pick(&self.version(), &in_progress, &Readers::at([self.sequence]))
            {
                in_progress.begin(&plan);
                running.push(plan);
            }
            if running.is_empty() {
                break;
            }
            let plan = running.remove(count % running.len());
            self.execute(&plan);
            in_progress.end(&plan);
            count += 1;
            assert!(count < 20_000, "compactions do not terminate");
        }
        let version = self.version();
        let counts = version.partitions.iter().map(|partition| partition.runs().count());
        self.run_count_max = counts.max().unwrap_or(0).max(self.run_count_max);
    }

    fn check_reads(&self) {
        let version = self.version();
        for (&key, &expected) in &self.newest {
            let name = bytes_of(key);
            let partition = version.partition_of(&name).expect("partitions cover all keys");
            if let Some(&retained) = self.retained.get(&key) {
                assert_eq!(retained, expected, "key {key}");
                continue;
            }
            let found = partition.runs().find_map(|(_, run)| {
                let table = run.table_of(&name)?;
                self.tables.get(&table.number()).expect("a table").get(&key).copied()
            });
            assert_eq!(found, Some(expected), "key {key}");
        }
    }

    fn check_limits_of_tables(&self) {
        let version = self.version();
        let Layout::Partitioned { tables_per_partition, .. } = version.options.layout else {
            panic!("only this layout has limits")
        };
        for partition in &version.partitions {
            assert!(
                partition.tables().count() <= tables_per_partition as usize,
                "{} tables",
                partition.tables().count()
            );
        }
    }

    fn check_limits(&self) {
        self.check_limits_of_tables();
        let version = self.version();
        // A split leaves few tables in a partition, and unions keep partitions from being too small.
        let bytes: u64 = version.tables().map(|table| table.file_bytes()).sum();
        let most = 3 * bytes / TABLE_BYTES + 2;
        assert!((version.partitions.len() as u64) < most, "{} of {most}", version.partitions.len());
    }

    /// Writes memtables of keys and returns the bytes written per byte of the user, the log included.
    fn run(&mut self, memtable_count: usize, mut key: impl FnMut(&mut SplitMix64, u64) -> u64) -> f64 {
        let mut random = SplitMix64::new(11);
        let (written, user) = (self.written_bytes, self.user_bytes);
        let mut index = 0;
        for _ in 0..memtable_count {
            let keys: Vec<u64> = (0..MEMTABLE_TABLES * TABLE_ENTRIES)
                .map(|_| {
                    index += 1;
                    key(&mut random, index)
                })
                .collect();
            self.flush(keys.into_iter());
            self.compact();
            self.check_limits();
        }
        self.check_reads();
        1.0 + (self.written_bytes - written) as f64 / (self.user_bytes - user) as f64
    }
}

fn added(place: RunPlace, summary: TableSummary) -> Change {
    Change::AddTable { place, summary, filter_file: None, is_ingested: false }
}

/// The number of memtables of a store with the paper's ratio of data to memtable.
const MEMTABLE_COUNT: usize = 64;

fn loaded(layout: Layout) -> (Store, f64) {
    let mut store = Store::new(layout);
    let amplification = store.run(MEMTABLE_COUNT, |random, _| random.next_u64());
    let per_byte = |bytes: u64| bytes as f64 / store.user_bytes as f64;
    println!(
        "{layout}: load {amplification:.2}, merges {:.2}, splits {:.2}, {} runs",
        per_byte(store.merged_bytes),
        per_byte(store.split_bytes),
        store.run_count_max
    );
    (store, amplification)
}

#[test]
fn write_amplification_of_a_month_matches_the_paper() {
    let (loaded, load) = loaded(Layout::partitioned());
    assert!(load < 4.9, "{load:.2} for the load, 4.9 in the paper");
    assert!(loaded.run_count_max <= 16, "{} runs", loaded.run_count_max);
    let keys: Vec<u64> = loaded.newest.keys().copied().collect();
    let count = keys.len() as u64;
    let at = |index: u64| keys.get((index % count) as usize).copied().unwrap_or(0);
    let (zipfian, composite) = (ScrambledZipfian::new(count), ZipfianComposite::new(count / 16));
    let mut retained = Vec::new();
    let mut update = |key: &dyn Fn(&mut SplitMix64, u64) -> u64| {
        let mut store = Store { run_count_max: 0, ..loaded.clone() };
        let amplification = store.run(MEMTABLE_COUNT / 4, key);
        assert!(store.run_count_max <= 16, "{} runs after updates", store.run_count_max);
        retained.push(store.aborted_partition_count);
        amplification
    };
    let sequential = update(&|_, index| at(index));
    let of_zipfian = update(&|random, _| at(zipfian.draw(random)));
    let of_composite = update(&|random, _| {
        let drawn = composite.draw(random);
        at((drawn >> 16) * 16 + drawn % 16)
    });
    let uniform = update(&|random, _| at(random.next_u64()));
    let all =
        format!("{sequential:.2} {of_zipfian:.2} {of_composite:.2} {uniform:.2}, retained {retained:?}");
    println!("{all}");
    // Whole partitions are rewritten, one after the other.
    assert!(sequential < 3.5, "{all}");
    assert!(of_zipfian < uniform && of_composite < uniform && uniform < 6.0, "{all}");
}

/// Bytes written per byte of a load at random by the rules of the paper (4.2), from the parameters alone:
///
/// - All partitions are equal: a memtable has as many bytes for each.
/// - A partition that has at most T tables with its new one gets a table.
/// - Else the new bytes are merged with as many of the newest runs as give the most tables read per table written.
/// - If that ratio is at most 10/9, the example of the paper, the partition is split into parts of M tables.
///
/// Aborts save nothing, because no partition is more expensive than the others. The paper merges new bytes from memory; the store flushes
/// them before, so that each merge and split writes them once more, but it merges fewer bytes.
fn paper_amplification(tables_max: usize, tables_after_split: usize) -> f64 {
    const SPLIT_RATIO: f64 = 10.0 / 9.0;
    // In tables.
    let table_count = |bytes: f64| (bytes - 1e-9).ceil().max(1.0);
    let memtable = MEMTABLE_TABLES as f64;
    let (mut partition_count, mut written) = (1.0, 0.0);
    let mut runs = Vec::<f64>::new();
    for _ in 0..MEMTABLE_COUNT {
        runs.insert(0, memtable / partition_count);
        let all: f64 = runs.iter().map(|bytes| table_count(*bytes)).sum();
        if all <= tables_max as f64 {
            written += memtable;
            continue;
        }
        let (mut bytes, mut inputs, mut best) = (0.0, 0.0, (SPLIT_RATIO, 0, 0.0));
        for (index, run) in runs.iter().enumerate() {
            bytes += run;
            inputs += table_count(*run);
            let outputs = table_count(bytes);
            if all - inputs + outputs <= tables_max as f64 && inputs / outputs > best.0 {
                best = (inputs / outputs, index + 1, bytes);
            }
        }
        if let (_, count @ 1.., merged) = best {
            written += merged * partition_count;
            runs.splice(..count, [merged]);
        } else {
            written += bytes * partition_count;
            let parts = (table_count(bytes) / tables_after_split as f64).ceil();
            partition_count *= parts;
            runs = vec![bytes / parts];
        }
    }
    // The log has each byte once.
    1.0 + written / (memtable * MEMTABLE_COUNT as f64)
}

/// The picker decides by other rules than the paper, which cause about as many writes. A split of T tables leaves M in each new partition, so that
/// an entry takes part in T / (T - M) splits, or more where a split pays earlier.
#[test]
fn a_load_at_random_writes_what_the_formulas_of_the_paper_say() {
    const EARLY_SPLITS: f64 = 1.2;
    const TOLERANCE: f64 = 0.15;
    for tables_per_partition in [10, 16, 32] {
        let (store, load) = loaded(Layout::Partitioned { tables_per_partition });
        let (tables, after_split) =
            (f64::from(tables_per_partition), tables_after_split(tables_per_partition));
        let splits = store.split_bytes as f64 / store.user_bytes as f64;
        assert!(
            splits > 0.0 && splits <= EARLY_SPLITS * tables / (tables - after_split as f64),
            "{tables}: {splits:.2} splits per entry"
        );
        let expected = paper_amplification(tables_per_partition as usize, after_split);
        println!("{tables}: {load:.2}, {expected:.2} by the formulas");
        assert!(
            (load - expected).abs() <= TOLERANCE * expected,
            "{tables}: {load:.2}, expected {expected:.2}"
        );
        assert!(
            store.run_count_max <= tables_per_partition as usize,
            "{tables}: {} runs",
            store.run_count_max
        );
    }
}

/// A pick compares each partition with few of the retained keys, however many there are.
#[test]
fn a_pick_among_ten_thousand_partitions_compares_few_retained_keys() {
    let mut store = Store::new(Layout::partitioned());
    store.run(320, |_, index| index << 20);
    let version = store.version();
    let count = version.partitions.len();
    assert!(count >= 9_000, "{count}");
    // Every partition has retained entries, so that none can be united with its neighbour.
    let spans = version.partitions.iter().map(|partition| (partition.lower.clone(), partition.lower.clone()));
    let in_progress = InProgress::default().with_retained(spans.collect());
    steps::take(Step::ComparedRetained);
    assert!(pick(&version, &in_progress, &Readers::at([store.sequence])).is_none());
    let compared = steps::take(Step::ComparedRetained);
    assert!(compared >= count && compared <= count * 2 * 16, "{compared} keys of {count} partitions");
}

/// Each entry is written twice, once of them to the log; partitions are divided between tables.
#[test]
fn a_load_in_key_order_is_never_rewritten() {
    let mut store = Store::new(Layout::partitioned());
    let amplification = store.run(MEMTABLE_COUNT, |_, index| index * 1000);
    assert!((amplification - 2.0).abs() < 1e-9, "{amplification}");
    assert!(store.version().partitions.len() > 1000);
}

/// As many partitions as a store of a terabyte: updates of all of them cost no more per entry than in a small store.
#[test]
fn ten_thousand_partitions_take_updates_and_are_read() {
    let mut store = Store::new(Layout::partitioned());
    store.run(320, |_, index| index << 20);
    let count = store.newest.len() as u64;
    assert!(store.version().partitions.len() >= 9_000, "{}", store.version().partitions.len());
    let amplification = store.run(24, |random, _| (1 + random.below(count)) << 20);
    assert!(amplification < 6.0, "{amplification}");
    assert!(store.version().partitions.len() >= 9_000, "{}", store.version().partitions.len());
}

#[test]
fn a_load_at_random_writes_less_than_in_the_leveled_layout() {
    let written = |layout: Layout| {
        let mut store = Store::new(layout);
        let mut random = SplitMix64::new(3);
        for _ in 0..40 {
            store.flush((0..MEMTABLE_TABLES * TABLE_ENTRIES).map(|_| random.next_u64()));
            store.compact();
        }
        store.check_reads();
        store.written_bytes as f64 / store.user_bytes as f64
    };
    let (leveled, partitioned) = (written(Layout::Leveled), written(Layout::partitioned()));
    assert!(partitioned < 0.75 * leveled, "{partitioned:.2} {leveled:.2}");
}

#[test]
fn estimates_that_are_wrong_by_ten_times_cause_no_endless_jobs() {
    for size_factor in [10.0, 0.1] {
        let mut store = Store { size_factor, ..Store::new(Layout::partitioned()) };
        let mut random = SplitMix64::new(7);
        for _ in 0..12 {
            store.flush((0..MEMTABLE_TABLES * TABLE_ENTRIES).map(|_| random.next_u64()));
            store.compact();
        }
        store.check_reads();
        store.check_limits_of_tables();
    }
}

/// Tables have ten times the expected bytes, or a tenth: a load in key order is divided, and updates of few cold keys are retained.
#[test]
fn divisions_and_retained_entries_survive_estimates_that_are_wrong_by_ten_times() {
    let layout = Layout::Partitioned { tables_per_partition: 16 };
    for size_factor in [10.0, 0.1] {
        let mut store = Store { size_factor, ..Store::new(layout) };
        for round in 0..24 {
            let first = round * (MEMTABLE_TABLES * TABLE_ENTRIES) as u64;
            store.flush((0..(MEMTABLE_TABLES * TABLE_ENTRIES) as u64).map(|index| (first + index) << 20));
            store.compact();
        }
        let count = store.newest.len() as u64;
        assert!(store.version().partitions.len() > 20, "{} partitions", store.version().partitions.len());
        let mut random = SplitMix64::new(7);
        for _ in 0..24 {
            let hot = 15 * MEMTABLE_TABLES * TABLE_ENTRIES / 16;
            let mut key = |index| random.below(if index < hot { count / 64 } else { count }) << 20;
            let keys: Vec<u64> = (0..MEMTABLE_TABLES * TABLE_ENTRIES).map(&mut key).collect();
            store.flush(keys.into_iter());
            let most = MEMTABLE_TABLES * TABLE_ENTRIES * 15 / 100 * 2;
            assert!(store.retained.len() <= most, "{} entries retained", store.retained.len());
            store.compact();
            store.check_limits_of_tables();
        }
        store.check_reads();
        // Entries of small tables are not worth keeping.
        assert_eq!(store.aborted_partition_count > 0, size_factor > 1.0, "{size_factor}");
    }
}

#[test]
fn a_partition_of_one_key_ends_with_one_table() {
    let mut store = Store::new(Layout::partitioned());
    for _ in 0..60 {
        store.flush([7].into_iter());
        store.compact();
    }
    let version = store.version();
    assert_eq!(version.partitions.len(), 1);
    assert!(version.tables().count() <= 16);
    store.check_reads();
}

#[test]
fn a_store_changes_to_and_from_the_partitioned_layout() {
    let mut store = Store::new(Layout::Leveled);
    let mut random = SplitMix64::new(5);
    let layouts =
        [Layout::Leveled, Layout::partitioned(), Layout::tiered(), Layout::partitioned(), Layout::Leveled];
    for layout in layouts {
        let options = (*store.version().options).clone().layout(layout);
        store.apply(vec![Change::SetOptions { keyspace: 1, options }]);
        for _ in 0..4 {
            let keys: Vec<u64> = (0..800).map(|_| random.next_u64() >> 50).collect();
            store.flush(keys.into_iter());
            store.compact();
            store.check_reads();
        }
        let partitions = store.version().partitions.len();
        assert_eq!(partitions > 1, layout.is_partitioned(), "{layout}: {partitions} partitions");
    }
}

#[test]
fn a_compacted_range_ends_in_one_run_per_partition() {
    let mut store = Store::new(Layout::partitioned());
    store.run(6, |random, _| random.next_u64() >> 48);
    let request = RangeRequest {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
        sequence_max: store.sequence,
        number_max: store.number,
        readers: Readers::at([store.sequence]),
        reason: Reason::Range,
    };
    let mut steps = 0;
    while let RangePick::Plan(plan) = pick_range(&store.version(), &InProgress::default(), &request) {
        store.execute(&plan);
        steps += 1;
        assert!(steps < 5000, "the compaction does not terminate");
    }
    store.check_reads();
    let version = store.version();
    assert!(version.partitions.iter().all(|partition| partition.runs().count() <= 1));
    let entry_count: u64 = version.tables().map(|table| table.summary().entry_count).sum();
    assert_eq!(entry_count, store.newest.len() as u64);
}
