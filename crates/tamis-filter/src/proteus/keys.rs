//! The keys of a filter while it is designed and built.
//!
//! Keys of one length of at most eight bytes are kept as integers. The first key of another length converts them to byte strings.

use std::sync::Arc;

use tamis_bits::key_head;

use super::layout::BIT_COUNT_MAX;
use crate::bit_string::{BitString, HEAD_BITS};
use crate::fixed_keys::FixedKeys;
use crate::key_set::KeptKeys;
use crate::{BuildError, KeySet};

/// Distinct keys in ascending order.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// Integers in the top bits.
    Words(FixedKeys, Vec<u64>),
    /// Byte strings, and the length of the longest.
    Strings(KeptKeys, usize),
}

/// A prefix of keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Prefix<'a> {
    /// Of at most [`HEAD_BITS`] bits: in the top bits of a word whose other bits are zero.
    Head(u128),
    /// Of more bits: in whole bytes, the rest of the last one zero.
    Bytes(&'a [u8]),
}

impl Default for Keys {
    fn default() -> Self {
        Self::Strings(KeptKeys::new(), 0)
    }
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Words(_, words) => words.len(),
            Self::Strings(keys, _) => keys.len(),
        }
    }

    /// Bits of the longest key, at most those of the longest possible prefix.
    pub(super) fn bit_count(&self) -> u32 {
        match self {
            Self::Words(fixed, _) => fixed.bit_count(),
            Self::Strings(_, longest) => {
                u32::try_from(*longest).unwrap_or(u32::MAX).saturating_mul(8).min(BIT_COUNT_MAX)
            }
        }
    }

    /// The length of all byte strings; 0 for several lengths, for lengths that the format cannot store, and for integers.
    pub(super) fn string_bytes(&self) -> u16 {
        match self {
            Self::Words(..) => 0,
            Self::Strings(keys, _) => {
                let length = keys.common_length().filter(|length| *length > 8);
                length.and_then(|length| u16::try_from(length).ok()).unwrap_or(0)
            }
        }
    }

    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if let Self::Words(fixed, words) = self {
            if let Some(word) = fixed.point(key) {
                match words.last() {
                    Some(last) if *last > word => {
                        return Err(BuildError::Unsorted { index: words.len() as u64 });
                    }
                    Some(last) if *last == word => {}
                    _ => words.push(word),
                }
                return Ok(());
            }
            self.become_strings()?;
        }
        self.push_string(key)
    }

    fn push_string(&mut self, key: &[u8]) -> Result<(), BuildError> {
        let Self::Strings(keys, longest) = self else { return Ok(()) };
        if keys.is_empty() && (1..=8).contains(&key.len()) {
            *self = Self::Words(FixedKeys::new(key.len() as u8), vec![key_head(key)]);
            return Ok(());
        }
        *longest = key.len().max(*longest);
        keys.push(key)
    }

    fn become_strings(&mut self) -> Result<(), BuildError> {
        let Self::Words(fixed, words) = self else { return Ok(()) };
        let length = usize::from(fixed.byte_count);
        let mut keys = KeptKeys::new();
        for word in words {
            keys.push(word.to_be_bytes().get(..length).unwrap_or_default())?;
        }
        *self = Self::Strings(keys, length);
        Ok(())
    }

    /// Adds all keys of a set. The first set is taken as a whole: integers are converted, byte strings are shared.
    pub(super) fn push_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        if self.len() == 0 {
            *self = Self::of_shared(keys);
            return Ok(());
        }
        keys.iter().try_for_each(|key| self.push(key))
    }

    /// The keys of a set.
    pub(super) fn of(keys: &KeySet) -> Self {
        Self::from_set(keys, || KeptKeys::Own(keys.clone()))
    }

    /// The keys of a shared set.
    pub(super) fn of_shared(keys: &Arc<KeySet>) -> Self {
        Self::from_set(keys, || KeptKeys::Shared(Arc::clone(keys)))
    }

    fn from_set(keys: &KeySet, kept: impl FnOnce() -> KeptKeys) -> Self {
        let length = keys.get(0).map_or(0, <[u8]>::len);
        if (1..=8).contains(&length) {
            let fixed = FixedKeys::new(length as u8);
            let mut words = Vec::with_capacity(keys.len());
            words.extend(keys.iter().map_while(|key| fixed.point(key)));
            if words.len() == keys.len() {
                return Self::Words(fixed, words);
            }
        }
        let scanned = || keys.iter().map(<[u8]>::len).max().unwrap_or(0);
        let longest = keys.common_length().unwrap_or_else(scanned);
        Self::Strings(kept(), longest)
    }

    /// Calls `take` with each distinct prefix of `bits` bits (at least 1), in order.
    pub(super) fn for_each_prefix(&self, bits: u32, mut take: impl FnMut(Prefix<'_>)) {
        let mask = u128::MAX << HEAD_BITS.saturating_sub(bits).min(HEAD_BITS - 1);
        let mut before = None;
        let mut take_head = |head: u128| {
            if before.replace(head & mask) != Some(head & mask) {
                take(Prefix::Head(head & mask));
            }
        };
        match self {
            Self::Words(_, words) => words.iter().for_each(|word| take_head(u128::from(*word) << 64)),
            Self::Strings(keys, _) if bits <= HEAD_BITS => keys.heads().for_each(take_head),
            Self::Strings(keys, _) => {
                let (mut prefix, mut before) = (vec![0; bits.div_ceil(8) as usize], Vec::new());
                for key in keys.iter() {
                    BitString::key(key).write_prefix(bits, &mut prefix);
                    if prefix != before {
                        take(Prefix::Bytes(&prefix));
                        before.clone_from(&prefix);
                    }
                }
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Words(_, words) => words.capacity() * 8,
            Self::Strings(keys, _) => keys.memory_bytes(),
        }
    }
}
