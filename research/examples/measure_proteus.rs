//! Measures Proteus and 1PBF on the published integer sets: rates, sizes and times next to those of another
//! implementation.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_proteus -- [rates|times|model|strings] [KEYS [SEED
//! [REFERENCE.csv [KEY_SET [QUERY_SET [BUDGETS [FAMILY]]]]]]]`
//!
//! `rates` runs a million queries of each set, and those of nine more query seeds if this implementation or the
//! reference has fewer than 1,000 false positives. `times` runs 300,000 of them (the median of five passes after a
//! warm-up, digest included; some queries are repeated before each pass, since the calibration unit evicts the
//! caches). `model` measures models only, `strings` models of strings of 180 bytes (`strings KEYS SEED`). SEED may be
//! several seeds separated by `/`. Seeds: keys SEED, queries SEED + 1, samples SEED + 2, ranges with keys SEED + 3,
//! more queries SEED + 11, SEED + 21 and so on. Parameters `probe-cost=0,probe-cap=16384`.
//!
//! Times are also given in the calibration unit, a binary search in as many integers. The unit is measured before each
//! pass and each build, and the result is the median of the quotients, since the speed of a shared processor varies.
//! Build times are given with and without adding the keys: the published times begin with integers. A rate matches if
//! it is within three standard deviations of 1.02 times the reference's.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock and a file of figures")]

use std::cell::OnceCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tamis_filter::proteus::{Prices, ProteusBuilder};
use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, KeyRange, Probe, RangeProbe,
    Samples,
};
use tamis_workload::{Calibration, KeySet, QuerySet, SplitMix64, non_empty_ranges};

const BUDGETS: [f64; 8] = [8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0];
const SAMPLE_COUNT: usize = 20_000;
/// Queries that are repeated before each timed pass.
const WARM_COUNT: usize = 50_000;
/// With fewer false positives than this, queries of other seeds are added.
const FEW: f64 = 1000.0;
/// Number of query seeds that are then added up.
const QUERY_SEEDS: u64 = 10;
const PRICES: Prices = Prices { probe: 0.0, read: 20_000.0, probe_cap: 16_384 };

type Bounds = ([u8; 8], [u8; 8]);

/// A row of the reference: rate, queries, build and query nanoseconds, model milliseconds.
#[derive(Debug, Clone, Copy)]
struct Reference {
    fpr: f64,
    query_count: f64,
    build_ns: f64,
    model_ms: f64,
    query_ns: f64,
}

impl Reference {
    /// Compares another rate with this one.
    fn verdict(&self, fpr: f64, asked: u64) -> &'static str {
        let bound = 1.02 * self.fpr;
        let own = fpr / asked as f64;
        let other = 1.02 * 1.02 * self.fpr / self.query_count;
        if fpr - bound <= 3.0 * (own + other).sqrt() { "met" } else { "MISSED" }
    }
}

/// Queries of a set, and those of other seeds, generated on demand.
struct Queries<'a> {
    first: Vec<Bounds>,
    more: OnceCell<Vec<Bounds>>,
    draw: &'a dyn Fn(u64) -> Vec<Bounds>,
}

impl Queries<'_> {
    fn more(&self) -> &[Bounds] {
        self.more.get_or_init(|| (1..QUERY_SEEDS).flat_map(|number| (self.draw)(10 * number)).collect())
    }
}

fn bounds(ranges: Vec<(u64, u64)>) -> Vec<Bounds> {
    ranges.into_iter().map(|(left, right)| (left.to_be_bytes(), right.to_be_bytes())).collect()
}

fn ranges(bounds: &[Bounds]) -> Vec<KeyRange<'_>> {
    bounds.iter().map(|(left, right)| KeyRange::closed(left, right)).collect()
}

fn read_reference(path: Option<&String>) -> HashMap<String, Reference> {
    let text = path.map_or(String::new(), |path| std::fs::read_to_string(path).expect("a file of figures"));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let name = |index: usize| fields.get(index).copied().unwrap_or_default();
        let key = format!("{} {} {} {} {}", name(0), name(1), name(2), name(4), number(5)?);
        let reference = Reference {
            fpr: number(7)?,
            query_count: number(9)?,
            build_ns: number(12)?,
            model_ms: number(13)?,
            query_ns: number(14)?,
        };
        Some((key, reference))
    };
    text.lines().filter_map(row).collect()
}

fn seconds(mut pass: impl FnMut()) -> f64 {
    let start = Instant::now();
    pass();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The calibration unit, if times are measured.
#[derive(Debug, Default)]
struct Unit(Option<Calibration>);

impl Unit {
    fn new(key_count: usize) -> Self {
        Self(Some(Calibration::new(key_count)))
    }

    /// The second of two passes: earlier work has evicted the integers from the caches.
    fn ns(&self) -> f64 {
        self.0.as_ref().map_or(f64::NAN, |calibration| {
            calibration.search();
            seconds(|| calibration.search()) * 1e9 / f64::from(calibration.wanted_count())
        })
    }

    /// Nanoseconds and units of a task, five times, with the unit before each.
    fn measure(&self, mut nanoseconds: impl FnMut() -> f64) -> (f64, f64) {
        let mut times = Vec::new();
        let mut quotients = Vec::new();
        for _ in 0..5 {
            let unit = self.ns();
            let time = nanoseconds();
            times.push(time);
            quotients.push(time / unit);
        }
        (median(times), median(quotients))
    }
}

/// Queries in the form in which they are passed to the filter: their kind is determined before the time is taken.
enum Timed<'a> {
    Points(Vec<[u8; 8]>),
    Ranges(&'a [Bounds]),
    Mixed(&'a [Bounds]),
}

impl<'a> Timed<'a> {
    fn new(queries: &'a [Bounds]) -> Self {
        if queries.iter().all(|(left, right)| left == right) {
            return Self::Points(queries.iter().map(|(left, _)| *left).collect());
        }
        if queries.iter().all(|(left, right)| left != right) {
            Self::Ranges(queries)
        } else {
            Self::Mixed(queries)
        }
    }
}

/// One pass through the first of the timed queries; a separate function, to count its instructions.
#[inline(never)]
fn query_pass(
    filter: &AnyFilter<AlignedBytes>,
    digester: &Digester,
    queries: &Timed<'_>,
    count: usize,
) -> usize {
    let has = |(left, right): &Bounds| {
        filter.may_contain_range(&RangeProbe::new(KeyRange::closed(left, right), digester))
    };
    match queries {
        Timed::Points(keys) => {
            keys.iter().take(count).filter(|key| filter.may_contain(&Probe::new(*key, digester))).count()
        }
        Timed::Ranges(ranges) => ranges.iter().take(count).filter(|range| has(range)).count(),
        Timed::Mixed(queries) => {
            let of = |query: &Bounds| {
                if query.0 == query.1 {
                    filter.may_contain(&Probe::new(&query.0, digester))
                } else {
                    has(query)
                }
            };
            queries.iter().take(count).filter(|query| of(query)).count()
        }
    }
}

fn ask(filter: &AnyFilter<AlignedBytes>, digester: &Digester, (left, right): &Bounds) -> (bool, u32) {
    if left == right {
        let probe = Probe::new(left, digester);
        return (filter.may_contain(&probe), probe.probe_count());
    }
    let probe = RangeProbe::new(KeyRange::closed(left, right), digester);
    (filter.may_contain_range(&probe), probe.probe_count())
}

/// The answers of a filter: at most four seconds of queries.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    positives: u64,
    probes: u64,
    asked: u64,
    most: u32,
}

fn count(
    filter: &AnyFilter<AlignedBytes>,
    digester: &Digester,
    queries: &[Bounds],
    mut counted: Counted,
) -> Counted {
    let start = Instant::now();
    for query in queries {
        let (answer, probe_count) = ask(filter, digester, query);
        counted.positives += u64::from(answer);
        counted.probes += u64::from(probe_count);
        counted.most = counted.most.max(probe_count);
        counted.asked += 1;
        if counted.asked.is_multiple_of(1024) && start.elapsed().as_secs_f64() > 4.0 {
            break;
        }
    }
    counted
}

struct Run<'a> {
    mode: &'a str,
    keys: &'a Arc<tamis_filter::KeySet>,
    name: String,
    unit: &'a Unit,
    reference: &'a HashMap<String, Reference>,
    present: &'a [Bounds],
}

impl Run<'_> {
    fn measure(&self, family: Family, set: &str, budget: f64, queries: &Queries<'_>, samples: &[Bounds]) {
        let key = format!("{} {} {set} {} {budget}", family.name(), self.name, self.keys.len());
        let reference = self.reference.get(&key).copied();
        let sample = ranges(samples);
        let samples = Samples { queries: &sample };
        let bits = Budget::bits_per_key(budget).expect("possible");
        let mut builder = ProteusBuilder::new(family, PRICES, 42);
        builder.add_all(self.keys).expect("sorted");
        let mut model_ns = || seconds(|| drop(black_box(builder.choose(bits, samples)))) * 1e9;
        let (model, model_units) = self.timed(&mut model_ns);
        if self.mode == "model" {
            let (design, _) = builder.choose(bits, samples).expect("fits");
            let other = reference.map_or(f64::NAN, |reference| reference.model_ms);
            println!(
                "{key}: model {:.1} / {other:.1} ms = {:.2}; {design}",
                model / 1e6,
                model_units / (other * 1e6 / self.reference_unit())
            );
            return;
        }
        let mut bytes = Vec::new();
        // Everything except the model, which has chosen before.
        builder.design(bits, samples).expect("fits");
        let mut encode = || {
            seconds(|| bytes = builder.finish(bits, samples).expect("fits")) * 1e9 / self.keys.len() as f64
        };
        let (_, encode_units) = self.timed(&mut encode);
        let mut build = || {
            let copy = seconds(|| {
                let mut builder = ProteusBuilder::new(family, PRICES, 42);
                builder.add_all(self.keys).expect("sorted");
                black_box(&builder);
            });
            copy * 1e9 / self.keys.len() as f64 + encode()
        };
        let (build_ns, build_units) = self.timed(&mut build);
        let size = bytes.len() as f64 * 8.0 / self.keys.len() as f64;
        let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("whole");
        let digester = Digester::new(42);
        let missed = self.present.iter().filter(|query| !ask(&filter, &digester, query).0).count();
        let start = Instant::now();
        let Counted { positives, probes, asked, most } = self.count(&filter, &digester, queries, reference);
        let fpr = positives as f64 / asked as f64;
        let timed = queries.first.get(..(asked as usize).min(300_000)).unwrap_or(&queries.first);
        let timed = (self.mode == "times").then(|| {
            let count = (0.3e9 / (start.elapsed().as_nanos() as f64 / asked as f64)) as usize;
            self.times(&filter, &digester, timed.get(..count.min(timed.len())).unwrap_or(timed))
        });
        let (query_ns, query_units) = timed.unwrap_or((f64::NAN, f64::NAN));
        let mut text = String::new();
        filter.design(&mut text).expect("a string takes all");
        let verdict = reference.map_or("-", |reference| reference.verdict(fpr, asked));
        let other = |value: fn(&Reference) -> f64| reference.as_ref().map_or(f64::NAN, value);
        println!(
            "{key}: {verdict} fpr {fpr:.8} / {:.8} ({positives} of {asked}) predicted {:.8}, {:.2} probes (most {most}), {size:.4} bits, {missed} missed; query {query_ns:.1} / {:.1} ns = {:.2} ({:.3} units); model {:.1} / {:.1} ms; build {build_ns:.1} / {:.1} = {:.2}, keys as words {:.2}; {text}",
            other(|reference| reference.fpr),
            filter.predicted_fpr().unwrap_or(f64::NAN),
            probes as f64 / asked as f64,
            other(|reference| reference.query_ns),
            // The reference's unit is 160 ns at 1 million keys, 540 ns at 10 million.
            query_units / (other(|reference| reference.query_ns) / self.reference_unit()),
            query_units,
            model / 1e6,
            other(|reference| reference.model_ms),
            other(|reference| reference.build_ns),
            build_units / (other(|reference| reference.build_ns) / self.reference_unit()),
            encode_units / (other(|reference| reference.build_ns) / self.reference_unit()),
        );
    }

    /// Nanoseconds and units of a query.
    fn times(&self, filter: &AnyFilter<AlignedBytes>, digester: &Digester, queries: &[Bounds]) -> (f64, f64) {
        let timed = Timed::new(queries);
        let pass = |count| query_pass(filter, digester, &timed, count);
        self.unit.measure(|| {
            // The unit has evicted the filter from the caches.
            black_box(pass(WARM_COUNT.min(queries.len())));
            seconds(|| _ = black_box(pass(queries.len()))) * 1e9 / queries.len() as f64
        })
    }

    /// The sum of ten query seeds if one has too few false positives.
    fn count(
        &self,
        filter: &AnyFilter<AlignedBytes>,
        digester: &Digester,
        queries: &Queries<'_>,
        reference: Option<Reference>,
    ) -> Counted {
        let counted = count(filter, digester, &queries.first, Counted::default());
        let published = reference.map_or(FEW, |reference| reference.fpr * reference.query_count);
        if self.mode == "rates" && published.min(counted.positives as f64) < FEW {
            return count(filter, digester, queries.more(), counted);
        }
        counted
    }

    /// Five times with the unit, or once without times.
    fn timed(&self, nanoseconds: &mut impl FnMut() -> f64) -> (f64, f64) {
        if self.mode == "rates" { (nanoseconds(), f64::NAN) } else { self.unit.measure(nanoseconds) }
    }

    fn reference_unit(&self) -> f64 {
        if self.keys.len() > 5_000_000 { 540.0 } else { 160.0 }
    }
}

/// Selected measurements: an empty name selects everything.
struct Only {
    key_set: String,
    query_set: String,
    family: String,
    budgets: Vec<f64>,
}

impl Only {
    fn takes(wanted: &str, name: &str) -> bool {
        wanted.is_empty() || wanted == name
    }
}

struct Measurement<'a> {
    mode: &'a str,
    key_count: usize,
    reference: &'a HashMap<String, Reference>,
    unit: &'a Unit,
    only: &'a Only,
}

impl Measurement<'_> {
    fn measure(&self, set: KeySet, seed: u64) {
        let integers = set.generate(self.key_count, seed);
        let mut keys = tamis_filter::KeySet::new();
        integers.iter().for_each(|key| keys.push(&key.to_be_bytes()).expect("sorted"));
        let keys = Arc::new(keys);
        let present = bounds(non_empty_ranges(&integers, 100_000, seed + 3));
        let run = Run {
            mode: self.mode,
            keys: &keys,
            name: set.name().to_owned(),
            unit: self.unit,
            reference: self.reference,
            present: &present,
        };
        for query_set in QuerySet::published(set) {
            let name = query_set.to_string();
            if !Only::takes(&self.only.query_set, &name) {
                continue;
            }
            let query_count = match self.mode {
                "rates" => 1_000_000,
                "times" => 300_000,
                _ => 0,
            };
            let draw = |more| query_set.generate(set, &integers, query_count, seed + 1 + more).map(bounds);
            let Ok(first) = draw(0) else { continue };
            let Ok(samples) = query_set.generate(set, &integers, SAMPLE_COUNT, seed + 2) else { continue };
            let draw = |more| draw(more).expect("drawn before");
            let (queries, samples) = (Queries { first, more: OnceCell::new(), draw: &draw }, bounds(samples));
            for budget in &self.only.budgets {
                for family in [Family::Proteus, Family::OnePrefixBloom] {
                    if Only::takes(&self.only.family, family.name()) {
                        run.measure(family, &name, *budget, &queries, &samples);
                    }
                }
            }
        }
    }
}

/// Models strings of 180 bytes: eight of an integer, the others random. Every other of 20,000 queries begins up to
/// 2^29 values after a key; the queries span up to 2^30 values.
fn model_strings(key_count: usize, seed: u64) {
    const LENGTH: usize = 180;
    let integers = KeySet::Uniform.generate(key_count, seed);
    let mut random = SplitMix64::new(seed + 1);
    let mut string = |head: u64| {
        let mut bytes = [0; LENGTH];
        bytes.chunks_mut(8).for_each(|chunk| {
            let word = random.next_u64().to_be_bytes();
            chunk.iter_mut().zip(word).for_each(|(target, source)| *target = source);
        });
        bytes.iter_mut().zip(head.to_be_bytes()).for_each(|(target, source)| *target = source);
        bytes
    };
    let mut keys = tamis_filter::KeySet::new();
    integers.iter().for_each(|head| keys.push(&string(*head)).expect("sorted"));
    let mut draw = SplitMix64::new(seed + 2);
    let mut behind = |start: &[u8; LENGTH], most: u64| {
        let mut bytes = *start;
        let (_, end) = bytes.split_last_chunk_mut::<8>().expect("longer");
        *end = u64::from_be_bytes(*end).saturating_add(1 + draw.next_u64() % most).to_be_bytes();
        bytes
    };
    let bounds: Vec<([u8; LENGTH], [u8; LENGTH])> = (0..SAMPLE_COUNT)
        .map(|number| {
            let index = number * (key_count / SAMPLE_COUNT).max(1) % key_count;
            let near = keys.get(index).and_then(|key| key.first_chunk().copied());
            let lower = match near {
                Some(key) if number % 2 == 0 => behind(&key, 1 << 29),
                _ => string(SplitMix64::new(number as u64).next_u64()),
            };
            let upper = behind(&lower, 1 << 30);
            (lower, upper)
        })
        .collect();
    let ranges: Vec<KeyRange<'_>> =
        bounds.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let bits = Budget::bits_per_key(10.0).expect("possible");
    let keys = Arc::new(keys);
    for family in [Family::OnePrefixBloom, Family::TwoPrefixBloom, Family::Proteus] {
        let mut builder = ProteusBuilder::new(family, PRICES, 42);
        builder.add_all(&keys).expect("sorted");
        let samples = Samples { queries: &ranges };
        let mut design = None;
        let model = || seconds(|| design = Some(builder.choose(bits, samples).expect("fits").0));
        let times: Vec<f64> = std::iter::repeat_with(model).take(3).collect();
        let design = design.map_or(String::new(), |design| design.to_string());
        println!("{} {key_count} strings: model {:.0} ms; {design}", family.name(), median(times) * 1e3);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("rates", String::as_str);
    let key_count = arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000_usize);
    let seeds: Vec<u64> = arguments
        .get(2)
        .map_or(vec![42], |list| list.split('/').filter_map(|seed| seed.parse().ok()).collect());
    if mode == "strings" {
        seeds.iter().for_each(|seed| model_strings(key_count, *seed));
        return;
    }
    let reference = read_reference(arguments.get(3));
    let unit = if mode == "rates" { Unit::default() } else { Unit::new(key_count) };
    println!("unit {:.1} ns", unit.ns());
    let only = Only {
        key_set: arguments.get(4).cloned().unwrap_or_default(),
        query_set: arguments.get(5).cloned().unwrap_or_default(),
        family: arguments.get(7).cloned().unwrap_or_default(),
        budgets: arguments.get(6).map_or(BUDGETS.to_vec(), |list| {
            list.split('/').filter_map(|budget| budget.parse().ok()).collect()
        }),
    };
    let measurement = Measurement { mode, key_count, reference: &reference, unit: &unit, only: &only };
    for seed in seeds {
        for set in [KeySet::Uniform, KeySet::Normal, KeySet::Gaps] {
            if Only::takes(&only.key_set, set.name()) {
                println!("seed {seed}");
                measurement.measure(set, seed);
            }
        }
    }
}
