//! Sets the bits of a level: one pass over the sorted keys, each distinct prefix once, each group of siblings hashed once.
//!
//! Keys go in batches: all digests of a batch, then all its bits. So the two loops stay small, and the processor reads the
//! places of many keys at a time.

use tamis_bits::key_head;

use super::keys::Keys;
use super::layout::{FULL_DEPTH, Level};
use super::level::sibling_bits;
use crate::Digester;

/// Nodes of a batch.
const BATCH_NODES: usize = 128;

/// Sets the bits of all keys; `payload` is that of the filter.
pub(super) fn insert(level: &Level, keys: &Keys, digester: &Digester, payload: &mut [u8]) {
    let end = level.offset.saturating_add(level.byte_count as usize);
    let Some(bits) = payload.get_mut(level.offset..end) else { return };
    let mut batch = Batch::new(level, bits);
    match keys.words() {
        Some(words) if level.depth == FULL_DEPTH => {
            for words in words.chunks(BATCH_NODES) {
                words.iter().for_each(|word| batch.push(digester.digest(&word.to_be_bytes()), 0));
                batch.set();
            }
        }
        Some(words) => {
            let mut prefixes = Prefixes::new(level.depth, digester);
            for words in words.chunks(BATCH_NODES) {
                words.iter().for_each(|word| prefixes.add(*word, &mut batch));
                batch.set();
            }
        }
        None if level.depth == FULL_DEPTH => {
            keys.for_each(|key| batch.push_or_set(digester.digest(key), 0));
        }
        None if level.depth <= 64 => {
            let mut prefixes = Prefixes::new(level.depth, digester);
            keys.for_each(|key| {
                prefixes.add(key_head(key), &mut batch);
                batch.set_if_full();
            });
        }
        None => insert_long(keys, digester, &mut batch),
    }
    batch.set();
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

    /// Takes a node; one beyond the room of the batch would be lost.
    #[inline(always)]
    fn push(&mut self, digest: u64, sibling: u64) {
        debug_assert!(self.count < BATCH_NODES, "a full batch is set before it goes on");
        if let (Some(slot), Some(other)) =
            (self.digests.get_mut(self.count), self.siblings.get_mut(self.count))
        {
            (*slot, *other) = (digest, sibling);
            self.count += 1;
        }
    }

    fn push_or_set(&mut self, digest: u64, sibling: u64) {
        self.push(digest, sibling);
        self.set_if_full();
    }

    fn set_if_full(&mut self) {
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

/// The distinct prefixes of sorted words.
struct Prefixes<'a> {
    depth: u32,
    digester: &'a Digester,
    node: Option<u64>,
    group: u64,
    digest: u64,
}

impl<'a> Prefixes<'a> {
    const fn new(depth: u32, digester: &'a Digester) -> Self {
        Self { depth, digester, node: None, group: 0, digest: 0 }
    }

    #[inline(always)]
    fn add(&mut self, word: u64, batch: &mut Batch<'_>) {
        let node = word >> (64 - self.depth);
        if self.node == Some(node) {
            return;
        }
        let sibling_bits = sibling_bits(self.depth);
        let group = node >> sibling_bits;
        if self.node.is_none() || group != self.group {
            self.digest = self.digester.word_prefix_digest(word, self.depth - sibling_bits);
        }
        (self.node, self.group) = (Some(node), group);
        batch.push(self.digest, node & ((1 << sibling_bits) - 1));
    }
}
