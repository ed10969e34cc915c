//! Measures rates of false positives beside their formulas, and sizes: writes the tables of `FPR.md` to standard output.
//!
//! `cargo run --release -p tamis-filter --example measure_fpr > crates/tamis-filter/FPR.md` (some minutes)

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, BuildError, Digester, Filter, FilterSpec, Probe, Samples,
};

const SEED: u64 = 42;
/// One standard deviation is a hundredth at so many false positives.
const FALSE_POSITIVES_WANTED: u64 = 10_000;
/// Queries at most; rows that end here tell the false positives they counted.
const QUERY_COUNT_MAX: u64 = 400_000_000;
const SPECS: [&str; 6] = [
    "cache-local",
    "bloom:scheme=independent",
    "bloom:scheme=rotated",
    "bloom:scheme=double",
    "elastic",
    "binary-fuse",
];

/// A bijection of integers: keys and queries are scattered and never meet.
fn scatter(number: u64) -> [u8; 8] {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_be_bytes()
}

fn row(spec: &str, keys: &[[u8; 8]], bits_per_key: f64) -> Result<String, BuildError> {
    let mut builder = spec.parse::<FilterSpec>()?.builder(SEED)?;
    for key in keys {
        builder.add(key)?;
    }
    let bytes = builder.finish(Budget::bits_per_key(bits_per_key)?, Samples::NONE)?;
    let size = bytes.len() as f64 * 8.0 / keys.len() as f64;
    let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).expect("what was built opens");
    let predicted = filter.predicted_fpr().unwrap_or(1.0);
    let digester = Digester::new(SEED);
    let (mut query_count, mut positive_count) = (0, 0);
    while positive_count < FALSE_POSITIVES_WANTED && query_count < QUERY_COUNT_MAX {
        let query = scatter(keys.len() as u64 + query_count);
        positive_count += u64::from(filter.may_contain(&Probe::new(&query, &digester)));
        query_count += 1;
    }
    let measured = positive_count as f64 / query_count as f64;
    Ok(format!(
        "| {spec} | {bits_per_key} | {size:.3} | {measured:.3e} | {predicted:.3e} | {:+.1} % | {positive_count} |",
        (measured / predicted - 1.0) * 100.0
    ))
}

fn main() {
    println!("# Rates of false positives\n");
    println!(
        "Written by `examples/measure_fpr.rs`. Absent keys, 8 bytes, scattered; counted until 10,000 false positives"
    );
    println!(
        "(one standard deviation is 1 %) or {QUERY_COUNT_MAX} queries. Size: the whole encoded filter.\n"
    );
    for key_count in [1_000_000, 10_000_000] {
        let mut keys: Vec<[u8; 8]> = (0..key_count).map(scatter).collect();
        keys.sort_unstable();
        println!("## {key_count} keys\n");
        println!(
            "| family | budget, bits/key | size, bits/key | measured | formula | apart | false positives |"
        );
        println!("|---|---|---|---|---|---|---|");
        for spec in SPECS {
            for bits_per_key in [6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0] {
                match row(spec, &keys, bits_per_key) {
                    Ok(row) => println!("{row}"),
                    Err(error) => println!("| {spec} | {bits_per_key} | {error} | | | | |"),
                }
            }
        }
        println!();
    }
}
