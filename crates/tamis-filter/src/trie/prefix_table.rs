//! A prefix table of an index: the nodes of one depth by the bytes that lead to them, so that a search need not walk there.
//!
//! ```text
//! line    64 bytes: 8 entries where the depth is at most 4, otherwise 4
//! entry   u32: one more than the node's place, 0 for none | the bytes that lead to the node, 4 or 12: the first one highest
//! ```
//!
//! The hash of these bytes names the line of a node. Where that is full, the node is in none, and is walked to as all others are: an entry
//! holds whole bytes, no part of a hash, so the table never changes an answer. A place is a block and the number of the node among
//! those that begin there.

use tamis_bits::kernel::{self, Steps};
use tamis_bits::line::LINE_BYTES;
use tamis_bits::{key_head, long_key_head, prefetch};

use super::encode::EncodedTrie;
use super::layout::Layout;
use super::levels::{FIRST, HAS_CHILD, Level, Levels};
use super::reader::{Ahead, Entered, Trie};
use super::sparse;

/// The greatest depth, and that up to which entries are short.
pub(super) const DEPTH_MAX: u8 = 12;
const SHORT_MAX: u8 = 4;
/// Tenths of an entry for each line, on average: one in fifteen finds its line full.
const SHORT_LOAD: u64 = 64;
const LONG_LOAD: u64 = 25;
/// A table is worth its bytes where a search for a key saves so many steps.
const LEAST_GAIN: f64 = 2.5;

type Line = [u8; LINE_BYTES];

/// A table at rest; of depth 0 where there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrefixTable<'a> {
    lines: &'a [Line],
    depth: u8,
}

/// Where the first bytes of a key are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought {
    prefix: u128,
    line: usize,
}

/// What the words of a prefix are mixed with: the fractions of the square roots of 2 and 3.
const FRACTIONS: [u64; 2] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];

/// The number of the line of a prefix.
#[inline(always)]
fn line_of(prefix: u128, line_count: usize) -> usize {
    let [low, high] = FRACTIONS;
    let product = u128::from(prefix as u64 ^ low) * u128::from((prefix >> 64) as u64 ^ high);
    kernel::place(product as u64 ^ (product >> 64) as u64, line_count as u64) as usize
}

impl<'a> PrefixTable<'a> {
    /// The lines at the front of some bytes.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], depth: u8) -> Self {
        Self { lines: bytes.as_chunks().0, depth }
    }

    /// Where a key would be found; `None` where that cannot be, as it does not go beyond the depth.
    #[inline(always)]
    pub(super) fn seek(&self, key: &[u8]) -> Option<Sought> {
        if self.depth == 0 || key.len() <= usize::from(self.depth) {
            return None;
        }
        let prefix = if self.depth <= 8 {
            u128::from(key_head(key) >> (64 - 8 * u32::from(self.depth)))
        } else {
            long_key_head(key) >> (128 - 8 * u32::from(self.depth))
        };
        Some(Sought { prefix, line: line_of(prefix, self.lines.len()) })
    }

    /// Brings the line into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, sought: Sought) {
        prefetch(self.lines.as_flattened(), sought.line * LINE_BYTES);
    }

    /// Into the sparse nodes of the trie: where the table says, or through the dense ones.
    #[inline(always)]
    pub(super) fn enter(&self, trie: &Trie<'_, impl Steps>, sought: Option<Sought>, key: &[u8]) -> Entered {
        match sought.and_then(|sought| self.find(sought)) {
            Some(ahead) => Entered::Below(ahead, usize::from(self.depth)),
            None => trie.enter(key),
        }
    }

    /// The node that the first bytes of a key lead to, where the table has it. No jump depends on which entry it is.
    #[inline(always)]
    fn find(&self, sought: Sought) -> Option<Ahead> {
        let line = self.lines.get(sought.line)?;
        let found = if self.depth <= SHORT_MAX {
            line.as_chunks().0.iter().fold(0, |found, entry| {
                let entry = u64::from_le_bytes(*entry);
                found | if entry >> 32 == sought.prefix as u64 { entry as u32 } else { 0 }
            })
        } else {
            line.as_chunks().0.iter().fold(0, |found, entry| {
                let entry = u128::from_le_bytes(*entry);
                found | if entry >> 32 == sought.prefix { entry as u32 } else { 0 }
            })
        };
        found.checked_sub(1).map(sparse::ahead)
    }
}

/// The depth and the lines of the table for an encoded trie that saves most steps of a search, in so many bytes; `None` where none saves enough.
pub(super) fn build(levels: &Levels, trie: &EncodedTrie, bytes_max: u64) -> Option<(u8, Vec<Line>)> {
    let layout = &trie.layout;
    let depth = best_depth(levels, layout, bytes_max)?;
    let blocks = trie.bytes.get(layout.sparse..layout.lines).unwrap_or_default().as_chunks().0;
    let nodes_before =
        levels.levels().iter().take(usize::from(depth)).map(|level| level.node_count).sum::<u64>();
    let first = nodes_before - u64::from(layout.counts.dense_node_count);
    let prefixes = prefixes(levels, depth);
    let mut lines = vec![[0; LINE_BYTES]; line_count(depth, prefixes.len() as u64) as usize];
    for (prefix, place) in prefixes.iter().zip(sparse::node_places(blocks).skip(first as usize)) {
        let line = line_of(*prefix, lines.len());
        let Some(line) = lines.get_mut(line) else { continue };
        let entry = prefix << 32 | u128::from(place + 1);
        if depth <= SHORT_MAX {
            put(line.as_chunks_mut().0, (entry as u64).to_le_bytes());
        } else {
            put(line.as_chunks_mut().0, entry.to_le_bytes());
        }
    }
    Some((depth, lines))
}

/// Into the first free entry, if there is one.
fn put<const N: usize>(entries: &mut [[u8; N]], entry: [u8; N]) {
    if let Some(free) = entries.iter_mut().find(|entry| entry.starts_with(&[0; 4])) {
        *free = entry;
    }
}

const fn line_count(depth: u8, node_count: u64) -> u64 {
    (node_count * 10).div_ceil(if depth <= SHORT_MAX { SHORT_LOAD } else { LONG_LOAD })
}

/// The depth at which a table that is not too large saves most steps.
fn best_depth(levels: &Levels, layout: &Layout, bytes_max: u64) -> Option<u8> {
    let passed_at_once = passed_at_once(levels);
    let key_count = levels.key_count().max(1) as f64;
    let (mut dense_nodes, mut keys_above) = (u64::from(layout.counts.dense_node_count), 0);
    let mut best = (LEAST_GAIN, None);
    for (level, depth) in levels.levels().iter().zip(0..=DEPTH_MAX) {
        let bytes = line_count(depth, level.node_count) * LINE_BYTES as u64;
        let share = 1.0 - keys_above as f64 / key_count;
        let gain = share * (f64::from(depth) - passed_at_once as f64);
        if dense_nodes == 0 && level.node_count > 0 && bytes <= bytes_max && gain > best.0 {
            best = (gain, Some(depth));
        }
        dense_nodes = dense_nodes.saturating_sub(level.node_count);
        keys_above += level.labels.len() as u64 - level.child_count + level.prefix_key_count;
    }
    best.1
}

/// Levels that a search passes at once anyway: one label, then all that there can be.
fn passed_at_once(levels: &Levels) -> usize {
    let levels = levels.levels();
    let stem = levels.iter().take(8).take_while(|level| level.labels.len() == 1).count();
    let is_full = |level: &&Level| level.child_count == level.node_count * 256;
    stem + levels.iter().skip(stem).take(2).take_while(is_full).count()
}

/// The bytes that lead to the nodes of a depth, in their order.
fn prefixes(levels: &Levels, depth: u8) -> Vec<u128> {
    let mut prefixes = vec![0_u128];
    for level in levels.levels().iter().take(usize::from(depth)) {
        let mut parents = prefixes.iter();
        let mut parent = 0;
        let mut children = Vec::with_capacity(level.child_count as usize);
        for label in &level.labels {
            if label & FIRST != 0 {
                parent = parents.next().copied().unwrap_or(0);
            }
            if label & HAS_CHILD != 0 {
                children.push(parent << 8 | u128::from(*label as u8));
            }
        }
        prefixes = children;
    }
    prefixes
}

#[cfg(test)]
mod tests;
