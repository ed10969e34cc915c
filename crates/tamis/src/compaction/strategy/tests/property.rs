//! A simulated store: tables are sets of (key, sequence number), flushed and compacted in random order by concurrent jobs. After
//! every step the version keeps its invariants and every key reads as its newest write. After the last write, compactions end with
//! every level at its size.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};
use tamis_workload::SplitMix64;

use super::super::{RangePick, pick, pick_during_bulk_load, pick_range};
use crate::{
    compaction::plan::{Action, InProgress, Plan, RangeRequest, Reason},
    key::Readers,
    options::{KeyspaceOptions, Layout},
    table::properties::TableSummary,
    version::{
        catalog::Catalog,
        edit::{Change, VersionEdit},
        handle::ObsoleteFiles,
        test_support::{add, first_edit, place},
        version::KeyspaceVersion,
    },
};

const ENTRY_BYTES: u64 = 4 << 10;

type Entries = BTreeMap<u32, u64>;

struct Store {
    state: Catalog,
    obsolete_files: Arc<ObsoleteFiles>,
    tables: BTreeMap<u64, Entries>,
    newest: Entries,
    number: u64,
    sequence: u64,
    table_entries: usize,
    written_bytes: u64,
}

fn key(number: u32) -> String {
    format!("{number:08}")
}

impl Store {
    fn new(options: KeyspaceOptions) -> Self {
        let obsolete_files = Arc::default();
        let table_entries = (options.table_bytes / ENTRY_BYTES) as usize;
        let state = Catalog::default()
            .apply(&first_edit(options), &obsolete_files)
            .expect("the first edit fits")
            .catalog;
        let (tables, newest) = (BTreeMap::new(), Entries::new());
        Self {
            state,
            obsolete_files,
            tables,
            newest,
            number: 1,
            sequence: 0,
            table_entries,
            written_bytes: 0,
        }
    }

    fn version(&self) -> Arc<KeyspaceVersion> {
        Arc::clone(self.state.keyspaces.get(&1).expect("keyspace 1"))
    }

    /// Splits entries into tables and returns their summaries.
    fn write(&mut self, entries: &Entries) -> Vec<TableSummary> {
        let all: Vec<(u32, u64)> = entries.iter().map(|(&key, &sequence)| (key, sequence)).collect();
        let mut summaries = Vec::new();
        for chunk in all.chunks(self.table_entries) {
            let number = self.number;
            self.number += 1;
            let (first, last) = (chunk.first().expect("not empty").0, chunk.last().expect("not empty").0);
            let sequences = || chunk.iter().map(|(_, sequence)| *sequence);
            summaries.push(TableSummary {
                number,
                file_bytes: chunk.len() as u64 * ENTRY_BYTES,
                entry_count: chunk.len() as u64,
                block_count: 1,
                smallest_sequence: sequences().min().unwrap_or(0),
                largest_sequence: sequences().max().unwrap_or(0),
                smallest_key: key(first).into_bytes(),
                largest_key: key(last).into_bytes(),
                ..TableSummary::default()
            });
            self.written_bytes += chunk.len() as u64 * ENTRY_BYTES;
            self.tables.insert(number, chunk.iter().copied().collect());
        }
        summaries
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let applied =
            self.state.apply(&VersionEdit { changes }, &self.obsolete_files).expect("the edit fits");
        assert_eq!(applied.check_invariants(), None);
        self.state = applied.catalog;
        assert_eq!(self.state.check_invariants(), None);
    }

    /// Changes the layout, as an open does: no job is running.
    fn set_layout(&mut self, layout: Layout) {
        let options = (*self.version().options).clone().layout(layout);
        self.apply(vec![Change::SetOptions { keyspace: 1, options }]);
    }

    /// The number of runs of each level.
    fn run_counts(&self) -> Vec<usize> {
        let version = self.version();
        let levels = version.partitions.first().expect("one partition").levels();
        levels.iter().map(|level| level.runs().len()).collect()
    }

    fn flush(&mut self, keys: impl Iterator<Item = u32>) {
        self.flush_cut(keys, &[]);
    }

    /// Flushes into tables that end before these keys, which are in order.
    fn flush_cut(&mut self, keys: impl Iterator<Item = u32>, cuts: &[u32]) {
        let mut entries = Entries::new();
        for key in keys {
            self.sequence += 1;
            entries.insert(key, self.sequence);
            self.newest.insert(key, self.sequence);
        }
        let mut summaries = Vec::new();
        for cut in cuts {
            let behind = entries.split_off(cut);
            summaries.extend(self.write(&std::mem::replace(&mut entries, behind)));
        }
        summaries.extend(self.write(&entries));
        let place = place(0, self.sequence);
        self.apply(summaries.into_iter().map(|summary| add(place, summary)).collect());
    }

    fn execute(&mut self, plan: &Plan) {
        if plan.action == Action::Move {
            self.apply(plan.move_edit().changes);
            return;
        }
        let mut merged = Entries::new();
        for table in plan.merged_tables() {
            for (&key, &sequence) in self.tables.get(&table.number()).expect("a table") {
                let slot = merged.entry(key).or_default();
                *slot = (*slot).max(sequence);
            }
        }
        let mut changes = plan.move_edit().changes;
        for cut in &plan.split_keys {
            let cut: u32 = std::str::from_utf8(cut).expect("digits").parse().expect("digits");
            let behind = merged.split_off(&cut);
            let summaries = self.write(&std::mem::replace(&mut merged, behind));
            changes.extend(summaries.into_iter().map(|summary| add(plan.output_place(), summary)));
        }
        changes.extend(self.write(&merged).into_iter().map(|summary| add(plan.output_place(), summary)));
        self.apply(changes);
    }

    /// Reads every key as a point read does: the first table that has it decides.
    fn check_reads(&self) {
        let version = self.version();
        let partition = version.partitions.first().expect("one partition");
        for (&number, &expected) in &self.newest {
            let name = key(number);
            let found = partition.runs().find_map(|(_, run)| {
                let table = run.table_of(name.as_bytes())?;
                self.tables.get(&table.number()).expect("a table").get(&number).copied()
            });
            assert_eq!(found, Some(expected), "key {number}");
        }
    }

    fn check_plan(&self, plan: &Plan) {
        // Tables outside of the job that are older than its entries are in `older`.
        let older: BTreeSet<u64> = plan.older.iter().flatten().map(|table| table.number()).collect();
        let inputs: BTreeSet<u64> = plan.tables().map(|table| table.number()).collect();
        let of = |number: &u64| self.tables.get(number).expect("a table");
        for table in self.version().tables().filter(|table| !inputs.contains(&table.number())) {
            let entries = of(&table.number());
            let hides = inputs.iter().any(|input| {
                of(input).iter().any(|(key, sequence)| entries.get(key).is_some_and(|other| other < sequence))
            });
            assert!(
                !hides || older.contains(&table.number()),
                "{table:?} contains entries that {plan:?} would hide"
            );
        }
    }
}

fn options(random: &mut SplitMix64) -> KeyspaceOptions {
    KeyspaceOptions::default()
        .memtable_bytes(64 << 10)
        .table_bytes((64 << 10) << random.below(2))
        .size_ratio(2 + random.below(9) as u32)
        .level0_runs(1 + random.below(4) as u32)
}

/// Concurrent jobs, each with its plan.
#[derive(Default)]
struct Jobs {
    in_progress: InProgress,
    running: Vec<Plan>,
}

impl Jobs {
    fn begin(&mut self, store: &Store, plan: Plan) {
        store.check_plan(&plan);
        self.in_progress.begin(&plan);
        self.running.push(plan);
    }

    fn end_one(&mut self, store: &mut Store, random: &mut SplitMix64) {
        if !self.running.is_empty() {
            let plan = self.running.swap_remove(random.below(self.running.len() as u64) as usize);
            store.execute(&plan);
            self.in_progress.end(&plan);
        }
    }

    /// Runs jobs until none is due; returns their number.
    fn drain(&mut self, store: &mut Store, random: &mut SplitMix64) -> usize {
        let mut count = 0;
        loop {
            while let Some(plan) = pick(&store.version(), &self.in_progress, &Readers::at([store.sequence])) {
                self.begin(store, plan);
                count += 1;
            }
            if self.running.is_empty() {
                return count;
            }
            self.end_one(store, random);
            assert!(count < 5000, "compactions do not terminate");
        }
    }
}

fn tiered(random: &mut SplitMix64) -> Layout {
    Layout::Tiered {
        runs_per_level: 2 + random.below(4) as u32,
        space_amplification_percent: 25 + random.below(400) as u32,
    }
}

/// Flushes at random while up to four jobs run; sometimes a part of the range is compacted on request.
fn write_at_random(store: &mut Store, random: &mut SplitMix64, key_count: u64, rounds: usize) {
    let mut jobs = Jobs::default();
    for round in 0..rounds {
        let start = random.below(key_count) as u32;
        if random.below(4) == 0 {
            // In key order, as a load does.
            store.flush((0..16).map(|offset| (start + offset) % key_count as u32));
        } else {
            let keys: Vec<u32> = (0..16).map(|_| random.below(key_count) as u32).collect();
            store.flush(keys.into_iter());
        }
        if jobs.running.len() < 4
            && let Some(plan) = pick(&store.version(), &jobs.in_progress, &Readers::at([store.sequence]))
        {
            jobs.begin(store, plan);
        }
        if random.below(8) == 0 {
            let bound = || Bound::Included(key(start).into_bytes());
            let request = RangeRequest { lower: bound(), upper: bound(), ..whole_range(store) };
            if let RangePick::Plan(plan) = pick_range(&store.version(), &jobs.in_progress, &request) {
                jobs.begin(store, *plan);
            }
        }
        if random.below(2) == 0 {
            jobs.end_one(store, random);
        }
        if round % 10 == 0 {
            store.check_reads();
        }
    }
    jobs.drain(store, random);
    store.check_reads();
    assert!(pick(&store.version(), &jobs.in_progress, &Readers::at([store.sequence])).is_none());
}

#[test]
fn random_writes_with_concurrent_jobs_keep_order_and_converge() {
    for seed in 0..12 {
        let mut random = SplitMix64::new(seed);
        let mut store = Store::new(options(&mut random));
        let key_count = 200 + random.below(3000);
        write_at_random(&mut store, &mut random, key_count, 120);
        let version = store.version();
        let runs = version.partitions.first().expect("one").level(0).map_or(0, |level| level.runs().len());
        assert!(runs < version.options.level0_runs as usize, "seed {seed}");
    }
}

#[test]
fn a_tiered_store_keeps_order_and_fewer_runs_than_a_level_is_merged_at() {
    for seed in 0..24 {
        let mut random = SplitMix64::new(seed);
        let layout = tiered(&mut random);
        let mut store = Store::new(options(&mut random).layout(layout));
        let key_count = 200 + random.below(3000);
        write_at_random(&mut store, &mut random, key_count, 160);
        let Layout::Tiered { runs_per_level, .. } = layout else { panic!("tiered") };
        let version = store.version();
        for (level, &count) in store.run_counts().iter().enumerate() {
            let trigger = if level == 0 { version.options.level0_runs } else { runs_per_level };
            assert!(count < trigger as usize, "seed {seed}: {count} runs at level {level}");
        }
    }
}

/// Compactions lead from each layout to the other; every key is readable after each step.
#[test]
fn a_store_changes_its_layout_by_ordinary_compactions() {
    for seed in 0..24 {
        let mut random = SplitMix64::new(seed);
        let mut store = Store::new(options(&mut random));
        let key_count = 200 + random.below(3000);
        for _ in 0..6 {
            let layout = if random.below(2) == 0 { Layout::Leveled } else { tiered(&mut random) };
            store.set_layout(layout);
            write_at_random(&mut store, &mut random, key_count, 30);
            if layout == Layout::Leveled {
                let counts = store.run_counts();
                assert!(counts.iter().skip(1).all(|count| *count < 2), "seed {seed}: {counts:?}");
            }
        }
    }
}

#[test]
fn a_load_in_key_order_is_only_moved() {
    let mut random = SplitMix64::new(5);
    let mut store = Store::new(KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10));
    let mut jobs = Jobs::default();
    for round in 0..300_u32 {
        store.flush(round * 16..(round + 1) * 16);
        jobs.drain(&mut store, &mut random);
    }
    store.check_reads();
    assert_eq!(store.written_bytes, 300 * 16 * ENTRY_BYTES, "nothing was written twice");
}

/// As with two writers that are never at the same key: each memtable shares a few keys with the memtables before and after it.
#[test]
fn a_load_nearly_in_key_order_merges_only_overlapping_tables() {
    let mut random = SplitMix64::new(6);
    let mut store = Store::new(KeyspaceOptions::default().memtable_bytes(1 << 20).table_bytes(1 << 20));
    let mut jobs = Jobs::default();
    for round in 1..200_u32 {
        let (start, end) = (round * 200, (round + 1) * 200);
        store.flush_cut(start - 4..end + 4, &[start + 4, end - 4]);
        jobs.drain(&mut store, &mut random);
        store.check_reads();
    }
    let flushed_bytes = 199 * 208 * ENTRY_BYTES;
    let share = store.written_bytes as f64 / flushed_bytes as f64;
    assert!(share < 1.2, "each entry is written {share:.2} times");
}

/// 26 memtables of random keys, as in a fill of 10 million entries, merged while the fill continues. (With a base level half as large,
/// which was full after each merge, the write amplification was 3.6.)
#[test]
fn a_random_fill_of_26_memtables_writes_each_entry_less_than_three_times() {
    let mut random = SplitMix64::new(3);
    let mut store = Store::new(KeyspaceOptions::default().memtable_bytes(1 << 20).table_bytes(1 << 20));
    // As many bytes as the tables of such a memtable have.
    let entry_count = (1 << 20) * 7 / 10 / ENTRY_BYTES;
    for _ in 0..26 {
        let keys: Vec<u32> = (0..entry_count).map(|_| random.below(1 << 26) as u32).collect();
        store.flush(keys.into_iter());
        while let Some(plan) =
            pick_during_bulk_load(&store.version(), &InProgress::default(), &Readers::at([store.sequence]))
        {
            store.execute(&plan);
        }
    }
    Jobs::default().drain(&mut store, &mut random);
    let flushed_bytes = 26 * entry_count * ENTRY_BYTES;
    let times = store.written_bytes as f64 / flushed_bytes as f64;
    assert!(times < 3.0, "each entry is written {times:.2} times");
}

/// Keys that no other index has, in an order that looks random.
fn spread_key(index: u32) -> u32 {
    index.wrapping_mul(0x9E37_79B1) % (1 << 26)
}

/// After n flushes, the numbers of runs of the levels are the digits of n to the base of the runs per level, and each entry was
/// written once by its flush and once per level that it has reached.
#[test]
fn a_tiered_fill_has_the_runs_and_the_writes_of_the_formula() {
    for runs_per_level in [2_u64, 3, 4, 10] {
        let mut random = SplitMix64::new(runs_per_level);
        let mut store = Store::new(
            KeyspaceOptions::default()
                .memtable_bytes(64 << 10)
                .table_bytes(64 << 10)
                .level0_runs(runs_per_level as u32)
                .layout(Layout::Tiered {
                    runs_per_level: runs_per_level as u32,
                    space_amplification_percent: 10_000,
                }),
        );
        let flush_bytes = 16 * ENTRY_BYTES;
        let mut expected_bytes = 0;
        for count in 1..=210_u64 {
            let first = (count as u32 - 1) * 16;
            store.flush((first..first + 16).map(spread_key));
            Jobs::default().drain(&mut store, &mut random);
            let mut digits = Vec::new();
            let mut rest = count;
            while rest > 0 {
                digits.push((rest % runs_per_level) as usize);
                rest /= runs_per_level;
            }
            assert_eq!(store.run_counts(), digits, "{count} flushes, {runs_per_level} runs per level");
            let merged =
                (1..).map(|level| runs_per_level.pow(level)).take_while(|of_run| count % of_run == 0);
            expected_bytes += flush_bytes * (1 + merged.sum::<u64>());
            assert_eq!(store.written_bytes, expected_bytes, "{count} flushes");
        }
        store.check_reads();
    }
}

/// However often keys are overwritten, the runs below L0 that are newer than the oldest take at most the given share of its bytes.
#[test]
fn a_tiered_store_bounds_the_space_of_overwritten_entries() {
    for percent in [25, 100, 300] {
        let mut random = SplitMix64::new(u64::from(percent));
        let layout = Layout::Tiered { runs_per_level: 8, space_amplification_percent: percent };
        let mut store = Store::new(
            KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10).layout(layout),
        );
        for _ in 0..200 {
            let keys: Vec<u32> = (0..16).map(|_| random.below(1_000) as u32).collect();
            store.flush(keys.into_iter());
            Jobs::default().drain(&mut store, &mut random);
            let version = store.version();
            let runs = version.partitions.first().expect("one").runs().filter(|(level, _)| *level > 0);
            let bytes: Vec<u64> = runs.map(|(_, run)| run.bytes()).collect();
            let Some((oldest, newer)) = bytes.split_last() else { continue };
            let share = newer.iter().sum::<u64>() * 100 / oldest;
            assert!(share < u64::from(percent), "{share} percent");
        }
        store.check_reads();
    }
}

/// A tiered store writes less than a leveled one, and less the more runs a level may have.
#[test]
fn a_tiered_fill_writes_each_entry_once_per_level() {
    let written = |layout: Layout| {
        let mut store = Store::new(
            KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10).layout(layout),
        );
        for count in 0..400 {
            store.flush((count * 16..count * 16 + 16).map(spread_key));
            Jobs::default().drain(&mut store, &mut SplitMix64::new(1));
        }
        store.written_bytes as f64 / (400 * 16 * ENTRY_BYTES) as f64
    };
    let leveled = written(Layout::Leveled);
    let tiered = written(Layout::tiered());
    let with_ten = written(Layout::Tiered { runs_per_level: 10, space_amplification_percent: 1_000 });
    assert!(tiered < 0.6 * leveled && with_ten < tiered, "{leveled:.2} {tiered:.2} {with_ten:.2}");
    // The flush, and at most log(100) / log(10) + 1 merges of an entry from L0 on.
    assert!(with_ten <= 4.0, "{with_ten:.2}");
}

fn whole_range(store: &Store) -> RangeRequest {
    RangeRequest {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
        sequence_max: store.sequence,
        number_max: store.number,
        readers: Readers::at([store.sequence]),
        reason: Reason::Range,
    }
}

#[test]
fn a_compacted_range_ends_in_one_run() {
    for seed in 0..16 {
        let mut random = SplitMix64::new(seed);
        let layout = if seed % 2 == 0 { Layout::Leveled } else { tiered(&mut random) };
        let mut store = Store::new(options(&mut random).layout(layout));
        let mut jobs = Jobs::default();
        for _ in 0..60 {
            let keys: Vec<u32> = (0..16).map(|_| random.below(500) as u32).collect();
            store.flush(keys.into_iter());
            if random.below(3) == 0 {
                jobs.drain(&mut store, &mut random);
            }
        }
        let request = whole_range(&store);
        let mut steps = 0;
        loop {
            match pick_range(&store.version(), &jobs.in_progress, &request) {
                RangePick::Plan(plan) => jobs.begin(&store, *plan),
                RangePick::Blocked => jobs.end_one(&mut store, &mut random),
                RangePick::Done if jobs.running.is_empty() => break,
                RangePick::Done => jobs.end_one(&mut store, &mut random),
            }
            steps += 1;
            assert!(steps < 2000, "seed {seed}: the compaction does not terminate");
        }
        store.check_reads();
        let version = store.version();
        assert_eq!(store.run_counts().iter().sum::<usize>(), 1, "seed {seed}");
        assert_eq!(
            version.tables().map(|table| table.summary().entry_count).sum::<u64>(),
            store.newest.len() as u64
        );
    }
}
