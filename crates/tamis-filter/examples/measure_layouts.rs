//! Measures what a probe costs in the two layouts of a level of Rosetta: the prices in `rosetta/model.rs`.
//!
//! `cargo run --release -p tamis-filter --example measure_layouts -- KEY_COUNT BITS...`
//!
//! Absent points, asked of a filter with one level of whole keys: standard where probes cost nothing, blocked where they
//! cost a lot. Nanoseconds a query, the digest included: *alone* where the next key hangs on the answer before, as in a lookup that
//! waits for its filter; *together* where queries overlap. Both layouts take turns; the least of 15 rounds counts.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use tamis_filter::{AlignedBytes, AnyFilter, Budget, Digester, Filter, FilterSpec, KeyRange, Probe, Samples};
use tamis_workload::SplitMix64;

const QUERY_COUNT: usize = 200_000;
const ROUND_COUNT: usize = 15;
const LAYOUTS: [&str; 2] = ["rosetta:probe-cost=0", "rosetta:probe-cost=1000"];

fn filter(family: &str, keys: &[u64], samples: &[u64], bits: f64) -> AnyFilter<AlignedBytes> {
    let spec: FilterSpec = family.parse().expect("a family");
    let mut builder = spec.builder(1).expect("parameters");
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted keys"));
    let points: Vec<[u8; 8]> = samples.iter().map(|key| key.to_be_bytes()).collect();
    let queries: Vec<KeyRange<'_>> = points.iter().map(|key| KeyRange::closed(key, key)).collect();
    let budget = Budget::bits_per_key(bits).expect("possible bits");
    let bytes = builder.finish(budget, Samples { queries: &queries }).expect("a filter");
    AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("what was built opens")
}

/// Nanoseconds of each query; with 1 for `chain` the next key follows from the answer before.
fn time(filter: &AnyFilter<AlignedBytes>, queries: &[u64], chain: u64) -> f64 {
    let digester = Digester::new(1);
    let start = Instant::now();
    let mut last = 0;
    for query in queries {
        let key = (query ^ (last & chain)).to_be_bytes();
        last = u64::from(filter.may_contain(&Probe::new(&key, &digester)));
    }
    black_box(last);
    start.elapsed().as_secs_f64() * 1e9 / queries.len() as f64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let key_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let mut random = SplitMix64::new(42);
    let mut keys: Vec<u64> = (0..key_count).map(|_| random.next_u64()).collect();
    keys.sort_unstable();
    let samples: Vec<u64> = (0..1000).map(|_| random.next_u64()).collect();
    let queries: Vec<u64> = (0..QUERY_COUNT).map(|_| random.next_u64()).collect();
    for bits in arguments.filter_map(|text| text.parse::<f64>().ok()) {
        let filters = LAYOUTS.map(|family| filter(family, &keys, &samples, bits));
        let mut least = [[f64::INFINITY; 2]; 2];
        for _ in 0..ROUND_COUNT {
            for (filter, least) in filters.iter().zip(&mut least) {
                for (least, chain) in least.iter_mut().zip([1, 0]) {
                    *least = least.min(time(filter, &queries, chain));
                }
            }
        }
        for (filter, [alone, together]) in filters.iter().zip(least) {
            let mut design = String::new();
            filter.design(&mut design).expect("a string takes everything");
            println!("{key_count} keys: alone {alone:6.1} ns, together {together:6.1} ns  {design}");
        }
    }
}
