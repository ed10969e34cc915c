//! The file of results: what was measured with what, one row for each pass, written anew after each.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    clock::seconds_since_1970,
    failure::{Failure, Result, while_doing},
    pass::Outcome,
    store::{KINDS, kind_named},
    usage::{self, Memory},
    worker::Answer,
};

#[cfg(test)]
mod tests;

/// What must be equal for two runs to belong together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Entries of a store.
    pub entries: u64,
    /// Bytes of a store's cache.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Operations of a thread in a pass.
    pub operations: usize,
    /// Seconds of a pass.
    pub seconds: f64,
    /// Seconds of warming up before a pass that only reads.
    pub warm_seconds: f64,
    /// Past the page cache.
    pub is_direct: bool,
    /// The commit of Tamis and of this program, with a digest of the sources where they differ from it.
    pub commit: String,
    /// How Rust's part was built: profile, compiler, features of the target.
    pub build: String,
    /// With what flags the stores of C and C++ were built.
    pub foreign_flags: String,
    /// The processor, and how many of its cores.
    pub processor: String,
}

impl Configuration {
    /// How this program was built.
    pub fn build() -> String {
        format!("{}, {}, {}", env!("TAMIS_PROFILE"), env!("TAMIS_COMPILER"), env!("TAMIS_TARGET_FEATURES"))
    }

    /// The flags of C and C++; `.cargo/config.toml` gives them to builds begun in this crate's folder only.
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
    /// Threads.
    pub threads: u64,
    /// The round, from 1.
    pub round: u32,
    /// The store.
    pub store: String,
    /// Operations per second; of a fill with its flush.
    pub rate: f64,
    /// What was done.
    pub outcome: Outcome,
    /// Of a fill: seconds until the store was quiet.
    pub seconds_settled: f64,
    /// Of a fill: bytes written for each byte of the user.
    pub write_amplification: f64,
    /// Memory afterwards.
    pub memory: Memory,
    /// Bytes on disk afterwards.
    pub disk_bytes: u64,
    /// Levels or runs afterwards.
    pub shape: String,
}

/// Where a row belongs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The state's name.
    pub state: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// Threads.
    pub threads: u64,
    /// The round, from 1.
    pub round: u32,
}

impl Row {
    /// A row from a worker's answer.
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

    /// Whether it belongs to a place.
    pub fn is_at(&self, place: &Place) -> bool {
        self.state == place.state
            && self.workload == place.workload
            && self.threads == place.threads
            && self.round == place.round
    }
}

/// All that was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// With what.
    pub configuration: Configuration,
    /// On what, beside the processor.
    pub machine: serde_json::Value,
    /// When the first pass was begun: seconds since 1970.
    pub begun: u64,
    /// How each store is set.
    pub stores: BTreeMap<String, String>,
    /// Whether all that was asked for is there.
    pub is_complete: bool,
    /// The passes.
    pub rows: Vec<Row>,
    #[serde(skip)]
    path: PathBuf,
}

impl Results {
    /// Reads results.
    pub fn read(path: &Path) -> Result<Self> {
        let text = while_doing(fs::read_to_string(path), path.display())?;
        let results: Self = while_doing(serde_json::from_str(&text), path.display())?;
        Ok(Self { path: path.to_owned(), ..results })
    }

    /// The results that a file holds already, or empty ones for it.
    pub fn open(path: &Path, configuration: Configuration) -> Result<Self> {
        if !path.exists() {
            let (machine, begun) = (usage::machine(), seconds_since_1970());
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
                "{} holds results of another configuration ({:?}), not of this one ({configuration:?}): \
                 give the same options to go on with it, or another file to begin anew",
                path.display(),
                results.configuration
            )));
        }
        Ok(results)
    }

    /// Writes the file: beside it first, so that no interruption cuts it.
    pub fn write(&self) -> Result<()> {
        let beside = self.path.with_extension("json.new");
        let text = serde_json::to_string_pretty(self)?;
        while_doing(fs::write(&beside, text), beside.display())?;
        while_doing(rustix::fs::rename(&beside, &self.path), self.path.display())
    }

    /// Adds a row and writes the file.
    pub fn add(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        self.write()
    }

    /// Whether a row is there.
    pub fn has(&self, place: &Place, store: &str) -> bool {
        self.rows.iter().any(|row| row.store == store && row.is_at(place))
    }

    /// Fails where two stores gave different answers to the same operations.
    pub fn check_digests(&self, place: &Place) -> Result<()> {
        let mut rows = self.rows.iter().filter(|row| row.is_at(place) && row.outcome.digest != 0);
        let Some(first) = rows.next() else { return Ok(()) };
        match rows.find(|row| row.outcome.digest != first.outcome.digest) {
            Some(other) => Err(Failure(format!(
                "{} and {} gave different answers to {} ({} threads, round {}): one of them is wrong, nothing of it counts",
                first.store, other.store, place.workload, place.threads, place.round
            ))),
            None => Ok(()),
        }
    }

    /// The stores of which there are rows, in the order of the tables.
    pub fn stores_measured(&self) -> Vec<&'static str> {
        KINDS
            .iter()
            .map(|kind| kind.name)
            .filter(|name| self.rows.iter().any(|row| row.store == *name))
            .collect()
    }
}

/// Refuses answers that cannot be right: a present key that was not found, an empty range that was not empty.
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
        "{title} found {} of {expected} in {workload}: its answers are wrong",
        outcome.found
    )))
}
