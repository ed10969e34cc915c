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
    BenchError, Context, Point, Row, Size, Value,
    filter::{FilterInput, Ranges},
};

/// Number of stored keys of the paper, and the length of its ranges.
const PAPER_STORED: f64 = 5e7;
const PAPER_LENGTH: f64 = (1_u64 << 37) as f64;

/// SuRF without suffixes, and with hashed and with real ones of some widths; and its bits.
pub(crate) fn suffixes(_: &str, size: Size) -> Vec<Value> {
    let widths: &[u64] = size.pick(&[4], &[2, 4, 6, 8], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let variant = |variant: &str, bits: u64| Value::List(vec![variant.into(), bits.into()]);
    let wide = widths.iter().flat_map(|bits| [variant("hash", *bits), variant("real", *bits)]);
    [variant("base", 0)].into_iter().chain(wide).collect()
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

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let input = input(point, context)?;
    let bits = point.integer("bits")?;
    let variant = point.text("variant")?;
    let row = match variant {
        "bloom" => forms::measure(variant, Some(bits as f64), &input, context)?,
        "base" => forms::measure("surf-base", None, &input, context)?,
        _ => forms::measure(&format!("surf-{variant}:bits={bits}"), None, &input, context)?,
    };
    let query_ns = row.fields.get("query_ns").and_then(Value::as_number);
    Ok(row.with("million_per_s", query_ns.map(|nanoseconds| 1000.0 / nanoseconds)))
}
