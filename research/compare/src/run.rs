//! The driver: prepares the states of the stores and runs the passes in alternating rounds.
//!
//! 1. **Fill**: one store at a time; the store of the last random fill is kept for the next state.
//! 2. **Other states**: all stores are open, each in a separate worker process. For each workload, number of threads and round,
//!    every store runs once; the order rotates in each round. Each row is saved immediately.
//!
//! Existing rows are skipped, so the same command continues an interrupted run. A store that was modified by a mix is filled
//! again before reads are measured on it.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    clock::Stopwatch,
    failure::{Failure, Result},
    pass::Limits,
    peer::{Peer, is_interrupted, watch_for_interrupt},
    plan::Plan,
    results::{Place, Results, Row, check_found},
    state::State,
    store::Kind,
    worker::{Answer, DrawRequest, Request},
    workload::{Action, Workload},
};

/// The block size of the caches.
const BLOCK_BYTES: u64 = 4096;
/// Maximum seconds for filling a cache; direct reads are slow.
const CACHE_SECONDS_MAX: f64 = 60.0;

/// The saved state of a store on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct StoreState {
    entries: u64,
    memtable_bytes: u64,
    is_direct: bool,
    present_count: u64,
    is_modified: bool,
    is_compacted: bool,
}

/// One run.
struct Run<'a> {
    plan: &'a Plan,
    results: Results,
    stopwatch: Stopwatch,
    done_count: u32,
    todo_count: u32,
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Result<()> {
    plan.check_folder()?;
    plan.check_needs()?;
    let results = Results::open(&plan.out, plan.configuration.clone())?;
    plan.claim_folder()?;
    watch_for_interrupt()?;
    let mut run = Run { plan, results, stopwatch: Stopwatch::start(), done_count: 0, todo_count: 0 };
    run.todo_count = run.missing(State::ALL).len() as u32;
    run.results.is_complete &= run.todo_count == 0;
    eprintln!("{} passes to do", run.todo_count);
    let result = plan.states.iter().try_for_each(|&state| match state {
        State::Fill => run.fills(),
        _ => run.state(state),
    });
    if is_interrupted() {
        return Err(Failure(format!(
            "interrupted; {} passes are in {}; run the same command again to continue",
            run.results.rows.len(),
            plan.out.display()
        )));
    }
    result?;
    // Also the rows of earlier runs, so that a wrong result of an earlier run is still reported.
    for &state in &plan.states {
        for (place, _) in run.places(state).iter().filter(|(_, workload)| has_one_answer(state, workload)) {
            run.results.check_digests(place)?;
        }
    }
    run.results.is_complete = true;
    run.results.write()?;
    if !plan.is_keeping {
        plan.remove_stores()?;
    }
    eprintln!("all results are in {}", plan.out.display());
    Ok(())
}

/// Deletes a folder if it exists.
fn remove(folder: &PathBuf) -> Result<()> {
    if folder.exists() { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) }
}

/// Whether all stores must return the same results: no earlier pass with a time limit has written to them.
fn has_one_answer(state: State, workload: &Workload) -> bool {
    state != State::Compacted && !workload.action.is_writing() && workload.action != Action::Scan
}

impl Run<'_> {
    /// The missing rows of the plan in some states.
    fn missing(&self, states: &[State]) -> Vec<(Place, &'static Workload, &'static Kind)> {
        let mut missing = Vec::new();
        for &state in self.plan.states.iter().filter(|state| states.contains(state)) {
            for (place, workload) in self.places(state) {
                for kind in self.turns(&place, state, workload) {
                    if !self.results.has(&place, kind.name) {
                        missing.push((place.clone(), workload, kind));
                    }
                }
            }
        }
        missing
    }

    /// All row keys of a state in run order.
    fn places(&self, state: State) -> Vec<(Place, &'static Workload)> {
        let mut places = Vec::new();
        for &workload in self.plan.workloads.iter().filter(|workload| workload.states.contains(&state)) {
            let is_single = workload.action == Action::Open;
            for &threads in self.plan.threads.iter().filter(|&&threads| threads == 1 || !is_single) {
                let rounds = if state == State::Fill { self.plan.fill_rounds } else { self.plan.rounds };
                for round in 1..=rounds {
                    let place = Place { state: state.name(), workload: workload.name, threads, round };
                    places.push((place, workload));
                }
            }
        }
        places
    }

    /// The participating stores; the order rotates in each round.
    fn turns(&self, place: &Place, state: State, workload: &Workload) -> Vec<&'static Kind> {
        let takes_part = |kind: &&&'static Kind| self.plan.takes_part(kind, state, workload.action);
        let mut kinds: Vec<&'static Kind> = self.plan.stores.iter().filter(takes_part).copied().collect();
        if !kinds.is_empty() {
            let first = (place.round as usize - 1) % kinds.len();
            kinds.rotate_left(first);
        }
        kinds
    }

    fn fills(&mut self) -> Result<()> {
        for (place, workload, kind) in self.missing(&[State::Fill]) {
            let Action::Fill { is_sorted, .. } = workload.action else { continue };
            let settings = self.plan.settings(kind, State::Fill, Some(workload.action));
            let folder = self.plan.store_folder(kind, State::Fill);
            remove(&folder)?;
            let mut peer = Peer::open(&folder, &settings)?;
            let answer = peer.ask(&Request::Fill {
                entry_count: self.plan.configuration.entries,
                is_sorted,
                thread_count: place.threads,
            })?;
            drop(peer);
            let is_last = workload.name == "fill-random"
                && place.threads == 1
                && place.round == self.plan.fill_rounds
                && self.plan.states.iter().any(|state| state.folder() == "settled");
            if is_last && self.mark(kind, State::Settled).is_none() {
                let target = self.plan.store_folder(kind, State::Settled);
                remove(&target)?;
                rustix::fs::rename(&folder, &target)?;
                self.set_mark(kind, State::Settled, &self.fresh_mark(kind, State::Settled))?;
            } else {
                remove(&folder)?;
            }
            self.add(&place, kind, answer)?;
        }
        Ok(())
    }

    /// Measures the missing rows of a state.
    fn state(&mut self, state: State) -> Result<()> {
        let missing = self.missing(&[state]);
        if missing.is_empty() {
            return Ok(());
        }
        let needs_unmodified =
            state != State::Compacted && missing.iter().any(|(_, workload, _)| !workload.action.is_writing());
        let kinds: Vec<&'static Kind> = self
            .plan
            .stores
            .iter()
            .copied()
            .filter(|kind| missing.iter().any(|(_, _, it)| it.name == kind.name))
            .collect();
        let mut peers = Vec::new();
        for kind in kinds {
            self.prepare(kind, state, needs_unmodified)?;
            let settings = self.plan.settings(kind, state, None);
            let mut peer = Peer::open(&self.plan.store_folder(kind, state), &settings)?;
            self.compact(kind, state, &mut peer)?;
            self.fill_cache(&mut peer)?;
            peers.push((kind, peer));
        }
        for (place, workload) in self.places(state) {
            for kind in self.turns(&place, state, workload) {
                if self.results.has(&place, kind.name) {
                    continue;
                }
                let Some((_, peer)) = peers.iter_mut().find(|(it, _)| it.name == kind.name) else { continue };
                self.pass(&place, workload, kind, state, peer)?;
            }
            if has_one_answer(state, workload) {
                self.results.check_digests(&place)?;
            }
        }
        Ok(())
    }

    /// Fills a store for a state if it does not exist.
    fn prepare(&mut self, kind: &'static Kind, state: State, needs_unmodified: bool) -> Result<()> {
        let fresh = self.fresh_mark(kind, state);
        let is_there = self.mark(kind, state).is_some_and(|mark| {
            let is_same = (mark.entries, mark.memtable_bytes, mark.is_direct)
                == (fresh.entries, fresh.memtable_bytes, fresh.is_direct);
            is_same && !(needs_unmodified && (mark.is_modified || mark.is_compacted))
        });
        if is_there {
            return Ok(());
        }
        eprintln!("{}: filling {} for {}", kind.title, self.plan.configuration.entries, state.name());
        let folder = self.plan.store_folder(kind, state);
        remove(&folder)?;
        let mut peer = Peer::open(&folder, &self.plan.settings(kind, state, None))?;
        let fill =
            Request::Fill { entry_count: self.plan.configuration.entries, is_sorted: false, thread_count: 1 };
        peer.ask(&fill)?;
        drop(peer);
        self.set_mark(kind, state, &fresh)
    }

    /// Compacts a store for the compacted state.
    fn compact(&mut self, kind: &Kind, state: State, peer: &mut Peer) -> Result<()> {
        let mark = self.mark(kind, state).unwrap_or_default();
        if state != State::Compacted || mark.is_compacted {
            return Ok(());
        }
        eprintln!("{}: compacting", kind.title);
        self.set_mark(kind, state, &StoreState { is_modified: true, ..mark.clone() })?;
        peer.ask(&Request::Compact)?;
        self.set_mark(kind, state, &StoreState { is_modified: true, is_compacted: true, ..mark })
    }

    /// Fills the cache of a store before the measurements, with three reads per block of its capacity. Otherwise stores with a
    /// cache would be slow in the first rounds, and stores with mapped files would not.
    fn fill_cache(&self, peer: &mut Peer) -> Result<()> {
        let entry_count = self.plan.configuration.entries;
        let operation_count =
            (self.plan.configuration.cache_bytes / BLOCK_BYTES * 3).min(entry_count) as usize;
        peer.ask(&Request::Pass {
            workload: "get-uniform".to_owned(),
            draw: DrawRequest { entry_count, present_count: entry_count, seed: 0, thread_count: 1 },
            limits: Limits { operation_count, seconds: CACHE_SECONDS_MAX, warm_seconds: 0.0 },
        })?;
        Ok(())
    }

    fn pass(
        &mut self,
        place: &Place,
        workload: &Workload,
        kind: &'static Kind,
        state: State,
        peer: &mut Peer,
    ) -> Result<()> {
        let mut mark = self.mark(kind, state).unwrap_or_default();
        if workload.action.is_writing() && !mark.is_modified {
            mark.is_modified = true;
            self.set_mark(kind, state, &mark)?;
        }
        let names = format!("{} {} {}", place.workload, place.threads, place.round);
        let seed = names.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
        });
        let answer = peer.ask(&Request::Pass {
            workload: workload.name.to_owned(),
            draw: DrawRequest {
                entry_count: self.plan.configuration.entries,
                present_count: mark.present_count,
                seed,
                thread_count: place.threads,
            },
            limits: self.plan.limits,
        })?;
        check_found(workload.name, kind.name, answer.outcome)?;
        if answer.outcome.inserted_end > mark.present_count {
            mark.present_count = answer.outcome.inserted_end;
            self.set_mark(kind, state, &mark)?;
        }
        self.add(place, kind, answer)
    }

    fn add(&mut self, place: &Place, kind: &Kind, answer: Answer) -> Result<()> {
        let row = Row::new(place, kind.name, answer);
        self.done_count += 1;
        let elapsed = self.stopwatch.seconds();
        let left =
            elapsed / f64::from(self.done_count) * f64::from(self.todo_count.saturating_sub(self.done_count));
        eprintln!(
            "[{}/{}, about {:.0} min left] {} {}, {} threads, round {}: {} {:.1} k/s",
            self.done_count,
            self.todo_count,
            left / 60.0,
            place.state,
            place.workload,
            place.threads,
            place.round,
            kind.title,
            row.rate / 1000.0
        );
        self.results.add(row)
    }

    fn mark_path(&self, kind: &Kind, state: State) -> PathBuf {
        self.plan.folder.join(kind.name).join(format!("{}.json", state.folder()))
    }

    fn mark(&self, kind: &Kind, state: State) -> Option<StoreState> {
        let text = fs::read_to_string(self.mark_path(kind, state)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn set_mark(&self, kind: &Kind, state: State, mark: &StoreState) -> Result<()> {
        Ok(fs::write(self.mark_path(kind, state), serde_json::to_string(mark)?)?)
    }

    fn fresh_mark(&self, kind: &Kind, state: State) -> StoreState {
        let settings = self.plan.settings(kind, state, None);
        let entries = self.plan.configuration.entries;
        StoreState {
            entries,
            memtable_bytes: settings.memtable_bytes,
            is_direct: settings.is_direct,
            present_count: entries,
            ..StoreState::default()
        }
    }
}
