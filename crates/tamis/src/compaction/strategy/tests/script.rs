//! Scripts in `src/compaction/testdata` ([`crate::tests`]).
//!
//! - `version [ratio=N] [runs=N] [table=KIB] [memtable=KIB] [compression=alike|other] [tiered=RUNS] [space=PERCENT]
//!   [partitioned=TABLES] [split=TABLES]`: each line after it is a run of the last partition, or `partition LOWER`, which begins another:
//!   `L0@AGE` or `L7` (of age 0), then its tables as `NUMBER:FIRST..LAST:KIB` and properties: `:t` half of the entries are tombstones, `:T`
//!   all of them; `:s=FIRST..LAST` sequence numbers (without them, a table of L0 has its run's age, others have 1);
//!   `:o=NUMBER` half of the entries are obsolete since this number; `:r=LOWER..UPPER@NUMBER` a range tombstone. Prints the
//!   targets of the levels in use.
//! - `snapshots [NUMBER...]`: the snapshots from now on. The visible sequence number is 1,000.
//! - `pick`: prints the plan and lets its job begin; the next `pick` is made while it runs.
//! - `end`: all jobs end without effect.
//! - `retained FIRST..LAST...`: memtables retain entries between these keys from now on.
//! - `flush KIB...`: prints the partitions whose entries a flush leaves in memory. It has these bytes for each partition.
//! - `range LOWER UPPER [number=N]`: the next step of a manual compaction, which begins too.

use std::{fmt::Write, ops::Bound, sync::Arc};

use super::super::{RangePick, pending_bytes, pick, pick_aborted, pick_during_bulk_load, pick_range};
use crate::{
    compaction::{
        plan::{Action, InProgress, Plan, RangeRequest, Reason},
        targets::{LevelTargets, PickerConfig},
    },
    key::{Readers, Sequence},
    options::{Compression, KeyspaceOptions, Layout},
    range_tombstone::{Fragment, Fragments},
    tests::run_script,
    version::{
        edit::{Change, RunPlace},
        invariants::check_invariants,
        level::LEVELED_RUN_AGE,
        test_support::{add, catalog_of, place, summary},
        version::KeyspaceVersion,
    },
};

#[test]
fn the_leveled_strategy_picks_the_plans_of_its_script() {
    run_file("picker.txt");
}

#[test]
fn the_tiered_strategy_picks_the_plans_of_its_script() {
    run_file("tiered.txt");
}

#[test]
fn the_partitioned_strategy_picks_the_plans_of_its_script() {
    run_file("partitioned.txt");
}

#[test]
fn changes_of_layout_pick_the_plans_of_their_script() {
    run_file("layout.txt");
}

#[test]
fn garbage_picks_the_plans_of_its_script() {
    run_file("garbage.txt");
}

#[test]
fn a_fill_lets_level0_grow_to_twice_its_runs() {
    let of = |count: u32| {
        let runs: Vec<String> = (1..=count).rev().map(|age| format!("L0@{age} {age}:a..z:60")).collect();
        version(&["runs=4"], runs.iter().map(String::as_str))
    };
    let in_progress = InProgress::default();
    for count in 1..12 {
        let readers = &Readers::at([VISIBLE]);
        assert_eq!(pick(&of(count), &in_progress, readers).is_some(), count >= 4, "{count} runs");
        let plan = pick_during_bulk_load(&of(count), &in_progress, readers);
        assert_eq!(plan.is_some(), count >= 8, "{count} runs");
    }
}

const VISIBLE: Sequence = 1000;

#[derive(Default)]
struct Scene {
    version: Option<KeyspaceVersion>,
    snapshots: Vec<Sequence>,
    in_progress: InProgress,
    running: Vec<Plan>,
}

fn run_file(name: &str) {
    let mut scene = Scene::default();
    run_script(&format!("src/compaction/testdata/{name}"), |command| scene.execute(command));
}

impl Scene {
    fn execute(&mut self, command: &str) -> String {
        let mut lines = command.lines().skip_while(|line| line.starts_with('#'));
        let head: Vec<&str> = lines.next().expect("a command").split_whitespace().collect();
        let (name, words) = head.split_first().expect("a command");
        match *name {
            "version" => {
                *self = Self { version: Some(version(words, lines)), ..Self::default() };
                self.show_version()
            }
            "pick" => {
                let plan = pick(self.version(), &self.in_progress, &self.readers());
                plan.map_or_else(|| "nothing\n".to_owned(), |plan| self.begin(plan))
            }
            "snapshots" => {
                self.snapshots = words.iter().map(|word| word.parse().expect("a number")).collect();
                String::new()
            }
            "retained" => {
                let spans = words.iter().map(|word| word.split_once("..").expect("FIRST..LAST"));
                let spans = spans.map(|(first, last)| (first.as_bytes().to_vec(), last.as_bytes().to_vec()));
                self.in_progress = self.in_progress.with_retained(spans.collect());
                String::new()
            }
            "flush" => {
                let sizes: Vec<u64> =
                    words.iter().map(|word| word.parse::<u64>().expect("KIB") << 10).collect();
                let plan = pick_aborted(self.version(), (&sizes, sizes.iter().sum()), &self.readers());
                let (saved, most) = (plan.saved_bytes >> 10, plan.bytes_max >> 10);
                format!("abort {:?}, at most {most} KiB, saves {saved} KiB\n", plan.partitions)
            }
            "range" => match pick_range(
                self.version(),
                &self.in_progress,
                &RangeRequest { readers: self.readers(), ..request(words) },
            ) {
                RangePick::Plan(plan) => self.begin(*plan),
                RangePick::Blocked => "blocked\n".to_owned(),
                RangePick::Done => "done\n".to_owned(),
            },
            "end" => {
                for plan in self.running.drain(..) {
                    self.in_progress.end(&plan);
                }
                assert!(self.in_progress.is_empty());
                String::new()
            }
            other => panic!("unknown command {other}"),
        }
    }

    fn readers(&self) -> Readers {
        Readers::at(self.snapshots.iter().copied().chain([VISIBLE]).collect::<Vec<_>>())
    }

    fn version(&self) -> &KeyspaceVersion {
        self.version.as_ref().expect("a version comes first")
    }

    fn show_version(&self) -> String {
        let version = self.version();
        assert_eq!(check_invariants(version), None);
        let partition = version.partitions.first().expect("a partition");
        if version.options.layout != Layout::Leveled {
            return format!("pending {} KiB\n", pending_bytes(version) >> 10);
        }
        let targets = LevelTargets::new(partition, &PickerConfig::new(&version.options));
        let mut printed = format!("base level {}", targets.base_level);
        for level in targets.base_level..partition.levels().len() {
            write!(printed, ", L{level} {} KiB", targets.of(level) >> 10).expect("memory");
        }
        writeln!(printed, "; pending {} KiB", pending_bytes(version) >> 10).expect("memory");
        printed
    }

    fn begin(&mut self, plan: Plan) -> String {
        self.in_progress.begin(&plan);
        let printed = show(&plan);
        self.running.push(plan);
        printed
    }
}

fn version<'a>(words: &[&str], lines: impl Iterator<Item = &'a str>) -> KeyspaceVersion {
    let mut options = KeyspaceOptions::default().memtable_bytes(256 << 10).table_bytes(256 << 10);
    let (mut tiered, mut space_amplification_percent) = (None, 300);
    let mut partitioned = None;
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        let number = value.parse::<u32>().unwrap_or(0);
        match name {
            "ratio" => options.size_ratio = number,
            "runs" => options.level0_runs = number,
            "table" => options.table_bytes = u64::from(number) << 10,
            "memtable" => options.memtable_bytes = u64::from(number) << 10,
            "compression" => options.compression = vec![Compression::None, Compression::Lz4],
            "tiered" => tiered = Some(number),
            "partitioned" => partitioned = Some(number),
            "space" => space_amplification_percent = number,
            other => panic!("unknown option {other}"),
        }
    }
    if let Some(runs_per_level) = tiered {
        options.layout = Layout::Tiered { runs_per_level, space_amplification_percent };
    }
    if let Some(tables_per_partition) = partitioned {
        options.layout = Layout::Partitioned { tables_per_partition };
    }
    let lines: Vec<&str> = lines.collect();
    let mut changes = Vec::new();
    let mut partition = 1;
    for line in &lines {
        if let Some(lower) = line.strip_prefix("partition ") {
            partition += 1;
            let lower = lower.as_bytes().to_vec();
            changes.push(Change::AddPartition { keyspace: 1, partition, lower, flushed_sequence: 0 });
        } else {
            changes.extend(run(line, partition));
        }
    }
    let state = catalog_of(changes, &Arc::default());
    let version = state.keyspaces.get(&1).expect("keyspace 1");
    for (number, fragment) in lines.into_iter().flat_map(range_tombstones) {
        let table = version.tables().find(|table| table.number() == number).expect("a table");
        table.set_range_tombstones(Arc::new(Fragments::new(vec![fragment]).expect("one fragment")));
    }
    KeyspaceVersion { options: Arc::new(options), ..(**version).clone() }
}

/// The numbers of the tables of a line that have a range tombstone, with it.
fn range_tombstones(line: &str) -> impl Iterator<Item = (u64, Fragment)> {
    line.split_whitespace().skip(1).filter_map(|word| {
        let (head, range) = word.split_once(":r=")?;
        let (range, sequence) = range.split_once('@').expect("RANGE@NUMBER");
        let (lower, upper) = range.split_once("..").expect("LOWER..UPPER");
        let sequences = vec![sequence.parse().expect("a sequence number")];
        let fragment = Fragment { lower: lower.into(), upper: upper.into(), sequences };
        Some((head.split(':').next().expect("a number").parse().expect("a number"), fragment))
    })
}

fn run(line: &str, partition: u64) -> Vec<Change> {
    let mut words = line.split_whitespace();
    let head = words.next().and_then(|head| head.strip_prefix('L')).expect("a level");
    let (level, age) = match head.split_once('@') {
        Some((level, age)) => (level, age.parse().expect("age")),
        None => (head, LEVELED_RUN_AGE),
    };
    let sequence = age.max(1);
    let place = RunPlace { partition, ..place(level.parse().expect("level"), age) };
    words.map(|word| add(place, table(word, sequence))).collect()
}

fn table(word: &str, sequence: u64) -> crate::table::properties::TableSummary {
    let mut parts = word.split(':');
    let mut next = || parts.next().expect("NUMBER:FIRST..LAST:KIB");
    let (number, keys, kib) = (next(), next(), next());
    let kib: u64 = kib.parse().expect("KIB");
    let keys = keys.split_once("..").expect("FIRST..LAST");
    let mut summary = summary(number.parse().expect("number"), keys, kib << 10, (sequence, sequence));
    for property in parts {
        let (name, value) = property.split_once('=').unwrap_or((property, ""));
        let sequence = |text: &str| text.parse::<Sequence>().expect("a sequence number");
        match name {
            "t" => summary.tombstone_count = summary.entry_count / 2,
            "T" => summary.tombstone_count = summary.entry_count,
            "s" => {
                let (first, last) = value.split_once("..").expect("FIRST..LAST");
                (summary.smallest_sequence, summary.largest_sequence) = (sequence(first), sequence(last));
            }
            "o" => {
                (summary.obsolete_count, summary.obsolete_since) = (summary.entry_count / 2, sequence(value));
            }
            "r" => {
                let range = value.split_once('@').expect("RANGE@NUMBER").0;
                summary.range_tombstone_count = 1;
                summary.range_tombstone_upper = range.split_once("..").expect("LOWER..UPPER").1.into();
            }
            other => panic!("unknown property {other}"),
        }
    }
    summary
}

fn request(words: &[&str]) -> RangeRequest {
    let mut number_max = u64::MAX;
    let mut bounds = Vec::new();
    for word in words {
        match word.strip_prefix("number=") {
            Some(number) => number_max = number.parse().expect("number"),
            None => bounds.push(word.as_bytes().to_vec()),
        }
    }
    let mut bounds = bounds.into_iter().map(Bound::Included);
    let mut next = || bounds.next().unwrap_or(Bound::Unbounded);
    let (lower, upper) = (next(), next());
    RangeRequest {
        lower,
        upper,
        sequence_max: u64::MAX,
        number_max,
        readers: Readers::default(),
        reason: Reason::Range,
    }
}

fn show(plan: &Plan) -> String {
    let age = |age: u64| if age == LEVELED_RUN_AGE { String::new() } else { format!("@{age}") };
    let mut printed = format!(
        "{:?} because of {:?}, score {:.2}, {} KiB to L{}{} (depth {})\n",
        plan.action,
        plan.reason,
        plan.score,
        plan.bytes_written >> 10,
        plan.output_level,
        age(plan.output_run_age),
        plan.depth
    );
    if plan.action == Action::Unite {
        writeln!(printed, "  partitions {:?}", plan.replaced_partitions).expect("memory");
    }
    let inputs = plan.inputs.iter().map(|input| (input, ""));
    for (input, how) in inputs.chain(plan.trivial_moves.iter().map(|input| (input, " trivial move"))) {
        let age = age(input.run_age);
        write!(printed, "  L{}{age}", input.level).expect("memory");
        for table in &input.tables {
            write!(printed, " {table:?}").expect("memory");
        }
        printed.push_str(how);
        printed.push('\n');
    }
    if !plan.split_keys.is_empty() {
        let keys = plan.split_keys.iter().map(|key| String::from_utf8_lossy(key)).collect::<Vec<_>>();
        writeln!(printed, "  split before {keys:?}").expect("memory");
    }
    if !plan.grandparents.is_empty() {
        writeln!(printed, "  grandparents {:?}", plan.grandparents).expect("memory");
    }
    if !plan.older.is_empty() {
        writeln!(printed, "  older {:?}", plan.older).expect("memory");
    }
    printed
}
