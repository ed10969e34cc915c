//! Measures the time in which families design filters of long string keys, and its growth with the keys.
//!
//! `cargo run --release --manifest-path research/Cargo.toml --example measure_rosetta_design -- SAMPLE_COUNT KEYS...`
//!
//! `KEYS` is a number of generated paths of 100 bytes on average, or a file with one key per line. Samples are points,
//! closed ranges next to a key, or prefixes.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a measurement reads the clock and may panic"
)]

use std::time::Instant;

use tamis_filter::{AnyFilter, Budget, Filter, FilterSpec, KeyRange, Samples, mix64};

/// Names of directories and files, determined by the number.
fn path(number: u64) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "src",
        "lib",
        "modules",
        "node",
        "include",
        "target",
        "release",
        "documents",
        "kernel",
        "drivers",
        "network",
        "tests",
        "fixtures",
        "assets",
        "images",
        "generated",
    ];
    let mut path = b"/home".to_vec();
    let mut random = mix64(number, 1);
    while path.len() < 60 + (random % 40) as usize {
        // A few directories contain most files: the distribution of names is skewed.
        let choice = (random >> 8) % 16 * ((random >> 16) % 16) / 16;
        path.push(b'/');
        path.extend_from_slice(WORDS[choice as usize].as_bytes());
        if (random >> 24).is_multiple_of(3) {
            path.extend_from_slice(format!("-{}", (random >> 32) % 8).as_bytes());
        }
        random = mix64(random, 2);
    }
    path.extend_from_slice(format!("/file{:012x}.rs", mix64(number, 3) >> 16).as_bytes());
    path
}

fn sorted(paths: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut paths: Vec<Vec<u8>> = paths.collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Bounds of queries next to keys.
fn bounds_near(keys: &[Vec<u8>], count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let near = |number: u64| {
        let mut lower = keys[(mix64(number, 3) % keys.len() as u64) as usize].clone();
        let place = lower.len() - 3 - (mix64(number, 4) % 8) as usize;
        lower[place] = lower[place].wrapping_add(1 + (mix64(number, 5) % 8) as u8);
        let mut upper = lower.clone();
        upper.truncate(place + 2);
        upper[place + 1] = 0xff;
        (lower, upper)
    };
    (0..count as u64).map(near).collect()
}

fn samples_of<'a>(kind: &str, bounds: &'a [(Vec<u8>, Vec<u8>)]) -> Vec<KeyRange<'a>> {
    let sample = |(lower, upper): &'a (Vec<u8>, Vec<u8>)| match kind {
        "points" => KeyRange::point(lower),
        "ranges" => KeyRange::closed(lower, upper),
        _ => KeyRange::prefix(upper),
    };
    bounds.iter().map(sample).collect()
}

fn measure(spec: &str, kind: &str, keys: &[Vec<u8>], samples: Samples<'_>) {
    let parsed: FilterSpec = spec.parse().expect("a family with its parameters");
    let mut builder = parsed.builder(1).expect("parameters");
    let start = Instant::now();
    keys.iter().for_each(|key| builder.add(key).expect("sorted keys"));
    let added = start.elapsed().as_secs_f64();
    let budget = Budget::bits_per_key(14.0).expect("possible bits");
    builder.design(budget, samples).expect("a design");
    let designed = start.elapsed().as_secs_f64() - added;
    let built = builder.finish(budget, samples);
    let all = start.elapsed().as_secs_f64();
    let mut design;
    match built {
        Ok(bytes) => {
            let filter = AnyFilter::open(bytes).expect("it was built");
            design = format!("predicted {:.3}; ", filter.predicted_fpr().unwrap_or(1.0));
            filter.design(&mut design).expect("room for text");
        }
        Err(error) => design = error.to_string(),
    }
    let ns = |seconds: f64| seconds * 1e9 / keys.len() as f64;
    println!(
        "{:8} keys {kind:8} {spec:24} add {:6.0} ns/key, design {:8.1} ms ({:7.0} ns/key), finish {:6.0} ns/key  {design}",
        keys.len(),
        ns(added),
        designed * 1e3,
        ns(designed),
        ns(all - added - designed),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let sample_count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(4000);
    for argument in arguments {
        let keys = match argument.parse::<u64>() {
            Ok(count) => sorted((0..count).map(path)),
            Err(_) => {
                let text = std::fs::read(&argument).expect("a number or a file of keys");
                sorted(text.split(|byte| *byte == b'\n').filter(|line| line.len() > 11).map(<[u8]>::to_vec))
            }
        };
        let bounds = bounds_near(&keys, sample_count);
        for kind in ["points", "ranges", "prefixes"] {
            let queries = samples_of(kind, &bounds);
            for spec in ["rosetta", "proteus", "1pbf", "2pbf"] {
                measure(spec, kind, &keys, Samples { queries: &queries });
            }
        }
        for spec in ["surf-real", "surf-base"] {
            measure(spec, "none", &keys, Samples::NONE);
        }
    }
}
