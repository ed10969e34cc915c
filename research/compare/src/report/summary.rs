//! Summary of results for the tables and the JSON of `report`: medians and spreads over the rounds, ratios of Tamis to the other
//! stores, and missed targets.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tamis_bench::Machine;

use crate::{
    results::{Configuration, Results, Row},
    state::State,
    store::KINDS,
    workload::{Action, WORKLOADS, Workload},
};

/// The minimum ratio that counts as "no slower".
const NO_SLOWER: f64 = 0.97;
/// The minimum ratio to LMDB in reads on a compacted store.
const TO_LMDB: f64 = 0.7;
/// The maximum memory relative to RocksDB.
const MEMORY_MAX: f64 = 1.1;
/// Stores that must not be faster than Tamis in any workload.
const NEVER_SLOWER: &[&str] = &["leveldb", "fjall"];
/// The columns of RocksDB, the reference of the targets.
const ROCKS: &[&str] = &["rocksdb", "rocksdb-tuned"];

/// The median of some numbers and their relative spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// The median.
    pub median: f64,
    /// (maximum - minimum) / median.
    pub spread: f64,
}

/// The median and spread of some numbers; `None` if there are none.
pub fn median_of(mut values: Vec<f64>) -> Option<Median> {
    values.sort_by(f64::total_cmp);
    let (least, greatest) = (values.first()?, values.last()?);
    let half = values.len() / 2;
    let upper = values.get(half)?;
    let lower = values.get((values.len() - 1) / 2)?;
    let median = f64::midpoint(*lower, *upper);
    Some(Median { median, spread: (greatest - least) / median.max(f64::MIN_POSITIVE) })
}

/// The rates of one workload in one state with a number of threads.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Name of the state.
    pub state: &'static str,
    /// Name of the workload.
    pub workload: &'static str,
    /// Title in tables.
    #[serde(skip)]
    pub title: &'static str,
    /// Number of threads.
    pub threads: u64,
    /// Operations per second by store (for scans and fills: entries).
    pub rates: BTreeMap<&'static str, Median>,
    /// Ratio of Tamis to the better column of RocksDB.
    pub to_rocksdb: Option<f64>,
    /// The target of this ratio.
    pub target: Option<f64>,
    /// Ratios of Tamis to the other stores.
    pub ratios: BTreeMap<&'static str, f64>,
    /// The missed targets, for people.
    pub missed: Vec<String>,
}

/// One kind of cost.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// Title with the unit.
    pub title: String,
    /// A number or a text by store.
    pub values: BTreeMap<&'static str, serde_json::Value>,
    /// The missed targets, for people.
    pub missed: Vec<String>,
}

/// The summary of results.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The configuration of the run.
    pub configuration: Configuration,
    /// The machine.
    pub machine: Machine,
    /// Date and time of the start.
    pub begun: String,
    /// Whether all passes of the plan are measured.
    pub is_complete: bool,
    /// Stores in table order.
    pub stores: Vec<&'static str>,
    /// Rates.
    pub rates: Vec<Line>,
    /// Costs.
    pub costs: Vec<Cost>,
}

impl Summary {
    /// Summarizes results.
    pub fn new(results: &Results) -> Self {
        let mut rates = Vec::new();
        let thread_counts: BTreeSet<u64> = results.rows.iter().map(|row| row.threads).collect();
        for &state in State::ALL {
            for &threads in &thread_counts {
                let has_rates = |workload: &&Workload| {
                    workload.states.contains(&state) && workload.action != Action::Open
                };
                let lines = WORKLOADS.iter().filter(has_rates);
                rates.extend(lines.filter_map(|workload| line(results, state, workload, threads)));
            }
        }
        Self {
            configuration: results.configuration.clone(),
            machine: results.machine.clone(),
            begun: results.begun.clone(),
            is_complete: results.is_complete,
            stores: results.stores_measured(),
            rates,
            costs: costs(results),
        }
    }
}

/// The rows of a table cell.
fn rows<'a>(
    results: &'a Results,
    state: State,
    workload: &'a str,
    threads: u64,
    store: &'a str,
) -> impl Iterator<Item = &'a Row> {
    results.rows.iter().filter(move |row| {
        row.state == state.name() && row.workload == workload && row.threads == threads && row.store == store
    })
}

/// The target of the ratio to RocksDB.
fn target_ratio(state: State, workload: &Workload, is_direct: bool) -> Option<f64> {
    match state {
        _ if is_direct => workload.target.map(|_| NO_SLOWER),
        State::Unmerged => workload.unmerged_target,
        State::Compacted => None,
        _ => workload.target,
    }
}

fn line(results: &Results, state: State, workload: &Workload, threads: u64) -> Option<Line> {
    let rate = |store: &str| {
        median_of(rows(results, state, workload.name, threads, store).map(|row| row.rate).collect())
    };
    let rates: BTreeMap<&'static str, Median> =
        KINDS.iter().filter_map(|kind| Some((kind.name, rate(kind.name)?))).collect();
    if rates.is_empty() {
        return None;
    }
    let median = |store: &&str| rates.get(store).map(|rate| rate.median);
    let better = ROCKS.iter().filter_map(median).max_by(f64::total_cmp);
    let ours = median(&"tamis");
    let to = |theirs: f64| ours.map(|ours| ours / theirs);
    let others = rates.iter().filter(|(store, _)| !store.starts_with("tamis") && !ROCKS.contains(store));
    let mut line = Line {
        state: state.name(),
        workload: workload.name,
        title: workload.title,
        threads,
        to_rocksdb: better.and_then(to),
        target: target_ratio(state, workload, results.configuration.is_direct),
        ratios: others.filter_map(|(store, rate)| Some((*store, to(rate.median)?))).collect(),
        missed: Vec::new(),
        rates,
    };
    line.missed = missed(&line, state, workload, results.configuration.is_direct);
    Some(line)
}

/// Returns the missed targets.
fn missed(line: &Line, state: State, workload: &Workload, is_direct: bool) -> Vec<String> {
    let mut targets = vec![("RocksDB", line.target, line.to_rocksdb)];
    let to = |store: &str| line.ratios.get(store).copied();
    if matches!(state, State::Fill | State::Settled) && workload.target.is_some() && !is_direct {
        targets.extend(NEVER_SLOWER.iter().map(|store| (*store, Some(NO_SLOWER), to(store))));
    }
    if state == State::Compacted && workload.is_read {
        targets.push(("LMDB", Some(TO_LMDB), to("lmdb")));
    }
    let below = |(what, least, ratio): (&str, Option<f64>, Option<f64>)| {
        let (least, ratio) = (least?, ratio?);
        (ratio < least).then(|| format!("{what} {ratio:.2} < {least}"))
    };
    targets.into_iter().filter_map(below).collect()
}

/// A cost of all stores that have a value.
fn cost<V: Into<serde_json::Value>>(title: &str, value: impl Fn(&'static str) -> Option<V>) -> Cost {
    let values = KINDS.iter().filter_map(|kind| Some((kind.name, value(kind.name)?.into()))).collect();
    Cost { title: title.to_owned(), values, missed: Vec::new() }
}

impl Cost {
    /// Sets a target: at most `share` of the better column of RocksDB.
    fn at_most(mut self, share: f64) -> Self {
        let of = |store: &&str| self.values.get(store).and_then(serde_json::Value::as_f64);
        if let Some(ours) = of(&"tamis")
            && let Some(theirs) = ROCKS.iter().filter_map(of).min_by(f64::total_cmp)
            && ours > theirs * share
        {
            self.missed.push(format!("RocksDB {:.2} > {share}", ours / theirs));
        }
        self
    }
}

/// The costs of the stores: bytes written, space, memory, time to open.
fn costs(results: &Results) -> Vec<Cost> {
    let median = |store: &'static str, state: State, workload: &str, value: fn(&Row) -> f64| {
        median_of(rows(results, state, workload, 1, store).map(value).collect()).map(|rate| rate.median)
    };
    let fill = |store, workload, value| median(store, State::Fill, workload, value);
    let last_read = |store: &'static str| {
        let is_scan =
            |row: &&Row| row.state == State::Settled.name() && row.store == store && row.workload == "scan";
        results.rows.iter().rfind(is_scan).map(|row| row.memory)
    };
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let written: fn(&Row) -> f64 = |row| row.write_amplification;
    let settled: fn(&Row) -> f64 = |row| row.seconds_settled;
    let mut costs = vec![
        cost("bytes written per user byte, fill in order", |store| fill(store, "fill-order", written)),
        cost("seconds until settled, fill in order", |store| fill(store, "fill-order", settled)),
        cost("bytes written per user byte, fill at random", |store| fill(store, "fill-random", written))
            .at_most(1.0),
        cost("seconds until settled, fill at random", |store| fill(store, "fill-random", settled)),
        cost("disk after the random fill, MiB", |store| {
            fill(store, "fill-random", |row| row.disk_bytes as f64 / f64::from(1 << 20))
        }),
        cost("memory after the random fill, own, MiB", |store| {
            fill(store, "fill-random", |row| row.memory.own as f64 / f64::from(1 << 20))
        })
        .at_most(MEMORY_MAX),
        cost("memory after the reads, own, MiB", |store| {
            last_read(store).map(|memory| mebibytes(memory.own))
        })
        .at_most(MEMORY_MAX),
        cost("memory after the reads, mapped files, MiB", |store| {
            last_read(store).map(|memory| mebibytes(memory.mapped))
        }),
        cost("opening, ms", |store| median(store, State::Settled, "open", |row| row.outcome.seconds * 1e3)),
    ];
    for (state, title) in [(State::Fill, "after the random fill"), (State::Unmerged, "unmerged")] {
        costs.push(cost(&format!("levels {title}"), |store| {
            let is_last = |row: &&Row| {
                let is_fill = state != State::Fill || row.workload == "fill-random" && row.threads == 1;
                row.state == state.name() && row.store == store && is_fill
            };
            results.rows.iter().rfind(is_last).map(|row| row.shape.clone())
        }));
    }
    costs.retain(|cost| !cost.values.is_empty());
    costs
}
