//! Sets the bits of a level: one pass through the sorted keys, each distinct prefix once.
//!
//! Keys are processed in batches: first all digests of a batch, then all its bits. Both loops stay small, and the
//! processor overlaps the memory accesses of many keys.

use tamis_bits::key_head;

use super::keys::Keys;
use super::layout::{FULL_DEPTH, Level};
use super::level::{BATCH_NODES, sibling_bits};
use crate::Digester;

/// Sets the bits of all keys; `payload` is that of the filter.
pub(super) fn insert(level: &Level, keys: &Keys, digester: &Digester, payload: &mut [u8]) {
    let end = level.offset.saturating_add(level.byte_count as usize);
    let Some(bits) = payload.get_mut(level.offset..end) else { return };
    let mut batch = Batch::new(level, bits);
    match keys.words() {
        Some(words) if level.depth == FULL_DEPTH => {
            for words in words.chunks(BATCH_NODES) {
                batch.digests.iter_mut().zip(words).for_each(|(slot, word)| {
                    *slot = digester.digest(&word.to_be_bytes());
                });
                batch.count = words.len();
                batch.set();
            }
        }
        Some(words) => insert_words(words, digester, &mut batch),
        None if level.depth == FULL_DEPTH => {
            keys.for_each(|key| batch.push_or_set(digester.digest(key), 0));
        }
        None if level.depth <= 64 => {
            let mut prefixes = Prefixes::<0>::new(level.depth, digester);
            keys.for_each(|key| {
                if let (true, digest, sibling) = prefixes.next(key_head(key)) {
                    batch.push_or_set(digest, sibling);
                }
            });
        }
        None => insert_long(keys, digester, &mut batch),
    }
    batch.set();
}

/// Prefixes of integers: one loop per number of digested bytes.
fn insert_words(words: &[u64], digester: &Digester, batch: &mut Batch<'_>) {
    let depth = batch.level.depth;
    match (depth - sibling_bits(depth)).div_ceil(8) {
        1 => insert_words_of::<1>(words, digester, batch),
        2 => insert_words_of::<2>(words, digester, batch),
        3 => insert_words_of::<3>(words, digester, batch),
        4 => insert_words_of::<4>(words, digester, batch),
        5 => insert_words_of::<5>(words, digester, batch),
        6 => insert_words_of::<6>(words, digester, batch),
        7 => insert_words_of::<7>(words, digester, batch),
        8 => insert_words_of::<8>(words, digester, batch),
        _ => insert_words_of::<0>(words, digester, batch),
    }
}

fn insert_words_of<const BYTES: usize>(words: &[u64], digester: &Digester, batch: &mut Batch<'_>) {
    let mut prefixes = Prefixes::<BYTES>::new(batch.level.depth, digester);
    for words in words.chunks(BATCH_NODES) {
        // A local counter: the compiler would store and load a field of the batch for each word.
        let mut count = 0;
        for word in words {
            let (is_new, digest, sibling) = prefixes.next(*word);
            if let (Some(slot), Some(other)) = (batch.digests.get_mut(count), batch.siblings.get_mut(count)) {
                (*slot, *other) = (digest, sibling);
            }
            count += usize::from(is_new);
        }
        batch.count = count;
        batch.set();
    }
}

/// Prefixes longer than 64 bits, in whole bytes.
fn insert_long(keys: &Keys, digester: &Digester, batch: &mut Batch<'_>) {
    let depth = batch.level.depth;
    let length = depth as usize / 8;
    let sibling_mask = (1 << sibling_bits(depth)) - 1;
    let (mut prefix, mut before): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    keys.for_each(|key| {
        prefix.clear();
        prefix.extend(key.iter().copied().take(length));
        prefix.resize(length, 0);
        if prefix == before {
            return;
        }
        before.clone_from(&prefix);
        let sibling = u64::from(prefix.last().copied().unwrap_or(0)) & sibling_mask;
        let digest = digester.masked_prefix_digest(&mut prefix, depth - sibling_bits(depth));
        batch.push_or_set(digest, sibling);
    });
}

/// Nodes whose bits are not set yet.
struct Batch<'a> {
    level: &'a Level,
    bits: &'a mut [u8],
    digests: [u64; BATCH_NODES],
    siblings: [u64; BATCH_NODES],
    count: usize,
}

impl<'a> Batch<'a> {
    const fn new(level: &'a Level, bits: &'a mut [u8]) -> Self {
        Self { level, bits, digests: [0; BATCH_NODES], siblings: [0; BATCH_NODES], count: 0 }
    }

    /// Adds a node. The batch must not be full.
    fn push(&mut self, digest: u64, sibling: u64) {
        debug_assert!(self.count < BATCH_NODES, "a full batch is written before the next node");
        if let (Some(slot), Some(other)) =
            (self.digests.get_mut(self.count), self.siblings.get_mut(self.count))
        {
            (*slot, *other) = (digest, sibling);
            self.count += 1;
        }
    }

    fn push_or_set(&mut self, digest: u64, sibling: u64) {
        self.push(digest, sibling);
        if self.count == BATCH_NODES {
            self.set();
        }
    }

    fn set(&mut self) {
        let digests = self.digests.get_mut(..self.count).unwrap_or_default();
        let siblings = self.siblings.get(..self.count).unwrap_or_default();
        self.level.insert_all(self.bits, digests, siblings);
        self.count = 0;
    }
}

/// The distinct prefixes of sorted words. `BYTES` of each are digested; 0 if that is unknown at compile time.
struct Prefixes<'a, const BYTES: usize> {
    depth: u32,
    digester: &'a Digester,
    node: u64,
    is_first: bool,
}

impl<'a, const BYTES: usize> Prefixes<'a, BYTES> {
    const fn new(depth: u32, digester: &'a Digester) -> Self {
        Self { depth, digester, node: 0, is_first: true }
    }

    /// Whether a word has a new prefix, its digest, and its sibling number. Digests every word, also those without a
    /// new prefix: where the distance of keys is about that of nodes, the branch is unpredictable, and a misprediction
    /// costs more than a digest.
    #[inline(always)]
    fn next(&mut self, word: u64) -> (bool, u64, u64) {
        let node = word >> (64 - self.depth);
        let is_new = (node != self.node) | self.is_first;
        (self.node, self.is_first) = (node, false);
        let sibling_bits = sibling_bits(self.depth);
        let bit_count = self.depth - sibling_bits;
        let digest = match BYTES {
            0 => self.digester.word_prefix_digest(word, bit_count),
            _ => self.digester.head_prefix_digest::<BYTES>(word, bit_count),
        };
        (is_new, digest, node & ((1 << sibling_bits) - 1))
    }
}
