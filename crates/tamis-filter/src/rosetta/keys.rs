//! The keys of a filter under construction: their common length, and the number of distinct prefixes per length.

use tamis_bits::key_head;

use crate::KeySet;

/// Length of all keys in bytes; 0 for several lengths and for lengths that the format cannot store. Without keys 8.
pub(super) fn key_bytes(keys: &KeySet) -> u32 {
    let length = if keys.is_empty() { 8 } else { keys.common_length().unwrap_or(0) };
    u32::from(u16::try_from(length).unwrap_or(0))
}

/// The number of distinct prefixes of each length; shorter keys are continued by zero bits.
#[derive(Debug)]
pub(super) struct PrefixCounts {
    /// By length in bits; longer prefixes have the last count.
    counts: Vec<u64>,
    keys: u64,
}

impl PrefixCounts {
    pub(super) fn new(keys: &KeySet) -> Self {
        // How many keys share exactly this number of bits with the previous key.
        let mut shared = vec![0_u64; 65];
        let neighbours = || keys.iter().zip(keys.iter().skip(1));
        if keys.common_length() == Some(8) {
            for (before, key) in neighbours() {
                let bits = (key_head(before) ^ key_head(key)).leading_zeros();
                if let Some(count) = shared.get_mut(bits as usize) {
                    *count += 1;
                }
            }
        } else {
            neighbours().for_each(|(before, key)| add_shared(&mut shared, before, key));
        }
        let mut count = u64::from(!keys.is_empty());
        let mut counts = vec![count];
        for keys in shared {
            count += keys;
            counts.push(count);
        }
        Self { counts, keys: keys.len() as u64 }
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
    let same = tamis_bits::common_prefix_length(before, key);
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
