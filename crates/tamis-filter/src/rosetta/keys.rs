//! The keys of a filter under construction, and the number of distinct prefixes per length.

use tamis_bits::key_head;

use std::sync::Arc;

use crate::key_set::KeptKeys;
use crate::{BuildError, KeyRange, KeySet};

/// Sorted distinct keys: integers as long as all have eight bytes, else byte strings.
#[derive(Debug)]
pub(super) struct Keys {
    words: Vec<u64>,
    /// Used as soon as one key has another length than eight bytes; `words` is then empty.
    strings: Option<KeptKeys>,
    /// Length of all keys, `None` if they differ (or there are none).
    length: Option<usize>,
}

impl Keys {
    pub(super) const fn new() -> Self {
        Self { words: Vec::new(), strings: None, length: None }
    }

    /// Adds the next key. Sorted integers are the common case: inlined, it costs a comparison and a store.
    #[inline(always)]
    pub(super) fn push(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.strings.is_none()
            && let Ok(bytes) = <[u8; 8]>::try_from(key)
        {
            let word = u64::from_be_bytes(bytes);
            if self.words.last().is_none_or(|last| *last < word) {
                self.words.push(word);
                return Ok(());
            }
        }
        self.push_other(key)
    }

    /// Adds a key that is no integer above the last one.
    #[inline(never)]
    fn push_other(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.strings.is_none() && key.len() == 8 {
            let is_repeated = self.words.last() == Some(&key_head(key));
            let index = self.words.len() as u64;
            return if is_repeated { Ok(()) } else { Err(BuildError::Unsorted { index }) };
        }
        self.push_string(key)
    }

    fn push_string(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.strings.is_none() {
            let mut strings = KeptKeys::new();
            self.length = (!self.words.is_empty()).then_some(8);
            for word in std::mem::take(&mut self.words) {
                strings.push(&word.to_be_bytes())?;
            }
            self.strings = Some(strings);
        }
        let Some(strings) = &mut self.strings else { return Ok(()) };
        strings.push(key)?;
        if strings.len() == 1 {
            self.length = Some(key.len());
        } else if self.length != Some(key.len()) {
            self.length = None;
        }
        Ok(())
    }

    /// Adds all keys of a set: integers as words, else as strings.
    pub(super) fn push_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        let Some(first) = keys.get(0) else { return Ok(()) };
        if self.len() > 0 {
            return keys.iter().try_for_each(|key| self.push(key));
        }
        if let Some(words) = keys.words() {
            self.words.extend(words.iter().map(|word| u64::from_be_bytes(*word)));
            return Ok(());
        }
        let mut strings = KeptKeys::new();
        strings.push_all(keys)?;
        self.strings = Some(strings);
        self.length = keys.iter().all(|key| key.len() == first.len()).then_some(first.len());
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.strings.as_ref().map_or(self.words.len(), |strings| strings.len())
    }

    /// Length of all keys in bytes; 0 for several lengths and for lengths that the format cannot store.
    pub(super) fn key_bytes(&self) -> u32 {
        let length = if self.strings.is_some() { self.length.unwrap_or(0) } else { 8 };
        u32::from(u16::try_from(length).unwrap_or(0))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.strings.as_ref().map_or(0, KeptKeys::memory_bytes)
    }

    /// The keys as integers, if all have eight bytes.
    pub(super) fn words(&self) -> Option<&[u64]> {
        self.strings.is_none().then_some(self.words.as_slice())
    }

    /// Calls `call` with the bytes of every key.
    pub(super) fn for_each(&self, mut call: impl FnMut(&[u8])) {
        match &self.strings {
            Some(strings) => strings.iter().for_each(call),
            None => self.words.iter().for_each(|word| call(&word.to_be_bytes())),
        }
    }

    /// The key with an index, in `buffer` if it is stored as an integer.
    pub(super) fn get<'a>(&'a self, index: usize, buffer: &'a mut [u8; 8]) -> Option<&'a [u8]> {
        if let Some(strings) = &self.strings {
            return strings.get(index);
        }
        *buffer = self.words.get(index)?.to_be_bytes();
        Some(buffer)
    }

    /// The index of the first key that meets the lower bound of a range, and whether it is in the range.
    pub(super) fn find(&self, range: &KeyRange<'_>) -> (usize, bool) {
        let above = KeyRange { lower: range.lower, upper: crate::Upper::Open };
        let mut buffer = [0; 8];
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let is_above = self.get(middle, &mut buffer).is_some_and(|key| above.contains(key));
            if is_above { high = middle } else { low = middle + 1 }
        }
        (low, self.get(low, &mut buffer).is_some_and(|key| range.contains(key)))
    }
}

/// The number of distinct prefixes of each length; shorter keys are continued by zero bits.
#[derive(Debug)]
pub(super) struct PrefixCounts {
    /// By length in bits; longer prefixes have the last count.
    counts: Vec<u64>,
    keys: u64,
}

impl PrefixCounts {
    pub(super) fn new(keys: &Keys) -> Self {
        // How many keys share exactly this number of bits with the previous key.
        let mut shared = vec![0_u64; 65];
        match keys.words() {
            Some(words) => {
                for (word, before) in words.iter().skip(1).zip(words) {
                    if let Some(count) = shared.get_mut((word ^ before).leading_zeros() as usize) {
                        *count += 1;
                    }
                }
            }
            None => {
                let mut before: Vec<u8> = Vec::new();
                let mut is_first = true;
                keys.for_each(|key| {
                    if !std::mem::take(&mut is_first) {
                        add_shared(&mut shared, &before, key);
                    }
                    before.clear();
                    before.extend_from_slice(key);
                });
            }
        }
        let mut count = u64::from(keys.len() > 0);
        let counts = shared
            .iter()
            .map(|keys| {
                let prefixes = count;
                count += keys;
                prefixes
            })
            .collect::<Vec<_>>();
        Self { counts: counts.into_iter().chain([count]).collect(), keys: keys.len() as u64 }
    }

    /// Distinct prefixes of a length.
    pub(super) fn at(&self, bit_count: u32) -> u64 {
        let last = self.counts.last().copied().unwrap_or(0);
        self.counts.get(bit_count as usize).copied().unwrap_or(last)
    }

    /// Distinct keys.
    pub(super) const fn keys(&self) -> u64 {
        self.keys
    }

    /// The length from which on the number of prefixes does not grow.
    pub(super) fn depth_max(&self) -> u32 {
        self.counts.len() as u32 - 1
    }
}

/// The number of leading bits that two neighbours share; `None` if one is the other followed by zero bytes.
fn common_bits(before: &[u8], key: &[u8]) -> Option<usize> {
    let same = before.iter().zip(key).take_while(|(left, right)| left == right).count();
    let zeros = |rest: &[u8]| rest.iter().take_while(|byte| **byte == 0).count();
    let byte = |key: &[u8], index: usize| key.get(index).copied().unwrap_or(0);
    let longer = if before.len() > key.len() { before } else { key };
    let index = if same == before.len().min(key.len()) {
        same + zeros(longer.get(same..).unwrap_or_default())
    } else {
        same
    };
    let difference = byte(before, index) ^ byte(key, index);
    (index < longer.len()).then_some(index * 8 + difference.leading_zeros() as usize)
}

/// Counts the bits that two neighbours share. Neighbours that are equal up to zero bytes share every prefix.
fn add_shared(shared: &mut Vec<u64>, before: &[u8], key: &[u8]) {
    let Some(bits) = common_bits(before, key) else { return };
    if bits >= shared.len() {
        shared.resize(bits + 1, 0);
    }
    if let Some(count) = shared.get_mut(bits) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests;
