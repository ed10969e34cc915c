//! `tamis filter advise`: ranks filters by their expected cost for keys and queries from files, or of a store with its sample.
//!
//! No filter is built: the costs are those that the store expects when it chooses filters itself.

mod page;

use std::{
    fmt::Write as _,
    io::Write,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::{Value, json};
use tamis::{Db, Keyspace, KeyspaceStatistics, SampledQueries};
use tamis_bench::filter::Ranges;
use tamis_filter::{
    KeyRange, KeySet,
    auto::{self, Choice, Effort, Part, Pause, Prices, Query, QueryKind, Request, Scored, Workload},
};

use super::input;
use crate::{failure::Failure, store, terminal};

const EXAMPLES: &str = "\
Examples:
  tamis filter advise --keys words --queries ranges
  tamis filter advise --store DIR --keyspace users --html advice.html
  tamis filter advise --store DIR --bits-per-key 12 --read-time 60";

/// Budgets of the plot, in bits per key.
const BUDGETS: [f64; 9] = [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0];
/// Families of the plot.
const FAMILIES: [&str; 6] =
    ["blocked-bloom", "surf:truncate=yes", "1pbf", "proteus", "grafite", "blocked-bloom + grafite"];
/// Rows of the ranking.
const ROWS_MAX: usize = 12;
/// Keys of a store that are read: about as many as a large table has.
const STORE_KEYS_MAX: usize = 1_000_000;

/// Rank filters by their expected cost for your keys and queries
///
/// The cost of a query is the time of the probes, plus the time of a read for each false positive, plus a price of memory for each bit
/// per key. Queries that contain a key cost only their probes. The prices are those by which the store chooses filters;
/// for files a read takes 20 microseconds, and a bit per key costs one nanosecond.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// File of keys (formats: see `tamis filter eval --help`)
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    keys: Option<PathBuf>,
    /// File of queries
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    queries: Option<PathBuf>,
    /// Folder of a store: its keys and its sampled queries
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Keyspace of the store [default: "default"]
    #[arg(long, value_name = "NAME", requires = "store")]
    keyspace: Option<String>,
    /// Maximum size of all filters of a table together, in bits per key
    #[arg(long, default_value_t = 16.0, value_name = "BITS")]
    bits_per_key: f64,
    /// Time of a read that a false positive causes, in microseconds [default: that of the store; 20 for files]
    #[arg(long, value_name = "MICROSECONDS")]
    read_time: Option<f64>,
    /// Write a page with plots to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Keys, queries and their origin.
struct Input {
    keys: Arc<KeySet>,
    queries: Queries,
    prices: Prices,
    /// The tables that a query asks.
    overlapping_tables: u32,
    /// As text.
    origin: String,
    /// The filters of the keyspace, as its options name them; `None` for files.
    current: Option<String>,
}

enum Queries {
    File(Ranges),
    Store(SampledQueries),
}

impl Queries {
    fn list(&self) -> Vec<Query<'_>> {
        match self {
            Self::Store(sample) => sample.queries(),
            Self::File(ranges) => ranges
                .iter()
                .map(|(lower, upper)| Query {
                    kind: if lower == upper { QueryKind::Point } else { QueryKind::Range },
                    range: KeyRange::closed(lower, upper),
                    weight: 1.0,
                })
                .collect(),
        }
    }
}

/// The costs of filters.
struct Advice {
    origin: String,
    key_count: usize,
    query_count: usize,
    bits_per_key_max: f64,
    prices: Prices,
    /// As in [`Input`].
    current: Option<String>,
    choice: Choice,
    /// The cost without filters.
    without: f64,
    ranked: Vec<Scored>,
    /// For each of [`FAMILIES`] the costs for each of [`BUDGETS`].
    by_budget: Vec<(&'static str, Vec<Scored>)>,
}

impl AdviseArgs {
    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        if !(self.bits_per_key > 0.0 && self.bits_per_key <= 64.0) {
            let given = self.bits_per_key;
            let text = format!("--bits-per-key {given}: give a number above 0 and at most 64");
            return Err(Failure::Usage(text));
        }
        if let Some(given) = self.read_time
            && !(given > 0.0 && given.is_finite())
        {
            let text = format!("--read-time {given}: give a number of microseconds above 0");
            return Err(Failure::Usage(text));
        }
        let mut input = self.input()?;
        if let Some(read_time) = self.read_time {
            input.prices.read_ns = read_time * 1e3;
        }
        let advice = self.advice(&input)?;
        if let Some(path) = &self.html {
            page::page(&advice).write(path, "give another name to --html")?;
        }
        if self.json {
            return Ok(writeln!(output, "{}", advice.to_json())?);
        }
        writeln!(output, "{}", advice.table())?;
        Ok(writeln!(output, "{}", advice.summary())?)
    }

    fn input(&self) -> Result<Input, Failure> {
        if let Some(folder) = &self.store {
            let db = store::open_to_read(folder)?;
            let keyspace = match &self.keyspace {
                Some(name) => store::keyspace(&db, name)?,
                None => db.default_keyspace(),
            };
            let sample = db.sampled_queries(&keyspace)?;
            return Ok(Input {
                keys: keys_around(&keyspace, &sample.queries(), STORE_KEYS_MAX)?.into(),
                queries: Queries::Store(sample),
                prices: db.filter_prices(),
                overlapping_tables: overlapping_tables(&db, keyspace.name()),
                origin: format!("{} (sampled queries)", folder.display()),
                current: Some(keyspace.options().filters.to_string()),
            });
        }
        let (Some(keys), Some(queries)) = (&self.keys, &self.queries) else {
            return Err(Failure::Usage("give both --keys and --queries, or --store".to_owned()));
        };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let origin = format!("{} and {}", name(keys), name(queries));
        let (keys, kind) = input::read_keys(keys)?;
        let queries = Queries::File(input::read_queries(queries, kind)?);
        let prices = Prices::default();
        Ok(Input { keys: keys.into(), queries, prices, overlapping_tables: 1, origin, current: None })
    }

    fn advice(&self, input: &Input) -> Result<Advice, Failure> {
        let queries = input.queries.list();
        let request = Request {
            workload: Workload { queries: &queries },
            prices: input.prices,
            bits_per_key_max: self.bits_per_key,
            overlapping_tables: input.overlapping_tables,
            current: None,
            effort: Effort::Background,
            seed: 1,
            pause: Pause::default(),
        };
        let choice = auto::choose(&input.keys, &request);
        let ranked = auto::rank(&input.keys, &request);
        let without = auto::score(&input.keys, &request, &[Vec::new()]);
        let mut by_budget = Vec::new();
        for family in FAMILIES {
            let filters = BUDGETS.iter().map(|bits| parts(family, *bits)).collect::<Result<Vec<_>, _>>()?;
            by_budget.push((family, auto::score(&input.keys, &request, &filters)));
        }
        Ok(Advice {
            origin: input.origin.clone(),
            key_count: input.keys.len(),
            query_count: queries.len(),
            bits_per_key_max: self.bits_per_key,
            prices: input.prices,
            current: input.current.clone(),
            choice,
            without: without.first().map_or(0.0, |scored| scored.cost_ns),
            ranked,
            by_budget,
        })
    }
}

/// At most `count_max` consecutive keys of a store, around the middle one of its sampled queries: queries outside of them are not
/// considered, as for a table with these keys.
fn keys_around(keyspace: &Keyspace, queries: &[Query<'_>], count_max: usize) -> Result<KeySet, Failure> {
    let mut starts: Vec<&[u8]> = queries.iter().filter_map(|query| start_of(&query.range)).collect();
    starts.sort_unstable();
    let middle = starts.get(starts.len() / 2).copied().unwrap_or_default();
    let (mut before, mut behind) = (keyspace.range(..middle), keyspace.range(middle..));
    before.seek_to_last();
    let (mut keys_before, mut keys_behind) = (Vec::new(), Vec::new());
    let mut has_before = true;
    let mut has_behind = true;
    while (has_before || has_behind) && keys_before.len() + keys_behind.len() < count_max {
        has_before = has_before && before.move_prev()?;
        if has_before {
            keys_before.push(before.key().to_vec());
        }
        has_behind = has_behind && behind.move_next()?;
        if has_behind {
            keys_behind.push(behind.key().to_vec());
        }
    }
    let mut keys = KeySet::new();
    for key in keys_before.iter().rev().chain(&keys_behind) {
        keys.push(key).map_err(|error| Failure::Damage(error.to_string()))?;
    }
    Ok(keys)
}

/// The key at which a range begins.
const fn start_of<'a>(range: &KeyRange<'a>) -> Option<&'a [u8]> {
    match range.lower {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// The runs of a partition of a keyspace, on average: a query asks a table of each.
fn overlapping_tables(db: &Db, name: &str) -> u32 {
    let statistics = db.statistics();
    let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == name);
    let runs = |keyspace: &KeyspaceStatistics| {
        let runs: usize = keyspace.levels.iter().map(|level| level.run_count).sum();
        runs.div_ceil(keyspace.partition_count.max(1))
    };
    keyspace.map_or(1, |keyspace| u32::try_from(runs(keyspace)).unwrap_or(u32::MAX).max(1))
}

/// The filters of a name with a budget, in equal shares.
fn parts(names: &str, bits: f64) -> Result<Vec<Part>, Failure> {
    let names: Vec<&str> = names.split(" + ").collect();
    let share = bits / names.len() as f64;
    let part = |name: &&str| {
        let spec =
            name.parse().map_err(|error: tamis_filter::BuildError| Failure::Usage(error.to_string()))?;
        Ok(Part { spec, bits_per_key: Some(share) })
    };
    names.iter().map(part).collect()
}

/// The filters of a choice as they are given to a keyspace.
fn name_of(scored: &Scored) -> String {
    let one = |part: &Part| match part.bits_per_key {
        Some(bits) => format!("{}@{:.1}", part.spec, bits),
        None => part.spec.to_string(),
    };
    if scored.parts.is_empty() {
        return "none".to_owned();
    }
    scored.parts.iter().map(one).collect::<Vec<_>>().join(" + ")
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

/// The columns of the table of costs, for terminals and pages.
const HEADER: [&str; 6] = ["filters", "bits per key", "ns per query", "points", "ranges", "open seeks"];

fn row(scored: &Scored) -> Vec<String> {
    let rates = scored.false_positive_rates;
    vec![
        name_of(scored),
        format!("{:.1}", scored.bits_per_key),
        format!("{:.0}", scored.cost_ns),
        percent(rates.point),
        percent(rates.range),
        percent(rates.seek),
    ]
}

impl Advice {
    fn rows(&self) -> &[Scored] {
        self.ranked.get(..self.ranked.len().min(ROWS_MAX)).unwrap_or_default()
    }

    fn table(&self) -> comfy_table::Table {
        terminal::table(1, &HEADER, self.rows().iter().map(row))
    }

    /// The advice, its savings and its costs.
    fn answer(&self) -> [String; 3] {
        let chosen = &self.choice.chosen;
        let filters = if chosen.parts.is_empty() { "no filters".to_owned() } else { name_of(chosen) };
        let advice = match &self.current {
            Some(current) if current.starts_with("auto") => format!(
                "To do: nothing. The store chooses the filters of this keyspace itself ({current}); for these queries it would choose {filters}."
            ),
            Some(current) => format!(
                "To do: change the filters of the keyspace from {current} to {filters}, or let the store choose them (`Keyspace::set_options`)."
            ),
            None => format!(
                "To do: use {filters}. A keyspace with automatic filters, the default, chooses such filters itself."
            ),
        };
        let rates = chosen.false_positive_rates;
        let kinds = [("points", rates.point), ("ranges", rates.range), ("open seeks", rates.seek)];
        let reads = kinds.into_iter().filter_map(|(kind, rate)| {
            let read = 1_000.0 * rate?;
            let read = if read > 0.0 && read < 1.0 { "less than 1".to_owned() } else { format!("{read:.0}") };
            Some(format!("{read} of 1,000 {kind}"))
        });
        let reads: Vec<_> = reads.collect();
        let saving = format!(
            "Savings: a query takes {} ns instead of {} without filters. Of queries without a key, {} read a block.",
            terminal::count(chosen.cost_ns.round() as u64),
            terminal::count(self.without.round() as u64),
            if reads.is_empty() { "none is known that would".to_owned() } else { reads.join(", ") },
        );
        let bytes = chosen.bits_per_key * self.key_count as f64 / 8.0;
        let cost = format!(
            "Costs: {:.1} bits of memory per key, {} for these {} keys.",
            chosen.bits_per_key,
            terminal::bytes(bytes as u64),
            terminal::count(self.key_count as u64),
        );
        [advice, saving, cost]
    }

    /// Says which filters the store would choose, and why.
    fn summary(&self) -> String {
        let mut text = format!(
            "{} keys, {} queries, of which {} contain no key. The store would choose {}: {:.0} ns per query.",
            terminal::count(self.key_count as u64),
            terminal::count(self.query_count as u64),
            terminal::count(self.choice.empty_queries as u64),
            name_of(&self.choice.chosen),
            self.choice.chosen.cost_ns,
        );
        // Writing to a string can't fail.
        let _ = write!(
            text,
            " A read takes {:.1} us, a bit per key costs {:.2} ns per query.",
            self.prices.read_ns / 1e3,
            self.prices.bit_ns
        );
        if let Some(next) = self.choice.runners_up.first() {
            let ratio = next.cost_ns / self.choice.chosen.cost_ns.max(f64::MIN_POSITIVE);
            let _ = write!(text, " The next best, {}, costs {ratio:.2} times as much.", name_of(next));
        }
        if self.choice.empty_queries < auto::SAMPLE_MIN {
            let _ = write!(
                text,
                " With fewer than {} queries without a key the costs are those of an assumed workload of points and ranges: \
                 give more queries, or run them on the store first.",
                auto::SAMPLE_MIN
            );
        }
        text
    }

    fn to_json(&self) -> Value {
        let scored = |scored: &Scored| {
            let rates = scored.false_positive_rates;
            json!({
                "filters": name_of(scored),
                "bits_per_key": scored.bits_per_key,
                "cost_ns": scored.cost_ns,
                "rates": { "points": rates.point, "ranges": rates.range, "seeks": rates.seek },
            })
        };
        json!({
            "keys": self.key_count,
            "queries": self.query_count,
            "empty_queries": self.choice.empty_queries,
            "prices": { "read_ns": self.prices.read_ns, "bit_ns": self.prices.bit_ns },
            "chosen": scored(&self.choice.chosen),
            "ranked": self.rows().iter().map(scored).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
