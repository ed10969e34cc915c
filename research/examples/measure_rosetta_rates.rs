//! Measures the rates of Rosettas on the published integer sets for several seeds, next to the predicted and the
//! published ones.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_rosetta_rates -- KEY_COUNT SEEDS REFERENCE.csv QUERIES
//! BITS...`
//!
//! `SEEDS` are seeds of keys separated by `/`, such as `42/142/143/144/145`; queries, sample and 100,000 ranges with a
//! key have the seeds after them. The first seed has separate columns, all others are added up. If there are fewer
//! than 1,000 false positives, nine more query seeds are added. `QUERIES` are parts of the names of keys and queries
//! separated by commas, such as `uniform correlated_r32`, or `all`. The rows are those of the table in
//! `crates/tamis-filter/results/rosetta.md`. If the published rate bounds ours, the row reports whether the bound holds: at most `c` times
//! the published rate plus three standard deviations of both counts, with `c` 1 for ranges of up to 32 keys and 10 or
//! 12 bits per key, a half with 16 and 20 bits, and 1.05 for longer ranges.

use std::collections::HashMap;

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Filter, FilterSpec, KeyRange, Probe, RangeProbe, Samples,
};
use tamis_workload::{KeySet, QuerySet, non_empty_ranges};

const QUERY_COUNT: usize = 1_000_000;
const SAMPLE_COUNT: usize = 20_000;
const PRESENT_COUNT: usize = 100_000;

/// With fewer false positives than this, more query seeds are added.
const FEW: u64 = 1000;

/// Number of query seeds that are then added up.
const QUERY_SEEDS: u64 = 10;

/// Rates below this are too small for a comparison.
const RATE_MIN: f64 = 0.001;

const FAMILIES: [&str; 2] = ["rosetta:probe-cost=0", "rosetta"];

/// Rate and number of queries of a published row.
type Reference = HashMap<String, (f64, f64)>;

fn read_reference(path: &str) -> Reference {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let name = format!("{} {} {} {}", field(1), field(2), field(4), field(5));
        (field(0) == "rosetta").then_some((name, (field(7).parse().ok()?, field(9).parse().ok()?)))
    };
    text.lines().filter_map(row).collect()
}

/// Counts of a seed, or of several.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    positives: u64,
    asked: u64,
    probes: u64,
    lost: u64,
    /// Predicted rates times queries.
    predicted: f64,
    /// The largest relative difference of a seed's rate from its prediction, for rates above the minimum.
    furthest: f64,
}

impl Counted {
    fn rate(&self) -> f64 {
        self.positives as f64 / self.asked as f64
    }

    fn predicted_rate(&self) -> f64 {
        self.predicted / self.asked as f64
    }

    fn add(&mut self, other: &Self) {
        self.positives += other.positives;
        self.asked += other.asked;
        self.probes += other.probes;
        self.lost += other.lost;
        self.predicted += other.predicted;
        self.furthest = self.furthest.max(other.furthest);
    }

    fn cells(&self) -> String {
        let (rate, predicted) = (self.rate(), self.predicted_rate());
        let apart = if rate > 0.0 { (rate / predicted - 1.0) * 100.0 } else { 0.0 };
        format!("{rate:.3e} | {predicted:.3e} | {apart:+.1} %")
    }

    /// Whether the rate is at most `factor` times the published one.
    fn is_within(&self, factor: f64, (rate, asked): (f64, f64)) -> bool {
        let variance = self.rate() / self.asked as f64 + factor * factor * rate / asked;
        self.rate() - factor * rate <= 3.0 * variance.sqrt()
    }
}

/// The queries of one seed.
struct Input<'a> {
    key_set: KeySet,
    query_set: QuerySet,
    keys: &'a [u64],
    seed: u64,
    /// By query seed, generated on demand.
    queries: Vec<Vec<(u64, u64)>>,
    sample: Vec<(u64, u64)>,
    present: &'a [(u64, u64)],
}

impl Input<'_> {
    /// Queries of a further seed.
    fn ensure(&mut self, number: usize) {
        let count = QUERY_COUNT.min(self.keys.len());
        while self.queries.len() <= number {
            let seed = self.seed + 1 + 1000 * self.queries.len() as u64;
            let queries = self.query_set.generate(self.key_set, self.keys, count, seed);
            self.queries.push(queries.expect("the first seed had queries"));
        }
    }
}

fn ask(filter: &AnyFilter<AlignedBytes>, digester: &Digester, (left, right): (u64, u64)) -> (bool, u32) {
    let (lower, upper) = (left.to_be_bytes(), right.to_be_bytes());
    if lower == upper {
        let probe = Probe::new(&lower, digester);
        return (filter.may_contain(&probe), probe.probe_count());
    }
    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), digester);
    (filter.may_contain_range(&probe), probe.probe_count())
}

fn build(family: &str, input: &Input<'_>, bits: f64) -> Vec<u8> {
    let bytes: Vec<_> =
        input.sample.iter().map(|(left, right)| (left.to_be_bytes(), right.to_be_bytes())).collect();
    let ranges: Vec<KeyRange<'_>> =
        bytes.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let spec: FilterSpec = family.parse().expect("a family with its parameters");
    let mut builder = spec.builder(1).expect("parameters");
    input.keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted keys"));
    let budget = Budget::bits_per_key(bits).expect("possible bits");
    builder.finish(budget, Samples { queries: &ranges }).expect("a filter")
}

fn count(filter: &AnyFilter<AlignedBytes>, input: &mut Input<'_>) -> Counted {
    let digester = Digester::new(1);
    let mut counted = Counted::default();
    for number in 0..QUERY_SEEDS as usize {
        if number > 0 && counted.positives >= FEW {
            break;
        }
        input.ensure(number);
        for query in input.queries.get(number).into_iter().flatten() {
            let (answer, probes) = ask(filter, &digester, *query);
            counted.positives += u64::from(answer);
            counted.probes += u64::from(probes);
            counted.asked += 1;
        }
    }
    counted.lost = input.present.iter().filter(|range| !ask(filter, &digester, **range).0).count() as u64;
    let predicted = filter.predicted_fpr().unwrap_or(f64::NAN);
    counted.predicted = predicted * counted.asked as f64;
    if counted.rate() > RATE_MIN {
        counted.furthest = (counted.rate() / predicted - 1.0).abs();
    }
    counted
}

/// The factor by which a rate may exceed the published one.
fn factor_of(query_set: &str, bits: f64) -> Option<f64> {
    match query_set {
        _ if query_set.ends_with("_r32") => Some(if bits > 12.0 { 0.5 } else { 1.0 }),
        _ if query_set.ends_with("_r1024") => Some(1.05),
        _ => None,
    }
}

/// Sums over all rows.
#[derive(Debug, Default)]
struct Total {
    rows: u64,
    lost: u64,
    furthest: f64,
    beyond: u64,
    bounded: u64,
}

struct Run<'a> {
    key_count: usize,
    seeds: &'a [u64],
    reference: &'a Reference,
    budgets: &'a [f64],
    total: Total,
}

impl Run<'_> {
    fn print(&mut self, name: (&str, &str), family: &str, bits: f64, all: &[Counted]) {
        let (first, others) = all.split_first().expect("one seed at least");
        let mut together = Counted::default();
        others.iter().for_each(|counted| together.add(counted));
        let published = self.reference.get(&format!("{} {} {} {bits}", name.0, name.1, self.key_count));
        let mut verdict = String::new();
        if let (Some(published), Some(factor)) = (published, factor_of(name.1, bits)) {
            let is_within = all.iter().chain([&together]).filter(|counted| counted.asked > 0);
            let is_within = is_within.fold(true, |all, counted| all & counted.is_within(factor, *published));
            self.total.bounded += 1;
            self.total.beyond += u64::from(!is_within);
            verdict = if is_within { String::new() } else { " MISSED".to_owned() };
        }
        let published = published.map_or(String::new(), |(rate, _)| format!("{rate:.3e}"));
        let furthest = all.iter().map(|counted| counted.furthest).fold(0.0, f64::max);
        let lost: u64 = all.iter().map(|counted| counted.lost).sum();
        self.total.rows += 1;
        self.total.lost += lost;
        self.total.furthest = self.total.furthest.max(furthest);
        let apart = if furthest > 0.0 { format!("{:.1} %", furthest * 100.0) } else { String::new() };
        println!(
            "| {} | {} | {family} | {bits} | {} | {} | {apart} | {:.2} | {published}{verdict} |",
            name.0,
            name.1,
            first.cells(),
            if others.is_empty() { " | | ".to_owned() } else { together.cells() },
            first.probes as f64 / first.asked as f64,
        );
    }

    fn measure(&mut self, key_set: KeySet, query_set: QuerySet, keys: &[Vec<u64>]) {
        let present: Vec<Vec<(u64, u64)>> = keys
            .iter()
            .zip(self.seeds)
            .map(|(keys, seed)| non_empty_ranges(keys, PRESENT_COUNT, seed + 3))
            .collect();
        let mut rows: HashMap<(usize, usize), Vec<Counted>> = HashMap::new();
        for ((keys, seed), present) in keys.iter().zip(self.seeds).zip(&present) {
            let count_of = QUERY_COUNT.min(keys.len());
            let Ok(queries) = query_set.generate(key_set, keys, count_of, seed + 1) else { return };
            let Ok(sample) = query_set.generate(key_set, keys, SAMPLE_COUNT, seed + 2) else { return };
            let queries = vec![queries];
            let mut input = Input { key_set, query_set, keys, seed: *seed, queries, sample, present };
            for (budget, bits) in self.budgets.iter().enumerate() {
                let mut before: Option<(Vec<u8>, Counted)> = None;
                for (number, family) in FAMILIES.iter().enumerate() {
                    let bytes = build(family, &input, *bits);
                    let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("it opens");
                    let counted = match &before {
                        // The same filter: counted already.
                        Some((known, counted)) if *known == bytes => *counted,
                        _ => count(&filter, &mut input),
                    };
                    before = Some((bytes, counted));
                    rows.entry((number, budget)).or_default().push(counted);
                }
            }
        }
        let query_name = query_set.to_string();
        for (number, family) in FAMILIES.iter().enumerate() {
            for (budget, bits) in self.budgets.iter().enumerate() {
                let all = rows.remove(&(number, budget)).unwrap_or_default();
                self.print((key_set.name(), &query_name), family, *bits, &all);
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let key_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let seeds = arguments.next().unwrap_or_else(|| "42/142/143/144/145".to_owned());
    let seeds: Vec<u64> = seeds.split('/').filter_map(|seed| seed.parse().ok()).collect();
    let reference = read_reference(&arguments.next().unwrap_or_default());
    let wanted = arguments.next().unwrap_or_else(|| "all".to_owned());
    let budgets: Vec<f64> = arguments.filter_map(|text| text.parse().ok()).collect();
    let total = Total::default();
    let mut run = Run { key_count, seeds: &seeds, reference: &reference, budgets: &budgets, total };
    for key_set in [KeySet::Uniform, KeySet::Normal, KeySet::Gaps] {
        let is_wanted = |query_set: &QuerySet| {
            let name = format!("{} {query_set}", key_set.name());
            wanted == "all" || wanted.split(',').any(|part| name.contains(part))
        };
        let query_sets: Vec<QuerySet> = QuerySet::published(key_set).filter(is_wanted).collect();
        if query_sets.is_empty() {
            continue;
        }
        let keys: Vec<Vec<u64>> = seeds.iter().map(|seed| key_set.generate(key_count, *seed)).collect();
        for query_set in query_sets {
            run.measure(key_set, query_set, &keys);
        }
    }
    let Total { rows, lost, furthest, beyond, bounded } = run.total;
    println!(
        "{rows} rows; {lost} ranges with a key denied; {beyond} of {bounded} bounds missed; furthest apart above {RATE_MIN}: {:.1} %",
        furthest * 100.0
    );
}
