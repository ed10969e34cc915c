//! Figures 3 and 4 of the paper: false positive rate and throughput by size, points and ranges, integers and e-mail addresses.
//!
//! Half of the keys are in the filter; queries start at keys of the whole set, chosen as in YCSB workload C. A range of integers
//! is `K + L` to `K + 2 L`, where L is 2^37 for the 50 million keys of the paper and larger for fewer keys, so that the share of
//! empty ranges stays the same. A range of addresses is a key to the key with its last byte incremented.

use std::sync::Arc;

use tamis_filter::KeySet;
use tamis_workload::{ScrambledZipfian, SplitMix64, TextSet};

use crate::{forms, words::key_set};
use tamis_bench::{
    Axis, BenchError, Context, Definition, Plot, Point, Published, Row, Size,
    filter::{FilterInput, Ranges},
    published,
};

/// Number of stored keys of the paper, and the length of its ranges.
const PAPER_STORED: f64 = 5e7;
const PAPER_LENGTH: f64 = (1_u64 << 37) as f64;

/// Figures in the text of the paper: without suffixes 4 % for integers and 25 % for addresses, at 10 and 14 bits per key.
const PAPER: &[Published] = &[
    published("keys=integers; queries=points; variant=base", "fpr", 0.04),
    published("keys=integers; queries=points; variant=base", "bits_per_key", 10.0),
    published("keys=emails; queries=points; variant=base", "fpr", 0.25),
    published("keys=emails; queries=points; variant=base", "bits_per_key", 14.0),
];

/// Figure 3.
pub(super) const FIGURE_3: Definition = Definition {
    name: "surf-figure-3",
    title: "SuRF: false positive rate by size",
    source: "SuRF, Figure 3",
    about: "Points: Bloom filters need fewer bits than SuRF; each hash suffix bit of SuRF halves the rate. Ranges: only real (key) suffix bits help. Addresses share long prefixes, so the trie alone has a high rate.",
    points,
    measure,
    plots: &[Plot {
        name: "rate",
        title: "False positive rate by bits per key",
        x: "bits_per_key",
        y: "fpr",
        series: "variant",
        panel: "keys,queries",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: PAPER,
};

/// Figure 4.
pub(super) const FIGURE_4: Definition = Definition {
    name: "surf-figure-4",
    title: "SuRF: throughput by size",
    source: "SuRF, Figure 4",
    about: "Suffixes cost almost no time. Ranges are slower than points, and addresses slower than integers, because their paths in the trie are longer.",
    points,
    measure,
    plots: &[Plot {
        name: "throughput",
        title: "Million queries per second by bits per key",
        x: "bits_per_key",
        y: "million_per_s",
        series: "variant",
        panel: "keys,queries",
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let count: u64 = size.pick(20_000, 2_000_000, 20_000_000);
    let widths: &[u64] = size.pick(&[4], &[2, 4, 6, 8], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let mut points = Vec::new();
    for keys in ["integers", "emails"] {
        for queries in ["points", "ranges"] {
            let point = |variant: &str, bits: u64| {
                Point::new()
                    .with("keys", keys)
                    .with("count", count)
                    .with("queries", queries)
                    .with("variant", variant)
                    .with("bits", bits)
            };
            points.push(point("base", 0));
            points.extend(widths.iter().flat_map(|bits| [point("hash", *bits), point("real", *bits)]));
            if queries == "points" {
                let bloom = size.pick(&[12][..], &[10, 12, 14, 16, 18, 20], &[10, 12, 14, 16, 18, 20]);
                points.extend(bloom.iter().map(|bits| point("bloom", *bits)));
            }
        }
    }
    points
}

/// All keys of a kind, sorted.
fn all_keys(kind: &str, count: usize, seed: u64) -> Vec<Vec<u8>> {
    if kind == "integers" {
        let mut random = SplitMix64::new(seed);
        let mut keys: Vec<Vec<u8>> = (0..count).map(|_| random.next_u64().to_be_bytes().to_vec()).collect();
        keys.sort_unstable();
        keys.dedup();
        return keys;
    }
    TextSet::Emails.generate(count, seed)
}

/// The stored keys, and the keys at which queries start.
struct Halves {
    stored: Arc<KeySet>,
    asked: Vec<Vec<u8>>,
}

fn halves(kind: &str, count: usize, context: &mut Context<'_>) -> Result<Arc<Halves>, BenchError> {
    context.input(&format!("halves {kind} {count}"), |context| {
        let keys = all_keys(kind, count, context.seed());
        let mut random = SplitMix64::new(context.seed() + 1);
        let stored = keys.iter().filter(|_| random.below(2) == 0).map(Vec::as_slice);
        let stored = key_set(stored)?.into();
        let zipf = ScrambledZipfian::new(keys.len() as u64);
        let mut asked = Vec::new();
        for _ in 0..count.min(1_000_000) {
            let chosen = zipf.draw(&mut random) % keys.len().max(1) as u64;
            asked.extend(keys.get(chosen as usize).cloned());
        }
        Ok(Halves { stored, asked })
    })
}

/// The query that starts at a key.
fn query(kind: &str, queries: &str, key: &[u8], stored_count: usize) -> (Vec<u8>, Vec<u8>) {
    if queries == "points" {
        return (key.to_vec(), key.to_vec());
    }
    if kind == "emails" {
        let mut upper = key.to_vec();
        upper.iter_mut().next_back().into_iter().for_each(|last| *last = last.saturating_add(1));
        return (key.to_vec(), upper);
    }
    let start = key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let length = (PAPER_LENGTH * PAPER_STORED / stored_count.max(1) as f64) as u64;
    let (lower, upper) = (start.saturating_add(length), start.saturating_add(length.saturating_mul(2)));
    (lower.to_be_bytes().to_vec(), upper.to_be_bytes().to_vec())
}

fn input(point: &Point, context: &mut Context<'_>) -> Result<Arc<FilterInput>, BenchError> {
    let (kind, queries, count) =
        (point.text("keys")?, point.text("queries")?, point.integer("count")? as usize);
    let halves = halves(kind, count, context)?;
    context.input(&format!("input {kind} {queries} {count}"), |_| {
        let mut ranges = Ranges::default();
        for key in &halves.asked {
            let (lower, upper) = query(kind, queries, key, halves.stored.len());
            ranges.push(&lower, &upper);
        }
        Ok(FilterInput { keys: Arc::clone(&halves.stored), queries: ranges, ..FilterInput::default() })
    })
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let input = input(point, context)?;
    let bits = point.integer("bits")?;
    let variant = point.text("variant")?;
    let row = match variant {
        "bloom" => forms::measure(variant, Some(bits as f64), &input, context)?,
        "base" => forms::measure("surf-base", None, &input, context)?,
        _ => forms::measure(&format!("surf-{variant}:bits={bits}"), None, &input, context)?,
    };
    let query_ns = row.fields.get("query_ns").and_then(tamis_bench::Value::as_number);
    Ok(row.with("million_per_s", query_ns.map(|nanoseconds| 1000.0 / nanoseconds)))
}
