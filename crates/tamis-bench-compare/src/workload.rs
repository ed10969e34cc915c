//! The workloads by name, what they do and what is asked of Tamis in each.

use crate::{
    failure::{Failure, Result},
    state::State,
};

/// What one operation of a pass does, or how its operations are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Makes a new store of all entries.
    Fill {
        /// In the order of the keys, not at random.
        is_sorted: bool,
        /// The log is buffered in the process.
        is_deferred: bool,
    },
    /// Reads keys that are there, all equally often.
    GetUniform,
    /// Reads keys that are there, Zipfian.
    GetZipf,
    /// Reads keys that are not there.
    GetAbsent,
    /// To a random point, with the iterator that is kept; reads `count` values, or with 0 the key there.
    Seek {
        /// Values.
        count: usize,
        /// An iterator for each operation.
        is_fresh: bool,
    },
    /// Backward from a random point.
    Reverse {
        /// Values.
        count: usize,
    },
    /// A closed range that is empty: just behind a key, or anywhere.
    Empty {
        /// Behind a key.
        is_near: bool,
    },
    /// All entries once.
    Scan,
    /// A mix of YCSB, by its name in `tamis-workload`.
    Ycsb(&'static str),
    /// Closes and opens the store.
    Open,
}

/// The mix that only reads.
const YCSB_C: &str = "ycsb-c";

impl Action {
    /// Whether it changes the store.
    pub fn is_writing(self) -> bool {
        matches!(self, Self::Ycsb(mix) if mix != YCSB_C)
    }
}

/// A workload.
pub struct Workload {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What stands for it in tables.
    pub title: &'static str,
    /// What it does.
    pub action: Action,
    /// In which states of the store it is run.
    pub states: &'static [State],
    /// The least ratio to the better RocksDB column, in each of its states.
    pub target: Option<f64>,
    /// The least ratio where runs are unmerged.
    pub unmerged_target: Option<f64>,
    /// Whether LMDB is a mark for it on a compacted store.
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

const fn seek(count: usize, is_fresh: bool) -> Action {
    Action::Seek { count, is_fresh }
}

/// All workloads in the order in which they are run and shown: what changes the store comes last.
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
    read("reverse-50", "seek + 50 back", Action::Reverse { count: 50 }, 2.5, None),
    read("empty-near", "closed empty range behind a key", Action::Empty { is_near: true }, 4.0, None),
    read("empty-far", "closed empty range anywhere", Action::Empty { is_near: false }, 4.0, None),
    read("scan", "full scan", Action::Scan, 2.5, None),
    Workload {
        name: "open",
        title: "close and open",
        action: Action::Open,
        states: MIXED,
        target: None,
        unmerged_target: None,
        is_read: false,
    },
    mix(YCSB_C, "YCSB C", 2.0),
    mix("ycsb-b", "YCSB B", 2.0),
    mix("ycsb-d", "YCSB D", 2.0),
    mix("ycsb-e", "YCSB E", 2.5),
    mix("ycsb-f", "YCSB F", 2.0),
    mix("ycsb-a", "YCSB A", 2.0),
];

/// The workload of a name.
pub fn workload_named(name: &str) -> Result<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        Failure::new(format!("no workload is called {name:?}; there are {}", names.join(", ")))
    })
}
