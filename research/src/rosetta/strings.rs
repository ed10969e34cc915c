//! Figure 10: strings of variable length by bits per key.

use std::collections::BTreeSet;

use tamis_filter::KeySet;
use tamis_workload::SplitMix64;

use crate::forms;
use tamis_bench::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    filter::{FilterInput, Ranges},
};

const FAMILIES: [&str; 2] = ["rosetta", "surf-real"];

/// The size of ranges: this many values of the last byte.
const RANGE_SIZE: u8 = 128;

const SYLLABLES: [&str; 24] = [
    "an", "ber", "con", "da", "en", "fi", "ga", "hi", "in", "ka", "lo", "ma", "nor", "on", "per", "re",
    "sta", "ter", "un", "ver", "wa", "ton", "ing", "tion",
];

/// The experiment.
pub(super) const FIGURE_10: Definition = Definition {
    name: "rosetta-figure-10",
    title: "Rosetta and SuRF: strings by bits per key",
    source: "Rosetta, Figure 10",
    about: "Generated titles of one to three words (instead of Wikipedia titles), empty ranges over 128 values of the byte after an absent title. In the paper both filters have similar rates; SuRF needs at least 20 bits per key, Rosetta works with any size.",
    points,
    measure,
    plots: &[
        Plot {
            name: "rate",
            title: "False positive rate by bits per key",
            x: "bits",
            y: "fpr",
            series: "family",
            y_axis: Axis::Log,
            ..Plot::NEW
        },
        Plot {
            name: "time",
            title: "Nanoseconds per query by bits per key",
            x: "bits",
            y: "query_ns",
            series: "family",
            ..Plot::NEW
        },
    ],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let key_count: u64 = size.pick(3000, 300_000, 6_000_000);
    let bits: &[f64] =
        size.pick(&[10.0, 24.0], &[6.0, 12.0, 18.0, 24.0, 30.0], &[6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0]);
    let point = |bits: f64, family: &'static str| {
        Point::new().with("bits", bits).with("family", family).with("keys", key_count)
    };
    bits.iter().flat_map(|bits| FAMILIES.map(|family| point(*bits, family))).collect()
}

/// A title: words of a few syllables.
fn title(random: &mut SplitMix64) -> Vec<u8> {
    let mut title = String::new();
    for word in 0..=random.below(3) {
        if word > 0 {
            title.push(' ');
        }
        for _ in 0..2 + random.below(3) {
            let syllable = SYLLABLES.get(random.below(SYLLABLES.len() as u64) as usize);
            title.push_str(syllable.copied().unwrap_or_default());
        }
    }
    title.into_bytes()
}

fn ranges(keys: &KeySet, count: usize, random: &mut SplitMix64) -> Ranges {
    let mut ranges = Ranges::default();
    while ranges.len() < count {
        let lower = title(random);
        let mut upper = lower.clone();
        upper.push(RANGE_SIZE);
        let range = tamis_filter::KeyRange::closed(&lower, &upper);
        if !keys.has_key_in(&range) {
            ranges.push(&lower, &upper);
        }
    }
    ranges
}

fn input(key_count: usize, seed: u64) -> Result<FilterInput, BenchError> {
    let mut random = SplitMix64::new(seed);
    let mut titles = BTreeSet::new();
    while titles.len() < key_count {
        titles.insert(title(&mut random));
    }
    let mut keys = KeySet::new();
    for key in &titles {
        keys.push(key)?;
    }
    let count = key_count.min(300_000);
    let queries = ranges(&keys, count, &mut random);
    let samples = ranges(&keys, (count / 10).min(20_000), &mut random);
    Ok(FilterInput { keys: keys.into(), queries, samples, ..FilterInput::default() })
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let key_count = point.integer("keys")? as usize;
    let input = context.input(&format!("titles {key_count}"), |context| input(key_count, context.seed()))?;
    forms::measure(point.text("family")?, Some(point.number("bits")?), &input, context)
}
