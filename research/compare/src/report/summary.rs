//! Summary of results for the tables and the JSON of `report`: medians and spreads over the rounds, ratios of Tamis to the other
//! stores, and missed targets.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tamis_bench::{BenchError, Configuration, Fields, Machine, MeasuredRow, Report, Value};

use crate::{
    plan::Place,
    store::{KINDS, Result},
    workload::{FILL_RANDOM, Source, State, WORKLOADS, Workload},
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
    pub values: BTreeMap<&'static str, Value>,
    /// The missed targets, for people.
    pub missed: Vec<String>,
}

/// The summary of results.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The settings of the run.
    pub settings: Fields,
    /// The program of the run.
    pub configuration: Configuration,
    /// The machine.
    pub machine: Machine,
    /// Date and time of the last row.
    pub date: String,
    /// Whether all passes of the plan are measured.
    pub is_complete: bool,
    /// Stores in table order.
    pub stores: Vec<&'static str>,
    /// Rates.
    pub rates: Vec<Line>,
    /// Costs.
    pub costs: Vec<Cost>,
}

/// The measured rows of the stores of this build.
struct Rows<'a> {
    all: Vec<(Place, &'a MeasuredRow)>,
    is_direct: bool,
}

impl Rows<'_> {
    /// The values of a metric in one table cell.
    fn of(&self, state: State, workload: &str, threads: u64, store: &str, metric: &str) -> Vec<f64> {
        let is_here = |place: &Place| {
            (place.state, place.workload.name, place.threads, place.kind.name)
                == (state, workload, threads, store)
        };
        let rows = self.all.iter().filter(|(place, _)| is_here(place));
        rows.filter_map(|(_, row)| row.get(metric)?.as_number()).collect()
    }

    /// The value of a metric in the last row of a store in a state for which `is_wanted` holds.
    fn last(&self, store: &str, metric: &str, is_wanted: impl Fn(&Place) -> bool) -> Option<Value> {
        let mut rows = self.all.iter().rev();
        let (_, row) = rows.find(|(place, _)| place.kind.name == store && is_wanted(place))?;
        row.get(metric).cloned()
    }
}

impl Summary {
    /// Summarizes results.
    pub fn new(results: &Report) -> Result<Self> {
        // A build may have fewer stores than the results.
        let place = |row: &MeasuredRow| Place::of(&row.point).ok();
        let all: Vec<_> = results.rows.iter().filter_map(|row| Some((place(row)?, row))).collect();
        let settings = match all.first().and_then(|(_, row)| row.get("settings")) {
            Some(Value::Object(settings)) => settings.clone(),
            _ => return Err(BenchError::other("the file has no results of these states and stores")),
        };
        let is_direct = settings.get("is_direct") == Some(&Value::Flag(true));
        let rows = Rows { all, is_direct };
        let thread_counts: BTreeSet<u64> = rows.all.iter().map(|(place, _)| place.threads).collect();
        let mut rates = Vec::new();
        for &(state, ..) in State::ALL {
            for &threads in &thread_counts {
                let workloads = WORKLOADS.iter().filter(|workload| workload.states.contains(&state));
                rates.extend(workloads.filter_map(|workload| line(&rows, state, workload, threads)));
            }
        }
        let is_measured = |name: &&str| rows.all.iter().any(|(place, _)| place.kind.name == *name);
        Ok(Self {
            settings,
            configuration: results.configuration.clone(),
            machine: results.machine.clone(),
            date: results.date.clone(),
            is_complete: results.is_complete,
            stores: KINDS.iter().map(|kind| kind.name).filter(is_measured).collect(),
            rates,
            costs: costs(&rows),
        })
    }
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

fn line(rows: &Rows<'_>, state: State, workload: &Workload, threads: u64) -> Option<Line> {
    let rate = |store: &str| median_of(rows.of(state, workload.name, threads, store, "rate"));
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
        target: target_ratio(state, workload, rows.is_direct),
        ratios: others.filter_map(|(store, rate)| Some((*store, to(rate.median)?))).collect(),
        missed: Vec::new(),
        rates,
    };
    line.missed = missed(&line, state, workload, rows.is_direct);
    Some(line)
}

/// Returns the missed targets.
fn missed(line: &Line, state: State, workload: &Workload, is_direct: bool) -> Vec<String> {
    let mut targets = vec![("RocksDB", line.target, line.to_rocksdb)];
    let to = |store: &str| line.ratios.get(store).copied();
    if matches!(state, State::Fill | State::Settled) && workload.target.is_some() && !is_direct {
        targets.extend(NEVER_SLOWER.iter().map(|store| (*store, Some(NO_SLOWER), to(store))));
    }
    if state == State::Compacted && workload.target.is_some() {
        targets.push(("LMDB", Some(TO_LMDB), to("lmdb")));
    }
    let below = |(what, least, ratio): (&str, Option<f64>, Option<f64>)| {
        let (least, ratio) = (least?, ratio?);
        (ratio < least).then(|| format!("{what} {ratio:.2} < {least}"))
    };
    targets.into_iter().filter_map(below).collect()
}

/// A cost of all stores that have a value.
fn cost<V: Into<Value>>(title: &str, value: impl Fn(&'static str) -> Option<V>) -> Cost {
    let values = KINDS.iter().filter_map(|kind| Some((kind.name, value(kind.name)?.into()))).collect();
    Cost { title: title.to_owned(), values, missed: Vec::new() }
}

impl Cost {
    /// Sets a target: at most `share` of the better column of RocksDB.
    fn at_most(mut self, share: f64) -> Self {
        let of = |store: &&str| self.values.get(store).and_then(Value::as_number);
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
fn costs(rows: &Rows<'_>) -> Vec<Cost> {
    let median = |store, state, workload, metric, unit: f64| {
        median_of(rows.of(state, workload, 1, store, metric)).map(|found| found.median / unit)
    };
    let fill = |store, workload, metric| median(store, State::Fill, workload, metric, 1.0);
    let mebibyte = f64::from(1 << 20);
    let after_reads = |store, metric| {
        let is_read =
            |place: &Place| place.state == State::Settled && place.workload.source == Source::FullScan;
        Some(rows.last(store, metric, is_read)?.as_number()? / mebibyte)
    };
    const WRITTEN: &str = "disk_write_amplification";
    let mut costs = vec![
        cost("bytes written per user byte, fill in order", |store| fill(store, "fill-order", WRITTEN)),
        cost("seconds until settled, fill in order", |store| fill(store, "fill-order", "settled_seconds")),
        cost("bytes written per user byte, fill at random", |store| fill(store, FILL_RANDOM, WRITTEN))
            .at_most(1.0),
        cost("seconds until settled, fill at random", |store| fill(store, FILL_RANDOM, "settled_seconds")),
        cost("disk after the random fill, MiB", |store| {
            median(store, State::Fill, FILL_RANDOM, "disk_bytes", mebibyte)
        }),
        cost("memory after the random fill, own, MiB", |store| {
            median(store, State::Fill, FILL_RANDOM, "memory_own", mebibyte)
        })
        .at_most(MEMORY_MAX),
        cost("memory after the reads, own, MiB", |store| after_reads(store, "memory_own"))
            .at_most(MEMORY_MAX),
        cost("memory after the reads, mapped files, MiB", |store| after_reads(store, "memory_mapped")),
        cost("opening, ms", |store| median(store, State::Settled, "open", "seconds", 1e-3)),
        cost("levels after the random fill", |store| {
            let is_fill = |place: &Place| place.workload.name == FILL_RANDOM && place.threads == 1;
            rows.last(store, "shape", is_fill)
        }),
        cost("levels unmerged", |store| rows.last(store, "shape", |place| place.state == State::Unmerged)),
    ];
    costs.retain(|cost| !cost.values.is_empty());
    costs
}
