//! The file of results: the configuration and one row per pass. It is rewritten after each pass.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tamis_bench::Machine;

use crate::{
    failure::{Failure, Result, while_doing},
    pass::Outcome,
    store::{KINDS, kind_named},
    usage::Memory,
    worker::Answer,
};

#[cfg(test)]
mod tests;

/// The configuration of a run; rows of different configurations are not mixed in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Number of entries of a store.
    pub entries: u64,
    /// Bytes of the cache of a store.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Maximum operations of a thread in a pass.
    pub operations: usize,
    /// Maximum seconds of a pass.
    pub seconds: f64,
    /// Seconds of warm-up before a read-only pass.
    pub warm_seconds: f64,
    /// Direct I/O.
    pub is_direct: bool,
    /// The commit of Tamis and of this program, with a digest of the sources if they differ from it.
    pub commit: String,
    /// The build of the Rust part: profile, compiler, target features.
    pub build: String,
    /// The compiler flags of the C and C++ stores.
    pub foreign_flags: String,
    /// The processor and its number of cores.
    pub processor: String,
}

impl Configuration {
    /// The flags of C and C++; `.cargo/config.toml` sets them only for builds that start in the folder of this crate.
    pub fn foreign_flags() -> &'static str {
        option_env!("CXXFLAGS").unwrap_or_default()
    }
}

/// One pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The state of the store.
    pub state: String,
    /// The workload.
    pub workload: String,
    /// Number of threads.
    pub threads: u64,
    /// The round, from 1.
    pub round: u32,
    /// The store.
    pub store: String,
    /// Operations per second; for a fill including its flush.
    pub rate: f64,
    /// The result of the pass.
    pub outcome: Outcome,
    /// For a fill: seconds until the background work ended.
    pub seconds_settled: f64,
    /// For a fill: bytes written per user byte.
    pub write_amplification: f64,
    /// Memory after the pass.
    pub memory: Memory,
    /// Bytes on disk after the pass.
    pub disk_bytes: u64,
    /// Levels or runs after the pass.
    pub shape: String,
}

/// The key of a row: state, workload, threads, round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Name of the state.
    pub state: &'static str,
    /// Name of the workload.
    pub workload: &'static str,
    /// Threads.
    pub threads: u64,
    /// The round, from 1.
    pub round: u32,
}

impl Row {
    /// Creates a row from the answer of a worker.
    pub fn new(place: &Place, store: &str, answer: Answer) -> Self {
        let outcome = answer.outcome;
        let seconds = if answer.seconds_flushed > 0.0 { answer.seconds_flushed } else { outcome.seconds };
        Self {
            state: place.state.to_owned(),
            workload: place.workload.to_owned(),
            threads: place.threads,
            round: place.round,
            store: store.to_owned(),
            rate: outcome.operations as f64 / seconds.max(1e-9),
            outcome,
            seconds_settled: answer.seconds_settled,
            write_amplification: answer.write_amplification,
            memory: answer.memory,
            disk_bytes: answer.disk_bytes,
            shape: answer.shape,
        }
    }

    /// Whether the row has this key.
    pub fn is_at(&self, place: &Place) -> bool {
        self.state == place.state
            && self.workload == place.workload
            && self.threads == place.threads
            && self.round == place.round
    }
}

/// All results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// The configuration.
    pub configuration: Configuration,
    /// The machine.
    pub machine: Machine,
    /// Date and time of the start.
    pub begun: String,
    /// The settings of each store.
    pub stores: BTreeMap<String, String>,
    /// Whether all passes of the plan are measured.
    pub is_complete: bool,
    /// The passes.
    pub rows: Vec<Row>,
    #[serde(skip)]
    path: PathBuf,
}

impl Results {
    /// Reads a file of results.
    pub fn read(path: &Path) -> Result<Self> {
        let text = while_doing(fs::read_to_string(path), path.display())?;
        let results: Self = while_doing(serde_json::from_str(&text), path.display())?;
        Ok(Self { path: path.to_owned(), ..results })
    }

    /// Reads the results of a file, or creates empty results.
    pub fn open(path: &Path, configuration: Configuration) -> Result<Self> {
        if !path.exists() {
            let (machine, begun) = (Machine::current(), tamis_bench::date());
            let stores = KINDS.iter().map(|kind| (kind.name.to_owned(), kind.about.to_owned())).collect();
            let path = path.to_owned();
            let results =
                Self { configuration, machine, begun, stores, is_complete: false, rows: Vec::new(), path };
            results.write()?;
            return Ok(results);
        }
        let results = Self::read(path)?;
        if results.configuration != configuration {
            return Err(Failure(format!(
                "{} contains results of another configuration ({:?}) than this one ({configuration:?}); \
                 give the same options to continue it, or another file",
                path.display(),
                results.configuration
            )));
        }
        Ok(results)
    }

    /// Writes the file atomically, with a temporary file and a rename.
    pub fn write(&self) -> Result<()> {
        let temporary = self.path.with_extension("json.new");
        let text = serde_json::to_string_pretty(self)?;
        while_doing(fs::write(&temporary, text), temporary.display())?;
        while_doing(rustix::fs::rename(&temporary, &self.path), self.path.display())
    }

    /// Adds a row and writes the file.
    pub fn add(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        self.write()
    }

    /// Whether a row exists.
    pub fn has(&self, place: &Place, store: &str) -> bool {
        self.rows.iter().any(|row| row.store == store && row.is_at(place))
    }

    /// Fails if two stores returned different results for the same operations.
    pub fn check_digests(&self, place: &Place) -> Result<()> {
        let mut rows = self.rows.iter().filter(|row| row.is_at(place) && row.outcome.digest != 0);
        let Some(first) = rows.next() else { return Ok(()) };
        match rows.find(|row| row.outcome.digest != first.outcome.digest) {
            Some(other) => Err(Failure(format!(
                "{} and {} returned different results for {} ({} threads, round {}); one of them is wrong, so discard these figures",
                first.store, other.store, place.workload, place.threads, place.round
            ))),
            None => Ok(()),
        }
    }

    /// The stores with rows, in table order.
    pub fn stores_measured(&self) -> Vec<&'static str> {
        KINDS
            .iter()
            .map(|kind| kind.name)
            .filter(|name| self.rows.iter().any(|row| row.store == *name))
            .collect()
    }
}

/// Rejects wrong results: a present key that was not found, or an empty range that was not empty.
pub fn check_found(workload: &str, store: &str, outcome: Outcome) -> Result<()> {
    let expected = match workload {
        "get-uniform" | "get-zipf" => outcome.operations,
        "get-absent" | "empty-near" | "empty-far" => 0,
        _ => return Ok(()),
    };
    if outcome.found == expected {
        return Ok(());
    }
    let title = kind_named(store)?.title;
    Err(Failure(format!(
        "{title} found {} of {expected} in {workload}; its results are wrong",
        outcome.found
    )))
}
