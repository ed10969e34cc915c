//! Measures Proteus and 1PBF on the published integer sets: rates, sizes, times, beside the figures of another program.
//!
//! `cargo run --release -p tamis-filter --example measure_proteus -- [rates|times|model] [KEYS [SEED [REFERENCE.csv [KEY_SET
//! [QUERY_SET [BUDGETS [FAMILY]]]]]]]`
//!
//! `rates` asks a million queries of each set, `times` 300,000 of them (the median of five passes, digest included, the first
//! pass left out), `model` only models. Seeds: keys SEED, queries SEED + 1, samples SEED + 2, ranges with keys SEED + 3. Parameters
//! `probe-cost=0,probe-cap=16384`. Times are also given in the calibration unit: a binary search for the left bounds of `uniform_r32`
//! in the uniform keys. It is taken anew before each pass and each build, and what is given is the median of the quotients: a
//! processor that others share is faster at one time than at another. A rate is met where it lies within three standard deviations of
//! 1.02 times the reference's.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock and a file of figures")]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use tamis_filter::proteus::{Prices, ProteusBuilder};
use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, KeyRange, Probe, RangeProbe,
    Samples,
};
use tamis_workload::{KeySet, QuerySet, SplitMix64, non_empty_ranges};

const BUDGETS: [f64; 8] = [8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0];
const SAMPLE_COUNT: usize = 20_000;
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
    /// What another rate is worth beside this one.
    fn verdict(&self, fpr: f64, asked: u64) -> &'static str {
        let bound = 1.02 * self.fpr;
        let own = fpr / asked as f64;
        let other = 1.02 * 1.02 * self.fpr / self.query_count;
        if fpr - bound <= 3.0 * (own + other).sqrt() { "met" } else { "MISSED" }
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

/// The calibration unit: keys, and what is looked for in them.
#[derive(Debug, Default)]
struct Unit {
    integers: Vec<u64>,
    wanted: Vec<u64>,
}

impl Unit {
    fn new(key_count: usize) -> Self {
        let mut random = SplitMix64::new(1);
        let mut integers: Vec<u64> = (0..key_count).map(|_| random.next_u64()).collect();
        integers.sort_unstable();
        let wanted = (0..100_000).map(|_| random.next_u64()).collect();
        let unit = Self { integers, wanted };
        unit.ns();
        unit
    }

    fn ns(&self) -> f64 {
        let Self { integers, wanted } = self;
        let search = |wanted: &u64| integers.partition_point(|integer| integer < wanted);
        seconds(|| _ = black_box(wanted.iter().map(search).sum::<usize>())) * 1e9
            / (wanted.len() as f64).max(1.0)
    }

    /// Nanoseconds and units of something done five times, the unit before each.
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

/// One pass over the queries that are timed; on its own, so that instructions can be counted for it alone.
#[inline(never)]
fn query_pass(filter: &AnyFilter<AlignedBytes>, digester: &Digester, queries: &[Bounds]) -> usize {
    queries.iter().filter(|query| answer(filter, digester, query)).count()
}

/// What is timed: nobody looks at the counters.
fn answer(filter: &AnyFilter<AlignedBytes>, digester: &Digester, (left, right): &Bounds) -> bool {
    if left == right {
        return filter.may_contain(&Probe::new(left, digester));
    }
    filter.may_contain_range(&RangeProbe::new(KeyRange::closed(left, right), digester))
}

fn ask(filter: &AnyFilter<AlignedBytes>, digester: &Digester, (left, right): &Bounds) -> (bool, u32) {
    if left == right {
        let probe = Probe::new(left, digester);
        return (filter.may_contain(&probe), probe.probe_count());
    }
    let probe = RangeProbe::new(KeyRange::closed(left, right), digester);
    (filter.may_contain_range(&probe), probe.probe_count())
}

/// What a filter answered: at most four seconds of questions.
#[derive(Debug, Default)]
struct Counted {
    positives: u64,
    probes: u64,
    asked: u64,
    most: u32,
}

fn count(filter: &AnyFilter<AlignedBytes>, digester: &Digester, queries: &[Bounds]) -> Counted {
    let start = Instant::now();
    let mut counted = Counted::default();
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
    keys: &'a tamis_filter::KeySet,
    name: String,
    unit: &'a Unit,
    reference: &'a HashMap<String, Reference>,
    present: &'a [Bounds],
}

impl Run<'_> {
    fn measure(&self, family: Family, set: &str, budget: f64, queries: &[Bounds], samples: &[Bounds]) {
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
        // All but the model, which has chosen already.
        builder.design(bits, samples).expect("fits");
        let mut build = || {
            let copy = seconds(|| {
                let mut builder = ProteusBuilder::new(family, PRICES, 42);
                builder.add_all(self.keys).expect("sorted");
                black_box(&builder);
            });
            let encode = seconds(|| bytes = builder.finish(bits, samples).expect("fits"));
            (copy + encode) * 1e9 / self.keys.len() as f64
        };
        let (build_ns, build_units) = self.timed(&mut build);
        let size = bytes.len() as f64 * 8.0 / self.keys.len() as f64;
        let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("whole");
        let digester = Digester::new(42);
        let missed = self.present.iter().filter(|query| !ask(&filter, &digester, query).0).count();
        let start = Instant::now();
        let Counted { positives, probes, asked, most } = count(&filter, &digester, queries);
        let fpr = positives as f64 / asked as f64;
        let timed = queries.get(..(asked as usize).min(300_000)).unwrap_or(queries);
        let (mut query_ns, mut query_units) = (f64::NAN, f64::NAN);
        if self.mode == "times" {
            let count = (0.3e9 / (start.elapsed().as_nanos() as f64 / asked as f64)) as usize;
            let timed = timed.get(..count.min(timed.len())).unwrap_or(timed);
            query_pass(&filter, &digester, timed);
            (query_ns, query_units) = self.unit.measure(|| {
                seconds(|| _ = black_box(query_pass(&filter, &digester, timed))) * 1e9 / timed.len() as f64
            });
        }
        let mut text = String::new();
        filter.design(&mut text).expect("a string takes all");
        let verdict = reference.map_or("-", |reference| reference.verdict(fpr, asked));
        let other = |value: fn(&Reference) -> f64| reference.as_ref().map_or(f64::NAN, value);
        println!(
            "{key}: {verdict} fpr {fpr:.6} / {:.6} predicted {:.6}, {:.2} probes (most {most}), {size:.4} bits, {missed} missed; query {query_ns:.1} / {:.1} ns = {:.2} ({:.3} units); model {:.1} / {:.1} ms; build {build_ns:.1} / {:.1} = {:.2}; {text}",
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
        );
    }

    /// Five times with the unit, or once where nothing is timed.
    fn timed(&self, nanoseconds: &mut impl FnMut() -> f64) -> (f64, f64) {
        if self.mode == "rates" { (nanoseconds(), f64::NAN) } else { self.unit.measure(nanoseconds) }
    }

    fn reference_unit(&self) -> f64 {
        if self.keys.len() > 5_000_000 { 540.0 } else { 160.0 }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("rates", String::as_str);
    let count = arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000_usize);
    let seed = arguments.get(2).and_then(|seed| seed.parse().ok()).unwrap_or(42_u64);
    let reference = read_reference(arguments.get(3));
    let unit = if mode == "rates" { Unit::default() } else { Unit::new(count) };
    println!("unit {:.1} ns", unit.ns());
    let only = arguments.get(4).cloned().unwrap_or_default();
    let only_set = arguments.get(5).cloned().unwrap_or_default();
    let only_family = arguments.get(7).cloned().unwrap_or_default();
    let budgets: Vec<f64> = arguments
        .get(6)
        .map_or(BUDGETS.to_vec(), |list| list.split('/').filter_map(|budget| budget.parse().ok()).collect());
    for set in [KeySet::Uniform, KeySet::Normal, KeySet::Gaps] {
        if !only.is_empty() && only != set.name() {
            continue;
        }
        let integers = set.generate(count, seed);
        let mut keys = tamis_filter::KeySet::new();
        integers.iter().for_each(|key| keys.push(&key.to_be_bytes()).expect("sorted"));
        let present = bounds(non_empty_ranges(&integers, 100_000, seed + 3));
        let run = Run {
            mode,
            keys: &keys,
            name: set.name().to_owned(),
            unit: &unit,
            reference: &reference,
            present: &present,
        };
        for query_set in QuerySet::all() {
            if !only_set.is_empty() && only_set != query_set.to_string() {
                continue;
            }
            let query_count = match mode {
                "rates" => 1_000_000,
                "times" => 300_000,
                _ => 0,
            };
            let Ok(queries) = query_set.generate(set, &integers, query_count, seed + 1) else { continue };
            let Ok(samples) = query_set.generate(set, &integers, SAMPLE_COUNT, seed + 2) else { continue };
            let (queries, samples) = (bounds(queries), bounds(samples));
            for budget in &budgets {
                for family in [Family::Proteus, Family::OnePrefixBloom] {
                    if !only_family.is_empty() && only_family != family.name() {
                        continue;
                    }
                    run.measure(family, &query_set.to_string(), *budget, &queries, &samples);
                }
            }
        }
    }
}
