//! Measures false-positive rates next to their formulas, and sizes: prints the tables of `crates/tamis-filter/results/bloom.md`.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_fpr` takes twenty minutes. `measure_fpr KEYS FAMILY` prints
//! the rows of one family only.

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, BuildError, Digester, Filter, FilterSpec, KeyRange, Probe, Samples,
};

/// False positives of a column: one standard deviation is 1 % of the rate.
const FALSE_POSITIVES_WANTED: u64 = 10_000;

/// The same for blocked filters, whose rate is compared more precisely.
const MORE_WANTED: u64 = 20_000;
/// The seeds of keys, queries and digests: those of the public inputs, and others.
const COLUMNS: [&[u64]; 2] = [&[42], &[142, 143, 144, 145]];
const BATCH_KEYS: usize = 64;
const BITS: &[f64] = &[6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0];
/// Each family with its budgets.
const SPECS: [(&str, &[f64]); 4] =
    [("blocked-bloom", BITS), ("prefix-bloom:bytes=7", BITS), ("elastic", BITS), ("rosetta", BITS)];
/// Sampled absent keys for families that design themselves.
const SAMPLE_COUNT: u64 = 1000;

/// A bijection of integers per seed: keys and queries are scattered and disjoint.
fn scatter(number: u64, seed: u64) -> [u8; 8] {
    let mut mixed = number.wrapping_add(seed << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_be_bytes()
}

fn sorted_keys(key_count: u64, seed: u64) -> Vec<[u8; 8]> {
    let mut keys: Vec<[u8; 8]> = (0..key_count).map(|number| scatter(number, seed)).collect();
    keys.sort_unstable();
    keys
}

/// A seed and its keys.
type SeededKeys = (u64, Vec<[u8; 8]>);

/// Absent keys queried, and how many of them passed.
#[derive(Default)]
struct Count {
    queries: u64,
    positives: u64,
}

impl Count {
    fn rate(&self) -> f64 {
        self.positives as f64 / self.queries as f64
    }
}

/// A filter of one seed: its size in bits per key, and its predicted rate.
fn count(
    spec: &FilterSpec,
    (keys, seed): (&[[u8; 8]], u64),
    budget: Budget,
    wanted: u64,
    count: &mut Count,
) -> Result<(f64, f64), BuildError> {
    let mut builder = spec.builder(seed)?;
    keys.iter().try_for_each(|key| builder.add(key))?;
    let sample: Vec<[u8; 8]> = (0..SAMPLE_COUNT).map(|number| scatter((1 << 40) + number, seed)).collect();
    let points: Vec<KeyRange<'_>> = sample.iter().map(|key| KeyRange::point(key)).collect();
    let bytes = builder.finish(budget, Samples { queries: &points })?;
    let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("what was built opens");
    let digester = Digester::new(seed);
    let mut queries = [[0; 8]; BATCH_KEYS];
    let (mut query_count, mut positive_count) = (0, 0);
    while positive_count < wanted {
        for query in &mut queries {
            *query = scatter(keys.len() as u64 + query_count, seed);
            query_count += 1;
        }
        let positives = queries.iter().filter(|query| filter.may_contain(&Probe::new(*query, &digester)));
        positive_count += positives.count() as u64;
    }
    count.queries += query_count;
    count.positives += positive_count;
    let size = bytes.len() as f64 * 8.0 / keys.len() as f64;
    Ok((size, filter.predicted_fpr().unwrap_or(1.0)))
}

fn false_positives_wanted(name: &str) -> u64 {
    let is_close = ["blocked-bloom", "prefix-bloom:bytes=7"].contains(&name);
    if is_close { MORE_WANTED } else { FALSE_POSITIVES_WANTED }
}

fn row(name: &str, key_sets: &[Vec<SeededKeys>], bits_per_key: f64) -> Result<String, BuildError> {
    let spec: FilterSpec = name.parse()?;
    let budget = Budget::bits_per_key(bits_per_key)?;
    let mut row = String::new();
    for column in key_sets {
        let mut counted = Count::default();
        let mut built = (0.0, 1.0);
        for (seed, keys) in column {
            let wanted = false_positives_wanted(name) / column.len() as u64;
            built = count(&spec, (keys, *seed), budget, wanted, &mut counted)?;
        }
        let (size, predicted) = built;
        if row.is_empty() {
            row = format!("| {name} | {bits_per_key} | {size:.3} | {predicted:.3e} |");
        }
        let apart = (counted.rate() / predicted - 1.0) * 100.0;
        row.push_str(&format!(" {:.3e} | {apart:+.1} % |", counted.rate()));
    }
    Ok(row)
}

/// The rows of the families of a name (`None`: of all) for a number of keys.
fn rows(key_count: u64, wanted: Option<&str>) {
    let of_seed = |seed: &u64| (*seed, sorted_keys(key_count, *seed));
    let key_sets = COLUMNS.map(|seeds| seeds.iter().map(of_seed).collect::<Vec<_>>());
    for (name, budgets) in SPECS {
        if wanted.is_some_and(|wanted| wanted != name) {
            continue;
        }
        for bits_per_key in budgets {
            match row(name, &key_sets, *bits_per_key) {
                Ok(row) => println!("{row}"),
                Err(error) => println!("| {name} | {bits_per_key} | {error} | | | | | |"),
            }
        }
    }
}

fn main() {
    if let [key_count, family] = std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        return rows(key_count.parse().expect("a number of keys"), Some(family));
    }
    println!("# Rates of false positives\n");
    println!(
        "Written by `research/examples/measure_fpr.rs`. Absent keys, 8 bytes, scattered. Each rate is counted until at least"
    );
    println!(
        "{FALSE_POSITIVES_WANTED} false positives ({MORE_WANTED} of blocked filters): one standard deviation is"
    );
    println!(
        "1 % (0.7 %). Size: the whole encoded filter. The first rate is that of seed 42, the second that of seeds 142 to 145"
    );
    println!(
        "together. Prefixes: of 56 bits, which no two keys share. Rosetta learnt from {SAMPLE_COUNT} absent points.\n"
    );
    for key_count in [1_000_000, 10_000_000] {
        println!("## {key_count} keys\n");
        println!(
            "| family | budget, bits/key | size, bits/key | formula | seed 42 | apart | seeds 142-145 | apart |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        rows(key_count, None);
        println!();
    }
}
