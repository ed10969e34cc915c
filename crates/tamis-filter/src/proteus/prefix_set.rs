//! The set of all prefixes of one length. Answers which ends of a range of prefixes it contains, and whether it contains one between them.
//!
//! As a trie: prefixes in whole bytes, the rest of the last byte zero, each cut after the first byte that no other prefix shares. The
//! remaining bits of the prefixes are stored after the trie, leaf by leaf and level by level, `depth - 8 * (level + 1)` bits each. As
//! integers: Elias-Fano numbers or a bitmap, both relative to the least prefix.

use std::cmp::Ordering;

use tamis_bits::kernel::Steps;
use tamis_bits::{Ascending, BitBuilder, Bits, bitmap, elias_fano};

use super::design::SetForm;
use super::layout::{LEVEL_BYTES, SetPart, SetShape};
use crate::bit_string::{BitString, HEAD_BITS};
use crate::trie::{
    self, Depth, Edge, Leaf, LeafWords, Levels, Node, TRAILER_BYTES, Trie, WalkResult, shared_bytes,
};
use crate::{BuildError, Family};

/// The prefixes of a range that are in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ends {
    /// The first one.
    pub(super) has_first: bool,
    /// One between the first and the last.
    pub(super) has_between: bool,
    /// The last one, if it is not also the first.
    pub(super) has_last: bool,
}

impl Ends {
    const BETWEEN: Self = Self { has_first: false, has_between: true, has_last: false };
}

/// Appends a set in one of the integer forms; the integers are relative to the least, which is 0.
pub(super) fn encode_integers(
    target: &mut Vec<u8>,
    form: SetForm,
    (count, last): (u64, u64),
    integers: impl Ascending,
) {
    match form {
        SetForm::EliasFano => elias_fano::encode(target, count, last, integers),
        SetForm::MarkedEliasFano => elias_fano::encode_marked(target, count, last, integers),
        SetForm::Bitmap | SetForm::Trie => bitmap::encode(target, last, integers),
    }
}

/// The bits of prefixes after their leaves: for each level the bits and the number of leaves.
#[derive(Debug, Default)]
struct ExplicitBits {
    depth: u32,
    levels: Vec<(BitBuilder, u32)>,
}

impl LeafWords for ExplicitBits {
    #[inline]
    fn words(&mut self, prefix: &[u8], byte_count: usize) -> [u64; 2] {
        if self.levels.len() < byte_count {
            self.levels.resize_with(byte_count, Default::default);
        }
        let Some((bits, count)) = self.levels.get_mut(byte_count - 1) else { return [0; 2] };
        *count += 1;
        let mut from = byte_count as u32 * 8;
        let string = BitString::key(prefix);
        while from < self.depth {
            let width = (self.depth - from).min(64);
            bits.push_bits(string.bits(from, width), width);
            from += width;
        }
        [0; 2]
    }
}

/// Builds a trie of prefixes that are added in order.
#[derive(Debug)]
pub(super) struct TrieSetBuilder {
    levels: Levels,
    explicit: ExplicitBits,
}

impl TrieSetBuilder {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            levels: Levels::new(Depth::Unlimited, [0; 2]),
            explicit: ExplicitBits { depth, levels: Vec::new() },
        }
    }

    /// Adds the next prefix, in whole bytes; a repeated one is ignored.
    pub(super) fn add(&mut self, prefix: &[u8]) {
        // Fails only for prefixes that are not in order.
        let _ = self.levels.add(prefix, &mut self.explicit);
    }

    /// Appends the set.
    pub(super) fn finish(mut self, target: &mut Vec<u8>) -> Result<(), BuildError> {
        self.levels.seal(&mut self.explicit);
        let encoded = trie::plan(&self.levels, self.levels.levels().len(), true)
            .and_then(|plan| trie::encode(&self.levels, &plan));
        let too_large =
            BuildError::Refused { family: Family::Proteus.name(), reason: "its trie has too many labels" };
        let encoded = encoded.ok_or(too_large)?;
        target.extend_from_slice(&encoded.bytes);
        let mut all = BitBuilder::new();
        let mut table = Vec::with_capacity(self.explicit.levels.len() * LEVEL_BYTES);
        let mut leaf_start = 0_u32;
        for (bits, count) in self.explicit.levels {
            table.extend_from_slice(&leaf_start.to_le_bytes());
            table.extend_from_slice(&all.len().to_le_bytes());
            leaf_start += count;
            all.append(bits);
        }
        target.extend_from_slice(&all.finish());
        target.extend_from_slice(&table);
        target.extend_from_slice(&encoded.trailer);
        Ok(())
    }
}

/// An encoded set.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetView<'a> {
    part: &'a SetPart,
    bytes: &'a [u8],
}

impl<'a> SetView<'a> {
    #[inline(always)]
    pub(super) fn new(part: &'a SetPart, payload: &'a [u8]) -> Self {
        Self { part, bytes: payload.get(part.start..).unwrap_or_default() }
    }

    /// Which prefixes of a range of integers are in the set.
    #[inline(always)]
    pub(super) fn word_ends<S: Steps>(&self, steps: S, lower: u64, upper: u64) -> Ends {
        if let SetShape::Trie(_) = &self.part.shape {
            let [lower, upper] = [lower, upper].map(|word| (u128::from(word) << 64).to_be_bytes());
            return self.string_ends(steps, &BitString::key(&lower), &BitString::key(&upper));
        }
        let shift = 64 - self.part.depth;
        self.integer_ends(lower >> shift, upper >> shift)
    }

    /// A lookup for each end and for those between them: few ranges have several prefixes and one of them in the set.
    #[inline(always)]
    fn integer_ends(&self, first: u64, last: u64) -> Ends {
        Ends {
            has_first: self.has_integer(first, first),
            has_between: last.saturating_sub(first) > 1 && self.has_integer(first + 1, last - 1),
            has_last: last != first && self.has_integer(last, last),
        }
    }

    /// Whether the set contains an integer from one to another; `true` if it refers to bytes beyond its end.
    #[inline(always)]
    fn has_integer(&self, first: u64, last: u64) -> bool {
        // The set contains no prefix below the least one or above the greatest.
        let (low, high) = (first.saturating_sub(self.part.least), last.checked_sub(self.part.least));
        let Some(high) = high.filter(|_| low <= self.part.last) else { return false };
        match &self.part.shape {
            SetShape::Bitmap(shape) => shape.view(self.bytes).is_none_or(|set| set.has_between(low, high)),
            SetShape::EliasFano(shape) => {
                let found = shape.view(self.bytes).map(|set| set.successor(low));
                found.is_none_or(|found| found.is_some_and(|(_, found)| found <= high))
            }
            SetShape::Trie(_) => true,
        }
    }

    /// Which prefixes of a range of strings are in the set.
    #[inline(always)]
    pub(super) fn string_ends<S: Steps>(
        &self,
        steps: S,
        lower: &BitString<'_>,
        upper: &BitString<'_>,
    ) -> Ends {
        let SetShape::Trie(layout) = &self.part.shape else { return Ends::BETWEEN };
        let table_end = self.bytes.len().saturating_sub(TRAILER_BYTES);
        let table_start = table_end.saturating_sub(layout.counts.height as usize * LEVEL_BYTES);
        let depth = self.part.depth;
        let walk = TrieWalk {
            trie: Trie::new(self.bytes, layout).with(steps),
            explicit: self.bytes.get(layout.leaves..table_start).unwrap_or_default(),
            table: self.bytes.get(table_start..table_end).unwrap_or_default(),
            depth,
        };
        let Some(spare) = HEAD_BITS.checked_sub(depth) else { return walk.long_ends(lower, upper) };
        let mask = u128::MAX.checked_shl(spare).unwrap_or(0);
        let [from, to] = [lower, upper].map(|string| (string.head() & mask).to_be_bytes());
        let length = ..depth.div_ceil(8) as usize;
        let (from, to) = (from.get(length).unwrap_or_default(), to.get(length).unwrap_or_default());
        walk.ends(End { string: lower, prefix: from }, End { string: upper, prefix: to })
    }
}

/// One end of a range, and its prefix of the set's depth in whole bytes, the rest of the last one zero.
#[derive(Debug, Clone, Copy)]
struct End<'a> {
    string: &'a BitString<'a>,
    prefix: &'a [u8],
}

impl End<'_> {
    #[inline(always)]
    fn byte(&self, index: usize) -> Option<u8> {
        self.prefix.get(index).copied()
    }
}

/// Lookups in a trie.
#[derive(Debug, Clone, Copy)]
struct TrieWalk<'a, S> {
    trie: Trie<'a, S>,
    explicit: &'a [u8],
    table: &'a [u8],
    depth: u32,
}

impl<S: Steps> TrieWalk<'_, S> {
    /// Compares the prefix at a leaf after `byte_count` bytes with the prefix of an end that begins with the same bytes.
    #[inline(always)]
    fn compare(&self, leaf: Leaf, byte_count: usize, end: End<'_>) -> Ordering {
        let mut from = byte_count as u32 * 8;
        if from >= self.depth {
            return Ordering::Equal;
        }
        let width = u64::from(self.depth - from);
        let entry = self.table.get((byte_count - 1) * LEVEL_BYTES..).unwrap_or_default();
        let leaf_start = entry.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let bit_start =
            entry.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let number = self.trie.leaf_number(leaf).saturating_sub(u64::from(leaf_start));
        let mut place = bit_start.saturating_add(number.saturating_mul(width));
        let Some(bits) = Bits::new(self.explicit, self.explicit.len() as u64 * 8) else {
            return Ordering::Equal;
        };
        while from < self.depth {
            let width = (self.depth - from).min(64);
            let order = bits.get_bits(place, width).cmp(&end.string.bits(from, width));
            if order != Ordering::Equal {
                return order;
            }
            from += width;
            place = place.saturating_add(u64::from(width));
        }
        Ordering::Equal
    }

    /// [`TrieWalk::ends`] for prefixes of more than [`HEAD_BITS`] bits.
    #[cold]
    fn long_ends(&self, lower: &BitString<'_>, upper: &BitString<'_>) -> Ends {
        let [from, to] = [lower, upper].map(|string| {
            let mut prefix = vec![0; self.depth.div_ceil(8) as usize];
            string.write_prefix(self.depth, &mut prefix);
            prefix
        });
        self.ends(End { string: lower, prefix: &from }, End { string: upper, prefix: &to })
    }

    #[inline(always)]
    fn ends(&self, lower: End<'_>, upper: End<'_>) -> Ends {
        let shared = shared_bytes(lower.prefix, upper.prefix);
        match self.trie.walk(lower.prefix.get(..shared).unwrap_or_default()) {
            WalkResult::Absent => Ends::default(),
            WalkResult::Leaf(leaf, byte_count) => {
                let from_lower = self.compare(leaf, byte_count, lower);
                let from_upper = self.compare(leaf, byte_count, upper);
                Ends {
                    has_first: from_lower == Ordering::Equal,
                    has_between: from_lower == Ordering::Greater && from_upper == Ordering::Less,
                    has_last: from_lower == Ordering::Greater && from_upper == Ordering::Equal,
                }
            }
            WalkResult::Node(node) => self.ends_apart(node, shared, lower, upper),
        }
    }

    /// [`TrieWalk::ends`] from the node after the common bytes of both ends.
    #[inline(always)]
    fn ends_apart(&self, node: Node, byte_count: usize, lower: End<'_>, upper: End<'_>) -> Ends {
        // There is no node after a whole prefix.
        let (Some(low), Some(high)) = (lower.byte(byte_count), upper.byte(byte_count)) else {
            return Ends::default();
        };
        if low >= high {
            return Ends::default();
        }
        let edges = self.trie.divergence(node, low, high);
        if edges.has_between {
            return Ends::BETWEEN;
        }
        let from_lower =
            edges.low.and_then(|edge| self.nearest(edge, byte_count + 1, lower, Ordering::Greater));
        if from_lower == Some(Ordering::Greater) {
            return Ends::BETWEEN;
        }
        let up_to = edges.high.and_then(|edge| self.nearest(edge, byte_count + 1, upper, Ordering::Less));
        Ends {
            has_first: from_lower.is_some(),
            has_between: up_to == Some(Ordering::Less),
            has_last: up_to == Some(Ordering::Equal),
        }
    }

    /// Below a label on an end's path: `inner` (inside the range) if there is a prefix on that side of the end's prefix, else `Equal` if
    /// that one is in the set.
    #[inline(always)]
    fn nearest(
        &self,
        mut edge: Edge,
        mut byte_count: usize,
        end: End<'_>,
        inner: Ordering,
    ) -> Option<Ordering> {
        loop {
            let Some(node) = self.trie.child(&edge) else {
                let order = self.compare(edge.leaf(), byte_count, end);
                return Some(order).filter(|order| *order != inner.reverse());
            };
            let split = self.trie.split(node, end.byte(byte_count)?);
            if if inner == Ordering::Greater { split.has_greater } else { split.has_smaller } {
                return Some(inner);
            }
            edge = split.edge?;
            byte_count += 1;
        }
    }
}
