//! The number of distinct prefixes of each length of sorted keys, which are continued by zeros.
//!
//! Two adjacent keys with a common prefix of `c` bits have one prefix of each length up to `c` and two of each longer one. So the number of
//! distinct prefixes of `n` bits is one more than the number of adjacent pairs with a common prefix of fewer than `n` bits.

use std::collections::BTreeMap;

use crate::bit_string::BitString;
use crate::trie::{LevelCounts, shared_bytes};
use crate::{KeySet, steps};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct PrefixCounts {
    /// By length in bits; longer prefixes have the last count.
    counts: Vec<u64>,
    /// The branches of the binary trie of the keys that have a border of bytes above them, before the branch above: their number by the first
    /// such border, in bytes, and the bits before the branch.
    branches: BTreeMap<(u32, u32), u64>,
    keys: u64,
}

impl PrefixCounts {
    /// Scans the keys; prefixes of more than `bit_count` bits are not distinguished.
    pub(crate) fn of_keys(keys: &KeySet, bit_count: u32) -> Self {
        steps::count(keys.len());
        let (mut shared, mut branches): (Vec<u64>, _) = (Vec::new(), BTreeMap::new());
        // The branches on the path to a key, and below a common prefix of it and the next key.
        let mut path: Vec<u32> = Vec::new();
        let mut close = |path: &mut Vec<u32>, next: Option<u32>| {
            while let Some(bits) = path.pop_if(|bits| next.is_none_or(|next| *bits > next)) {
                let above = path.last().copied().max(next);
                let border = above.map_or(0, |above| above / 8 + 1);
                if border <= bits / 8 {
                    *branches.entry((border, bits)).or_default() += 1;
                }
            }
        };
        let pairs = keys.iter().zip(keys.iter().skip(1));
        let bits = pairs.map(|(before, key)| shared_key_bits(before, key, bit_count));
        for bits in bits.filter(|bits| *bits < bit_count) {
            if shared.len() <= bits as usize {
                shared.resize(bits as usize + 1, 0);
            }
            shared.get_mut(bits as usize).into_iter().for_each(|count| *count += 1);
            close(&mut path, Some(bits));
            path.push(bits);
        }
        close(&mut path, None);
        let mut sum = u64::from(!keys.is_empty());
        let first = std::iter::once(sum);
        let counts = first.chain(shared.iter().map(|pairs| {
            sum += pairs;
            sum
        }));
        Self { counts: counts.collect(), branches, keys: keys.len() as u64 }
    }

    /// Distinct prefixes of a length.
    pub(crate) fn at(&self, bit_count: u32) -> u64 {
        self.counts.get(bit_count as usize).or(self.counts.last()).copied().unwrap_or(0)
    }

    /// Distinct keys.
    pub(crate) const fn keys(&self) -> u64 {
        self.keys
    }

    /// The length from which on the number of prefixes does not grow.
    pub(crate) fn depth_max(&self) -> u32 {
        self.counts.len() as u32 - 1
    }

    /// The lengths at which the number of prefixes grows, in order.
    pub(crate) fn growing_lengths(&self) -> impl Iterator<Item = u32> {
        steps::count(self.counts.len());
        let counts = self.counts.iter().zip(self.counts.iter().skip(1));
        (1..).zip(counts).filter(|(_, (before, count))| before < count).map(|(length, _)| length)
    }

    /// The levels of the trie of all prefixes of `depth` bits, each cut after the first byte that no other prefix shares. A node is a prefix in
    /// whole bytes with a branch below it.
    pub(crate) fn trie_levels(&self, depth: u32) -> Vec<LevelCounts> {
        let height = depth.div_ceil(8);
        steps::count(self.branches.len() + height as usize);
        let mut steps = vec![0_i64; height as usize + 2];
        for ((border, bits), count) in self.branches.iter().filter(|((_, bits), _)| *bits < depth) {
            for (level, change) in [(*border, *count as i64), (bits / 8 + 1, -(*count as i64))] {
                steps.get_mut(level as usize).into_iter().for_each(|step| *step += change);
            }
        }
        let mut sum = 0;
        let mut nodes: Vec<u64> = steps
            .iter()
            .map(|step| {
                sum += step;
                sum as u64
            })
            .collect();
        // A single prefix is a label of the root.
        nodes.first_mut().into_iter().for_each(|root| *root = (*root).max(1));
        let levels = (0..height).zip(nodes.iter().zip(nodes.iter().skip(1)));
        let level = |(level, (nodes, children)): (u32, (&u64, &u64))| {
            let alone = self.at(level * 8).saturating_sub(*nodes);
            let labels = self.at(depth.min(level * 8 + 8)) - alone;
            LevelCounts { nodes: *nodes, labels, children: *children, prefix_keys: 0 }
        };
        levels.map(level).take_while(|level| level.nodes > 0).collect()
    }
}

/// Common bits of two keys, each continued by zeros; at most `bit_count`.
#[inline]
fn shared_key_bits(before: &[u8], key: &[u8], bit_count: u32) -> u32 {
    let bytes = shared_bytes(before, key);
    if let (Some(one), Some(other)) = (before.get(bytes), key.get(bytes)) {
        let bits = (bytes as u64 * 8).min(u64::from(bit_count)) as u32 + (one ^ other).leading_zeros();
        return bits.min(bit_count);
    }
    BitString::key(before).common_bits(&BitString::key(key)).min(bit_count)
}

#[cfg(test)]
mod tests;
