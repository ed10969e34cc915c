//! The tables: medians over the rounds, their spread, ratios, and whether what is asked for was reached.

use std::fmt::Write as _;

use crate::{
    results::{Results, Row},
    state::State,
    store::{KINDS, Kind},
    workload::{Action, WORKLOADS, Workload},
};

/// A ratio from here on counts as "no slower".
const NO_SLOWER: f64 = 0.97;
/// The least ratio to LMDB in reads on a compacted store.
const TO_LMDB: f64 = 0.7;
/// Stores than which ours may be slower in nothing.
const NEVER_SLOWER: &[&str] = &["leveldb", "fjall"];
/// The columns of the one that the figures are held against.
const ROCKS: &[&str] = &["rocksdb", "rocksdb-tuned"];

/// The middle of some numbers, and the distance between the least and the greatest as a share of it.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// The rate of a store in a workload.
fn rate(results: &Results, state: State, workload: &str, threads: u64, store: &str) -> Option<Middle> {
    middle(rows(results, state, workload, threads, store).map(|row| row.rate).collect())
}

/// A rate in thousands, with three digits that count.
fn thousands(rate: f64) -> String {
    let value = rate / 1000.0;
    match value {
        value if value >= 1000.0 => format!("{},{:03}", value as u64 / 1000, value as u64 % 1000),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Ratios of ours to the others in one line of a table.
struct Ratios {
    rocks: Option<f64>,
    others: Vec<(&'static str, f64)>,
}

impl Ratios {
    fn new(results: &Results, state: State, workload: &Workload, threads: u64) -> Option<Self> {
        let of =
            |store: &str| rate(results, state, workload.name, threads, store).map(|middle| middle.median);
        let ours = of("tamis")?;
        let better = ROCKS.iter().filter_map(|store| of(store)).max_by(f64::total_cmp);
        let others = KINDS
            .iter()
            .filter(|kind| !kind.name.starts_with("tamis") && !ROCKS.contains(&kind.name))
            .filter_map(|kind| of(kind.name).map(|theirs| (kind.name, ours / theirs)));
        Some(Self { rocks: better.map(|better| ours / better), others: others.collect() })
    }

    fn to(&self, store: &str) -> Option<f64> {
        self.others.iter().find(|(name, _)| *name == store).map(|(_, ratio)| *ratio)
    }

    /// What is asked for and not reached, in words; empty where all is.
    fn missed(&self, state: State, workload: &Workload, is_direct: bool) -> String {
        let mut missed = Vec::new();
        let mut ask = |what: &str, least: f64, ratio: Option<f64>| {
            if let Some(ratio) = ratio
                && ratio < least
            {
                missed.push(format!("{what} {ratio:.2} < {least}"));
            }
        };
        if let Some(least) = needed(state, workload, is_direct) {
            ask("RocksDB", least, self.rocks);
        }
        if matches!(state, State::Fill | State::Settled) && workload.target.is_some() && !is_direct {
            for store in NEVER_SLOWER {
                ask(store, NO_SLOWER, self.to(store));
            }
        }
        if state == State::Compacted && workload.is_read {
            ask("LMDB", TO_LMDB, self.to("lmdb"));
        }
        missed.join(", ")
    }
}

/// The ratio to RocksDB that is asked for.
fn needed(state: State, workload: &Workload, is_direct: bool) -> Option<f64> {
    match state {
        _ if is_direct => workload.target.map(|_| NO_SLOWER),
        State::Unmerged => workload.unmerged_target,
        State::Compacted => None,
        _ => workload.target,
    }
}

fn heading(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(cells.len()));
}

fn ratio_cell(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The rates of all workloads of a state with a number of threads.
fn rates(results: &Results, state: State, threads: u64, kinds: &[&Kind]) -> String {
    let mut text = String::new();
    let mut titles = vec!["workload".to_owned()];
    titles.extend(kinds.iter().map(|kind| kind.title.to_owned()));
    titles.extend(["to RocksDB", "asked", "to LevelDB", "to fjall", "to LMDB", "missed"].map(str::to_owned));
    let mut lines = String::new();
    for workload in WORKLOADS.iter().filter(|it| it.states.contains(&state) && it.action != Action::Open) {
        let cells: Vec<Option<Middle>> =
            kinds.iter().map(|kind| rate(results, state, workload.name, threads, kind.name)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let mut line = vec![workload.title.to_owned()];
        line.extend(cells.iter().map(|cell| match cell {
            Some(middle) => format!("{} ~{:.0}%", thousands(middle.median), middle.spread * 100.0),
            None => "-".to_owned(),
        }));
        let ratios = Ratios::new(results, state, workload, threads);
        let is_direct = results.configuration.is_direct;
        line.push(ratio_cell(ratios.as_ref().and_then(|ratios| ratios.rocks)));
        line.push(
            needed(state, workload, is_direct).map_or_else(|| "-".to_owned(), |least| least.to_string()),
        );
        for store in ["leveldb", "fjall", "lmdb"] {
            line.push(ratio_cell(ratios.as_ref().and_then(|ratios| ratios.to(store))));
        }
        line.push(ratios.map(|ratios| ratios.missed(state, workload, is_direct)).unwrap_or_default());
        let _ = writeln!(lines, "| {} |", line.join(" | "));
    }
    if !lines.is_empty() {
        heading(&mut text, &titles);
        text.push_str(&lines);
    }
    text
}

/// One line of the table of costs.
fn cost_line(title: &str, kinds: &[&Kind], value: impl Fn(&Kind) -> Option<String>) -> Option<String> {
    let cells: Vec<Option<String>> = kinds.iter().map(|kind| value(kind)).collect();
    if cells.iter().all(Option::is_none) {
        return None;
    }
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect();
    Some(format!("| {title} | {} |\n", cells.join(" | ")))
}

/// What the stores cost: bytes written, space, memory, time to open.
fn costs(results: &Results, kinds: &[&Kind]) -> String {
    let median = |kind: &Kind, state: State, workload: &str, value: fn(&Row) -> f64| {
        middle(rows(results, state, workload, 1, kind.name).map(value).collect()).map(|middle| middle.median)
    };
    let mebibytes = |bytes: f64| thousands(bytes / (1 << 20) as f64 * 1000.0);
    let mut lines = Vec::new();
    for (workload, title) in [("fill-order", "fill in order"), ("fill-random", "fill at random")] {
        lines.push(cost_line(&format!("bytes written per user byte, {title}"), kinds, |kind| {
            median(kind, State::Fill, workload, |row| row.write_amplification)
                .map(|value| format!("{value:.2}"))
        }));
        lines.push(cost_line(&format!("seconds until settled, {title}"), kinds, |kind| {
            median(kind, State::Fill, workload, |row| row.seconds_settled).map(|value| format!("{value:.1}"))
        }));
    }
    lines.push(cost_line("disk after the random fill, MiB", kinds, |kind| {
        median(kind, State::Fill, "fill-random", |row| row.disk_bytes as f64).map(mebibytes)
    }));
    lines.push(cost_line("memory after the random fill, own, MiB", kinds, |kind| {
        median(kind, State::Fill, "fill-random", |row| row.memory.own as f64).map(mebibytes)
    }));
    let last_read = |kind: &Kind| {
        let reads = |row: &&Row| {
            row.state == State::Settled.name() && row.store == kind.name && row.workload == "scan"
        };
        results.rows.iter().rfind(reads).map(|row| row.memory)
    };
    lines.push(cost_line("memory after the reads, own, MiB", kinds, |kind| {
        last_read(kind).map(|memory| mebibytes(memory.own as f64))
    }));
    lines.push(cost_line("memory after the reads, mapped files, MiB", kinds, |kind| {
        last_read(kind).map(|memory| mebibytes(memory.mapped as f64))
    }));
    lines.push(cost_line("opening, ms", kinds, |kind| {
        median(kind, State::Settled, "open", |row| row.outcome.seconds * 1e3)
            .map(|value| format!("{value:.1}"))
    }));
    for (state, title) in [(State::Fill, "after the random fill"), (State::Unmerged, "unmerged")] {
        lines.push(cost_line(&format!("levels {title}"), kinds, |kind| {
            let at = |row: &&Row| {
                let is_fill = state != State::Fill || row.workload == "fill-random" && row.threads == 1;
                row.state == state.name() && row.store == kind.name && is_fill
            };
            results.rows.iter().rfind(at).map(|row| row.shape.clone())
        }));
    }
    let lines: String = lines.into_iter().flatten().collect();
    if lines.is_empty() {
        return lines;
    }
    let mut text = String::new();
    let mut titles = vec!["cost".to_owned()];
    titles.extend(kinds.iter().map(|kind| kind.title.to_owned()));
    heading(&mut text, &titles);
    text.push_str(&lines);
    text
}

/// All tables of some results.
pub fn all(results: &Results) -> String {
    let stores = results.stores_measured();
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| stores.contains(&kind.name)).collect();
    let configuration = &results.configuration;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} entries, {} MiB cache, {} MiB memtable, {}passes of {} s or {} operations of a thread; Tamis at `{}`; {}.{}\n",
        configuration.entries,
        configuration.cache_bytes >> 20,
        configuration.memtable_bytes >> 20,
        if configuration.is_direct { "direct I/O, " } else { "" },
        configuration.seconds,
        configuration.operations,
        configuration.commit,
        ["processor", "cores", "kernel"]
            .map(|key| match results.machine.get(key) {
                Some(serde_json::Value::String(value)) => value.clone(),
                Some(value) => format!("{value} {key}"),
                None => String::new(),
            })
            .join(", "),
        if results.is_complete { "" } else { " **Not complete.**" }
    );
    for &state in State::ALL {
        for threads in 1..=64 {
            let table = rates(results, state, threads, &kinds);
            if !table.is_empty() {
                let plural = if threads == 1 { "thread" } else { "threads" };
                let _ = writeln!(
                    text,
                    "**{}, {threads} {plural}** (thousands per second)\n\n{table}",
                    state.title()
                );
            }
        }
    }
    let costs = costs(results, &kinds);
    if !costs.is_empty() {
        let _ = writeln!(text, "**Costs**\n\n{costs}");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
