//! Prices the designs that Proteus and 1PBF choose beside those that another program chose for the published integer sets.
//!
//! `cargo run --release -p tamis-filter --example measure_proteus_prices -- REFERENCE.csv [KEYS [SEEDS [QUERIES]]]`
//!
//! Default prices. Ours is chosen by 20,000 sampled queries; then both are priced by the model, with all of the budget: as expected from
//! that sample, and by QUERIES others (200,000). `SEEDS` are seeds of keys with `/` between them; queries have the one after, samples the
//! second one after. A row for each whose price is above the other's either way, and a summary for each seed.

use std::collections::HashMap;

use tamis_filter::proteus::{BloomLayout, Design, Model, Prices, SetForm, Stage};
use tamis_filter::{Budget, Family, KeyRange, Samples};
use tamis_workload::{KeySet, QuerySet};

const SAMPLE_COUNT: usize = 20_000;

type Bounds = ([u8; 8], [u8; 8]);

fn bounds(ranges: Vec<(u64, u64)>) -> Vec<Bounds> {
    ranges.into_iter().map(|(left, right)| (left.to_be_bytes(), right.to_be_bytes())).collect()
}

fn ranges(bounds: &[Bounds]) -> Vec<KeyRange<'_>> {
    bounds.iter().map(|(left, right)| KeyRange::closed(left, right)).collect()
}

/// Depth and prefix length of published designs, by family, sets, number of keys and budget.
fn read_designs(path: &str) -> HashMap<String, Vec<(f64, u32, u32)>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut designs: HashMap<String, Vec<(f64, u32, u32)>> = HashMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let value = |name: &str| {
            let part = field(16).split(' ').find_map(|part| part.strip_prefix(name))?;
            part.parse().ok()
        };
        if let (Some(depth), Some(prefix), Ok(budget)) = (value("l1="), value("l2="), field(5).parse()) {
            let name = format!("{} {} {} {}", field(0), field(1), field(2), field(4));
            designs.entry(name).or_default().push((budget, depth, prefix));
        }
    }
    designs
}

/// What a published design costs; `None` where it does not fit here. A Bloom filter of the other program is spread.
fn other_price(price: &impl Fn(&Design) -> Option<f64>, depth: u32, prefix: u32) -> Option<f64> {
    let first = if depth == 0 { Stage::None } else { Stage::Set { depth, form: SetForm::Trie } };
    price(&Design { first, prefix, layout: BloomLayout::Spread })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let designs = read_designs(&arguments.next().unwrap_or_default());
    let key_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let seeds = arguments.next().unwrap_or_else(|| "42".to_owned());
    let query_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    for seed in seeds.split('/').filter_map(|seed| seed.parse::<u64>().ok()) {
        let (mut rows, mut unfit, mut above, mut worst) = (0, 0, [0; 2], [0.0_f64; 2]);
        for key_set in [KeySet::Uniform, KeySet::Normal, KeySet::Gaps] {
            let integers = key_set.generate(key_count, seed);
            let mut keys = tamis_filter::KeySet::new();
            integers.iter().for_each(|key| keys.push(&key.to_be_bytes()).expect("sorted"));
            for query_set in QuerySet::all() {
                let draw = |count, seed| query_set.generate(key_set, &integers, count, seed).map(bounds);
                let (Ok(sample), Ok(queries)) = (draw(SAMPLE_COUNT, seed + 2), draw(query_count, seed + 1))
                else {
                    continue;
                };
                let (sample, queries) = (ranges(&sample), ranges(&queries));
                let sampled = Model::new(&keys, Samples { queries: &sample });
                let asked = Model::new(&keys, Samples { queries: &queries });
                for family in [Family::Proteus, Family::OnePrefixBloom] {
                    let name = format!("{} {} {query_set} {key_count}", family.name(), key_set.name());
                    for (bits, depth, prefix) in designs.get(&name).into_iter().flatten() {
                        let budget = Budget::bits_per_key(*bits).expect("possible");
                        let (own, _) = sampled.choose(family, budget, &Prices::DEFAULT).expect("a budget");
                        let quotient = |model: &Model<'_>| {
                            let price = |design: &Design| {
                                let found = model.predict(family, design, budget, &Prices::DEFAULT);
                                found.expect("a budget").map(|prediction| prediction.cost)
                            };
                            Some(price(&own)? / other_price(&price, *depth, *prefix)?.max(1e-9))
                        };
                        let (Some(expected), Some(found)) = (quotient(&sampled), quotient(&asked)) else {
                            unfit += 1;
                            continue;
                        };
                        rows += 1;
                        for ((above, worst), quotient) in
                            above.iter_mut().zip(&mut worst).zip([expected, found])
                        {
                            *above += u32::from(quotient > 1.0 + 1e-9);
                            *worst = worst.max(quotient);
                        }
                        if expected.max(found) > 1.0 + 1e-9 {
                            println!(
                                "{name} {bits}: expected {expected:.4}, other queries {found:.4}; {own}; other {depth} {prefix}"
                            );
                        }
                    }
                }
            }
        }
        println!(
            "seed {seed}: {rows} designs, expected dearer than the other's {}, at most {:.4} of its price; by other queries {}, {:.4}; {unfit} of the other's do not fit",
            above[0], worst[0], above[1], worst[1]
        );
    }
}
