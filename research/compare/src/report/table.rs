//! Writes the tables of a page.

use std::fmt::Write as _;

use tamis_bench::Value;

use super::summary::{Cost, Line, Summary};
use crate::{
    store::{KINDS, Kind},
    workload::State,
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

/// A table of Markdown.
fn table(titles: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    rows.for_each(|cells| text.extend(["| ", &cells.join(" | "), " |\n"]));
    text
}

fn cell<T>(value: Option<T>, written: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), written)
}

/// The titles of a table: its first column, the stores, and others.
fn titles(first: &str, kinds: &[&Kind], others: impl IntoIterator<Item = String>) -> Vec<String> {
    let stores = kinds.iter().map(|kind| kind.title.to_owned());
    [first.to_owned()].into_iter().chain(stores).chain(others).chain(["missed".to_owned()]).collect()
}

/// The table of rates of some workloads, with ratios to the measured stores.
fn rates(lines: &[&Line], kinds: &[&Kind]) -> String {
    let compared: Vec<&&Kind> =
        kinds.iter().filter(|kind| lines.iter().any(|line| line.ratios.contains_key(kind.name))).collect();
    let others = compared.iter().map(|kind| format!("to {}", kind.title));
    let others = ["to RocksDB", "target"].map(str::to_owned).into_iter().chain(others);
    let ratio = |ratio: f64| format!("{ratio:.2}");
    let row = |it: &&Line| {
        let mut cells = vec![it.title.to_owned()];
        cells.extend(kinds.iter().map(|kind| {
            cell(it.rates.get(kind.name), |rate| {
                format!("{} ~{:.0}%", three_digits(rate.median / 1000.0), rate.spread * 100.0)
            })
        }));
        cells.push(cell(it.to_rocksdb, ratio));
        cells.push(cell(it.target, |least| least.to_string()));
        cells.extend(compared.iter().map(|kind| cell(it.ratios.get(kind.name).copied(), ratio)));
        cells.push(it.missed.join(", "));
        cells
    };
    table(&titles("workload", kinds, others), lines.iter().map(row))
}

fn costs(costs: &[Cost], kinds: &[&Kind]) -> String {
    let row = |cost: &Cost| {
        let mut cells = vec![cost.title.clone()];
        cells.extend(kinds.iter().map(|kind| {
            cell(cost.values.get(kind.name), |value| match value {
                Value::Text(words) => words.clone(),
                number => three_digits(number.as_number().unwrap_or_default()),
            })
        }));
        cells.push(cost.missed.join(", "));
        cells
    };
    table(&titles("cost", kinds, []), costs.iter().map(row))
}

/// All tables of a summary.
pub fn all(summary: &Summary) -> String {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| summary.stores.contains(&kind.name)).collect();
    let setting = |name: &str| summary.settings.get(name).and_then(Value::as_number).unwrap_or_default();
    let is_direct = summary.settings.get("is_direct") == Some(&Value::Flag(true));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} entries, {:.0} MiB cache, {:.0} MiB memtable, {}passes of {} s or {} operations per thread; Tamis at `{}`; {}, {} cores, kernel {}.{}\n",
        setting("entries"),
        (setting("cache_bytes") / f64::from(1 << 20)).floor(),
        setting("memtable_bytes") / f64::from(1 << 20),
        if is_direct { "direct I/O, " } else { "" },
        setting("seconds"),
        setting("operations"),
        summary.configuration.commit,
        summary.machine.processor,
        summary.machine.core_count,
        summary.machine.kernel,
        if summary.is_complete { "" } else { " **Not complete.**" }
    );
    for &(_, name, title) in State::ALL {
        let lines: Vec<&Line> = summary.rates.iter().filter(|line| line.state == name).collect();
        for lines in lines.chunk_by(|one, next| one.threads == next.threads) {
            let threads = lines.first().map_or(0, |line| line.threads);
            let (plural, table) = (if threads == 1 { "thread" } else { "threads" }, rates(lines, &kinds));
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
