//! The trie as an index, compared with an ordered map, an adaptive radix tree and a finite state transducer.
//!
//! All contain the same keys with values of 8 bytes. Searches are for stored keys in random order, lower bounds for absent keys.
//! The size of the map counts only its keys and values, because it does not report its own size.

use std::{collections::BTreeMap, hint::black_box, ops::Bound, sync::Arc};

use blart::{TreeMap, visitor::TreeStatsCollector};
use fst::{IntoStreamer as _, Streamer as _};
use tamis_filter::{
    AlignedBytes,
    trie::{TrieIndex, TrieIndexBuilder},
};
use tamis_workload::{KeySet, PUBLIC_KEY_SEED, SplitMix64, TextSet};

use crate::words;
use tamis_bench::{
    BenchError, Context, Point, Row,
    filter::{Ranges, median_of_passes},
};

/// Number of searches per timed pass, at most four per key.
const SEARCH_COUNT: usize = 300_000;

/// Sorted keys, stored keys in random order, and absent keys.
struct Input {
    keys: Vec<Vec<u8>>,
    stored: Ranges,
    absent: Ranges,
}

/// Draws searched keys from a list. They are in contiguous memory: loading scattered keys would take as long as the search.
fn draw(random: &mut SplitMix64, list: &[&Vec<u8>]) -> Ranges {
    let mut searches = Ranges::default();
    for _ in 0..SEARCH_COUNT.min(4 * list.len()) {
        let key = list.get(random.below(list.len() as u64) as usize);
        key.into_iter().for_each(|key| searches.push(key, &[]));
    }
    searches
}

fn all_keys(kind: &str, count: usize) -> Result<Vec<Vec<u8>>, BenchError> {
    let integers = |set: KeySet| {
        // Every second key is stored; the others are absent.
        let keys = set.generate(count * 2, PUBLIC_KEY_SEED);
        keys.iter().map(|key| key.to_be_bytes().to_vec()).collect()
    };
    Ok(match kind {
        "uniform" => integers(KeySet::Uniform),
        "gaps" => integers(KeySet::Gaps),
        "emails" => TextSet::Emails.generate(count * 2, PUBLIC_KEY_SEED),
        _ => {
            let (stored, others) = words::words()?;
            let mut all = [stored, others].concat();
            all.sort_unstable();
            // Appends a zero byte, which no word contains, because the radix tree requires that no key is a prefix of another.
            all.iter_mut().for_each(|word| word.push(0));
            all
        }
    })
}

fn input(point: &Point, context: &mut Context<'_>) -> Result<Arc<Input>, BenchError> {
    let (kind, count) = (point.text("keys")?, point.integer("count")? as usize);
    let of = |context: &mut Context<'_>| {
        let mut all = all_keys(kind, count)?;
        if kind == "emails" {
            all.iter_mut().for_each(|key| key.push(0));
        }
        let mut random = SplitMix64::new(context.seed());
        let keys: Vec<&Vec<u8>> = all.iter().step_by(2).collect();
        let others: Vec<&Vec<u8>> = all.iter().skip(1).step_by(2).collect();
        let stored = draw(&mut random, &keys);
        let absent = draw(&mut random, &others);
        Ok(Input { stored, absent, keys: keys.into_iter().cloned().collect() })
    };
    context.input(&format!("index {kind} {count}"), of)
}

/// An index under measurement.
trait Index {
    /// Whether a key is present.
    fn has(&self, key: &[u8]) -> bool;
    /// The value of the first key at or after a key.
    fn lower_bound(&self, key: &[u8]) -> Option<u64>;
    /// The sum of all values, in key order.
    fn sum(&self) -> u64;
    /// Size in bytes.
    fn bytes(&self) -> u64;
}

fn value(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Index for TrieIndex<AlignedBytes> {
    fn has(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    fn lower_bound(&self, key: &[u8]) -> Option<u64> {
        let mut cursor = self.cursor();
        cursor.seek(key);
        cursor.value().map(value)
    }

    fn sum(&self) -> u64 {
        let (mut sum, mut cursor) = (0_u64, self.cursor());
        cursor.first();
        while let Some(bytes) = cursor.value() {
            sum = sum.wrapping_add(value(bytes));
            cursor.next();
        }
        sum
    }

    fn bytes(&self) -> u64 {
        self.encoded_bytes()
    }
}

/// The range of all keys from a key.
fn from(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Included(key), Bound::Unbounded)
}

impl Index for fst::Map<Vec<u8>> {
    fn has(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    fn lower_bound(&self, key: &[u8]) -> Option<u64> {
        self.range().ge(key).into_stream().next().map(|(_, value)| value)
    }

    fn sum(&self) -> u64 {
        let (mut sum, mut stream) = (0_u64, self.stream());
        while let Some((_, value)) = stream.next() {
            sum = sum.wrapping_add(value);
        }
        sum
    }

    fn bytes(&self) -> u64 {
        self.as_fst().size() as u64
    }
}

impl Index for TreeMap<Vec<u8>, u64> {
    fn has(&self, key: &[u8]) -> bool {
        self.contains_key(key)
    }

    fn lower_bound(&self, key: &[u8]) -> Option<u64> {
        self.range::<[u8], _>(from(key)).next().map(|(_, value)| *value)
    }

    fn sum(&self) -> u64 {
        self.values().fold(0, |sum, value| sum.wrapping_add(*value))
    }

    fn bytes(&self) -> u64 {
        let keys: usize = self.keys().map(Vec::len).sum();
        TreeStatsCollector::collect(self).map_or(0, |stats| stats.total_memory_usage() as u64) + keys as u64
    }
}

impl Index for BTreeMap<Vec<u8>, u64> {
    fn has(&self, key: &[u8]) -> bool {
        self.contains_key(key)
    }

    fn lower_bound(&self, key: &[u8]) -> Option<u64> {
        self.range::<[u8], _>(from(key)).next().map(|(_, value)| *value)
    }

    fn sum(&self) -> u64 {
        self.values().fold(0, |sum, value| sum.wrapping_add(*value))
    }

    fn bytes(&self) -> u64 {
        let keys: usize = self.keys().map(|key| key.len() + size_of::<Vec<u8>>()).sum();
        (keys + self.len() * 8) as u64
    }
}

fn build(kind: &str, keys: &[Vec<u8>]) -> Result<Box<dyn Index>, BenchError> {
    let numbered = || keys.iter().zip(0_u64..);
    Ok(match kind {
        "trie" => {
            let mut builder = TrieIndexBuilder::new(8);
            numbered().try_for_each(|(key, number)| builder.add(key, &number.to_le_bytes()))?;
            let bytes = builder.finish()?;
            Box::new(TrieIndex::open(AlignedBytes::from(bytes.as_slice())).map_err(BenchError::other)?)
        }
        "fst" => Box::new(fst::Map::from_iter(numbered()).map_err(BenchError::other)?),
        "radix-tree" => {
            let mut tree = TreeMap::new();
            for (key, number) in numbered() {
                tree.try_insert(key.clone(), number)
                    .map_err(|_| BenchError::other("a key is a prefix of another key"))?;
            }
            Box::new(tree)
        }
        _ => Box::new(numbered().map(|(key, number)| (key.clone(), number)).collect::<BTreeMap<_, _>>()),
    })
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    if point.text("keys")? == "words" && !words::are_installed() {
        return Ok(Row::new().with("refused", words::MISSING));
    }
    let input = input(point, context)?;
    let kind = point.text("index")?;
    let count = input.keys.len();
    let index = build(kind, &input.keys)?;
    let (stored, absent) =
        (|| input.stored.iter().map(|(key, _)| key), || input.absent.iter().map(|(key, _)| key));
    if !stored().all(|key| index.has(key)) || absent().any(|key| index.has(key)) {
        return Err(BenchError::other(format!("{kind} does not find all of its keys")));
    }
    let sum = index.sum();
    if sum != (0..count as u64).sum::<u64>() {
        return Err(BenchError::other(format!("{kind} does not iterate over all of its keys")));
    }
    let bounds = absent().filter_map(|key| index.lower_bound(key));
    let digest = bounds.fold(0_u64, |sum, value| sum.wrapping_mul(31).wrapping_add(value));
    let time = |count: usize, pass: &dyn Fn()| median_of_passes(context.clock(), count, pass);
    let build_ns = time(count, &|| {
        black_box(build(kind, &input.keys).is_ok());
    });
    let search_ns = time(input.stored.len(), &|| {
        black_box(stored().filter(|key| index.has(key)).count());
    });
    let lower_bound_ns = time(input.absent.len(), &|| {
        black_box(absent().filter_map(|key| index.lower_bound(key)).count());
    });
    let iterate_ns = time(count, &|| {
        black_box(index.sum());
    });
    Ok(Row::new()
        .with("key_count", count)
        .with("bytes_per_key", index.bytes() as f64 / count.max(1) as f64)
        .with("build_ns", build_ns)
        .with("search_ns", search_ns)
        .with("lower_bound_ns", lower_bound_ns)
        .with("iterate_ns", iterate_ns)
        .with_digest(digest))
}
