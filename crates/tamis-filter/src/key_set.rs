//! The sorted keys of a table in memory, for families that read them more than once, and to compare several families
//! on the same keys. Memory: the bytes of the keys, and 8 bytes per key if their lengths differ; up to twice that while it grows.

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

use tamis_bits::long_key_head;

use crate::BuildError;
use crate::fixed_keys::FixedKeys;

/// Bits of the longest prefix that filters of prefixes have.
pub(crate) const PREFIX_BITS_MAX: u32 = 65_535 * 8;

/// Distinct keys in ascending order.
#[derive(Debug, Clone, Default)]
pub struct KeySet {
    bytes: Vec<u8>,
    count: usize,
    /// The end of each key in `bytes` if their lengths differ, or else empty.
    ends: Vec<u64>,
    /// The first sixteen bytes of the last key, which decide most comparisons, and its length.
    last: (u128, usize),
    /// The lengths of the shortest and of the longest key.
    lengths: (usize, usize),
}

impl KeySet {
    /// An empty set.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0, ends: Vec::new(), last: (0, 0), lengths: (0, 0) }
    }

    /// Appends a key; skips a repeated one and refuses a smaller one.
    pub fn push(&mut self, key: &[u8]) -> Result<(), BuildError> {
        let head = long_key_head(key);
        let (last_head, last_length) = self.last;
        if let Some(index) = self.len().checked_sub(1) {
            let by_head = head.cmp(&last_head);
            match by_head.then_with(|| key.cmp(self.get(index).unwrap_or_default())) {
                std::cmp::Ordering::Less => {
                    return Err(BuildError::Unsorted { index: self.count as u64 });
                }
                std::cmp::Ordering::Equal => return Ok(()),
                std::cmp::Ordering::Greater if key.len() != last_length && self.ends.is_empty() => {
                    self.keep_ends()
                }
                std::cmp::Ordering::Greater => {}
            }
        }
        self.last = (head, key.len());
        let (shortest, longest) = if self.count == 0 { (key.len(), 0) } else { self.lengths };
        self.lengths = (shortest.min(key.len()), longest.max(key.len()));
        self.bytes.extend_from_slice(key);
        self.count += 1;
        if !self.ends.is_empty() {
            self.ends.push(self.bytes.len() as u64);
        }
        Ok(())
    }

    /// The next key differs in length from all keys.
    #[cold]
    fn keep_ends(&mut self) {
        let length = self.last.1;
        self.ends.extend((1..=self.count).map(|count| (count * length) as u64));
    }

    /// Number of keys.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no keys.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key with an index.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        if index >= self.count {
            return None;
        }
        let range = match (self.common_length(), index.checked_sub(1)) {
            (Some(length), _) => index * length..(index + 1) * length,
            (None, Some(before)) => *self.ends.get(before)? as usize..*self.ends.get(index)? as usize,
            (None, None) => 0..*self.ends.first()? as usize,
        };
        self.bytes.get(range)
    }

    /// The length of every key, if it is the same.
    #[inline]
    pub(crate) fn common_length(&self) -> Option<usize> {
        self.ends.is_empty().then_some(self.last.1)
    }

    /// The lengths of the shortest and of the longest key.
    pub(crate) const fn lengths(&self) -> (usize, usize) {
        self.lengths
    }

    /// Bits of the longest key, at most those of the longest possible prefix.
    pub(crate) fn bit_count(&self) -> u32 {
        u32::try_from(self.lengths.1).unwrap_or(u32::MAX).saturating_mul(8).min(PREFIX_BITS_MAX)
    }

    /// Integers, if all keys have one length of at most eight bytes.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<FixedKeys> {
        let length = self.common_length().filter(|length| (1..=8).contains(length))?;
        Some(FixedKeys::new(length as u8))
    }

    /// All keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// The first sixteen bytes of each key ([`long_key_head`]), in order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = u128> {
        let length = self.common_length();
        let mut start = 0;
        (0..self.count).map(move |index| {
            let end = match length {
                Some(length) => start + length,
                None => self.ends.get(index).map_or(start, |end| *end as usize),
            };
            self.head(std::mem::replace(&mut start, end)..end)
        })
    }

    /// The first sixteen bytes of a key. Also reads bytes of the following keys and masks them out, which is faster
    /// than a branch for short keys.
    #[inline(always)]
    fn head(&self, key: Range<usize>) -> u128 {
        match self.bytes.get(key.start..).and_then(|rest| rest.first_chunk::<16>()) {
            Some(chunk) => {
                let others = u128::MAX.checked_shr(8 * key.len().min(16) as u32).unwrap_or(0);
                u128::from_be_bytes(*chunk) & !others
            }
            None => long_key_head(self.bytes.get(key).unwrap_or_default()),
        }
    }

    /// The index of the first key that is not below the range. Costs a binary search.
    pub fn lower_index(&self, range: &crate::KeyRange<'_>) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let is_below = match (self.get(middle), range.lower) {
                (Some(key), std::ops::Bound::Included(lower)) => key < lower,
                (Some(key), std::ops::Bound::Excluded(lower)) => key <= lower,
                _ => false,
            };
            if is_below { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Whether the range contains a key. Costs a binary search.
    pub fn has_key_in(&self, range: &crate::KeyRange<'_>) -> bool {
        self.get(self.lower_index(range)).is_some_and(|key| range.contains(key))
    }

    /// Bytes held.
    pub const fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8
    }
}

/// The keys of a builder that reads them more than once: its own, or those of a shared set.
#[derive(Debug, Clone)]
pub(crate) enum KeptKeys {
    Own(KeySet),
    Shared(Arc<KeySet>),
}

impl KeptKeys {
    pub(crate) const fn new() -> Self {
        Self::Own(KeySet::new())
    }

    /// [`KeySet::push`]; copies a shared set first.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.own().push(key)
    }

    /// Adds all keys of a set: shares it if there are no keys yet.
    pub(crate) fn push_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        if self.is_empty() {
            *self = Self::Shared(Arc::clone(keys));
            return Ok(());
        }
        let own = self.own();
        keys.iter().try_for_each(|key| own.push(key))
    }

    #[inline]
    fn own(&mut self) -> &mut KeySet {
        if let Self::Shared(keys) = self {
            *self = Self::Own(KeySet::clone(keys));
        }
        match self {
            Self::Own(keys) => keys,
            Self::Shared(keys) => Arc::make_mut(keys),
        }
    }

    /// Bytes held; a shared set is not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Own(keys) => keys.memory_bytes(),
            Self::Shared(_) => 0,
        }
    }
}

impl Deref for KeptKeys {
    type Target = KeySet;

    #[inline]
    fn deref(&self) -> &KeySet {
        match self {
            Self::Own(keys) => keys,
            Self::Shared(keys) => keys,
        }
    }
}

#[cfg(test)]
mod tests;
