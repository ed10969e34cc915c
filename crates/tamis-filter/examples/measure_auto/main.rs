//! Measures the automatic choice next to every fixed family, for the table in `results/auto.md`.
//!
//! `cargo run --release -p tamis-filter --example measure_auto -- KEY_COUNT BITS [WORKLOAD]`

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a program that measures reads the clock"
)]

mod measure;
mod workloads;

use std::time::Instant;

use measure::{Measured, fixed_families, measure, parts, to_text};
use tamis_filter::auto::{Prices, Query, Request, Workload, choose};
use workloads::OwnedQuery;

const SAMPLE_COUNT: usize = 4000;
const QUERY_COUNT: usize = 100_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let key_count = arguments.first().map_or(50_000, |count| count.parse().unwrap());
    let bits_per_key_max = arguments.get(1).map_or(16.0, |bits| bits.parse().unwrap());
    let only = arguments.get(2).cloned().unwrap_or_default();
    let prices = Prices::default();
    println!(
        "| workload | automatic | cost, ns | predicted | rate | bits | ms | without a sample | cost, ns | best fixed | cost, ns | ratio | without a sample |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for workload in workloads::all(key_count).iter().filter(|workload| workload.name.contains(&only)) {
        let (sample, queries) = (workload.queries(SAMPLE_COUNT, 1), workload.queries(QUERY_COUNT, 2));
        let sampled: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
        let request = |queries| Request {
            workload: Workload { queries },
            prices,
            bits_per_key_max,
            current: None,
            is_deepest: true,
            seed: 5,
        };
        let start = Instant::now();
        let choice = choose(&workload.keys, &request(&sampled));
        let time = start.elapsed();
        let cost = |parts: &[_]| measure(workload, parts, &sample, &queries, &prices);
        let chosen = cost(&choice.chosen.parts).unwrap();
        let blind = choose(&workload.keys, &request(&[]));
        let blind_cost = measure(workload, &blind.chosen.parts, &[], &queries, &prices).unwrap();
        let mut fixed: Vec<(String, Measured)> = fixed_families(bits_per_key_max)
            .into_iter()
            .filter_map(|text| Some((text.clone(), cost(&parts(&text)).ok()?)))
            .filter(|(_, measured)| measured.bits_per_key <= bits_per_key_max * 1.01)
            .collect();
        fixed.sort_by(|left, right| left.1.cost_ns.total_cmp(&right.1.cost_ns));
        let (name, best) = &fixed[0];
        println!(
            "| {} | {}{} | {:.1} | {:.1} | {:.2e} | {:.1} | {:.1} | {} | {:.1} | {name} | {:.1} | {:.2} | {:.2} |",
            workload.name,
            to_text(&choice.chosen.parts),
            if choice.was_cut { " (cut)" } else { "" },
            chosen.cost_ns,
            choice.chosen.cost_ns,
            chosen.rate,
            chosen.bits_per_key,
            time.as_secs_f64() * 1e3,
            to_text(&blind.chosen.parts),
            blind_cost.cost_ns,
            best.cost_ns,
            chosen.cost_ns / best.cost_ns,
            blind_cost.cost_ns / best.cost_ns,
        );
        if !only.is_empty() {
            for runner_up in &choice.runners_up {
                println!("  next: {} {:.1}", to_text(&runner_up.parts), runner_up.cost_ns);
            }
            for (name, measured) in fixed.iter().take(12) {
                println!(
                    "  {name}: {:.1} ns, {:.2e}, {:.1} bits",
                    measured.cost_ns, measured.rate, measured.bits_per_key
                );
            }
        }
    }
}
