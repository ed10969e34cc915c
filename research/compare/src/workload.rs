//! The workloads: names, operations, the states of the stores in which they run, and the targets of Tamis.

use tamis_bench::{BenchError, driver::Script};
use tamis_workload::{
    KeyForm, Operation, OperationKind, SplitMix64, Workload as Stream, ZipfianComposite,
    operations::{Choice, Mix, ScanLength},
};

use OperationKind::{Scan, ScanBack, Update};

/// The encoding of keys: 16 bytes. A key is an injective function of its item, so an item that was never written is absent.
pub const FORM: KeyForm = KeyForm::Hex;
/// Length of a value.
pub const VALUE_BYTES: usize = 100;
/// User bytes of an entry.
pub const ENTRY_BYTES: u64 = 16 + VALUE_BYTES as u64;
/// Neighbouring keys that are equally popular in [`Source::Composite`].
const COMPOSITE_KEYS: u64 = 1024;

#[cfg(test)]
mod tests;

/// A state of the stores; all workloads of a state share one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Empty, and filled by the workload itself.
    Fill,
    /// Filled at random, flushed, and without pending compactions.
    Settled,
    /// The settled store after its mixes, fully compacted.
    Compacted,
    /// Filled at random in eight parts, each flushed into a separate run, without compactions.
    Unmerged,
}

impl State {
    /// All states in run order, with their names on the command line and in results, and the titles of their tables.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::Fill, "fill", "Fills, including the flush"),
        (Self::Settled, "settled", "Filled at random and settled"),
        (Self::Compacted, "compacted", "Compacted"),
        (Self::Unmerged, "unmerged", "Eight overlapping runs"),
    ];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, ..)| *state == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the state with this name.
    pub fn named(name: &str) -> Result<Self, BenchError> {
        let found = Self::ALL.iter().find(|(_, own, _)| *own == name);
        found.map(|(state, ..)| *state).ok_or_else(|| unknown("state", name, Self::ALL.iter().map(|it| it.1)))
    }

    /// The folder of its store; the compacted store is the settled one.
    pub fn folder(self) -> &'static str {
        if self == Self::Compacted { Self::Settled.name() } else { self.name() }
    }
}

/// The error of an unknown name.
pub fn unknown<'a>(kind: &'static str, name: &str, names: impl Iterator<Item = &'a str>) -> BenchError {
    let names = names.collect::<Vec<_>>().join(", ");
    BenchError::Unknown { kind, name: name.to_owned(), names }
}

/// The operations of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// Fills a new store with all entries.
    Fill {
        /// In key order instead of random order.
        is_sorted: bool,
        /// The log is buffered in the process.
        is_deferred: bool,
    },
    /// A stream of `tamis-workload`, by its name.
    Named(&'static str),
    /// A stream of such operations.
    Mixed(Mix),
    /// Operations of a kind on the keys of the fill, in key order from a random key on (REMIX, Sections 5.1 and 5.2).
    Sequential(OperationKind),
    /// Updates in a few ranges of 1,024 neighbouring keys most often, uniform within them (the same).
    Composite,
    /// In a transaction, reads the values of ten keys and writes each to the next key; after a conflict again.
    Transfer {
        /// All transactions have a key in common.
        is_hot: bool,
    },
    /// Reads all entries, once for each thread.
    FullScan,
    /// Closes and reopens the store.
    Open,
}

/// A workload.
pub struct Workload {
    /// Name on the command line and in results.
    pub name: &'static str,
    /// Title in tables.
    pub title: &'static str,
    /// Its operations.
    pub source: Source,
    /// Whether each scan creates an iterator.
    pub is_live: bool,
    /// The states of the store that it runs in.
    pub states: &'static [State],
    /// The minimum ratio to the better RocksDB column, in each of its states.
    pub target: Option<f64>,
    /// The minimum ratio with unmerged runs.
    pub unmerged_target: Option<f64>,
}

const READ: &[State] = &[State::Settled, State::Compacted, State::Unmerged];
const MIXED: &[State] = &[State::Settled];

/// A workload without a target, on a settled store.
const fn of(name: &'static str, title: &'static str, source: Source) -> Workload {
    Workload { name, title, source, is_live: false, states: MIXED, target: None, unmerged_target: None }
}

const fn fill(name: &'static str, title: &'static str, is_sorted: bool, target: f64) -> Workload {
    let filled = of(name, title, Source::Fill { is_sorted, is_deferred: false });
    Workload { states: &[State::Fill], target: Some(target), ..filled }
}

const fn read(name: &'static str, title: &'static str, source: Source, target: f64) -> Workload {
    Workload { states: READ, target: Some(target), ..of(name, title, source) }
}

const fn seek(name: &'static str, title: &'static str, entries: u32, target: f64) -> Workload {
    Workload { unmerged_target: Some(1.5), ..read(name, title, scans(Scan, entries), target) }
}

const fn mix(name: &'static str, title: &'static str, target: f64) -> Workload {
    Workload { target: Some(target), ..of(name, title, Source::Named(name)) }
}

/// Scans from random positions between the keys.
const fn scans(kind: OperationKind, entries: u32) -> Source {
    let shares: &[(OperationKind, f64)] =
        if matches!(kind, ScanBack) { &[(ScanBack, 1.0)] } else { &[(Scan, 1.0)] };
    Source::Mixed(Mix { shares, choice: Choice::Absent, scan: ScanLength::Fixed(entries), ..Mix::READS })
}

const fn zipfian(shares: &'static [(OperationKind, f64)]) -> Source {
    Source::Mixed(Mix { shares, choice: Choice::Zipfian, ..Mix::READS })
}

/// The fill whose store is kept for the next state.
pub const FILL_RANDOM: &str = "fill-random";
/// The workload that fills the caches before the first round.
pub const GET_UNIFORM: &str = "get-uniform";

/// All workloads in run and table order; those that modify the store come last.
pub const WORKLOADS: &[Workload] = &[
    fill("fill-order", "fill in order", true, 2.5),
    fill(FILL_RANDOM, "fill at random", false, 1.5),
    Workload {
        states: &[State::Fill],
        ..of(
            "fill-deferred",
            "fill at random, log buffered in the process",
            Source::Fill { is_sorted: false, is_deferred: true },
        )
    },
    read(GET_UNIFORM, "get, uniform", Source::Named("readrandom"), 2.5),
    read("get-zipf", "get, Zipfian", Source::Named("readzipfian"), 2.0),
    read("get-absent", "get, absent", Source::Named("readmissing"), 1.5),
    seek("seek", "seek", 1, 4.0),
    Workload { is_live: true, ..seek("seek-fresh", "seek, new iterator", 1, 4.0) },
    seek("seek-50", "seek + 50 next", 50, 3.0),
    read("reverse-50", "seek + 50 prev", scans(ScanBack, 50), 2.5),
    read("empty-near", "closed empty range after a key", Source::Named("empty-near"), 4.0),
    read("empty-far", "closed empty range anywhere", Source::Named("empty-far"), 4.0),
    Workload { is_live: true, ..read("scan", "full scan", Source::FullScan, 2.5) },
    of("seek-sequential", "seek, in key order", Source::Sequential(Scan)),
    of("seek-zipf", "seek, Zipfian", zipfian(&[(Scan, 1.0)])),
    of("seek-200", "seek + 200 next", scans(Scan, 200)),
    of("open", "close and open", Source::Open),
    mix("ycsb-c", "YCSB C", 2.0),
    mix("ycsb-b", "YCSB B", 2.0),
    mix("ycsb-d", "YCSB D", 2.0),
    mix("ycsb-e", "YCSB E", 2.5),
    mix("ycsb-f", "YCSB F", 2.0),
    mix("ycsb-a", "YCSB A", 2.0),
    of("transfer", "transfer of ten keys", Source::Transfer { is_hot: false }),
    of("transfer-hot", "transfer of ten keys, one hot", Source::Transfer { is_hot: true }),
    of("update-sequential", "update, in key order", Source::Sequential(Update)),
    of("update-zipf", "update, Zipfian", zipfian(&[(Update, 1.0)])),
    of("update-composite", "update, Zipfian-composite", Source::Composite),
];

/// Returns the workload with this name.
pub fn workload_named(name: &str) -> Result<&'static Workload, BenchError> {
    let found = WORKLOADS.iter().find(|workload| workload.name == name);
    found.ok_or_else(|| unknown("workload", name, WORKLOADS.iter().map(|workload| workload.name)))
}

/// The input for generating the operations of a pass.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Number of entries of the fill.
    pub entry_count: u64,
    /// Number of current entries, including inserts of earlier passes.
    pub present_count: u64,
    /// Operations of all threads.
    pub operation_count: u64,
    /// Different for each pass, the same for every store.
    pub seed: u64,
}

impl Workload {
    /// Its stream of operations, for a mix.
    fn stream(&self) -> Option<Stream> {
        match self.source {
            Source::Named(name) => name.parse().ok(),
            Source::Mixed(mix) => Some(Stream {
                name: self.name,
                mix,
                end: None,
                is_fill: false,
                is_sorted: false,
                has_writer: false,
            }),
            _ => None,
        }
    }

    /// Whether it modifies the store.
    pub fn is_writing(&self) -> bool {
        let modifies = |(kind, _): &(OperationKind, f64)| {
            !matches!(kind, OperationKind::Read | Scan | ScanBack | OperationKind::Range)
        };
        match self.source {
            Source::Sequential(kind) => kind == Update,
            Source::Open | Source::FullScan => false,
            _ => self.stream().is_none_or(|stream| stream.mix.shares.iter().any(modifies)),
        }
    }

    /// The operations of a pass, the same operations in the same order for every store.
    pub fn operations(&self, draw: Draw) -> Box<dyn Iterator<Item = Operation>> {
        let Draw { entry_count, present_count, operation_count, seed } = draw;
        let mut random = SplitMix64::new(seed);
        let operation = |kind, item| Operation { kind, item, limit: 1, distance: 0, length: 0 };
        match self.source {
            // The key of the first item is the lowest one.
            Source::FullScan => {
                let scan = Operation { limit: u32::MAX, ..operation(Scan, 0) };
                Box::new(std::iter::repeat_n(scan, operation_count as usize))
            }
            Source::Sequential(kind) => {
                let (first, items) = (random.below(entry_count.max(1)), items_in_key_order(entry_count));
                let item = move |turn: u64| items.get(((first + turn) % entry_count) as usize).copied();
                Box::new((0..operation_count).filter_map(item).map(move |item| operation(kind, item)))
            }
            Source::Composite => {
                let composite = ZipfianComposite::new((entry_count / COMPOSITE_KEYS).max(1));
                let items = items_in_key_order(entry_count);
                let item = move |_| {
                    let drawn = composite.draw(&mut random);
                    let place = (drawn >> 16) * COMPOSITE_KEYS + drawn % COMPOSITE_KEYS;
                    items.get((place % entry_count) as usize).copied()
                };
                Box::new((0..operation_count).filter_map(item).map(move |item| operation(Update, item)))
            }
            Source::Transfer { .. } => {
                let update = move |_| operation(Update, random.below(entry_count.max(1)));
                Box::new((0..operation_count).map(update))
            }
            _ => {
                let count = if self.is_writing() { present_count } else { entry_count };
                match self.stream() {
                    Some(stream) => Box::new(stream.operations(count, operation_count, seed)),
                    None => Box::new(std::iter::empty()),
                }
            }
        }
    }

    /// The operations of a pass, dealt to its threads.
    pub fn script(&self, draw: Draw, thread_count: usize) -> Script {
        Script::deal(self.operations(draw), FORM, thread_count)
    }

    /// The number of entries that certainly exist after a pass whose threads executed so many operations.
    pub fn present_after(&self, draw: Draw, done: &[u64]) -> u64 {
        let complete = done.iter().min().copied().unwrap_or(0) * done.len() as u64;
        let operations = self.operations(draw).take(complete as usize);
        let inserts = operations.filter(|operation| operation.kind == OperationKind::Insert);
        draw.present_count + inserts.count() as u64
    }
}

/// The operations of a fill or of a part of it: in key order, or in the order of the items, which is random with respect to the keys.
pub fn fill_script(items: std::ops::Range<u64>, is_sorted: bool, thread_count: usize) -> Script {
    let insert = |item| Operation { kind: OperationKind::Insert, item, limit: 1, distance: 0, length: 0 };
    if !is_sorted {
        return Script::deal(items.map(insert), FORM, thread_count);
    }
    let items = items_in_key_order(items.end);
    Script::deal(items.into_iter().map(insert), FORM, thread_count)
}

fn items_in_key_order(entry_count: u64) -> Vec<u64> {
    let mut items: Vec<u64> = (0..entry_count).collect();
    items.sort_unstable_by_key(|item| FORM.number(*item));
    items
}
