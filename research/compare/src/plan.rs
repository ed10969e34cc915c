//! The plan of a run from the command line: its points, and the disk and memory that it needs.

use std::path::{Path, PathBuf};

use clap::Args;
use tamis_bench::{BenchError, Fields, Needs, Point};

use crate::{
    store::{KINDS, Kind, Result, Settings, kind_named},
    usage,
    workload::{ENTRY_BYTES, Source, State, WORKLOADS, Workload, workload_named},
};

#[cfg(test)]
mod tests;

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
    pub folder: PathBuf,
    /// File of results (JSON); continued if it exists
    #[arg(long)]
    pub out: PathBuf,
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
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u64).range(1..))]
    threads: Vec<u64>,
    /// Number of entries of a store
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    pub entries: u64,
    /// Number of rounds; in each round, every store runs once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Number of rounds of the fills, which are slow [default: as --rounds]
    #[arg(long)]
    fill_rounds: Option<u64>,
    /// Maximum seconds of a pass
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Maximum operations of a thread in a pass
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: u64,
    /// Seconds of warm-up before each read-only pass
    #[arg(long, default_value_t = 0.2, value_parser = seconds)]
    pub warm: f64,
    /// Cache of each store in MiB [default: 512; with --direct 10 % of the data]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..1 << 30))]
    cache_mib: Option<u64>,
    /// Memtable of each store in MiB
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..1 << 30))]
    memtable_mib: u64,
    /// Use direct I/O, for stores that support it
    #[arg(long)]
    direct: bool,
    /// Keep the stores in the folder after the run
    #[arg(long)]
    pub keep: bool,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..1e9).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("give a time from 0 to 1e9 seconds".to_owned())
    }
}

/// The file that marks a folder as created by runs.
const MARKER: &str = "tamis-compare.txt";

/// The place of a measurement: state, workload, threads, round and store.
#[derive(Clone, Copy)]
pub struct Place {
    pub state: State,
    pub workload: &'static Workload,
    pub threads: u64,
    pub round: u64,
    pub kind: &'static Kind,
}

impl Place {
    /// The place of a point.
    pub fn of(point: &Point) -> Result<Self> {
        Ok(Self {
            state: State::named(point.text("state")?)?,
            workload: workload_named(point.text("workload")?)?,
            threads: point.integer("threads")?,
            round: point.integer("round")?,
            kind: kind_named(point.text("store")?)?,
        })
    }

    /// Whether the store can run the workload in the state.
    fn is_possible(&self) -> bool {
        let Self { state, workload, threads, kind, .. } = self;
        let is_deferred = matches!(workload.source, Source::Fill { is_deferred: true, .. });
        (!is_deferred || kind.can_defer)
            && (!matches!(workload.source, Source::Transfer { .. }) || kind.can_transact)
            && (*state != State::Unmerged || kind.can_stay_unmerged)
            && (workload.source != Source::Open || *threads == 1)
    }

    /// Whether all stores must return the same results: no earlier pass with a time limit has written to them.
    pub fn has_one_answer(&self) -> bool {
        self.state != State::Compacted && !self.workload.is_writing()
    }
}

/// The values of `all` with the given names, or all of them; in the order of `all`.
fn chosen<T>(names: &[String], all: impl Iterator<Item = T>, name_of: impl Fn(&T) -> &'static str) -> Vec<T> {
    all.filter(|one| names.is_empty() || names.iter().any(|name| name == name_of(one))).collect()
}

impl RunArgs {
    /// The stores in table order.
    pub fn stores(&self) -> Result<Vec<&'static Kind>> {
        for name in &self.stores {
            let kind = kind_named(name)?;
            if self.direct && !kind.can_direct {
                return Err(BenchError::Other(format!(
                    "{name} does not support direct I/O; remove it from --stores or remove --direct"
                )));
            }
        }
        let is_offered = |kind: &&Kind| kind.is_default && (!self.direct || kind.can_direct);
        let offered = KINDS.iter().filter(|kind| !self.stores.is_empty() || is_offered(kind));
        Ok(chosen(&self.stores, offered, |kind| kind.name))
    }

    /// The states in run order.
    pub fn states(&self) -> Result<Vec<State>> {
        self.states.iter().try_for_each(|name| State::named(name).map(drop))?;
        Ok(chosen(&self.states, State::ALL.iter().map(|(state, ..)| *state), |state| state.name()))
    }

    /// The number of rounds of a state.
    pub fn rounds(&self, state: State) -> u64 {
        if state == State::Fill { self.fill_rounds.unwrap_or(self.rounds) } else { self.rounds }
    }

    /// All points in run order. The order of the stores rotates in each round.
    pub fn points(&self) -> Result<Vec<Point>> {
        self.workloads.iter().try_for_each(|name| workload_named(name).map(drop))?;
        let (stores, workloads) = (self.stores()?, chosen(&self.workloads, WORKLOADS.iter(), |it| it.name));
        let mut points = Vec::new();
        for state in self.states()? {
            for workload in workloads.iter().filter(|workload| workload.states.contains(&state)) {
                for &threads in &self.threads {
                    for round in 1..=self.rounds(state) {
                        let of = |kind: &&'static Kind| Place { state, workload, threads, round, kind };
                        let mut places: Vec<Place> =
                            stores.iter().map(of).filter(Place::is_possible).collect();
                        let first = (round - 1) as usize % places.len().max(1);
                        places.rotate_left(first);
                        points.extend(places.iter().map(|place| self.point(place)));
                    }
                }
            }
        }
        Ok(points)
    }

    fn point(&self, place: &Place) -> Point {
        Point::new()
            .with("state", place.state.name())
            .with("workload", place.workload.name)
            .with("threads", place.threads)
            .with("round", place.round)
            .with("store", place.kind.name)
            .with("settings", self.settings())
    }

    /// The settings of all points; rows with different settings are not mixed in a file.
    pub fn settings(&self) -> Fields {
        let settings = Point::new()
            .with("entries", self.entries)
            .with("cache_bytes", self.cache_bytes())
            .with("memtable_bytes", self.memtable_mib << 20)
            .with("operations", self.operations)
            .with("seconds", self.seconds)
            .with("warm_seconds", self.warm)
            .with("is_direct", self.direct)
            .with("foreign_flags", foreign_flags());
        settings.fields().clone()
    }

    fn data_bytes(&self) -> u64 {
        self.entries * ENTRY_BYTES
    }

    /// Bytes of the cache of a store.
    pub fn cache_bytes(&self) -> u64 {
        let default = if self.direct { self.data_bytes() / 10 } else { 512 << 20 };
        self.cache_mib.map_or(default, |mebibytes| mebibytes << 20)
    }

    /// The settings of a store for a state.
    pub fn settings_of(&self, kind: &Kind, state: State) -> Settings {
        let is_unmerged = state == State::Unmerged;
        let memtable_bytes = self.memtable_mib << 20;
        Settings {
            store: kind.name.to_owned(),
            folder: self.folder.join(kind.name).join(state.folder()),
            cache_bytes: self.cache_bytes(),
            // A run is a flush of an eighth of the data, so the memtable must hold that with its overhead per entry.
            memtable_bytes: if is_unmerged {
                memtable_bytes.max(self.data_bytes() / 3)
            } else {
                memtable_bytes
            },
            is_direct: self.direct,
            is_unmerged,
            entries: self.entries,
            ..Settings::default()
        }
    }

    /// Fails before the run starts if disk or memory is too small.
    pub fn check_needs(&self) -> Result<()> {
        let stores = self.stores()?;
        // All stores exist at the same time, and one more while it is filled.
        let spaces: f64 = stores.iter().map(|kind| kind.space).sum::<f64>() + 3.5;
        let disk_bytes = (self.data_bytes() as f64 * spaces) as u64;
        let own = self.cache_bytes() * 5 / 4 + (self.memtable_mib << 22) + (128 << 20);
        let pages = if self.direct { 0 } else { self.data_bytes() * 3 / 2 };
        let needs = Needs {
            disk_bytes: disk_bytes.saturating_sub(usage::disk_bytes(&self.folder)),
            memory_bytes: (own + pages) * stores.len() as u64,
        };
        let advice = "use fewer --entries, fewer --stores, a smaller --cache-mib or another --folder";
        needs.check_advising(&self.folder, advice)
    }

    /// Fails for a folder with foreign files, or with the results, which would be deleted with the stores.
    pub fn check_folder(&self) -> Result<()> {
        let wrong = |what: String| Err(BenchError::WrongContent { path: self.folder.clone(), what });
        let absolute = |path: &Path| std::path::absolute(path);
        if absolute(&self.out)?.starts_with(absolute(&self.folder)?) {
            return wrong(format!(
                "contains {}, and is deleted after the run; give another --out",
                self.out.display()
            ));
        }
        let Ok(mut entries) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        match entries.next() {
            Some(Ok(entry)) if !self.folder.join(MARKER).exists() => {
                let name = entry.file_name();
                wrong(format!("contains {}, which is not from a run; give an empty folder", name.display()))
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder with the marker file.
    pub fn claim_folder(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        Ok(std::fs::write(self.folder.join(MARKER), "Stores of tamis-compare: deleted when a run ends.\n")?)
    }

    /// Deletes the stores, and the folder if it is empty then.
    #[expect(clippy::disallowed_methods, reason = "a folder of several stores, of which ours is one")]
    pub fn remove_stores(&self) -> Result<()> {
        KINDS.iter().try_for_each(|kind| usage::remove(&self.folder.join(kind.name)))?;
        std::fs::remove_file(self.folder.join(MARKER))?;
        // It remains if it contains other files.
        let _ = std::fs::remove_dir(&self.folder);
        Ok(())
    }
}

/// The flags of C and C++; `.cargo/config.toml` sets them only for builds that start in the folder of this crate.
fn foreign_flags() -> &'static str {
    option_env!("CXXFLAGS").unwrap_or_default()
}

/// Fails for a build whose figures would be meaningless.
pub fn check_build() -> Result<()> {
    if cfg!(debug_assertions) {
        return Err(BenchError::other(
            "the figures of a debug build are not meaningful; use `cargo run --release -- run ...`",
        ));
    }
    if !foreign_flags().contains("native") {
        return Err(BenchError::other(
            "the C and C++ stores were not built for this machine (no -march=native in CXXFLAGS); \
             build in the folder research/compare, whose .cargo/config.toml sets it",
        ));
    }
    Ok(())
}
