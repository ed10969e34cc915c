//! Sets the bits of a level: one pass through the sorted keys, each distinct prefix once.
//!
//! Keys are processed in batches: first all digests of a batch, then all its bits. Both loops stay small, and the
//! processor overlaps the memory accesses of many keys.

use tamis_bits::key_head;

use super::layout::{FULL_DEPTH, Level};
use super::level::{BATCH_NODES, sibling_bits};
use crate::bit_string::{BitString, mask_last};
use crate::{Digester, KeySet};

/// Sets the bits of all keys; `payload` is that of the filter.
pub(super) fn insert(level: &Level, keys: &KeySet, digester: &Digester, payload: &mut [u8]) {
    let end = level.offset.saturating_add(level.byte_count as usize);
    let Some(bits) = payload.get_mut(level.offset..end) else { return };
    let mut batch = Batch::new(level, bits);
    match level.depth {
        FULL_DEPTH => keys.iter().for_each(|key| batch.push(digester.digest(key), 0)),
        0..=64 => insert_words(keys, digester, &mut batch),
        _ => insert_long(keys, digester, &mut batch),
    }
    batch.set();
}

/// Prefixes of at most 64 bits.
fn insert_words(keys: &KeySet, digester: &Digester, batch: &mut Batch<'_>) {
    let depth = batch.level.depth;
    let sibling_bits = sibling_bits(depth);
    let mut before = None;
    for head in keys.iter().map(key_head) {
        let node = head >> (64 - depth);
        if before != Some(node) {
            before = Some(node);
            let digest = digester.word_prefix_digest(head, depth - sibling_bits);
            batch.push(digest, node & ((1 << sibling_bits) - 1));
        }
    }
}

/// Prefixes longer than 64 bits, in whole bytes.
fn insert_long(keys: &KeySet, digester: &Digester, batch: &mut Batch<'_>) {
    let depth = batch.level.depth;
    let length = depth as usize / 8;
    let sibling_mask = (1 << sibling_bits(depth)) - 1;
    let (mut prefix, mut before) = (vec![0; length], Vec::new());
    for key in keys.iter() {
        BitString::key(key).write_prefix(depth, &mut prefix);
        if prefix == before {
            continue;
        }
        before.clone_from(&prefix);
        let sibling = u64::from(prefix.last().copied().unwrap_or(0)) & sibling_mask;
        mask_last(&mut prefix, depth - sibling_bits(depth));
        batch.push(digester.whole_byte_prefix_digest(&prefix, depth - sibling_bits(depth)), sibling);
    }
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

    fn push(&mut self, digest: u64, sibling: u64) {
        if self.count == BATCH_NODES {
            self.set();
        }
        if let (Some(slot), Some(other)) =
            (self.digests.get_mut(self.count), self.siblings.get_mut(self.count))
        {
            (*slot, *other) = (digest, sibling);
            self.count += 1;
        }
    }

    fn set(&mut self) {
        let digests = self.digests.get(..self.count).unwrap_or_default();
        let siblings = self.siblings.get(..self.count).unwrap_or_default();
        self.level.insert_all(self.bits, digests, siblings);
        self.count = 0;
    }
}
