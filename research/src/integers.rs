//! Integers as keys, and empty queries of the Rosetta and Proteus papers: near keys and far from keys.
//!
//! Generated sets with the same distribution replace the two real integer sets of the paper: *facebook* (user ids in a narrow
//! range with uniform gaps) and *books* (popularity values, most of them small).

use std::collections::BTreeSet;

use tamis_filter::KeySet;
use tamis_workload::{KeySet as IntegerSet, SplitMix64};

use tamis_bench::filter::{FilterInput, Ranges};

/// Maximum number of draws per query; then the query set stays incomplete.
const DRAWS_PER_QUERY: usize = 400;

/// The distribution of the lower bounds of queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// Anywhere.
    Uniform,
    /// At most this distance after a key.
    Correlated(u64),
    /// Alternating: near a key with the given length, and anywhere with this maximum length.
    Split(u64),
    /// At a value from the distribution of the keys.
    Real,
}

/// The length of queries: points, up to a maximum, both alternating, or one length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Length {
    Point,
    UpTo(u64),
    Mixed(u64),
    /// So many integers.
    Exact(u64),
}

impl Length {
    fn draw(self, random: &mut SplitMix64, index: usize) -> u64 {
        match self {
            Self::Point => 0,
            Self::Exact(count) => count.saturating_sub(1),
            Self::Mixed(_) if index.is_multiple_of(2) => 0,
            Self::UpTo(max) | Self::Mixed(max) => 2 + random.next_u64() % (max - 1).max(1),
        }
    }
}

/// Returns distinct sorted integers of a named set, and other integers from the same distribution.
fn integers(set: &str, count: usize, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let drawn = match set {
        "normal" => IntegerSet::Normal.generate(count * 2, seed),
        "facebook" => IntegerSet::Gaps.generate(count * 2, seed),
        "books" => skewed(count * 2, seed),
        _ => IntegerSet::Uniform.generate(count * 2, seed),
    };
    // Each integer is a key with probability 1/2.
    let mut random = SplitMix64::new(seed ^ 0x00c0_ffee);
    let (mut keys, mut others) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for integer in drawn {
        if random.next_u64().is_multiple_of(2) { keys.push(integer) } else { others.push(integer) }
    }
    (keys, others)
}

/// Integers whose logarithm is uniform over the upper half of the bits.
fn skewed(count: usize, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let mut integers = BTreeSet::new();
    while integers.len() < count {
        let bits = 20 + random.next_u64() % 44;
        integers.insert((1 << bits) + random.next_u64() % (1 << bits));
    }
    integers.into_iter().collect()
}

/// Draws empty queries; fewer than `count` if the keys leave too few empty ranges.
fn queries(
    (keys, others): &(Vec<u64>, Vec<u64>),
    place: Place,
    length: Length,
    count: usize,
    seed: u64,
) -> Vec<(u64, u64)> {
    let mut random = SplitMix64::new(seed);
    let mut queries = Vec::with_capacity(count);
    for _ in 0..count.saturating_mul(DRAWS_PER_QUERY) {
        if queries.len() == count {
            break;
        }
        let index = queries.len();
        let is_near = match place {
            Place::Correlated(_) => true,
            Place::Split(_) => index.is_multiple_of(2),
            Place::Uniform | Place::Real => false,
        };
        let (lower, length) = if is_near {
            let degree = if let Place::Correlated(degree) = place { degree } else { 1024 };
            let key = keys.get(random.next_u64() as usize % keys.len().max(1)).copied().unwrap_or(0);
            (key.checked_add(1 + random.next_u64() % degree), length)
        } else {
            let length = if let Place::Split(long) = place { Length::UpTo(long) } else { length };
            let any = random.next_u64();
            let lower = if place == Place::Real {
                others.get(any as usize % others.len().max(1)).copied().unwrap_or(any)
            } else {
                any
            };
            (Some(lower), length)
        };
        let Some(lower) = lower else { continue };
        let Some(upper) = lower.checked_add(length.draw(&mut random, index / 2)) else { continue };
        let next = keys.get(keys.partition_point(|key| *key < lower));
        if next.is_none_or(|next| *next > upper) {
            queries.push((lower, upper));
        }
    }
    queries
}

/// Builds keys, queries, and a sample of other queries of the same kind.
pub(crate) fn integer_input(
    set: &str,
    (place, length): (Place, Length),
    (key_count, query_count, sample_count): (usize, usize, usize),
    seed: u64,
) -> FilterInput {
    let drawn = integers(set, key_count, seed);
    let mut keys = KeySet::new();
    for key in &drawn.0 {
        // Sorted, so adding a key cannot fail.
        let _ = keys.push(&key.to_be_bytes());
    }
    FilterInput {
        keys: keys.into(),
        queries: Ranges::from_integers(&queries(&drawn, place, length, query_count, seed + 1)),
        samples: Ranges::from_integers(&queries(&drawn, place, length, sample_count, seed + 2)),
        present: Ranges::default(),
    }
}
