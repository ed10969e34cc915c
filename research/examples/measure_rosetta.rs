//! Measures Rosettas on the published integer sets: measured and predicted rates, probes, times.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_rosetta -- KEY_COUNT KEY_SEED FAMILY QUERIES BITS...`
//!
//! `FAMILY` is a family with its parameters, such as `rosetta:probe-cost=0`; `QUERIES` are parts of the names of keys
//! and queries separated by commas, such as `uniform correlated_r32`, or `all`. Samples and queries have the seeds
//! after the keys' seed, and so do 100,000 ranges with a key, none of which may be rejected. Times are nanoseconds per
//! query (the minimum of three passes through 300,000 queries, digests included) and multiples of the calibration
//! unit, a binary search of random integers among as many random keys.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Filter, FilterSpec, KeyRange, Probe, RangeProbe, Samples,
};
use tamis_workload::{Calibration, KeySet, QuerySet, non_empty_ranges};

const QUERY_COUNT: usize = 1_000_000;
const SAMPLE_COUNT: usize = 20_000;
const PRESENT_COUNT: usize = 100_000;
const TIMED_COUNT: usize = 300_000;

type Bounds = ([u8; 8], [u8; 8]);

fn time(passes: usize, item_count: usize, mut pass: impl FnMut()) -> f64 {
    let mut timed = || {
        let start = Instant::now();
        pass();
        start.elapsed().as_secs_f64() * 1e9 / item_count as f64
    };
    (0..passes).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

fn calibration(key_count: usize) -> f64 {
    let calibration = Calibration::new(key_count);
    time(3, calibration.wanted_count() as usize, || calibration.search())
}

fn bytes(ranges: &[(u64, u64)]) -> Vec<Bounds> {
    ranges.iter().map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes())).collect()
}

fn ask(filter: &AnyFilter<AlignedBytes>, digester: &Digester, (lower, upper): &Bounds) -> (bool, u32) {
    if lower == upper {
        let probe = Probe::new(lower, digester);
        return (filter.may_contain(&probe), probe.probe_count());
    }
    let probe = RangeProbe::new(KeyRange::closed(lower, upper), digester);
    (filter.may_contain_range(&probe), probe.probe_count())
}

/// The queries and their known properties.
struct Input<'a> {
    name: &'a str,
    keys: &'a [u64],
    queries: &'a [Bounds],
    sample: &'a [Bounds],
    present: &'a [Bounds],
}

fn measure(spec: &FilterSpec, input: &Input<'_>, bits: f64, unit: f64) {
    let Input { name, keys, queries, sample, present } = *input;
    let ranges: Vec<KeyRange<'_>> =
        sample.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let samples = Samples { queries: &ranges };
    let budget = Budget::bits_per_key(bits).expect("possible bits");
    let mut times = [f64::INFINITY; 2];
    let mut filter = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let mut builder = spec.builder(1).expect("parameters");
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted keys"));
        let added = start.elapsed().as_secs_f64();
        builder.design(budget, samples).expect("a design");
        let chosen = start.elapsed().as_secs_f64();
        filter = builder.finish(budget, samples).expect("a filter");
        let built = start.elapsed().as_secs_f64() - chosen + added;
        times = [times[0].min(built), times[1].min(chosen - added)];
    }
    let filter = AnyFilter::open(AlignedBytes::from(filter.as_slice())).expect("what was built opens");
    let digester = Digester::new(1);
    let (mut positives, mut probes) = (0_u64, 0_u64);
    for query in queries {
        let (answer, count) = ask(&filter, &digester, query);
        positives += u64::from(answer);
        probes += u64::from(count);
    }
    let lost = present.iter().filter(|range| !ask(&filter, &digester, range).0).count();
    let timed = queries.get(..TIMED_COUNT).unwrap_or(queries);
    let query_ns = time(3, timed.len(), || {
        black_box(timed.iter().filter(|query| ask(&filter, &digester, query).0).count());
    });
    let mut design = String::new();
    filter.design(&mut design).expect("a string takes everything");
    let rate = positives as f64 / queries.len() as f64;
    let predicted = filter.predicted_fpr().unwrap_or(-1.0);
    println!(
        "{name:26} {bits:4} rate {rate:.6} predicted {predicted:.6} ({:+5.1} %) lost {lost} probes {:7.2} \
         query {query_ns:7.1} ns {:6.3} units build {:5.1} ns/key {:.3} units model {:5.1} ms  {design}",
        (predicted / rate - 1.0) * 100.0,
        probes as f64 / queries.len() as f64,
        query_ns / unit,
        times[0] * 1e9 / keys.len() as f64,
        times[0] * 1e9 / keys.len() as f64 / unit,
        times[1] * 1e3,
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let key_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(42);
    let spec = arguments.next().unwrap_or_else(|| "rosetta".to_owned());
    let wanted = arguments.next().unwrap_or_else(|| "all".to_owned());
    let budgets: Vec<f64> = arguments.filter_map(|text| text.parse().ok()).collect();
    let spec: FilterSpec = spec.parse().expect("a family with its parameters");
    let unit = calibration(key_count);
    println!("{key_count} keys, seed {seed}, {spec:?}; unit {unit:.1} ns");
    for key_set in [KeySet::Uniform, KeySet::Normal, KeySet::Gaps] {
        let keys = key_set.generate(key_count, seed);
        let present = bytes(&non_empty_ranges(&keys, PRESENT_COUNT, seed + 3));
        for set in QuerySet::published(key_set) {
            let name = format!("{} {}", key_set.name(), set);
            let is_wanted = wanted == "all" || wanted.split(',').any(|part| name.contains(part));
            let count = QUERY_COUNT.min(key_count);
            let Some(queries) =
                is_wanted.then(|| set.generate(key_set, &keys, count, seed + 1).ok()).flatten()
            else {
                continue;
            };
            let Ok(sample) = set.generate(key_set, &keys, SAMPLE_COUNT, seed + 2) else { continue };
            let (queries, sample) = (bytes(&queries), bytes(&sample));
            let input =
                Input { name: &name, keys: &keys, queries: &queries, sample: &sample, present: &present };
            budgets.iter().for_each(|bits| measure(&spec, &input, *bits, unit));
        }
    }
}
