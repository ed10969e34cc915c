//! The bounds of a range as node numbers at a depth.
//!
//! The number of a node of depth `d` is the integer of its `d` bits. Of nodes deeper than 64 bits, only the last 64
//! bits are kept (the *window*), and both bounds must have the bits before the window in common. Otherwise the range
//! has no span at that depth: the nodes between the bounds exceed any budget, or the range crosses the border of a
//! window. The filter then answers "may contain".

use std::ops::Bound;

use tamis_bits::key_head;

use crate::{KeyRange, Upper};

/// Keys of one length up to this are handled as integers, exactly.
pub(super) const WORD_BYTES: u32 = 8;

/// One end of a range as an infinite string: `bytes`, `step` (0, 1 or -1) added to the last byte without a carry, then `fill` without
/// end.
#[derive(Debug, Clone, Copy)]
struct Edge<'a> {
    bytes: &'a [u8],
    step: i8,
    fill: u8,
}

impl<'a> Edge<'a> {
    /// If all keys have one length, an excluded bound of that length becomes the key after it.
    fn lower(range: &KeyRange<'a>, key_bytes: usize) -> Self {
        match range.lower_to_increment(key_bytes) {
            Some(bytes) => Self { bytes, step: 1, fill: 0 },
            None => Self { bytes: range.lower_bytes(), step: 0, fill: 0 },
        }
    }

    fn upper(range: &KeyRange<'a>) -> Self {
        match range.upper {
            Upper::Open => Self { bytes: b"", step: 0, fill: 0xff },
            Upper::Included(bytes) => Self { bytes, step: 0, fill: 0 },
            Upper::Prefix(bytes) => Self { bytes, step: 0, fill: 0xff },
            // All keys smaller than "ab" are at most "aa" followed by 0xff without end. A last byte of zero cannot be
            // decremented: the bound itself is then included, which costs at most a false positive.
            Upper::Excluded(bytes) => {
                let is_before = bytes.last().is_some_and(|last| *last != 0);
                if is_before {
                    Self { bytes, step: -1, fill: 0xff }
                } else {
                    Self { bytes, step: 0, fill: 0 }
                }
            }
        }
    }

    fn byte(&self, index: usize) -> u8 {
        let is_last = index + 1 == self.bytes.len();
        let step = if is_last { self.step } else { 0 };
        self.bytes.get(index).map_or(self.fill, |byte| byte.wrapping_add_signed(step))
    }

    /// The eight bytes that end before byte `end`, which is at least 8.
    fn window(&self, end: usize) -> u64 {
        if let Some(bytes) = self.bytes.get(end - 8..end).filter(|_| end < self.bytes.len() || self.step == 0)
        {
            return key_head(bytes);
        }
        (end - 8..end).fold(0, |window, index| window << 8 | u64::from(self.byte(index)))
    }

    fn head(&self) -> u64 {
        let length = self.bytes.len();
        let filled = if length < 8 && self.fill != 0 { u64::MAX >> (8 * length) } else { 0 };
        let unit = if (1..=8).contains(&length) { 1 << (64 - 8 * length) } else { 0 };
        let added = i64::from(self.step).wrapping_mul(unit);
        (key_head(self.bytes) | filled).wrapping_add_signed(added)
    }

    /// The number of leading bits in common with a key, which is continued by zeros; `u32::MAX` if all are equal.
    fn shared_bits(&self, key: &[u8]) -> u32 {
        let length = self.bytes.len().max(key.len()) + 1;
        (0..length)
            .find_map(|index| {
                let difference = self.byte(index) ^ key.get(index).copied().unwrap_or(0);
                (difference != 0).then(|| index as u32 * 8 + difference.leading_zeros())
            })
            .unwrap_or(u32::MAX)
    }
}

/// Both ends of a range that can contain a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds<'a> {
    /// Keys of one length up to eight bytes: the smallest and the largest of them, as integers.
    Words {
        /// The smallest key.
        lower: u64,
        /// The largest key.
        upper: u64,
        /// Bits of a key.
        bit_count: u32,
    },
    /// Other keys.
    Bytes(Ends<'a>),
}

/// Both ends as infinite strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    lower: Edge<'a>,
    upper: Edge<'a>,
    heads: (u64, u64),
    /// Number of equal leading bytes, including the first fill byte.
    shared_bytes: usize,
}

impl<'a> Bounds<'a> {
    /// `key_bytes` is the length of all keys, 0 for keys of several lengths. `None` if no such key can be in the
    /// range.
    #[inline]
    pub(super) fn new(range: &KeyRange<'a>, key_bytes: u32) -> Option<Self> {
        if range.is_empty() {
            return None;
        }
        if (1..=WORD_BYTES).contains(&key_bytes) {
            let length = key_bytes as usize;
            let bit_count = key_bytes * 8;
            let lower = least_word(range.lower, length)?;
            let upper = greatest_word(range.upper, length)?;
            return (lower <= upper).then_some(Self::Words { lower, upper, bit_count });
        }
        let (lower, upper) = (Edge::lower(range, key_bytes as usize), Edge::upper(range));
        let length = lower.bytes.len().max(upper.bytes.len());
        // The byte after both ends is a fill byte: bounds with equal bytes may still differ there.
        let differing = (0..=length).find(|index| lower.byte(*index) != upper.byte(*index));
        if lower.step > 0 && differing.is_some_and(|index| lower.byte(index) > upper.byte(index)) {
            return None;
        }
        let shared_bytes = differing.unwrap_or(usize::MAX);
        let heads = (lower.head(), upper.head());
        Some(Self::Bytes(Ends { lower, upper, heads, shared_bytes }))
    }

    /// The first and the last node that the range touches at a depth; `None` if they have no common window.
    #[inline]
    pub(super) fn span(&self, depth: u32) -> Option<(u64, u64)> {
        match self {
            Self::Words { lower, upper, bit_count } => {
                let shift = bit_count.saturating_sub(depth);
                Some((lower.checked_shr(shift).unwrap_or(0), upper.checked_shr(shift).unwrap_or(0)))
            }
            Self::Bytes(ends) if depth <= 64 => {
                let shift = 64 - depth;
                let (lower, upper) = ends.heads;
                Some((lower.checked_shr(shift).unwrap_or(0), upper.checked_shr(shift).unwrap_or(0)))
            }
            Self::Bytes(ends) => {
                let end = depth as usize / 8;
                (ends.shared_bytes >= end - 8).then(|| (ends.lower.window(end), ends.upper.window(end)))
            }
        }
    }

    /// The bytes before the window of a node deeper than 64 bits: those of the lower bound.
    pub(super) fn copy_front(&self, byte_count: usize, target: &mut Vec<u8>) {
        target.clear();
        if let Self::Bytes(ends) = self {
            target.extend((0..byte_count).map(|index| ends.lower.byte(index)));
        }
    }

    /// The number of leading bits that the lower and the upper bound have in common with one of two keys.
    pub(super) fn shared_bits(&self, neighbours: [Option<&[u8]>; 2]) -> (u32, u32) {
        let mut shared = (0, 0);
        for key in neighbours.into_iter().flatten() {
            let (lower, upper) = match self {
                Self::Words { lower, upper, bit_count } => {
                    let word = key_head(key).checked_shr(64 - bit_count).unwrap_or(0);
                    let agree = |bound: u64| (bound ^ word).leading_zeros() + bit_count - 64;
                    (agree(*lower), agree(*upper))
                }
                Self::Bytes(ends) => (ends.lower.shared_bits(key), ends.upper.shared_bits(key)),
            };
            shared = (lower.max(shared.0), upper.max(shared.1));
        }
        shared
    }
}

/// The first `length` bytes of a key as an integer, continued by zeros.
#[inline]
fn word(key: &[u8], length: usize) -> u64 {
    key_head(key).checked_shr(64 - 8 * length as u32).unwrap_or(0)
}

const fn word_max(length: usize) -> u64 {
    u64::MAX >> (64 - 8 * length as u32)
}

/// The smallest key of a length that meets a lower bound.
#[inline]
fn least_word(lower: Bound<&[u8]>, length: usize) -> Option<u64> {
    let (key, is_above) = match lower {
        Bound::Unbounded => return Some(0),
        Bound::Included(key) => (key, key.len() > length),
        Bound::Excluded(key) => (key, key.len() >= length),
    };
    let least = word(key, length);
    if !is_above {
        return Some(least);
    }
    (least < word_max(length)).then(|| least + 1)
}

/// The largest key of a length that meets an upper bound.
#[inline]
fn greatest_word(upper: Upper<'_>, length: usize) -> Option<u64> {
    let (key, is_below) = match upper {
        Upper::Open => return Some(word_max(length)),
        Upper::Included(key) => (key, key.len() < length),
        Upper::Excluded(key) => (key, key.len() <= length),
        Upper::Prefix(key) => {
            let rest = if key.len() < length { word_max(length) >> (8 * key.len()) } else { 0 };
            return Some(word(key, length) | rest);
        }
    };
    let greatest = word(key, length);
    if is_below { greatest.checked_sub(1) } else { Some(greatest) }
}

#[cfg(test)]
mod tests;
