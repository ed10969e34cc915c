//! The driver: prepares the states of the stores and measures the points in alternating rounds.
//!
//! 1. **Fill**: one store at a time; the store of the last random fill is kept for the next state.
//! 2. **Other states**: all stores are open, each in a separate worker process. For each workload, number of threads and round,
//!    every store runs once; the order rotates in each round.
//!
//! `tamis-bench` runs the points, saves each row immediately and skips existing ones, so the same command continues an interrupted
//! run. A store that was modified by a mix is filled again before reads are measured on it.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use tamis_bench::{
    BenchError, Context, Definition, Fields, Point, Report, Row, RunOptions, Size, Value, command::run_shown,
};

use crate::{
    plan::{Place, RunArgs},
    report::read,
    store::{Kind, Result, Settings},
    usage::remove,
    worker::{Pass, Peer, Request, is_interrupted, watch_for_interrupt},
    workload::{FILL_RANDOM, GET_UNIFORM, Source, State},
};

#[cfg(test)]
mod tests;

/// The block size of the caches.
const BLOCK_BYTES: u64 = 4096;
/// Maximum seconds for filling a cache; direct reads are slow.
const CACHE_SECONDS_MAX: f64 = 60.0;

/// The saved state of a store on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoreState {
    settings: Settings,
    present: u64,
    is_modified: bool,
    is_compacted: bool,
}

impl StoreState {
    fn new(settings: &Settings) -> Self {
        let present = settings.entries;
        Self { settings: settings.clone(), present, is_modified: false, is_compacted: false }
    }

    fn path(settings: &Settings) -> PathBuf {
        settings.folder.with_extension("json")
    }

    fn read(settings: &Settings) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(Self::path(settings)).ok()?).ok()
    }

    fn write(&self) -> Result<()> {
        let path = Self::path(&self.settings);
        let text = serde_json::to_string(self).map_err(BenchError::other)?;
        fs::write(&path, text).map_err(BenchError::io(&path))
    }
}

/// The digests of what the stores returned, by state, workload, threads and round.
#[derive(Default)]
struct Answers(BTreeMap<String, (&'static str, Value)>);

impl Answers {
    /// Fails if another store returned something else for the same operations.
    fn check(&mut self, point: &Point, metrics: &Fields) -> Result<()> {
        let place = Place::of(point)?;
        let Some(answers @ Value::Text(_)) = metrics.get("answers").filter(|_| place.has_one_answer()) else {
            return Ok(());
        };
        let key = format!("{} {} {} {}", place.state.name(), place.workload.name, place.threads, place.round);
        let (store, expected) = self.0.entry(key).or_insert((place.kind.name, answers.clone()));
        match expected == answers {
            true => Ok(()),
            false => Err(BenchError::Other(format!(
                "{store} and {} returned different results for the same operations; one of them is wrong, so discard these figures",
                place.kind.name
            ))),
        }
    }
}

/// One run.
struct Run {
    plan: RunArgs,
    /// The points that earlier runs have not measured.
    missing: Vec<Place>,
    answers: Answers,
    /// The state that is measured, and the workers with its stores.
    state: State,
    peers: BTreeMap<&'static str, Peer>,
}

/// Runs a plan.
pub fn run(plan: RunArgs) -> Result<()> {
    plan.check_folder()?;
    plan.check_needs()?;
    let mut points = plan.points()?;
    let mut answers = Answers::default();
    let mut missing = points.clone();
    if plan.out.exists() {
        let settings = Value::from(plan.settings());
        for row in read(&plan.out)?.rows {
            if !row.point.get("settings")?.is_same(&settings) {
                return Err(BenchError::WrongContent {
                    path: plan.out,
                    what: "contains results of other settings; give the same options to continue it, or another file".to_owned(),
                });
            }
            // Also the rows of earlier runs, so that a wrong result of an earlier run is still reported.
            answers.check(&row.point, &row.metrics)?;
            missing.retain(|point| !point.is_same(&row.point));
            if !points.iter().any(|point| point.is_same(&row.point)) {
                points.push(row.point);
            }
        }
    }
    plan.claim_folder()?;
    watch_for_interrupt()?;
    let folder = plan.folder.clone();
    let options = RunOptions { file: Some(plan.out.clone()), ..RunOptions::new(Size::Full, folder) };
    let missing = missing.iter().map(Place::of).collect::<Result<_>>()?;
    let run = Run { plan, missing, answers, state: State::Fill, peers: BTreeMap::new() };
    let run: &'static Mutex<Run> = Box::leak(Box::new(Mutex::new(run)));
    let lock = || run.lock().unwrap_or_else(PoisonError::into_inner);
    let definition = Definition {
        name: "comparison",
        title: "Tamis next to other stores",
        source: "",
        about: "The same data and the same operations for all stores, in alternating rounds.",
        points: Box::leak(Box::new(move |_: Size| points.clone())),
        measure: Box::leak(Box::new(move |point: &Point, _: &mut Context<'_>| lock().measure(point))),
        plots: &[],
        paper: &[],
    };
    let report = run_shown(&definition, &options, is_interrupted);
    let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
    run.peers.clear();
    let report: Report = report?;
    if is_interrupted() && !report.is_complete {
        let (done, total) = (report.rows.len() as u64, report.point_count);
        return Err(BenchError::Stopped { done, total, path: report.path });
    }
    if !run.plan.keep {
        run.plan.remove_stores()?;
    }
    eprintln!("all results are in {}", report.path.display());
    Ok(())
}

impl Run {
    fn measure(&mut self, point: &Point) -> Result<Row> {
        let place = Place::of(point)?;
        let fields = match place.workload.source {
            Source::Fill { is_sorted, is_deferred } => self.fill(&place, is_sorted, is_deferred)?,
            _ => {
                if self.state != place.state {
                    self.peers.clear();
                    self.prepare_all(place.state)?;
                    self.state = place.state;
                }
                self.pass(&place)?
            }
        };
        self.answers.check(point, &fields)?;
        Ok(Row { fields, digest: 0 })
    }

    fn fill(&self, place: &Place, is_sorted: bool, is_deferred: bool) -> Result<Fields> {
        let threads = place.threads as usize;
        let is_appending = is_sorted && threads == 1;
        let settings = self.plan.settings_of(place.kind, State::Fill);
        let settings = Settings { is_deferred, is_filling: true, is_appending, ..settings };
        remove(&settings.folder)?;
        let mut peer = Peer::open(&settings)?;
        let fields = peer.ask(&Request::Fill { is_sorted, threads })?;
        drop(peer);
        let kept = self.plan.settings_of(place.kind, State::Settled);
        let is_last = (place.workload.name, threads, place.round)
            == (FILL_RANDOM, 1, self.plan.rounds(State::Fill))
            && self.plan.states()?.iter().any(|state| state.folder() == State::Settled.folder());
        if is_last && StoreState::read(&kept).is_none() {
            remove(&kept.folder)?;
            rustix::fs::rename(&settings.folder, &kept.folder).map_err(BenchError::other)?;
            StoreState::new(&kept).write()?;
        }
        remove(&settings.folder)?;
        Ok(fields)
    }

    /// Opens the stores of a state that have missing points, each filled and with full caches.
    fn prepare_all(&mut self, state: State) -> Result<()> {
        let missing: Vec<Place> = self.missing.iter().filter(|place| place.state == state).copied().collect();
        let needs_unmodified =
            state != State::Compacted && missing.iter().any(|place| !place.workload.is_writing());
        for kind in self.plan.stores()? {
            if missing.iter().any(|place| place.kind.name == kind.name) {
                let peer = self.prepare(kind, state, needs_unmodified)?;
                self.peers.insert(kind.name, peer);
            }
        }
        Ok(())
    }

    fn prepare(&self, kind: &Kind, state: State, needs_unmodified: bool) -> Result<Peer> {
        let settings = self.plan.settings_of(kind, state);
        let is_usable = |saved: &StoreState| {
            saved.settings == settings && !(needs_unmodified && (saved.is_modified || saved.is_compacted))
        };
        let mut saved = match StoreState::read(&settings).filter(is_usable) {
            Some(saved) => saved,
            None => {
                // The state of an earlier store must not outlive it.
                #[expect(clippy::disallowed_methods, reason = "a file of the run")]
                let _ = fs::remove_file(StoreState::path(&settings));
                remove(&settings.folder)?;
                let filled = Settings { is_filling: true, ..settings.clone() };
                Peer::open(&filled)?.ask(&Request::Fill { is_sorted: false, threads: 1 })?;
                StoreState::new(&settings)
            }
        };
        saved.write()?;
        let mut peer = Peer::open(&settings)?;
        if state == State::Compacted && !saved.is_compacted {
            saved.is_modified = true;
            saved.write()?;
            peer.ask(&Request::Compact)?;
            saved.is_compacted = true;
            saved.write()?;
        }
        // Three reads per block of the cache. Otherwise stores with a cache would be slow in the first rounds, and stores with
        // mapped files would not.
        let entries = self.plan.entries;
        peer.ask(&Request::Pass(Pass {
            workload: GET_UNIFORM.to_owned(),
            threads: 1,
            present: entries,
            seed: 0,
            operations: (self.plan.cache_bytes() / BLOCK_BYTES * 3).clamp(1, entries),
            seconds: CACHE_SECONDS_MAX,
            warm_seconds: 0.0,
        }))?;
        Ok(peer)
    }

    fn pass(&mut self, place: &Place) -> Result<Fields> {
        let Place { workload, threads, round, kind, state } = *place;
        let settings = self.plan.settings_of(kind, state);
        let mut saved = StoreState::read(&settings).unwrap_or_else(|| StoreState::new(&settings));
        if workload.is_writing() && !saved.is_modified {
            saved.is_modified = true;
            saved.write()?;
        }
        let names = format!("{} {threads} {round}", workload.name);
        let seed = names.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
        });
        let closed = || BenchError::Other(format!("{} is not open", kind.title));
        let fields = self.peers.get_mut(kind.name).ok_or_else(closed)?.ask(&Request::Pass(Pass {
            workload: workload.name.to_owned(),
            threads: threads as usize,
            present: saved.present,
            seed,
            operations: self.plan.operations,
            seconds: self.plan.seconds,
            warm_seconds: self.plan.warm,
        }))?;
        if let Some(&Value::Integer(present)) = fields.get("present")
            && present > saved.present
        {
            saved.present = present;
            saved.write()?;
        }
        Ok(fields)
    }
}
