//! Strings of fixed and variable length: Figure 9 of the paper.

use tamis_filter::{KeyRange, KeySet};
use tamis_workload::{KeySet as IntegerSet, SplitMix64};

use super::words::{self, WORD_COUNT};
use crate::{forms, inputs::add_distance, words::MISSING};
use tamis_bench::filter::{FilterInput, Ranges};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

/// Maximum length of a range and maximum distance from a key, as in the paper.
const LENGTH_MAX: u64 = 1 << 30;
const DISTANCE_MAX: u64 = 1 << 29;
const SAMPLE_COUNT: usize = 20_000;
const FAMILIES: [&str; 2] = ["proteus:probe-cost=0,probe-cap=16384", "surf"];
/// Syllables of the generated domain names.
const SYLLABLES: [&str; 24] = [
    "an", "ber", "ca", "dor", "el", "fi", "gra", "ho", "in", "jo", "ka", "lu", "man", "ne", "or", "pre",
    "que", "ri", "sta", "ter", "un", "ver", "web", "zo",
];

/// Figure 9.
pub(super) const FIGURE_9: Definition = Definition {
    name: "proteus-figure-9",
    title: "Strings: rates by budget",
    source: "Proteus, Figure 9 a to d",
    about: "Strings of 80, 200, 1,440 and 11,520 bits, uniform and normal, with ranges of up to 2^30 values near and far from keys; generated domain names with realistic lengths, with ranges from an absent name; a word list, with ranges from an absent word to the word with its last byte incremented.",
    points,
    measure,
    plots: &[Plot {
        name: "rates",
        title: "False positive rate by bits per key",
        x: "bits",
        y: "fpr",
        series: "family",
        panel: "set,bytes,place",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let step = size.pick(14, 7, 2);
    let mut kinds: Vec<(&str, u64, &str)> = Vec::new();
    for bytes in [10, 25, 180, 1440] {
        for set in ["uniform", "normal"] {
            // One kind of queries is enough for the longest strings.
            let places: &[&str] =
                if bytes == 1440 { &["split"] } else { &["uniform", "correlated", "split"] };
            kinds.extend(places.iter().map(|place| (set, bytes, *place)));
        }
    }
    kinds.extend([("domains", 0, "real"), ("words", 0, "real")]);
    let mut points = Vec::new();
    for (set, bytes, place) in kinds {
        let keys = match (set, bytes) {
            ("words", _) => size.pick(2_000, WORD_COUNT, WORD_COUNT),
            (_, 1440) => size.pick(500_u64, 5_000, 100_000),
            _ => size.pick(2_000, 20_000, 1_000_000),
        };
        for bits in (8..=22_u64).step_by(step) {
            for family in FAMILIES {
                let point =
                    Point::new().with("keys", keys).with("queries", size.pick(500_u64, 20_000, 200_000));
                let point = point.with("set", set).with("bytes", bytes).with("place", place);
                points.push(point.with("bits", bits).with("family", family));
            }
        }
    }
    points
}

fn random_bytes(random: &mut SplitMix64, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let word = random.next_u64().to_be_bytes();
        chunk.iter_mut().zip(word).for_each(|(target, source)| *target = source);
    }
}

/// A domain name of syllables: 5 to 253 bytes, median 21.
fn name(random: &mut SplitMix64) -> Vec<u8> {
    let spread: u64 = (0..4).map(|_| random.next_u64() % 4).sum();
    let mut name = String::new();
    for _ in 0..2 + spread / 3 {
        let syllable = SYLLABLES.get((random.next_u64() % SYLLABLES.len() as u64) as usize).copied();
        name.push_str(syllable.unwrap_or_default());
        if random.next_u64().is_multiple_of(12) {
            name.push('-');
        }
    }
    name.push_str(&(random.next_u64() % 1000).to_string());
    name.push_str(".org");
    name.truncate(253);
    name.into_bytes()
}

/// Draws `count` strings of a set; duplicates are possible.
fn strings(set: &str, length: usize, count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(seed);
    if length == 0 {
        return (0..count).map(|_| name(&mut random)).collect();
    }
    let heads = if set == "normal" { IntegerSet::Normal.generate(count, seed) } else { Vec::new() };
    let string = |index: usize| {
        let mut bytes = vec![0; length];
        random_bytes(&mut random, &mut bytes);
        if let Some(head) = heads.get(index) {
            bytes.iter_mut().zip(head.to_be_bytes()).for_each(|(target, source)| *target = source);
        }
        bytes
    };
    (0..count).map(string).collect()
}

fn queries(keys: &KeySet, point: &Point, count: usize, seed: u64) -> Result<Ranges, BenchError> {
    let (set, length) = (point.text("set")?, point.integer("bytes")? as usize);
    let place = point.text("place")?;
    let mut random = SplitMix64::new(seed);
    let mut ranges = Ranges::default();
    // Domain names are longer than the number that is added to their last bytes.
    let longest = if length == 0 { 32 } else { length };
    let mut others = strings(set, length, count * 2, seed + 100).into_iter();
    while ranges.len() < count {
        let is_near = place == "correlated" || (place == "split" && ranges.len().is_multiple_of(2));
        let lower = if is_near {
            let key = keys.get((random.next_u64() % keys.len().max(1) as u64) as usize).unwrap_or_default();
            add_distance(key, longest, 1 + random.next_u64() % DISTANCE_MAX)
        } else if length == 0 {
            let Some(other) = others.next() else { break };
            Some(other)
        } else {
            let mut bytes = vec![0; length];
            random_bytes(&mut random, &mut bytes);
            Some(bytes)
        };
        let Some(lower) = lower else { continue };
        let Some(upper) =
            add_distance(&lower, longest.max(lower.len()), 2 + random.next_u64() % (LENGTH_MAX - 1))
        else {
            continue;
        };
        if !keys.has_key_in(&KeyRange::closed(&lower, &upper)) {
            ranges.push(&lower, &upper);
        }
    }
    Ok(ranges)
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (key_count, query_count) = (point.integer("keys")? as usize, point.integer("queries")? as usize);
    let (set, length) = (point.text("set")?, point.integer("bytes")? as usize);
    let label = format!("{set} {length} {} {key_count} {query_count}", point.text("place")?);
    let input = context.input(&label, |context| {
        if set == "words" {
            return words::input(key_count as u64, "words_ranges");
        }
        let seed = context.seed();
        let mut drawn = strings(set, length, key_count, seed);
        drawn.sort_unstable();
        let mut keys = KeySet::new();
        drawn.iter().try_for_each(|key| keys.push(key))?;
        context.progress(0.2)?;
        let samples = queries(&keys, point, SAMPLE_COUNT.min(query_count), seed + 2)?;
        let queries = queries(&keys, point, query_count, seed + 1)?;
        Ok(Some(FilterInput { queries, samples, keys: keys.into(), present: Ranges::default() }))
    })?;
    let Some(input) = &*input else { return Ok(Row::new().with("refused", MISSING)) };
    forms::measure(point.text("family")?, Some(point.number("bits")?), input, context)
}
