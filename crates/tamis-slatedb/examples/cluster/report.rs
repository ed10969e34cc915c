//! The table of costs, and the figures that decide about success.

use comfy_table::{CellAlignment, Table, presets};

use crate::Result;
use crate::arguments::Arguments;
use crate::messages::{Kind, Measurement};

/// Public price of a read request of Amazon S3 Standard in us-east-1: 0.0004 dollars per thousand.
const DOLLARS_PER_MILLION_READS: f64 = 0.4;

/// Limits of the figures.
const EMPTY_RANGE_REQUESTS_MAX: f64 = 0.05;
const THROUGHPUT_RATIO_MIN: f64 = 10.0;
/// With less latency than this the store is local, and the time of a query is that of the program.
const LATENCY_MS_MIN: u64 = 5;
const LOCAL_THROUGHPUT_RATIO_MIN: f64 = 2.0;
const POINT_REQUESTS_RATIO_MAX: f64 = 1.05;
const LOAD_RATIO_MIN: f64 = 0.9;

/// The results of one set of filters.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) load_seconds: f64,
    pub(crate) load_entries: usize,
    pub(crate) load_writes: u64,
    pub(crate) tables: usize,
    /// Tables and runs whose key ranges overlap, on average of both sets.
    pub(crate) overlapping: f64,
    pub(crate) filters: String,
    pub(crate) measurements: Vec<Measurement>,
}

impl Outcome {
    pub(crate) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    fn of(&self, kind: Kind) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.kind == kind)
    }
}

/// Prints everything; whether the answers are equal and the figures are reached.
pub(crate) fn print(outcomes: &[Outcome], arguments: &Arguments) -> Result<bool> {
    println!("\n{}", loads(outcomes));
    println!("\n{}", costs(outcomes, arguments.readers.max(1)));
    if let Some(tamis) = outcomes.last() {
        println!("\nFilters of Tamis, {}", tamis.filters);
    }
    let [_, default, prefix, equal, tamis] = outcomes else {
        return Err("a run is missing".into());
    };
    let answers = are_answers_equal(outcomes);
    println!("\n{} equal answers of all runs", mark(answers));
    let figures = figures(default, prefix, equal, tamis, arguments);
    let mut is_success = answers;
    for figure in figures {
        println!("{} {}", mark(figure.is_reached), figure.text);
        is_success &= figure.is_reached || (arguments.quick && figure.varies);
    }
    if arguments.quick {
        println!("A small run: figures that differ from run to run do not decide about its success.");
    }
    Ok(is_success)
}

const fn mark(is_reached: bool) -> &'static str {
    if is_reached { "pass:" } else { "FAIL:" }
}

fn are_answers_equal(outcomes: &[Outcome]) -> bool {
    let answers = |outcome: &Outcome| {
        let digests = outcome.measurements.iter().map(|measurement| (measurement.kind, measurement.answers));
        digests.collect::<Vec<_>>()
    };
    outcomes.windows(2).all(|pair| matches!(pair, [one, other] if answers(one) == answers(other)))
}

fn loads(outcomes: &[Outcome]) -> Table {
    let mut table = new_table(&["filters", "load, s", "entries/s", "puts", "tables", "overlapping"]);
    for outcome in outcomes {
        table.add_row([
            outcome.name.clone(),
            format!("{:.1}", outcome.load_seconds),
            format!("{:.0}", outcome.load_entries as f64 / outcome.load_seconds),
            outcome.load_writes.to_string(),
            outcome.tables.to_string(),
            format!("{:.1}", outcome.overlapping),
        ]);
    }
    table
}

/// Times are those that one reader sees; the readers run at the same time.
fn costs(outcomes: &[Outcome], readers: usize) -> Table {
    let mut table = new_table(&[
        "query",
        "filters",
        "requests per query",
        "KiB per query",
        "ms per query",
        "queries/s",
        "dollars per million",
        "tables skipped",
        "read",
        "in error",
    ]);
    for kind in Kind::ALL {
        for (index, outcome) in outcomes.iter().enumerate() {
            let Some(cost) = outcome.of(kind) else { continue };
            let queries = cost.queries as f64;
            let requests = cost.requests as f64 / queries;
            table.add_row([
                if index == 0 { kind.name().to_owned() } else { String::new() },
                outcome.name.clone(),
                format!("{requests:.3}"),
                format!("{:.1}", cost.bytes as f64 / 1024.0 / queries),
                format!("{:.2}", cost.seconds * 1000.0 * readers as f64 / queries),
                format!("{:.0}", queries / cost.seconds),
                format!("{:.3}", requests * DOLLARS_PER_MILLION_READS),
                cost.negatives.to_string(),
                cost.positives.to_string(),
                cost.false_positives.to_string(),
            ]);
        }
    }
    table
}

fn new_table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(heads.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

struct Figure {
    is_reached: bool,
    /// Differs from run to run: it decides about a full run only.
    varies: bool,
    text: String,
}

fn figures(
    default: &Outcome,
    prefix: &Outcome,
    equal: &Outcome,
    tamis: &Outcome,
    arguments: &Arguments,
) -> Vec<Figure> {
    let requests = |outcome: &Outcome, kind| {
        outcome.of(kind).map_or(f64::NAN, |cost| cost.requests as f64 / cost.queries as f64)
    };
    let throughput = |outcome: &Outcome| {
        outcome.of(Kind::EmptyRange).map_or(f64::NAN, |cost| cost.queries as f64 / cost.seconds)
    };
    let is_remote = arguments.latency_ms >= LATENCY_MS_MIN;
    let ratio_min = if is_remote { THROUGHPUT_RATIO_MIN } else { LOCAL_THROUGHPUT_RATIO_MIN };
    let empty = |kind: Kind| {
        let empty = requests(tamis, kind);
        Figure {
            is_reached: empty <= EMPTY_RANGE_REQUESTS_MAX,
            varies: false,
            text: format!(
                "requests of a query of kind {:?}: {empty:.3}, at most {EMPTY_RANGE_REQUESTS_MAX} (SlateDB's default: {:.3})",
                kind.name(),
                requests(default, kind)
            ),
        }
    };
    let mut figures = vec![empty(Kind::EmptyRange), empty(Kind::EmptyPart)];
    for (outcome, other) in [(default, "SlateDB's default"), (prefix, "its prefix filter")] {
        let ratio = throughput(tamis) / throughput(outcome);
        figures.push(Figure {
            is_reached: ratio >= ratio_min,
            varies: true,
            text: format!(
                "throughput of closed empty ranges: {ratio:.1} times that of {other}, at least {ratio_min} with {} ms of latency",
                arguments.latency_ms
            ),
        });
    }
    let ratio = requests(tamis, Kind::Point) / requests(equal, Kind::Point);
    figures.push(Figure {
        is_reached: ratio <= POINT_REQUESTS_RATIO_MAX,
        varies: true,
        text: format!(
            "requests of a point: {ratio:.3} times those of {}, at most {POINT_REQUESTS_RATIO_MAX}",
            equal.name
        ),
    });
    let ratio = default.load_seconds / tamis.load_seconds;
    figures.push(Figure {
        is_reached: ratio >= LOAD_RATIO_MIN,
        varies: true,
        text: format!("speed of loading: {ratio:.2} times SlateDB's default, at least {LOAD_RATIO_MIN}"),
    });
    figures
}
