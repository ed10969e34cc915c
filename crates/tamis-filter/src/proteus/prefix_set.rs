//! The set of all prefixes of one length: which of two of them are there, and whether one lies between.
//!
//! As a trie: prefixes in whole bytes, the rest of the last byte zero, each cut behind the first byte that no other prefix shares.
//! What is left of the prefix behind that byte stands beside the trie, bit for bit: leaf by leaf, level by level, `depth - 8 * (level
//! + 1)` bits each. As integers: Elias-Fano numbers or a bitmap, both counted from the least prefix.

use std::cmp::Ordering;

use tamis_bits::{BitBuilder, Bits, EliasFanoShape, RankShape, elias_fano, rank};

use super::bits::BitString;
use super::design::SetForm;
use super::layout::{LEVEL_BYTES, SetPart, SetShape};
use crate::trie::{self, Depth, Edge, LeafWords, Levels, Node, TRAILER_BYTES, Trie, shared_bytes};
use crate::{BuildError, Family};

/// Which prefixes of a range are in the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ends {
    /// The first one.
    pub(super) has_first: bool,
    /// One between the first and the last.
    pub(super) has_between: bool,
    /// The last one, where it is another than the first.
    pub(super) has_last: bool,
}

impl Ends {
    const BETWEEN: Self = Self { has_first: false, has_between: true, has_last: false };
}

/// Appends the set of so many integers in one of the forms for integers; they are counted from the least, which is 0, to the last.
pub(super) fn encode_integers(
    target: &mut Vec<u8>,
    form: SetForm,
    (count, last): (u64, u64),
    integers: impl Iterator<Item = u64>,
) {
    match form {
        SetForm::EliasFano => elias_fano::encode(target, count, last, integers),
        SetForm::MarkedEliasFano => elias_fano::encode_marked(target, count, last, integers),
        SetForm::Bitmap | SetForm::Trie => {
            let mut bits = BitBuilder::new();
            for integer in integers {
                bits.push_many(false, integer - bits.len());
                bits.push(true);
            }
            rank::encode(target, &bits.finish(), last + 1, rank::Select::None);
        }
    }
}

/// Nothing is kept for a leaf.
struct NoWords;

impl LeafWords for NoWords {
    fn count(&self) -> usize {
        0
    }

    fn words(&mut self, _key: &[u8], _depth: usize) -> [u64; 2] {
        [0; 2]
    }
}

/// Takes prefixes in order and makes a trie of them.
#[derive(Debug)]
pub(super) struct TrieSetBuilder {
    depth: u32,
    levels: Levels,
    /// The last prefix, and the bytes that it shares with the one before.
    pending: Vec<u8>,
    shared_before: usize,
    is_first: bool,
    /// For each level the explicit bits of its leaves, and their number.
    explicit: Vec<(BitBuilder, u32)>,
}

impl TrieSetBuilder {
    pub(super) fn new(depth: u32) -> Self {
        let levels = Levels::new(Depth::Lone);
        let (pending, explicit) = (Vec::new(), Vec::new());
        Self { depth, levels, pending, shared_before: 0, is_first: true, explicit }
    }

    /// Takes the next prefix, `depth` bits in whole bytes; a repeated one is passed over.
    pub(super) fn add(&mut self, prefix: &[u8]) -> Result<(), BuildError> {
        if !self.levels.add(prefix, &mut NoWords)? {
            return Ok(());
        }
        if !std::mem::take(&mut self.is_first) {
            let shared = shared_bytes(&self.pending, prefix);
            self.write_pending(shared);
            self.shared_before = shared;
        }
        self.pending.clear();
        self.pending.extend_from_slice(prefix);
        Ok(())
    }

    fn write_pending(&mut self, shared_after: usize) {
        let level = self.shared_before.max(shared_after);
        if self.explicit.len() <= level {
            self.explicit.resize_with(level + 1, Default::default);
        }
        let Some((bits, count)) = self.explicit.get_mut(level) else { return };
        *count += 1;
        let string = BitString::key(&self.pending);
        let mut from = (level as u32 + 1) * 8;
        while from < self.depth {
            let width = (self.depth - from).min(64);
            bits.push_bits(string.bits(from, width), width);
            from += width;
        }
    }

    /// Appends the set; returns the layout of its trie.
    pub(super) fn finish(mut self, target: &mut Vec<u8>) -> Result<(), BuildError> {
        if !self.is_first {
            self.write_pending(0);
        }
        self.levels.seal(&mut NoWords);
        let encoded = trie::plan(&self.levels, self.levels.levels().len(), true)
            .and_then(|plan| trie::encode(&self.levels, &plan));
        let too_large =
            BuildError::Refused { family: Family::Proteus.name(), reason: "its trie has too many labels" };
        let encoded = encoded.ok_or(too_large)?;
        target.extend_from_slice(&encoded.bytes);
        let mut all = BitBuilder::new();
        let mut table = Vec::with_capacity(self.explicit.len() * LEVEL_BYTES);
        let mut leaf_start = 0_u32;
        for (bits, count) in self.explicit {
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

/// A set at rest.
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

    /// For the forms for integers: what of a range of prefixes is there.
    #[inline(always)]
    pub(super) fn integer_ends(&self, first: u64, last: u64) -> Ends {
        let Some(high) = last.checked_sub(self.part.least) else { return Ends::default() };
        // What lies below the least prefix or above the greatest is not there, and not between either.
        let (low, is_below) = match first.checked_sub(self.part.least) {
            Some(low) => (low, false),
            None => (0, true),
        };
        if low > self.part.last {
            return Ends::default();
        }
        match &self.part.shape {
            SetShape::Bitmap(shape) => self.bitmap_ends(shape, low, high, is_below),
            SetShape::EliasFano(shape) => self.elias_fano_ends(shape, low, high, is_below),
            SetShape::Trie(_) => Ends::BETWEEN,
        }
    }

    #[inline(always)]
    fn bitmap_ends(&self, shape: &RankShape, low: u64, high: u64, is_below: bool) -> Ends {
        let Some(bits) = shape.view(self.bytes) else { return Ends::BETWEEN };
        let has_first = !is_below && bits.bits().get(low);
        if low == high && !is_below {
            return Ends { has_first, has_between: false, has_last: false };
        }
        let after_first = if is_below { 0 } else { low + 1 };
        let end = high.min(self.part.last + 1);
        let has_between = if end <= after_first {
            false
        } else if end - after_first <= 64 {
            bits.bits().get_bits(after_first, (end - after_first) as u32) != 0
        } else {
            bits.rank(end) > bits.rank(after_first)
        };
        Ends { has_first, has_between, has_last: bits.bits().get(high) }
    }

    #[inline(always)]
    fn elias_fano_ends(&self, shape: &EliasFanoShape, low: u64, high: u64, is_below: bool) -> Ends {
        let Some(integers) = shape.view(self.bytes) else { return Ends::BETWEEN };
        let Some((index, found)) = integers.successor(low) else { return Ends::default() };
        if found > high {
            return Ends::default();
        }
        if found != low || is_below {
            return Ends { has_first: false, has_between: found < high, has_last: found == high };
        }
        if low == high {
            return Ends { has_first: true, ..Ends::default() };
        }
        let next = integers.get(index + 1);
        Ends {
            has_first: true,
            has_between: next.is_some_and(|next| next < high),
            has_last: next == Some(high),
        }
    }

    /// For the trie: what of a range of prefixes is there.
    #[inline(always)]
    pub(super) fn string_ends(&self, lower: &BitString<'_>, upper: &BitString<'_>) -> Ends {
        let SetShape::Trie(layout) = &self.part.shape else { return Ends::BETWEEN };
        let table_end = self.bytes.len().saturating_sub(TRAILER_BYTES);
        let table_start = table_end.saturating_sub(layout.counts.height as usize * LEVEL_BYTES);
        let walk = TrieWalk {
            trie: Trie::new(self.bytes, layout),
            explicit: self.bytes.get(layout.leaves..table_start).unwrap_or_default(),
            table: self.bytes.get(table_start..table_end).unwrap_or_default(),
            depth: self.part.depth,
        };
        walk.ends(lower, upper)
    }
}

/// Walks through a trie of one depth.
#[derive(Debug, Clone, Copy)]
struct TrieWalk<'a> {
    trie: Trie<'a>,
    explicit: &'a [u8],
    table: &'a [u8],
    depth: u32,
}

impl TrieWalk<'_> {
    /// A byte of a string's prefix.
    #[inline(always)]
    fn byte(&self, string: &BitString<'_>, index: usize) -> u8 {
        let behind = (index as u32 + 1) * 8;
        let byte = string.byte(index);
        if behind > self.depth { byte & 0xff << (behind - self.depth).min(7) } else { byte }
    }

    /// How the prefix at a leaf of a level compares with that of a string which begins with the same bytes.
    #[inline(always)]
    fn compare(&self, edge: &Edge, level: usize, string: &BitString<'_>) -> Ordering {
        let mut from = (level as u32 + 1) * 8;
        if from >= self.depth {
            return Ordering::Equal;
        }
        let width = u64::from(self.depth - from);
        let entry = self.table.get(level * LEVEL_BYTES..).unwrap_or_default();
        let leaf_start = entry.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let bit_start =
            entry.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let leaf = self.trie.leaf_index(edge).saturating_sub(u64::from(leaf_start));
        let mut place = bit_start.saturating_add(leaf.saturating_mul(width));
        let Some(bits) = Bits::new(self.explicit, self.explicit.len() as u64 * 8) else {
            return Ordering::Equal;
        };
        while from < self.depth {
            let width = (self.depth - from).min(64);
            let order = bits.get_bits(place, width).cmp(&string.bits(from, width));
            if order != Ordering::Equal {
                return order;
            }
            from += width;
            place = place.saturating_add(u64::from(width));
        }
        Ordering::Equal
    }

    #[inline(always)]
    fn ends(&self, lower: &BitString<'_>, upper: &BitString<'_>) -> Ends {
        let Some(mut node) = self.trie.root() else { return Ends::default() };
        for level in 0.. {
            let (low, high) = (self.byte(lower, level), self.byte(upper, level));
            if low != high {
                return self.ends_apart(node, level, (lower, low), (upper, high));
            }
            let Some(edge) = self.trie.find(node, low) else { break };
            match self.trie.child(&edge) {
                Some(child) => node = child,
                None => {
                    let from_lower = self.compare(&edge, level, lower);
                    let from_upper = self.compare(&edge, level, upper);
                    return Ends {
                        has_first: from_lower == Ordering::Equal,
                        has_between: from_lower == Ordering::Greater && from_upper == Ordering::Less,
                        has_last: from_lower == Ordering::Greater && from_upper == Ordering::Equal,
                    };
                }
            }
        }
        Ends::default()
    }

    /// At the node where both ends part.
    #[inline(always)]
    fn ends_apart(
        &self,
        node: Node,
        level: usize,
        (lower, low): (&BitString<'_>, u8),
        (upper, high): (&BitString<'_>, u8),
    ) -> Ends {
        let Some(mut edge) = self.trie.at_or_after(node, low) else { return Ends::default() };
        let mut has_first = false;
        if edge.label == low {
            let next = self.trie.next(&edge);
            if next.is_some_and(|next| next.label < high) {
                return Ends::BETWEEN;
            }
            let order = self.first_from(edge, level, lower);
            match (order, next) {
                (Some(Ordering::Greater), _) => return Ends::BETWEEN,
                (_, None) => return Ends { has_first: order.is_some(), ..Ends::default() },
                (_, Some(next)) => (has_first, edge) = (order.is_some(), next),
            }
        }
        if edge.label < high {
            return Ends::BETWEEN;
        }
        let order = if edge.label == high { self.first_up_to(edge, level, upper) } else { None };
        Ends {
            has_first,
            has_between: order == Some(Ordering::Less),
            has_last: order == Some(Ordering::Equal),
        }
    }

    /// Below a label on the lower end's path: whether there is a prefix beyond the end's (`Greater`), else whether there is that
    /// one (`Equal`).
    #[inline(always)]
    fn first_from(&self, mut edge: Edge, mut level: usize, lower: &BitString<'_>) -> Option<Ordering> {
        loop {
            let Some(node) = self.trie.child(&edge) else {
                return Some(self.compare(&edge, level, lower)).filter(|order| *order != Ordering::Less);
            };
            level += 1;
            let low = self.byte(lower, level);
            edge = self.trie.at_or_after(node, low)?;
            if edge.label != low || self.trie.next(&edge).is_some() {
                return Some(Ordering::Greater);
            }
        }
    }

    /// Below a label on the upper end's path: whether there is a prefix before the end's (`Less`), else whether there is that one
    /// (`Equal`).
    #[inline(always)]
    fn first_up_to(&self, mut edge: Edge, mut level: usize, upper: &BitString<'_>) -> Option<Ordering> {
        loop {
            let Some(node) = self.trie.child(&edge) else {
                return Some(self.compare(&edge, level, upper)).filter(|order| *order != Ordering::Greater);
            };
            level += 1;
            let high = self.byte(upper, level);
            edge = self.trie.at_or_after(node, 0)?;
            if edge.label != high {
                return (edge.label < high).then_some(Ordering::Less);
            }
        }
    }
}
