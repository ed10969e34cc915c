//! Counts the distinct prefixes of each length and finds the neighbours of each sample query, in one scan of the sorted keys.
//!
//! An empty query is between two adjacent keys. The model needs only the common prefixes of its ends with those keys and with each other.

use super::keys::Keys;
use crate::bit_string::BitString;
use crate::fixed_keys::FixedKeys;
use crate::prefix_counts::{PrefixCounts, SharedBits, shared_key_bits};
use crate::trie::{LevelCounts, LevelTally};
use crate::{KeyRange, KeySet, steps};

/// Keys of a block.
const BLOCK_KEYS: usize = 512;

/// Prefixes of strings, and the levels of a trie, are estimated from one of this many blocks, if it contains at least [`SAMPLED_LEAST`] prefixes.
const BLOCKS_FOR_ONE: usize = 16;
const SAMPLED_LEAST: u64 = 16_384;

/// An empty query of the sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a> {
    /// Common bits of its lower end and the key before it, and of its upper end and the key after it.
    pub(super) shared_left: u32,
    pub(super) shared_right: u32,
    /// Common bits of its ends, at most those of the longest key.
    pub(super) shared_ends: u32,
    /// The bits of both ends after the common ones.
    window: (u64, u64),
    ends: Ends<'a>,
    pub(super) is_point: bool,
}

#[derive(Debug, Clone, Copy)]
enum Ends<'a> {
    Words(u64, u64),
    Strings(BitString<'a>, BitString<'a>),
}

impl Query<'_> {
    /// The longest common prefix of a string of the query and a key.
    #[inline]
    pub(super) const fn near(&self) -> u32 {
        if self.shared_left > self.shared_right { self.shared_left } else { self.shared_right }
    }

    /// Number of prefixes of `bits` bits that cover the query, or `u64::MAX` if it is larger.
    #[inline]
    pub(super) fn prefix_count(&self, bits: u32) -> u64 {
        let behind = bits.saturating_sub(self.shared_ends);
        if behind == 0 {
            return 1;
        }
        if behind > 64 {
            return u64::MAX;
        }
        let (lower, upper) = self.window;
        let shift = 64 - behind;
        (upper >> shift).saturating_sub(lower >> shift).saturating_add(1)
    }

    /// Numbers of prefixes of `bits` bits in the query below its first and below its last prefix of `depth` bits, which differ.
    #[inline]
    pub(super) fn end_counts(&self, depth: u32, bits: u32) -> (u64, u64) {
        let behind = bits - depth;
        if behind > 63 {
            return (u64::MAX, u64::MAX);
        }
        let (lower, upper) = match self.ends {
            Ends::Words(lower, upper) => {
                (lower.checked_shl(depth).unwrap_or(0), upper.checked_shl(depth).unwrap_or(0))
            }
            Ends::Strings(lower, upper) => (lower.word(depth), upper.word(depth)),
        };
        let shift = 64 - behind;
        let first = lower.checked_shr(shift).unwrap_or(0);
        let last = upper.checked_shr(shift).unwrap_or(0);
        ((1 << behind) - first, last + 1)
    }
}

/// The counts of the keys, and the empty queries.
#[derive(Debug)]
pub(super) struct Counts<'a> {
    pub(super) prefixes: PrefixCounts,
    /// Common bits of each string and the previous one; empty for integers, which are compared again instead, and for estimates.
    shared: Vec<u32>,
    pub(super) queries: Vec<Query<'a>>,
}

impl<'a> Counts<'a> {
    pub(super) fn of(keys: &Keys, samples: &[KeyRange<'a>]) -> Self {
        let bit_count = keys.bit_count();
        let (mut pairs, mut shared) = (SharedBits::default(), Vec::new());
        match keys {
            Keys::Words(_, words) => shared_bits(words).for_each(|bits| pairs.add(bits)),
            Keys::Strings(set, _) => {
                shared.reserve_exact(set.len());
                let strings = set.iter().zip(set.iter().skip(1));
                shared.extend(strings.map(|(before, key)| shared_key_bits(before, key, bit_count)));
                shared.iter().for_each(|bits| pairs.add(*bits));
            }
        }
        Self::of_pairs(keys, &pairs, shared, samples)
    }

    /// As [`Counts::of`]; the numbers of prefixes of many strings are estimated from one in sixteen blocks. Not for the levels of a trie.
    pub(super) fn estimated(keys: &Keys, samples: &[KeyRange<'a>]) -> Self {
        let Keys::Strings(set, _) = keys else { return Self::of(keys, samples) };
        if (set.len() / BLOCKS_FOR_ONE) as u64 <= SAMPLED_LEAST {
            return Self::of(keys, samples);
        }
        let mut pairs = SharedBits::default();
        for start in (0..set.len()).step_by(BLOCK_KEYS * BLOCKS_FOR_ONE) {
            let mut before = set.get(start).unwrap_or_default();
            for key in (start + 1..start + BLOCK_KEYS).map_while(|index| set.get(index)) {
                pairs.add(shared_key_bits(before, key, keys.bit_count()));
                before = key;
            }
        }
        pairs.scale_to(set.len() - 1);
        Self::of_pairs(keys, &pairs, Vec::new(), samples)
    }

    fn of_pairs(keys: &Keys, pairs: &SharedBits, shared: Vec<u32>, samples: &[KeyRange<'a>]) -> Self {
        steps::count(keys.len() + samples.len() * keys.len().max(1).ilog2() as usize);
        let queries = samples.iter().filter_map(|range| Self::query(keys, range)).collect();
        let prefixes = PrefixCounts::of_pairs(pairs, keys.bit_count(), keys.len());
        Self { prefixes, shared, queries }
    }

    /// A query among the keys; `None` if it contains one.
    pub(super) fn query<'q>(keys: &Keys, range: &KeyRange<'q>) -> Option<Query<'q>> {
        match keys {
            Keys::Words(fixed, words) => word_query(*fixed, words, range),
            Keys::Strings(set, _) => string_query(set, range, keys.bit_count()),
        }
    }

    /// The levels of the trie of all prefixes of `depth` bits. Costs one scan of the keys.
    pub(super) fn trie_levels(&self, keys: &Keys, depth: u32) -> Vec<LevelCounts> {
        steps::count(keys.len() + depth.div_ceil(8) as usize);
        let mut levels = PrefixLevels::new(depth);
        match keys {
            Keys::Words(_, words) => shared_bits(words).for_each(|shared| levels.add(shared)),
            Keys::Strings(..) => self.shared.iter().for_each(|shared| levels.add(*shared)),
        }
        levels.finish().levels()
    }
}

/// Estimates [`Counts::trie_levels`] of `prefix_count` prefixes from one in sixteen blocks; `None` if they contain too few prefixes.
pub(super) fn sampled_trie_levels(words: &[u64], depth: u32, prefix_count: u64) -> Option<Vec<LevelCounts>> {
    let mut levels = PrefixLevels::new(depth);
    for block in words.chunks(BLOCK_KEYS).step_by(BLOCKS_FOR_ONE) {
        let mut shared = shared_bits(block);
        levels.before = shared.next().unwrap_or(0).min(depth.saturating_sub(1));
        shared.for_each(|shared| levels.add(shared));
    }
    if levels.tally.leaf_count() < SAMPLED_LEAST {
        return None;
    }
    levels.tally.scale_to(prefix_count);
    Some(levels.finish().levels())
}

/// Common bits of adjacent integers.
fn shared_bits(words: &[u64]) -> impl Iterator<Item = u32> {
    words.iter().zip(words.iter().skip(1)).map(|(before, word)| (before ^ word).leading_zeros())
}

fn word_query(fixed: FixedKeys, words: &[u64], range: &KeyRange<'_>) -> Option<Query<'static>> {
    let (lower, upper) = fixed.bounds(range)?;
    let index = words.partition_point(|word| *word < lower);
    let left = index.checked_sub(1).and_then(|index| words.get(index));
    let right = words.get(index);
    if right.is_some_and(|right| *right <= upper) {
        return None;
    }
    let shared = |word: Option<&u64>, end: u64| word.map_or(0, |word| fixed.shared_bits(*word, end));
    let shared_ends = fixed.shared_bits(lower, upper);
    let window = |word: u64| word.checked_shl(shared_ends).unwrap_or(0);
    Some(Query {
        shared_left: shared(left, lower),
        shared_right: shared(right, upper),
        shared_ends,
        window: (window(lower), window(upper)),
        ends: Ends::Words(lower, upper),
        is_point: lower == upper,
    })
}

fn string_query<'a>(set: &KeySet, range: &KeyRange<'a>, bit_count: u32) -> Option<Query<'a>> {
    if range.is_empty() {
        return None;
    }
    let index = set.lower_index(range);
    let right = set.get(index);
    if right.is_some_and(|right| range.contains(right)) {
        return None;
    }
    let left = index.checked_sub(1).and_then(|index| set.get(index));
    let key_bytes = set.common_length().unwrap_or(0);
    let (lower, upper) = (BitString::lower(range, key_bytes), BitString::upper(range));
    if lower.is_incremented() && lower.is_above(&upper) {
        return None;
    }
    let shared = |key: Option<&[u8]>, end: &BitString<'_>| {
        key.map_or(0, |key| BitString::key(key).shared_bits(end, bit_count))
    };
    let is_point = range.as_point().is_some();
    let shared_ends = if is_point { bit_count } else { lower.shared_bits(&upper, bit_count) };
    Some(Query {
        shared_left: shared(left, &lower),
        shared_right: shared(right, &upper),
        shared_ends,
        window: (lower.word(shared_ends), upper.word(shared_ends)),
        ends: Ends::Strings(lower, upper),
        is_point,
    })
}

/// Counts the labels of the trie of all prefixes of `depth` bits by level.
struct PrefixLevels {
    depth: u32,
    before: u32,
    tally: LevelTally,
}

impl PrefixLevels {
    fn new(depth: u32) -> Self {
        Self { depth, before: 0, tally: LevelTally::new(depth.div_ceil(8) as usize) }
    }

    #[inline]
    fn add(&mut self, shared: u32) {
        if shared < self.depth {
            self.put(shared);
            self.before = shared;
        }
    }

    #[inline]
    fn put(&mut self, after: u32) {
        self.tally.begin_key((self.before / 8) as usize);
        self.tally.end_in_leaf((self.before.max(after) / 8) as usize);
    }

    fn finish(mut self) -> LevelTally {
        self.put(0);
        self.tally
    }
}
