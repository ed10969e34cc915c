//! Builders of filters: they take keys one at a time, then budget and samples.

use std::cmp::Ordering;
use std::sync::Arc;

use tamis_bits::key_head;

use crate::{BuildError, KeyRange, KeySet};

/// The maximum size of a filter.
///
/// A budget is a guarantee: the encoded filter has at most `bits_per_key * keys / 8` bytes plus 128 for the envelope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget(Option<f64>);

impl Budget {
    /// Maximum number of bits per key.
    pub const BITS_PER_KEY_MAX: f64 = 1024.0;

    /// The size that the family's parameters determine.
    pub const BY_PARAMETERS: Self = Self(None);

    /// A number of bits per key, above 0 and at most [`Budget::BITS_PER_KEY_MAX`].
    pub fn bits_per_key(bits: f64) -> Result<Self, BuildError> {
        if bits > 0.0 && bits <= Self::BITS_PER_KEY_MAX {
            Ok(Self(Some(bits)))
        } else {
            Err(BuildError::Budget { given: bits, max: Self::BITS_PER_KEY_MAX })
        }
    }

    /// The bits per key, if given.
    pub const fn as_bits_per_key(self) -> Option<f64> {
        self.0
    }

    /// The bits per key, or an error that names the family.
    pub(crate) fn require(self, family: &'static str) -> Result<f64, BuildError> {
        self.0.ok_or(BuildError::BudgetMissing { family })
    }
}

/// Queries as they were executed, for families that design themselves. Families ignore those that contain one of their
/// keys.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    /// Ranges and points.
    pub queries: &'a [KeyRange<'a>],
}

impl Samples<'_> {
    /// No samples.
    pub const NONE: Self = Self { queries: &[] };
}

/// Builds the filter of the keys of one table.
///
/// Call order: `add* (design? finish)*`; `finish` may be called again with other budgets. A builder may move to another thread
/// between calls.
pub trait FilterBuilder: Send {
    /// Adds the next key. Keys must be in ascending order; a key equal to the previous one is skipped. The builder may
    /// store all keys: see [`FilterBuilder::memory_bytes`].
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError>;

    /// Adds all keys of a key set that several families share. Families that store keys share it until another
    /// key is added, instead of copying it.
    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        keys.iter().try_for_each(|key| self.add(key))
    }

    /// Number of distinct keys.
    fn key_count(&self) -> u64;

    /// Bytes that the builder holds now. A shared set ([`FilterBuilder::add_all`]) is not counted. Upper bounds for
    /// `n` keys of `b` bytes in total:
    ///
    /// | families | bytes |
    /// |---|---|
    /// | of one pass, which store digests: `blocked-bloom`, `elastic`, `prefix-bloom` | 8 n + 66 KiB; `prefix-bloom` 8 per distinct prefix, at most 200 n |
    /// | of two passes, which store the keys: `rosetta`, `proteus`, `1pbf`, `2pbf`, `grafite` | 2 (b + 8 n) + 4 KiB: vectors double |
    /// | `surf-*`, which store the labels of their trie, and with each label its suffix or two words | 36 per label: at most 16 labels per key and a million more; 256 per byte of the longest key |
    ///
    /// [`FilterBuilder::finish`] needs in addition the filter (of SuRF the suffixes twice), a kibibyte per thousand
    /// sampled queries, and for `grafite` 24 bytes per key.
    fn memory_bytes(&self) -> usize;

    /// Chooses the design that [`FilterBuilder::finish`] will build with the same budget and any samples, until a key is
    /// added, and stores it, if the family uses a model of the keys and queries. Without this call `finish` does the same; the
    /// call exists to measure the time of the model. Families without a model do nothing.
    fn design(&mut self, budget: Budget, samples: Samples<'_>) -> Result<(), BuildError> {
        let _ = (budget, samples);
        Ok(())
    }

    /// The encoded filter, or an error.
    fn finish(&self, budget: Budget, samples: Samples<'_>) -> Result<Vec<u8>, BuildError>;
}

/// Checks the order of keys and detects repeated keys.
#[derive(Debug, Default)]
pub(crate) struct KeyOrder {
    /// The first eight bytes of the last key, which decide most comparisons.
    head: u64,
    last: Vec<u8>,
    count: u64,
}

impl KeyOrder {
    /// Whether the key is new; an error if it is smaller than the last one. Inlined up to the comparison of keys with equal heads: a call that
    /// returns a result of this size costs more than the rest.
    #[inline(always)]
    pub(crate) fn accept(&mut self, key: &[u8]) -> Result<bool, BuildError> {
        let head = key_head(key);
        if head <= self.head && self.count > 0 && !self.is_after_last(key)? {
            return Ok(false);
        }
        self.head = head;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.count += 1;
        Ok(true)
    }

    #[inline(never)]
    fn is_after_last(&self, key: &[u8]) -> Result<bool, BuildError> {
        match key.cmp(&self.last) {
            Ordering::Less => Err(BuildError::Unsorted { index: self.count }),
            order => Ok(order.is_gt()),
        }
    }

    /// The last key, empty without keys.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests;
