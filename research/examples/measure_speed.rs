//! Times of blocked filters, with the calibration unit of the reference figures.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_speed [large]`; `large` adds 150 million keys (2 GB of
//! memory).
//!
//! The unit is a binary search among as many random integers as there are keys; the reference machine takes 160 ns at
//! one million. Queries are absent keys of 8 bytes, each used once.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::indexing_slicing, reason = "a measurement may panic")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, FilterSpec, KeySet, Probe,
    Samples, mix64,
};
use tamis_workload::Calibration;

const SEED: u64 = 42;
const ROUND_COUNT: usize = 5;
const QUERY_COUNT: usize = 1_000_000;

/// The median of several rounds, in nanoseconds per item.
fn median_ns(count: usize, mut round: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUND_COUNT)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUND_COUNT / 2]
}

fn unit_ns(key_count: usize) -> f64 {
    let calibration = Calibration::new(key_count);
    median_ns(calibration.wanted_count() as usize, || calibration.search())
}

fn builder_of(keys: &[u64]) -> Box<dyn FilterBuilder> {
    let mut builder = FilterSpec::new(Family::BlockedBloom).builder(SEED).expect("a known family");
    keys.iter().try_for_each(|key| builder.add(&key.to_be_bytes())).expect("sorted");
    builder
}

fn filter_of(builder: &dyn FilterBuilder, bits_per_key: f64) -> AnyFilter<AlignedBytes> {
    let budget = Budget::bits_per_key(bits_per_key).expect("a possible budget");
    let bytes = builder.finish(budget, Samples::NONE).expect("it fits");
    AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("what was built opens")
}

/// Keys and absent keys: one function of disjoint numbers.
fn sorted_keys(count: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..count).map(|number| mix64(number, 1)).collect();
    keys.sort_unstable();
    keys
}

fn small() {
    let keys = sorted_keys(1_000_000);
    let unit = unit_ns(keys.len());
    println!("1 million keys; the unit is {unit:.0} ns\n");
    println!(
        "| bits/key | build, ns/key | of a kept set | of it digests | of it bits | question with its digest |"
    );
    println!("|---|---|---|---|---|---|");
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(&key.to_be_bytes()).expect("sorted"));
    let set = Arc::new(set);
    let digester = Digester::new(SEED);
    let queries: Vec<[u8; 8]> =
        (0..QUERY_COUNT as u64).map(|number| mix64((1 << 40) + number, 1).to_be_bytes()).collect();
    let digests = median_ns(keys.len(), || {
        for key in &keys {
            black_box(digester.digest(&key.to_be_bytes()));
        }
    });
    for bits_per_key in [10.0, 12.0, 16.0, 20.0] {
        let budget = Budget::bits_per_key(bits_per_key).expect("a possible budget");
        let build =
            median_ns(keys.len(), || drop(black_box(builder_of(&keys).finish(budget, Samples::NONE))));
        let build_of_set = median_ns(keys.len(), || {
            let mut builder = FilterSpec::new(Family::BlockedBloom).builder(SEED).expect("a known family");
            builder.add_all(&set).expect("sorted");
            drop(black_box(builder.finish(budget, Samples::NONE)));
        });
        let builder = builder_of(&keys);
        let insert = median_ns(keys.len(), || drop(black_box(builder.finish(budget, Samples::NONE))));
        let filter = filter_of(&*builder, bits_per_key);
        let single = median_ns(QUERY_COUNT, || {
            let passed = queries.iter().filter(|query| filter.may_contain(&Probe::new(*query, &digester)));
            black_box(passed.count());
        });
        println!(
            "| {bits_per_key} | {build:.1} | {build_of_set:.1} | {digests:.1} | {insert:.1} | {single:.1} |"
        );
    }
}

/// Queries that depend on the answer before.
fn large() {
    let filter = filter_of(&*builder_of(&sorted_keys(150_000_000)), 10.0);
    let digester = Digester::new(SEED);
    let mut state = 0_u64;
    let single = median_ns(QUERY_COUNT, || {
        for number in 0..QUERY_COUNT as u64 {
            let query = mix64((1 << 40) + number + (state << 50), 1).to_be_bytes();
            state = u64::from(filter.may_contain(&Probe::new(&query, &digester)));
        }
    });
    println!("\n150 million keys at 10 bits, each question waits for the answer before: {single:.0} ns");
}

fn main() {
    if std::env::args().any(|argument| argument == "large") {
        large();
    } else {
        small();
    }
}
