//! How filters are built: keys one at a time, then budget and samples.

use std::cmp::Ordering;
use std::sync::Arc;

use tamis_bits::key_head;

use crate::{BuildError, KeyRange, KeySet};

/// How large a filter may become.
///
/// A budget is a promise: the encoded filter has at most `bits_per_key * keys / 8` bytes plus 128 for the envelope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget(Option<f64>);

impl Budget {
    /// Most bits per key.
    pub const BITS_PER_KEY_MAX: f64 = 1024.0;

    /// As large as the family's parameters say.
    pub const BY_PARAMETERS: Self = Self(None);

    /// So many bits for each key, above 0 and at most [`Budget::BITS_PER_KEY_MAX`].
    pub fn bits_per_key(bits: f64) -> Result<Self, BuildError> {
        if bits > 0.0 && bits <= Self::BITS_PER_KEY_MAX {
            Ok(Self(Some(bits)))
        } else {
            Err(BuildError::Budget { given: bits, max: Self::BITS_PER_KEY_MAX })
        }
    }

    /// The bits per key, where they were given.
    pub const fn as_bits_per_key(self) -> Option<f64> {
        self.0
    }

    /// The bits per key, or a refusal in the family's name.
    pub(crate) fn require(self, family: &'static str) -> Result<f64, BuildError> {
        self.0.ok_or(BuildError::BudgetMissing { family })
    }
}

/// Queries that a family which designs itself may learn from, as they were asked. Families leave out those that hold a key
/// of theirs.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    /// Ranges and points.
    pub queries: &'a [KeyRange<'a>],
}

impl Samples<'_> {
    /// No samples.
    pub const NONE: Self = Self { queries: &[] };
}

/// Takes the keys of one table and makes a filter of them.
///
/// Call order: `add* (design? finish)*`; `finish` may be called again with other budgets.
pub trait FilterBuilder {
    /// Takes the next key. Keys come in ascending order; a key equal to the one before it is passed over. The builder may
    /// keep all keys: see [`FilterBuilder::memory_bytes`].
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError>;

    /// Takes all keys of a kept set that serves several families. Families that need no more than its keys share it as long as nothing else
    /// is added, instead of a copy of their own.
    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        keys.iter().try_for_each(|key| self.add(key))
    }

    /// How many distinct keys were added.
    fn key_count(&self) -> u64;

    /// Bytes that the builder holds now. A shared set ([`FilterBuilder::add_all`]) is not counted. At most, of `n` keys that take `b` bytes
    /// together:
    ///
    /// | families | bytes |
    /// |---|---|
    /// | of one pass, which keep digests: `blocked-bloom`, `elastic`, `binary-fuse`, `prefix-bloom`, `bloom` | 8 n + 66 KiB |
    /// | of two passes, which keep the keys: `bloom` with independent digests, `rosetta`, `proteus`, `1pbf`, `2pbf` | 2 (b + 8 n) + 4 KiB: vectors double |
    /// | `surf-*`, which keep the labels of their trie and beside each the suffix where it is given, else two words | 36 for each label: at most 16 labels a key and a million more; 256 for each byte of the longest key |
    ///
    /// [`FilterBuilder::finish`] takes beside that the filter (of SuRF the suffixes twice), a kibibyte for each thousand keys of samples, and for `binary-fuse` 40 bytes a key.
    fn memory_bytes(&self) -> usize;

    /// Chooses what [`FilterBuilder::finish`] will build with the same budget and samples, where the family chooses by a model
    /// of the keys and queries, and remembers it. `finish` does the same where it was not called; so it is called by those
    /// who want to know how long the model takes. Families without a model do nothing.
    fn design(&mut self, budget: Budget, samples: Samples<'_>) -> Result<(), BuildError> {
        let _ = (budget, samples);
        Ok(())
    }

    /// The encoded filter, or why there is none.
    fn finish(&self, budget: Budget, samples: Samples<'_>) -> Result<Vec<u8>, BuildError>;
}

/// Guards the order of keys: tells a new key from a repeated one. Remembers the last key as its first eight bytes, which
/// decide most comparisons, and the rest.
#[derive(Debug, Default)]
pub(crate) struct KeyOrder {
    head: u64,
    length: usize,
    tail: Vec<u8>,
    count: u64,
}

impl KeyOrder {
    /// Whether the key is a new one; an error where it is smaller than the last. Inlined at any price for keys of at most
    /// eight bytes: a call that hands back a result of this size costs more than the comparison.
    #[inline(always)]
    pub(crate) fn accept(&mut self, key: &[u8]) -> Result<bool, BuildError> {
        let head = key_head(key);
        if head > self.head && key.len() <= 8 && self.tail.is_empty() {
            self.head = head;
            self.length = key.len();
            self.count += 1;
            return Ok(true);
        }
        self.accept_any(key, head)
    }

    /// [`KeyOrder::accept`] of a key of eight bytes that follows one of at most as many and is greater. Nothing happens to others.
    #[inline(always)]
    pub(crate) fn accept_next_word(&mut self, key: &[u8; 8]) -> bool {
        let head = u64::from_be_bytes(*key);
        let is_next = head > self.head && self.tail.is_empty();
        if is_next {
            self.head = head;
            self.length = key.len();
            self.count += 1;
        }
        is_next
    }

    /// Takes note of keys that were taken without being shown here: how many, and the last of them.
    pub(crate) fn skip(&mut self, count: u64, last: &[u8]) {
        self.head = key_head(last);
        self.length = last.len();
        self.tail.clear();
        self.tail.extend_from_slice(last.get(8..).unwrap_or_default());
        self.count += count;
    }

    #[inline(never)]
    fn accept_any(&mut self, key: &[u8], head: u64) -> Result<bool, BuildError> {
        let tail = key.get(8..).unwrap_or_default();
        if head <= self.head && self.count > 0 {
            // Where the heads are equal and a key is shorter than its head, it is a prefix of the other, or equal.
            let order =
                head.cmp(&self.head).then_with(|| tail.cmp(&self.tail)).then(key.len().cmp(&self.length));
            match order {
                Ordering::Less => return Err(BuildError::Unsorted { index: self.count }),
                Ordering::Equal => return Ok(false),
                Ordering::Greater => {}
            }
        }
        self.head = head;
        self.length = key.len();
        if !(tail.is_empty() && self.tail.is_empty()) {
            self.tail.clear();
            self.tail.extend_from_slice(tail);
        }
        self.count += 1;
        Ok(true)
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests;
