//! Counts of the keys of a table from which the sizes of filters follow: one scan, for the filters that need it.
//!
//! A key whose common prefixes with its neighbours have `b` and `a` bytes is a leaf of the trie at byte `max(a, b)`, and its
//! first label that no smaller key has is at byte `b`. A key that is a prefix of the next one has no leaf, and the next key
//! continues its path.

use std::cell::OnceCell;

use tamis_bits::packed;

use crate::envelope::ENVELOPE_BYTES;
use crate::trie::{LevelCounts, LevelTally, TRAILER_BYTES, capped_level_bytes, shared_bytes};
use crate::{KeySet, steps};

/// Deeper levels are not counted: such a trie exceeds all budgets.
const LEVELS_MAX: usize = 1024;

/// Bytes that a SuRF filter may have in addition to its bits per key.
const SURF_SLACK_BYTES: u64 = 128;

/// The counts.
#[derive(Debug)]
pub(super) struct KeyCounts<'a> {
    keys: &'a KeySet,
    pub(super) key_count: u64,
    /// Counted when they are first needed.
    scan: OnceCell<Scan>,
}

/// The counts that need a scan.
#[derive(Debug)]
struct Scan {
    /// Keys by the bytes in common with the previous key.
    shared: Vec<u64>,
    levels: Vec<LevelCounts>,
}

/// A trie of a SuRF filter: its height in bytes, its size without suffixes and the number of leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrieSize {
    pub(super) height: usize,
    bytes: u64,
    leaf_count: u64,
}

impl TrieSize {
    /// Bytes of a filter with suffixes of `width` bits.
    pub(super) fn filter_bytes(&self, width: u32) -> u64 {
        let suffixes = packed::encoded_bytes(width, self.leaf_count).unwrap_or(u64::MAX);
        suffixes.saturating_add(self.bytes + (ENVELOPE_BYTES + TRAILER_BYTES) as u64)
    }

    /// The widest suffix within a number of bytes; `None` if the trie alone exceeds it.
    pub(super) fn widest_suffix(&self, bytes_max: u64) -> Option<u32> {
        (0..=64).rev().find(|width| self.filter_bytes(*width) <= bytes_max)
    }
}

impl Scan {
    /// Costs a comparison of each key with the next one.
    fn new(keys: &KeySet) -> Self {
        steps::count(keys.len());
        let mut shared = vec![0; LEVELS_MAX];
        let mut tally = LevelTally::new(LEVELS_MAX);
        let (mut before, mut continues) = (0, false);
        let mut iterator = keys.iter().peekable();
        while let Some(key) = iterator.next() {
            let after = iterator.peek().map_or(0, |next| shared_bytes(key, next));
            if !continues {
                tally.begin_key(before);
            }
            let has_next = iterator.peek().is_some();
            continues = has_next && after == key.len();
            if continues {
                tally.end_in_node(after);
            } else {
                tally.end_in_leaf(before.max(after));
            }
            if has_next && let Some(count) = shared.get_mut(after) {
                *count += 1;
            }
            before = after;
        }
        Self { shared, levels: tally.levels() }
    }
}

impl<'a> KeyCounts<'a> {
    pub(super) fn new(keys: &'a KeySet) -> Self {
        Self { keys, key_count: keys.len() as u64, scan: OnceCell::new() }
    }

    fn scan(&self) -> &Scan {
        self.scan.get_or_init(|| Scan::new(self.keys))
    }

    /// Number of distinct prefixes of a number of bytes.
    pub(super) fn prefix_count(&self, bytes: usize) -> u64 {
        self.scan().shared.iter().take(bytes).sum::<u64>() + u64::from(self.key_count > 0)
    }

    /// The whole trie.
    pub(super) fn whole_trie(&self, has_suffixes: bool) -> Option<TrieSize> {
        self.trie(self.scan().levels.len(), has_suffixes)
    }

    fn trie(&self, height: usize, has_suffixes: bool) -> Option<TrieSize> {
        let (bytes, leaf_count) =
            capped_level_bytes(&self.scan().levels, height, self.key_count, has_suffixes)?;
        Some(TrieSize { height, bytes, leaf_count })
    }

    /// The highest trie without suffixes within a number of bytes, and the same one with room for suffixes.
    pub(super) fn truncated_trie(&self, bytes_max: u64) -> Option<TrieSize> {
        let height = (1..=self.scan().levels.len())
            .take_while(|height| {
                self.trie(*height, false).is_some_and(|trie| trie.filter_bytes(0) <= bytes_max)
            })
            .last()?;
        let with_suffixes = self.trie(height, true)?;
        if with_suffixes.filter_bytes(1) <= bytes_max {
            Some(with_suffixes)
        } else {
            self.trie(height, false)
        }
    }

    /// The maximum bytes of a SuRF filter with a budget.
    pub(super) fn surf_bytes(&self, bits_per_key: f64) -> u64 {
        (self.key_count as f64 * bits_per_key / 8.0) as u64 + SURF_SLACK_BYTES
    }

    /// Bits per key of a number of bytes.
    pub(super) fn bits_per_key(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / (self.key_count as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests;
