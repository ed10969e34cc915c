//! What results come to: medians over the rounds, their spread, ratios of ours to the others, and what of all that is asked for was
//! missed. The tables and the JSON of `report` are made of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    results::{Configuration, Results, Row},
    state::State,
    store::KINDS,
    workload::{Action, WORKLOADS, Workload},
};

/// A ratio from here on counts as "no slower".
const NO_SLOWER: f64 = 0.97;
/// The least ratio to LMDB in reads on a compacted store.
const TO_LMDB: f64 = 0.7;
/// The most memory, beside RocksDB.
const MEMORY_MAX: f64 = 1.1;
/// Stores than which ours may be slower in nothing.
const NEVER_SLOWER: &[&str] = &["leveldb", "fjall"];
/// The columns of the one that the figures are held against.
const ROCKS: &[&str] = &["rocksdb", "rocksdb-tuned"];

/// The middle of some numbers, and the distance between the least and the greatest as a share of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// (greatest - least) / median.
    pub spread: f64,
}

/// The middle of some numbers; none of none.
pub fn middle(mut values: Vec<f64>) -> Option<Middle> {
    values.sort_by(f64::total_cmp);
    let (least, greatest) = (values.first()?, values.last()?);
    let half = values.len() / 2;
    let upper = values.get(half)?;
    let lower = values.get((values.len() - 1) / 2)?;
    let median = f64::midpoint(*lower, *upper);
    Some(Middle { median, spread: (greatest - least) / median.max(f64::MIN_POSITIVE) })
}

/// The rates of one workload in one state by so many threads.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The state's name.
    pub state: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// What it is called in a table.
    #[serde(skip)]
    pub title: &'static str,
    /// Threads.
    pub threads: u64,
    /// Operations (of scans and fills: entries) per second, by store.
    pub rates: BTreeMap<&'static str, Middle>,
    /// Ours to the better column of RocksDB.
    pub to_rocksdb: Option<f64>,
    /// What that should be at least.
    pub asked: Option<f64>,
    /// Ours to each other store.
    pub ratios: BTreeMap<&'static str, f64>,
    /// What is asked for and not reached, in words.
    pub missed: Vec<String>,
}

/// One thing that stores cost.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// What, with its unit.
    pub title: String,
    /// By store: a number, or words.
    pub values: BTreeMap<&'static str, serde_json::Value>,
    /// What is asked for and not reached, in words.
    pub missed: Vec<String>,
}

/// All that results come to.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// With what it was measured.
    pub configuration: Configuration,
    /// On what, beside the processor.
    pub machine: serde_json::Value,
    /// When the first pass was begun: seconds since 1970.
    pub begun: u64,
    /// Whether all that was asked for is there.
    pub is_complete: bool,
    /// Stores, in the order of the tables.
    pub stores: Vec<&'static str>,
    /// Rates.
    pub rates: Vec<Line>,
    /// Costs.
    pub costs: Vec<Cost>,
}

impl Summary {
    /// What some results come to.
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
            begun: results.begun,
            is_complete: results.is_complete,
            stores: results.stores_measured(),
            rates,
            costs: costs(results),
        }
    }
}

/// The rows of a cell.
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

/// The ratio to RocksDB that is asked for.
fn asked(state: State, workload: &Workload, is_direct: bool) -> Option<f64> {
    match state {
        _ if is_direct => workload.target.map(|_| NO_SLOWER),
        State::Unmerged => workload.unmerged_target,
        State::Compacted => None,
        _ => workload.target,
    }
}

fn line(results: &Results, state: State, workload: &Workload, threads: u64) -> Option<Line> {
    let rate = |store: &str| {
        middle(rows(results, state, workload.name, threads, store).map(|row| row.rate).collect())
    };
    let rates: BTreeMap<&'static str, Middle> =
        KINDS.iter().filter_map(|kind| Some((kind.name, rate(kind.name)?))).collect();
    if rates.is_empty() {
        return None;
    }
    let median = |store: &&str| rates.get(store).map(|middle| middle.median);
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
        asked: asked(state, workload, results.configuration.is_direct),
        ratios: others.filter_map(|(store, middle)| Some((*store, to(middle.median)?))).collect(),
        missed: Vec::new(),
        rates,
    };
    line.missed = missed(&line, state, workload, results.configuration.is_direct);
    Some(line)
}

/// What is asked for and not reached; nothing where all is.
fn missed(line: &Line, state: State, workload: &Workload, is_direct: bool) -> Vec<String> {
    let mut asked = vec![("RocksDB", line.asked, line.to_rocksdb)];
    let to = |store: &str| line.ratios.get(store).copied();
    if matches!(state, State::Fill | State::Settled) && workload.target.is_some() && !is_direct {
        asked.extend(NEVER_SLOWER.iter().map(|store| (*store, Some(NO_SLOWER), to(store))));
    }
    if state == State::Compacted && workload.is_read {
        asked.push(("LMDB", Some(TO_LMDB), to("lmdb")));
    }
    let below = |(what, least, ratio): (&str, Option<f64>, Option<f64>)| {
        let (least, ratio) = (least?, ratio?);
        (ratio < least).then(|| format!("{what} {ratio:.2} < {least}"))
    };
    asked.into_iter().filter_map(below).collect()
}

/// A cost of all stores that have one.
fn cost<V: Into<serde_json::Value>>(title: &str, value: impl Fn(&'static str) -> Option<V>) -> Cost {
    let values = KINDS.iter().filter_map(|kind| Some((kind.name, value(kind.name)?.into()))).collect();
    Cost { title: title.to_owned(), values, missed: Vec::new() }
}

impl Cost {
    /// Holds ours against the better column of RocksDB.
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

/// What the stores cost: bytes written, space, memory, time to open.
fn costs(results: &Results) -> Vec<Cost> {
    let median = |store: &'static str, state: State, workload: &str, value: fn(&Row) -> f64| {
        middle(rows(results, state, workload, 1, store).map(value).collect()).map(|middle| middle.median)
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
