//! The cost of the chosen filters, and of every family at the same memory.
//!
//! Cost: time of the probes, plus false positives times the price of a read, plus memory, at the prices with which a new store chooses.
//! Filters are built in memory and probed with empty queries; nothing is timed. Families that design themselves get the sample of
//! the choice. Without a sample no family gets one: one choice then serves all queries, so the queries `mix` (as many of each kind)
//! decide whether it is good.

use std::sync::Arc;

use tamis::{Access, Options, bench_internals::filter_prices};
use tamis_filter::{
    KeySet,
    auto::{Effort, choose, score},
};
use tamis_workload::{KeySet as Integers, QuerySet};

use super::measured::{Measured, measure as measure_filters, parts, request, sampled, text_of};
use crate::{
    inputs::{Keys, OwnedQuery},
    words::key_set,
};
use tamis_bench::{BenchError, Context, Point, Row, Size, Value};

/// Maximum bits per key.
pub(super) const BITS: f64 = 16.0;
/// All kinds of queries of the keys.
const MIX: &str = "mix";
/// Most queries of a kind may be outside of the keys: so often queries are drawn.
const ROUNDS_MAX: u64 = 40;
/// Kinds of keys that are no integers, and of queries.
const OTHER_KEYS: [(&str, &[&str]); 5] = [
    ("events", &["points", "uniform_r1024", "correlated_r32"]),
    ("domains", &["points", "ranges", "prefix_b64"]),
    ("emails", &["points", "ranges", "prefix_b96"]),
    ("paths", &["points", "ranges", "directories"]),
    ("tenants", &["points", "ranges"]),
];

/// The kinds of queries of keys, without the mix.
fn kinds(keys: &str) -> Vec<String> {
    if let Some((_, kinds)) = OTHER_KEYS.iter().find(|(name, _)| *name == keys) {
        return kinds.iter().map(ToString::to_string).collect();
    }
    let set = Integers::ALL.into_iter().find(|set| set.name() == keys).unwrap_or(Integers::Uniform);
    QuerySet::published(set).map(|set| set.to_string()).collect()
}

/// All keys with all their kinds of queries, and with the mix.
pub(crate) fn keys_and_queries(_: &str, _: Size) -> Vec<Value> {
    let integers = [Integers::Uniform, Integers::Normal, Integers::Gaps].map(Integers::name);
    let mut values = Vec::new();
    for keys in integers.into_iter().chain(OTHER_KEYS.map(|(name, _)| name)) {
        let kinds = kinds(keys).into_iter().chain([MIX.to_owned()]);
        values.extend(kinds.map(|kind| Value::List(vec![keys.into(), kind.into()])));
    }
    values
}

/// Keys in both forms.
pub(super) struct Input {
    keys: Keys,
    pub(super) set: Arc<KeySet>,
}

impl Input {
    /// The input that points share.
    fn shared(name: &str, count: usize, context: &mut Context<'_>) -> Result<Arc<Self>, BenchError> {
        context.input(&format!("{count} keys {name}"), |context| {
            let keys = Keys::generate(name, count, context.seed())?;
            let set = key_set(keys.encoded().iter().map(Vec::as_slice))?.into();
            Ok(Self { keys, set })
        })
    }

    /// Queries of a kind between the least and the greatest key: a store probes the filters of a table for no others.
    fn queries_within(&self, kind: &str, count: usize, seed: u64) -> Result<Vec<OwnedQuery>, BenchError> {
        let mut queries = Vec::new();
        for round in 0..ROUNDS_MAX {
            let drawn = self.keys.queries(kind, count, seed + 100_000 * round)?;
            queries.extend(drawn.into_iter().filter(|query| self.is_within(query)));
            if queries.len() >= count {
                break;
            }
        }
        queries.truncate(count);
        Ok(queries)
    }

    fn is_within(&self, query: &OwnedQuery) -> bool {
        let last = self.set.len().saturating_sub(1);
        let (Some(least), Some(greatest)) = (self.set.get(0), self.set.get(last)) else { return false };
        let upper = if query.upper.is_empty() { &query.lower } else { &query.upper };
        least < query.lower.as_slice() && upper.as_slice() < greatest && !greatest.starts_with(upper)
    }

    /// Queries of a kind; of the mix as many of each kind, alternating.
    fn queries(
        &self,
        (name, kind): (&str, &str),
        count: usize,
        seed: u64,
    ) -> Result<Vec<OwnedQuery>, BenchError> {
        if kind != MIX {
            return self.queries_within(kind, count, seed);
        }
        let kinds = kinds(name);
        let mut each = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let seed = seed + 1000 * number as u64;
            each.push(self.queries_within(kind, count / kinds.len(), seed)?.into_iter());
        }
        let mut mixed = Vec::new();
        loop {
            let before = mixed.len();
            mixed.extend(each.iter_mut().filter_map(Iterator::next));
            if mixed.len() == before {
                return Ok(mixed);
            }
        }
    }
}

/// Families alone, with at most [`BITS`] bits per key.
fn fixed_families() -> Vec<String> {
    let sized = [
        "blocked-bloom",
        "surf:truncate=yes",
        "rosetta",
        "proteus",
        "1pbf",
        "2pbf",
        "grafite",
        "prefix-bloom:bytes=4",
        "prefix-bloom:bytes=6",
        "prefix-bloom:bytes=8",
        "prefix-bloom:bytes=12",
        "prefix-bloom:separator=/",
    ];
    let unsized_families =
        ["", "surf-base", "surf-real:bits=4", "surf-hash:bits=4", "surf-mixed:hash=2,real=2"];
    let sized = sized.into_iter().map(|family| format!("{family}@{BITS}"));
    sized.chain(unsized_families.map(str::to_owned)).collect()
}

/// The keys of a point, its sample and its queries.
pub(super) struct Case {
    pub(super) input: Arc<Input>,
    pub(super) sample: Vec<OwnedQuery>,
    pub(super) queries: Vec<OwnedQuery>,
}

impl Case {
    pub(super) fn of(point: &Point, keys: &str, context: &mut Context<'_>) -> Result<Self, BenchError> {
        let (kind, count) = (point.text("queries")?, point.integer("count")? as usize);
        let sample_count = context.size().pick(400, 4_000, 4_000);
        let input = Input::shared(keys, point.integer("entries")? as usize, context)?;
        let sample = input.queries((keys, kind), sample_count, context.seed() + 1)?;
        let queries = input.queries((keys, kind), count, context.seed() + 2)?;
        Ok(Self { input, sample, queries })
    }
}

/// The case of a point, and the measured families.
struct Families {
    case: Case,
    fixed: Vec<(String, Measured)>,
}

fn families(point: &Point, context: &mut Context<'_>) -> Result<Families, BenchError> {
    let mut case = Case::of(point, point.text("keys")?, context)?;
    if point.text("sample")? == "no" {
        case.sample.clear();
    }
    let Case { input, sample, queries } = &case;
    let names = fixed_families();
    let mut fixed = Vec::new();
    for (number, text) in names.iter().enumerate() {
        context.progress(number as f64 / names.len() as f64)?;
        let measured = measure_filters(&input.set, &parts(text)?, sample, queries);
        // Some families cannot be built for all keys, or within the memory.
        if let Ok(measured) = measured
            && measured.bits_per_key <= BITS * 1.01 + 1_024.0 / input.set.len() as f64
        {
            fixed.push((text.clone(), measured));
        }
    }
    Ok(Families { case, fixed })
}

pub(super) fn prices(point: &Point) -> Result<tamis_filter::auto::Prices, BenchError> {
    let access = if point.text("access")? == "direct" { Access::Direct } else { Access::Mapped };
    Ok(filter_prices(&Options::default().table_access(access)))
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (name, kind) = (point.text("keys")?, point.text("queries")?);
    let entries = point.integer("entries")?;
    let sample = point.text("sample")?;
    let label = format!("families {name} {kind} {entries} {}", if sample == "no" { "no" } else { "yes" });
    let families: Arc<Families> = context.input(&label, |context| families(point, context))?;
    let Case { input, sample: known, queries } = &families.case;
    let prices = prices(point)?;
    let sampled = sampled(known);
    let effort = if sample == "yes" { Effort::Background } else { Effort::Write };
    let request = request(&sampled, prices, BITS, effort);
    let choice = choose(&input.set, &request);
    let chosen = measure_filters(&input.set, &choice.chosen.parts, known, queries)?;
    let cost = |measured: &Measured| measured.cost_ns(&prices);
    let best = families.fixed.iter().min_by(|left, right| cost(&left.1).total_cmp(&cost(&right.1)));
    let Some((best_name, best)) = best else {
        return Err(BenchError::other("no family can be built for these keys"));
    };
    let fixed: Vec<_> = families.fixed.iter().map(|(text, _)| parts(text)).collect::<Result<_, _>>()?;
    let expected = score(&input.set, &request, &fixed).into_iter().map(|scored| scored.cost_ns);
    let expected_best = expected.fold(f64::INFINITY, f64::min);
    Ok(Row::new()
        .with("ratio", cost(&chosen) / cost(best))
        .with("expected_ratio", choice.chosen.cost_ns / expected_best)
        .with("chosen", text_of(&choice.chosen.parts))
        .with("cost_ns", cost(&chosen))
        .with("expected_ns", choice.chosen.cost_ns)
        .with("false_positive_rate", chosen.rate)
        .with("bits_per_key", chosen.bits_per_key)
        .with("best", if best_name.is_empty() { "none" } else { best_name.as_str() })
        .with("best_ns", cost(best))
        .with("was_cut", u64::from(choice.was_cut)))
}
