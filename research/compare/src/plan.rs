//! The plan of a run from the command line, and the disk and memory that it needs.

use std::path::{Path, PathBuf};

use clap::Args;
use tamis_bench::{Machine, Needs};

use crate::{
    data::ENTRY_BYTES,
    failure::{Failure, Result},
    pass::Limits,
    results::Configuration,
    state::State,
    store::{KINDS, Kind, Settings, kind_named},
    usage,
    workload::{Action, WORKLOADS, Workload, workload_named},
};

const EXAMPLES: &str = "\
Examples:
  tamis-compare run --folder /data/compare --out main.json
  tamis-compare run --folder /data/compare --out quick.json --stores tamis,rocksdb --rounds 1 --seconds 0.5
  tamis-compare run --folder /data/compare --out direct.json --direct --entries 50000000 \\
      --stores tamis,rocksdb,rocksdb-tuned --states settled

The same command continues an interrupted run; with more rounds, stores or workloads it adds them.";

/// Measure the stores in alternating rounds
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Folder for the stores; empty, or left by an earlier run
    #[arg(long)]
    folder: PathBuf,
    /// File of results (JSON); continued if it exists
    #[arg(long)]
    out: PathBuf,
    /// Names of stores; `list` prints them [default: all that support the other options]
    #[arg(long, value_delimiter = ',')]
    stores: Vec<String>,
    /// Names of workloads; `list` prints them [default: all]
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// States of the stores: fill, settled, compacted, unmerged [default: all]
    #[arg(long, value_delimiter = ',')]
    states: Vec<String>,
    /// Numbers of threads; each workload runs once for each
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<u64>,
    /// Number of entries of a store
    #[arg(long, default_value_t = 10_000_000)]
    entries: u64,
    /// Number of rounds; in each round, every store runs once
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Number of rounds of the fills, which are slow [default: as --rounds]
    #[arg(long)]
    fill_rounds: Option<u32>,
    /// Maximum seconds of a pass
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Maximum operations of a thread in a pass
    #[arg(long, default_value_t = 1_000_000)]
    operations: usize,
    /// Seconds of warm-up before each read-only pass
    #[arg(long, default_value_t = 0.2)]
    warm: f64,
    /// Cache of each store in MiB [default: 512; with --direct 10 % of the data]
    #[arg(long)]
    cache_mib: Option<u64>,
    /// Memtable of each store in MiB
    #[arg(long, default_value_t = 64)]
    memtable_mib: u64,
    /// Use direct I/O, for stores that support it
    #[arg(long)]
    direct: bool,
    /// Keep the stores in the folder after the run
    #[arg(long)]
    keep: bool,
}

/// The file that marks a folder as created by runs.
const MARKER: &str = "tamis-compare.txt";

/// The plan of a run.
pub struct Plan {
    /// The folder of the stores.
    pub folder: PathBuf,
    /// The file of results.
    pub out: PathBuf,
    /// The stores in table order.
    pub stores: Vec<&'static Kind>,
    /// The workloads in run order.
    pub workloads: Vec<&'static Workload>,
    /// The states in run order.
    pub states: Vec<State>,
    /// Numbers of threads.
    pub threads: Vec<u64>,
    /// Number of rounds.
    pub rounds: u32,
    /// Number of rounds of the fills.
    pub fill_rounds: u32,
    /// The limits of a pass.
    pub limits: Limits,
    /// The configuration, which must be equal to continue a run.
    pub configuration: Configuration,
    /// Whether to keep the stores.
    pub is_keeping: bool,
}

/// Selects the given names, or all if none are given; in the order of `all`, without duplicates.
fn chosen<T: Copy>(names: &[String], all: Vec<T>, name_of: fn(T) -> &'static str) -> Vec<T> {
    all.into_iter().filter(|&one| names.is_empty() || names.iter().any(|name| name == name_of(one))).collect()
}

fn at_least_one(what: &str, value: u64) -> Result<()> {
    if value == 0 { Err(Failure(format!("--{what} 0 measures nothing; give at least 1"))) } else { Ok(()) }
}

impl RunArgs {
    fn stores(&self) -> Result<Vec<&'static Kind>> {
        for name in &self.stores {
            let kind = kind_named(name)?;
            if self.direct && !kind.can_direct {
                return Err(Failure(format!(
                    "{name} does not support direct I/O; remove it from --stores or remove --direct"
                )));
            }
        }
        let offered = KINDS
            .iter()
            .filter(|kind| !self.stores.is_empty() || kind.is_default && (!self.direct || kind.can_direct));
        Ok(chosen(&self.stores, offered.collect(), |kind| kind.name))
    }

    /// Returns the plan; fails for unknown names and for numbers that measure nothing.
    pub fn plan(&self) -> Result<Plan> {
        self.workloads.iter().try_for_each(|name| workload_named(name).map(|_| ()))?;
        self.states.iter().try_for_each(|name| State::named(name).map(|_| ()))?;
        at_least_one("entries", self.entries)?;
        at_least_one("rounds", self.rounds.into())?;
        at_least_one("operations", self.operations as u64)?;
        for &count in &self.threads {
            at_least_one("threads", count)?;
        }
        if !(self.seconds > 0.0 && self.warm >= 0.0) {
            return Err(Failure::new("--seconds must be greater than 0 and --warm at least 0"));
        }
        let too_large =
            |what: &str| Failure(format!("--{what} is too large for any machine; give a smaller number"));
        let data_bytes = self.entries.checked_mul(64 * ENTRY_BYTES).ok_or_else(|| too_large("entries"))? / 64;
        let in_bytes = |what: &str, mebibytes: u64| {
            Some(mebibytes).filter(|it| *it < 1 << 30).map(|it| it << 20).ok_or_else(|| too_large(what))
        };
        let cache_bytes = match self.cache_mib {
            Some(mebibytes) => in_bytes("cache-mib", mebibytes)?,
            None if self.direct => data_bytes / 10,
            None => 512 << 20,
        };
        let (program, machine) = (tamis_bench::Configuration::current(), Machine::current());
        Ok(Plan {
            folder: self.folder.clone(),
            out: self.out.clone(),
            stores: self.stores()?,
            workloads: chosen(&self.workloads, WORKLOADS.iter().collect(), |workload| workload.name),
            states: chosen(&self.states, State::ALL.to_vec(), State::name),
            threads: self.threads.clone(),
            rounds: self.rounds,
            fill_rounds: self.fill_rounds.unwrap_or(self.rounds),
            limits: Limits {
                operation_count: self.operations,
                seconds: self.seconds,
                warm_seconds: self.warm,
            },
            configuration: Configuration {
                entries: self.entries,
                cache_bytes,
                memtable_bytes: in_bytes("memtable-mib", self.memtable_mib)?,
                operations: self.operations,
                seconds: self.seconds,
                warm_seconds: self.warm,
                is_direct: self.direct,
                commit: program.commit,
                build: format!("{}, {}, {}", program.profile, program.compiler, program.target_features),
                foreign_flags: Configuration::foreign_flags().to_owned(),
                processor: format!("{}, {} cores", machine.processor, machine.core_count),
            },
            is_keeping: self.keep,
        })
    }
}

/// Fails for a build whose figures would be meaningless.
pub fn check_build() -> Result<()> {
    if cfg!(debug_assertions) {
        return Err(Failure::new(
            "the figures of a debug build are not meaningful; use `cargo run --release -- run ...`",
        ));
    }
    if !Configuration::foreign_flags().contains("native") {
        return Err(Failure::new(
            "the C and C++ stores were not built for this machine (no -march=native in CXXFLAGS); \
             build in the folder research/compare, whose .cargo/config.toml sets it",
        ));
    }
    Ok(())
}

impl Plan {
    /// The settings of a store for a state and a workload.
    pub fn settings(&self, kind: &Kind, state: State, action: Option<Action>) -> Settings {
        let configuration = &self.configuration;
        let data_bytes = configuration.entries * ENTRY_BYTES;
        let is_unmerged = state == State::Unmerged;
        // A run is a flush of an eighth of the data, so the memtable must hold that with its overhead per entry.
        let memtable_bytes = if is_unmerged {
            (data_bytes / 3).max(configuration.memtable_bytes)
        } else {
            configuration.memtable_bytes
        };
        Settings {
            store: kind.name.to_owned(),
            cache_bytes: configuration.cache_bytes,
            memtable_bytes,
            is_direct: configuration.is_direct,
            is_deferred: matches!(action, Some(Action::Fill { is_deferred: true, .. })),
            is_unmerged,
            data_bytes_max: data_bytes,
        }
    }

    /// Whether a store takes part in a workload of a state.
    pub fn takes_part(&self, kind: &Kind, state: State, action: Action) -> bool {
        let is_deferred = matches!(action, Action::Fill { is_deferred: true, .. });
        let is_transfer = matches!(action, Action::Transfer { .. });
        (!is_deferred || kind.can_defer)
            && (!is_transfer || kind.can_transact)
            && (state != State::Unmerged || kind.can_stay_unmerged)
    }

    /// Fails before the run starts if disk or memory is too small.
    pub fn check_needs(&self) -> Result<()> {
        let data_bytes = self.configuration.entries * ENTRY_BYTES;
        // All stores exist at the same time, and one more while it is filled.
        let spaces: f64 = self.stores.iter().map(|kind| kind.space).sum::<f64>() + 3.5;
        let disk_bytes = (data_bytes as f64 * spaces) as u64;
        let own =
            self.configuration.cache_bytes * 5 / 4 + self.configuration.memtable_bytes * 4 + (128 << 20);
        let pages = if self.configuration.is_direct { 0 } else { data_bytes * 3 / 2 };
        let needs = Needs {
            disk_bytes: disk_bytes.saturating_sub(usage::disk_bytes(&self.folder)),
            memory_bytes: (own + pages) * self.stores.len() as u64,
        };
        Ok(needs.check_advising(
            &self.folder,
            "use fewer --entries, fewer --stores, a smaller --cache-mib or another --folder",
        )?)
    }

    /// The folder of a store in a state.
    pub fn store_folder(&self, kind: &Kind, state: State) -> PathBuf {
        self.folder.join(kind.name).join(state.folder())
    }

    /// Fails for a folder with foreign files, or with the results, which would be deleted with the stores.
    pub fn check_folder(&self) -> Result<()> {
        let absolute = |path: &Path| std::path::absolute(path);
        let (folder, out) = (absolute(&self.folder)?, absolute(&self.out)?);
        if out.starts_with(&folder) {
            return Err(Failure(format!(
                "{} is in {}, which is deleted after the run; give another --out",
                self.out.display(),
                self.folder.display()
            )));
        }
        let Ok(mut entries) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        if let Some(Ok(entry)) = entries.next()
            && !self.marker().exists()
        {
            return Err(Failure(format!(
                "{} contains {}, which is not from a run; give an empty folder",
                self.folder.display(),
                entry.file_name().display()
            )));
        }
        Ok(())
    }

    /// The path of the marker file.
    fn marker(&self) -> PathBuf {
        self.folder.join(MARKER)
    }

    /// Creates the folder with the marker file.
    pub fn claim_folder(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        Ok(std::fs::write(self.marker(), "Stores of tamis-compare: deleted when a run ends.\n")?)
    }

    /// Deletes the stores, and the folder if it is empty then.
    #[expect(clippy::disallowed_methods, reason = "a folder of several stores, of which ours is one")]
    pub fn remove_stores(&self) -> Result<()> {
        for kind in KINDS {
            let folder = self.folder.join(kind.name);
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
        }
        std::fs::remove_file(self.marker())?;
        // It remains if it contains other files.
        let _ = std::fs::remove_dir(&self.folder);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
