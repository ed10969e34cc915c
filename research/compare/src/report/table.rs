//! Writes the tables of a page.

use std::fmt::Write as _;

use super::summary::{Cost, Line, Summary};
use crate::{
    state::State,
    store::{KINDS, Kind},
};

/// Formats a number with three significant digits.
fn three_digits(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{},{:03}", value as u64 / 1000, value as u64 % 1000),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn heading(text: &mut String, cells: &[String]) {
    line(text, cells);
    let _ = writeln!(text, "|{}", "---|".repeat(cells.len()));
}

fn line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn cell<T>(value: Option<T>, written: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), written)
}

/// The table of rates of some workloads, with ratios to the measured stores.
fn rates(lines: &[&Line], kinds: &[&Kind]) -> String {
    let compared: Vec<&&Kind> =
        kinds.iter().filter(|kind| lines.iter().any(|line| line.ratios.contains_key(kind.name))).collect();
    let mut titles = vec!["workload".to_owned()];
    titles.extend(kinds.iter().map(|kind| kind.title.to_owned()));
    titles.extend(["to RocksDB", "target"].map(str::to_owned));
    titles.extend(compared.iter().map(|kind| format!("to {}", kind.title)));
    titles.push("missed".to_owned());
    let mut text = String::new();
    heading(&mut text, &titles);
    for it in lines {
        let mut cells = vec![it.title.to_owned()];
        cells.extend(kinds.iter().map(|kind| {
            cell(it.rates.get(kind.name), |rate| {
                format!("{} ~{:.0}%", three_digits(rate.median / 1000.0), rate.spread * 100.0)
            })
        }));
        cells.push(cell(it.to_rocksdb, |ratio| format!("{ratio:.2}")));
        cells.push(cell(it.target, |least| least.to_string()));
        cells.extend(
            compared.iter().map(|kind| cell(it.ratios.get(kind.name), |ratio| format!("{ratio:.2}"))),
        );
        cells.push(it.missed.join(", "));
        line(&mut text, &cells);
    }
    text
}

fn costs(costs: &[Cost], kinds: &[&Kind]) -> String {
    let mut titles = vec!["cost".to_owned()];
    titles.extend(kinds.iter().map(|kind| kind.title.to_owned()));
    titles.push("missed".to_owned());
    let mut text = String::new();
    heading(&mut text, &titles);
    for cost in costs {
        let mut cells = vec![cost.title.clone()];
        cells.extend(kinds.iter().map(|kind| {
            cell(cost.values.get(kind.name), |value| match value {
                serde_json::Value::String(words) => words.clone(),
                number => three_digits(number.as_f64().unwrap_or_default()),
            })
        }));
        cells.push(cost.missed.join(", "));
        line(&mut text, &cells);
    }
    text
}

/// All tables of a summary.
pub fn all(summary: &Summary) -> String {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| summary.stores.contains(&kind.name)).collect();
    let configuration = &summary.configuration;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} entries, {} MiB cache, {} MiB memtable, {}passes of {} s or {} operations per thread; Tamis at `{}`; {}, kernel {}.{}\n",
        configuration.entries,
        configuration.cache_bytes >> 20,
        configuration.memtable_bytes >> 20,
        if configuration.is_direct { "direct I/O, " } else { "" },
        configuration.seconds,
        configuration.operations,
        configuration.commit,
        configuration.processor,
        summary.machine.kernel,
        if summary.is_complete { "" } else { " **Not complete.**" }
    );
    for &state in State::ALL {
        let lines: Vec<&Line> = summary.rates.iter().filter(|line| line.state == state.name()).collect();
        for lines in lines.chunk_by(|one, next| one.threads == next.threads) {
            let threads = lines.first().map_or(0, |line| line.threads);
            let plural = if threads == 1 { "thread" } else { "threads" };
            let (title, table) = (state.title(), rates(lines, &kinds));
            let _ = writeln!(text, "**{title}, {threads} {plural}** (thousands per second)\n\n{table}");
        }
    }
    if !summary.costs.is_empty() {
        let _ = writeln!(text, "**Costs**\n\n{}", costs(&summary.costs, &kinds));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
