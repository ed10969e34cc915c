//! Counts the distinct prefixes of each length and finds the neighbours of each sample query, in one scan of the sorted keys.
//!
//! Two adjacent keys with a common prefix of `c` bits have one prefix of each length up to `c` and two of each longer one. So the number of
//! distinct prefixes of `n` bits is one more than the number of adjacent pairs with a common prefix of fewer than `n` bits. An empty query
//! is between two adjacent keys. The model needs only the common prefixes of its ends with those keys and with each other.

use super::bits::BitString;
use super::keys::Keys;
use crate::trie::{LevelCounts, shared_bytes};
use crate::{KeyRange, KeySet, steps};

/// Keys that are counted before their queries are resolved: four kilobytes of integers.
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
    /// Distinct prefixes of `n` bits, from 0 to the first length at which all keys differ.
    prefixes: Vec<u64>,
    /// Common bits of each key and the previous one; empty for integers, which are compared again instead.
    shared: Vec<u32>,
    pub(super) queries: Vec<Query<'a>>,
    /// Sample queries that contain a key, or are ranges without any string.
    pub(super) left_out: usize,
}

impl<'a> Counts<'a> {
    pub(super) fn of(keys: &Keys, samples: &[KeyRange<'a>]) -> Self {
        match keys {
            Keys::Words(..) => Self::of_words(keys, samples),
            Keys::Strings(set, _) => Self::of_strings(keys, set, samples),
        }
    }

    fn of_words(keys: &Keys, samples: &[KeyRange<'a>]) -> Self {
        let Keys::Words(fixed, words) = keys else { unreachable!("the caller looked") };
        steps::count(words.len() + samples.len() * words.len().max(1).ilog2() as usize);
        let mut sorted: Vec<(u64, u64)> = samples.iter().filter_map(|range| fixed.bounds(range)).collect();
        sorted.sort_unstable();
        let bit_count = fixed.bit_count();
        let mut tally = [[0_u32; 64]; 4];
        let mut shared = [0_u64; 64];
        let mut queries = Vec::with_capacity(sorted.len());
        let mut rest = sorted.as_slice();
        let mut before = None;
        for block in words.chunks(BLOCK_KEYS) {
            tally_shared(before, block, &mut tally);
            let last = block.last().copied().unwrap_or(u64::MAX);
            let count = rest.iter().take_while(|(lower, _)| *lower <= last).count();
            let (here, behind) = rest.split_at_checked(count).unwrap_or_default();
            for (lower, upper) in here {
                let index = block.partition_point(|word| word < lower);
                let left = index.checked_sub(1).and_then(|index| block.get(index).copied()).or(before);
                queries.extend(word_query((*lower, *upper), left, block.get(index).copied(), bit_count));
            }
            (rest, before) = (behind, Some(last));
            if tally.iter().flatten().any(|count| *count > u32::MAX / 2) {
                drain(&mut tally, &mut shared);
            }
        }
        queries.extend(rest.iter().filter_map(|query| word_query(*query, before, None, bit_count)));
        drain(&mut tally, &mut shared);
        let left_out = samples.len() - queries.len();
        let prefixes = sums(&shared, bit_count, words.len());
        Self { prefixes, shared: Vec::new(), queries, left_out }
    }

    fn of_strings(keys: &Keys, set: &KeySet, samples: &[KeyRange<'a>]) -> Self {
        let bit_count = keys.bit_count();
        let mut histogram = Vec::new();
        let mut shared = Vec::with_capacity(set.len().saturating_sub(1));
        let mut before: Option<&[u8]> = None;
        for key in set.iter() {
            if let Some(before) = before {
                let bits = shared_key_bits(before, key, bit_count);
                shared.push(bits);
                add_one(&mut histogram, bits);
            }
            before = Some(key);
        }
        Self::of_histogram((set, bit_count), &histogram, shared, samples)
    }

    /// As [`Counts::of`]; the numbers of prefixes of many strings are estimated from one in sixteen blocks. Not for the levels of a trie.
    pub(super) fn estimated(keys: &Keys, samples: &[KeyRange<'a>]) -> Self {
        let Keys::Strings(set, _) = keys else { return Self::of(keys, samples) };
        if (set.len() / BLOCKS_FOR_ONE) as u64 <= SAMPLED_LEAST {
            return Self::of(keys, samples);
        }
        let bit_count = keys.bit_count();
        let mut histogram: Vec<u64> = Vec::new();
        let mut pair_count = 0;
        for start in (0..set.len()).step_by(BLOCK_KEYS * BLOCKS_FOR_ONE) {
            let mut before = set.get(start).unwrap_or_default();
            for key in (start + 1..start + BLOCK_KEYS).map_while(|index| set.get(index)) {
                let shared = shared_key_bits(before, key, bit_count);
                add_one(&mut histogram, shared);
                pair_count += 1;
                before = key;
            }
        }
        let factor = (set.len() - 1) as f64 / f64::from(pair_count.max(1));
        histogram.iter_mut().for_each(|count| *count = (*count as f64 * factor).round() as u64);
        Self::of_histogram((set, bit_count), &histogram, Vec::new(), samples)
    }

    /// The counts of strings, from the histogram of the common bits of adjacent ones, up to the most common bits.
    fn of_histogram(
        (set, bit_count): (&KeySet, u32),
        histogram: &[u64],
        shared: Vec<u32>,
        samples: &[KeyRange<'a>],
    ) -> Self {
        steps::count(set.len() + histogram.len() + samples.len() * set.len().max(1).ilog2() as usize);
        let queries: Vec<_> =
            samples.iter().filter_map(|range| string_query(set, range, bit_count)).collect();
        let left_out = samples.len() - queries.len();
        Self { prefixes: sums(histogram, bit_count, set.len()), shared, queries, left_out }
    }

    /// A query among the keys; `None` if it contains one.
    pub(super) fn query<'q>(keys: &Keys, range: &KeyRange<'q>) -> Option<Query<'q>> {
        match keys {
            Keys::Words(fixed, words) => {
                let (lower, upper) = fixed.bounds(range)?;
                let index = words.partition_point(|word| *word < lower);
                let left = index.checked_sub(1).and_then(|index| words.get(index).copied());
                word_query((lower, upper), left, words.get(index).copied(), fixed.bit_count())
            }
            Keys::Strings(set, _) => string_query(set, range, keys.bit_count()),
        }
    }

    /// Number of distinct prefixes of `bits` bits.
    pub(super) fn prefix_count(&self, bits: u32) -> u64 {
        self.prefixes.get(bits as usize).or(self.prefixes.last()).copied().unwrap_or(0)
    }

    /// The prefix lengths at which the number of prefixes of keys grows, in order.
    pub(super) fn growing_lengths(&self) -> impl Iterator<Item = u32> {
        steps::count(self.prefixes.len());
        let counts = self.prefixes.iter().zip(self.prefixes.iter().skip(1));
        (1..).zip(counts).filter(|(_, (before, count))| before < count).map(|(length, _)| length)
    }

    /// The levels of the trie of all prefixes of `depth` bits. Costs one scan of the keys.
    pub(super) fn trie_levels(&self, keys: &Keys, depth: u32) -> Vec<LevelCounts> {
        steps::count(keys.len() + depth.div_ceil(8) as usize);
        let mut levels = LevelTally::new(depth);
        match keys {
            Keys::Words(_, words) => {
                let pairs = words.iter().zip(words.iter().skip(1));
                pairs.for_each(|(before, word)| levels.add((before ^ word).leading_zeros()));
            }
            Keys::Strings(..) => self.shared.iter().for_each(|shared| levels.add(*shared)),
        }
        levels.finish()
    }
}

/// Estimates [`Counts::trie_levels`] of `prefix_count` prefixes from one in sixteen blocks; `None` if they contain too few prefixes.
pub(super) fn sampled_trie_levels(words: &[u64], depth: u32, prefix_count: u64) -> Option<Vec<LevelCounts>> {
    let mut levels = LevelTally::new(depth);
    for block in words.chunks(BLOCK_KEYS).step_by(BLOCKS_FOR_ONE) {
        let mut shared =
            block.iter().zip(block.iter().skip(1)).map(|(before, word)| (before ^ word).leading_zeros());
        levels.before = shared.next().unwrap_or(0).min(depth.saturating_sub(1));
        shared.for_each(|shared| levels.add(shared));
    }
    levels.scale_to(prefix_count).then(|| levels.finish())
}

/// Counts the common bits of each integer of a block and the previous one.
#[inline]
fn tally_shared(before: Option<u64>, block: &[u64], tally: &mut [[u32; 64]; 4]) {
    let [first, ..] = tally;
    let add = |counts: &mut [u32; 64], before: u64, word: u64| {
        if let Some(count) = counts.get_mut(((before ^ word).leading_zeros() & 63) as usize) {
            *count += 1;
        }
    };
    if let (Some(before), Some(word)) = (before, block.first()) {
        add(first, before, *word);
    }
    // Four histograms, so that repeated counts do not wait for each other's stores.
    for window in block.windows(5).step_by(4) {
        let [a, b, c, d, e] = *window else { continue };
        let [one, two, three, four] = tally;
        add(one, a, b);
        add(two, b, c);
        add(three, c, d);
        add(four, d, e);
    }
    let counted = block.len().saturating_sub(1) / 4 * 4;
    let rest = block.get(counted..).unwrap_or_default();
    let [first, ..] = tally;
    rest.iter().zip(rest.iter().skip(1)).for_each(|(before, word)| add(first, *before, *word));
}

fn drain(tally: &mut [[u32; 64]; 4], shared: &mut [u64; 64]) {
    for counts in tally {
        for (sum, count) in shared.iter_mut().zip(counts) {
            *sum += u64::from(std::mem::take(count));
        }
    }
}

fn add_one(histogram: &mut Vec<u64>, bits: u32) {
    let index = bits as usize;
    if histogram.len() <= index {
        histogram.resize(index + 1, 0);
    }
    if let Some(count) = histogram.get_mut(index) {
        *count += 1;
    }
}

/// Distinct prefixes of each length, from the histogram of common bits of adjacent keys. All longer prefixes are as many as the last ones.
fn sums(shared: &[u64], bit_count: u32, key_count: usize) -> Vec<u64> {
    let mut sum = u64::from(key_count > 0);
    let mut prefixes = Vec::with_capacity(shared.len() + 1);
    prefixes.push(sum);
    for count in shared.iter().take(bit_count as usize) {
        sum += count;
        prefixes.push(sum);
    }
    prefixes
}

fn word_query(
    (lower, upper): (u64, u64),
    left: Option<u64>,
    right: Option<u64>,
    bit_count: u32,
) -> Option<Query<'static>> {
    if right.is_some_and(|right| right <= upper) {
        return None;
    }
    let shared = |one: u64, other: u64| (one ^ other).leading_zeros().min(bit_count);
    let shared_ends = shared(lower, upper);
    let window = |word: u64| word.checked_shl(shared_ends).unwrap_or(0);
    Some(Query {
        shared_left: left.map_or(0, |left| shared(left, lower)),
        shared_right: right.map_or(0, |right| shared(right, upper)),
        shared_ends,
        window: (window(lower), window(upper)),
        ends: Ends::Words(lower, upper),
        is_point: lower == upper,
    })
}

/// Common bits of two keys, each continued by zeros.
#[inline]
fn shared_key_bits(before: &[u8], key: &[u8], bit_count: u32) -> u32 {
    let bytes = shared_bytes(before, key);
    if let (Some(one), Some(other)) = (before.get(bytes), key.get(bytes)) {
        let bits = (bytes as u64 * 8).min(u64::from(bit_count)) as u32 + (one ^ other).leading_zeros();
        return bits.min(bit_count);
    }
    BitString::key(before).shared_bits(&BitString::key(key), bit_count)
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

/// Counts the labels of a trie by level.
struct LevelTally {
    depth: u32,
    /// Keys whose first own label is on a level, and keys whose leaf is.
    starts: Vec<u64>,
    leaves: Vec<u64>,
    before: u32,
}

impl LevelTally {
    fn new(depth: u32) -> Self {
        let level_count = depth.div_ceil(8) as usize;
        Self { depth, starts: vec![0; level_count], leaves: vec![0; level_count], before: 0 }
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
        let leaf = (self.before.max(after) / 8) as usize;
        if let (Some(start), Some(leaf)) =
            (self.starts.get_mut((self.before / 8) as usize), self.leaves.get_mut(leaf))
        {
            *start += 1;
            *leaf += 1;
        }
    }

    /// Scales the counts to `key_count` keys; returns `false` if too few were counted.
    fn scale_to(&mut self, key_count: u64) -> bool {
        let counted = self.starts.iter().sum::<u64>();
        if counted < SAMPLED_LEAST {
            return false;
        }
        for count in self.starts.iter_mut().chain(&mut self.leaves) {
            *count = (u128::from(*count) * u128::from(key_count) / u128::from(counted)) as u64;
        }
        // The least key begins at the top, even if it was not counted.
        if let Some(top) = self.starts.first_mut() {
            *top = (*top).max(1);
        }
        true
    }

    fn finish(mut self) -> Vec<LevelCounts> {
        self.put(0);
        let mut levels = Vec::new();
        let (mut open, mut nodes) = (0, 1);
        for (starts, leaves) in self.starts.iter().zip(&self.leaves) {
            let labels = open + starts;
            if labels == 0 {
                break;
            }
            // Scaled counts can have more leaves than labels.
            let children = labels.saturating_sub(*leaves);
            levels.push(LevelCounts { nodes, labels, children, prefix_keys: 0 });
            (open, nodes) = (children, children);
        }
        levels
    }
}
