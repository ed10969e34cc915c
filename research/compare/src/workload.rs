//! The workloads: names, actions, and the targets of Tamis.

use crate::{
    failure::{Failure, Result},
    state::State,
};

/// The action of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Fills a new store with all entries.
    Fill {
        /// In key order instead of random order.
        is_sorted: bool,
        /// The log is buffered in the process.
        is_deferred: bool,
    },
    /// Reads present keys, uniform.
    GetUniform,
    /// Reads present keys, Zipfian.
    GetZipf,
    /// Reads absent keys.
    GetAbsent,
    /// Seeks to a random key and reads `count` values, or with 0 only the key.
    Seek {
        /// Values.
        count: usize,
        /// A new iterator for each operation.
        is_fresh: bool,
    },
    /// Reads backward from a random key.
    Reverse {
        /// Values.
        count: usize,
    },
    /// Reads an empty closed range.
    Empty {
        /// Directly after a key; otherwise anywhere.
        is_near: bool,
    },
    /// Seeks to the keys of a pattern and reads one value each.
    SeekBy(Pattern),
    /// Overwrites the keys of a pattern.
    Update(Pattern),
    /// Reads all entries.
    Scan,
    /// A YCSB mix, by its name in `tamis-workload`.
    Ycsb(&'static str),
    /// In a transaction, reads the values of ten keys and writes each to the next key; after a conflict again.
    Transfer {
        /// All transactions have a key in common.
        is_hot: bool,
    },
    /// Closes and reopens the store.
    Open,
}

/// The order in which a workload visits the keys of the fill (REMIX, Sections 5.1 and 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// In key order, from a random key on.
    Sequential,
    /// A few keys, scattered over the key space, most often.
    Zipfian,
    /// A few ranges of 1,024 neighbouring keys most often, uniform within them.
    ZipfianComposite,
}

/// The read-only mix.
const YCSB_C: &str = "ycsb-c";

impl Action {
    /// Whether it modifies the store.
    pub fn is_writing(self) -> bool {
        matches!(self, Self::Update(_) | Self::Transfer { .. })
            || matches!(self, Self::Ycsb(mix) if mix != YCSB_C)
    }
}

/// A workload.
pub struct Workload {
    /// Name on the command line and in results.
    pub name: &'static str,
    /// Title in tables.
    pub title: &'static str,
    /// The action.
    pub action: Action,
    /// The states of the store that it runs in.
    pub states: &'static [State],
    /// The minimum ratio to the better RocksDB column, in each of its states.
    pub target: Option<f64>,
    /// The minimum ratio with unmerged runs.
    pub unmerged_target: Option<f64>,
    /// Whether there is a target relative to LMDB on a compacted store.
    pub is_read: bool,
}

const FILLED: &[State] = &[State::Fill];
const READ: &[State] = &[State::Settled, State::Compacted, State::Unmerged];
const MIXED: &[State] = &[State::Settled];

const fn fill(name: &'static str, title: &'static str, action: Action, target: Option<f64>) -> Workload {
    Workload { name, title, action, states: FILLED, target, unmerged_target: None, is_read: false }
}

const fn read(
    name: &'static str,
    title: &'static str,
    action: Action,
    target: f64,
    unmerged_target: Option<f64>,
) -> Workload {
    Workload { name, title, action, states: READ, target: Some(target), unmerged_target, is_read: true }
}

const fn mix(name: &'static str, title: &'static str, target: f64) -> Workload {
    Workload {
        name,
        title,
        action: Action::Ycsb(name),
        states: MIXED,
        target: Some(target),
        unmerged_target: None,
        is_read: false,
    }
}

const fn untargeted(name: &'static str, title: &'static str, action: Action) -> Workload {
    Workload { name, title, action, states: MIXED, target: None, unmerged_target: None, is_read: false }
}

const fn seek(count: usize, is_fresh: bool) -> Action {
    Action::Seek { count, is_fresh }
}

/// All workloads in run and table order; those that modify the store come last.
pub const WORKLOADS: &[Workload] = &[
    fill("fill-order", "fill in order", Action::Fill { is_sorted: true, is_deferred: false }, Some(2.5)),
    fill("fill-random", "fill at random", Action::Fill { is_sorted: false, is_deferred: false }, Some(1.5)),
    fill(
        "fill-deferred",
        "fill at random, log buffered in the process",
        Action::Fill { is_sorted: false, is_deferred: true },
        None,
    ),
    read("get-uniform", "get, uniform", Action::GetUniform, 2.5, None),
    read("get-zipf", "get, Zipfian", Action::GetZipf, 2.0, None),
    read("get-absent", "get, absent", Action::GetAbsent, 1.5, None),
    read("seek", "seek", seek(0, false), 4.0, Some(1.5)),
    read("seek-fresh", "seek, new iterator", seek(0, true), 4.0, Some(1.5)),
    read("seek-50", "seek + 50 next", seek(50, false), 3.0, Some(1.5)),
    read("reverse-50", "seek + 50 prev", Action::Reverse { count: 50 }, 2.5, None),
    read("empty-near", "closed empty range after a key", Action::Empty { is_near: true }, 4.0, None),
    read("empty-far", "closed empty range anywhere", Action::Empty { is_near: false }, 4.0, None),
    read("scan", "full scan", Action::Scan, 2.5, None),
    untargeted("seek-sequential", "seek, in key order", Action::SeekBy(Pattern::Sequential)),
    untargeted("seek-zipf", "seek, Zipfian", Action::SeekBy(Pattern::Zipfian)),
    untargeted("seek-200", "seek + 200 next", seek(200, false)),
    untargeted("open", "close and open", Action::Open),
    mix(YCSB_C, "YCSB C", 2.0),
    mix("ycsb-b", "YCSB B", 2.0),
    mix("ycsb-d", "YCSB D", 2.0),
    mix("ycsb-e", "YCSB E", 2.5),
    mix("ycsb-f", "YCSB F", 2.0),
    mix("ycsb-a", "YCSB A", 2.0),
    untargeted("transfer", "transfer of ten keys", Action::Transfer { is_hot: false }),
    untargeted("transfer-hot", "transfer of ten keys, one hot", Action::Transfer { is_hot: true }),
    untargeted("update-sequential", "update, in key order", Action::Update(Pattern::Sequential)),
    untargeted("update-zipf", "update, Zipfian", Action::Update(Pattern::Zipfian)),
    untargeted("update-composite", "update, Zipfian-composite", Action::Update(Pattern::ZipfianComposite)),
];

/// Returns the workload with this name.
pub fn workload_named(name: &str) -> Result<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        Failure::new(format!("unknown workload {name:?}; give one of {}", names.join(", ")))
    })
}
