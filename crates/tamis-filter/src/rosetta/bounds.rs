//! The bounds of a range as numbers of nodes at a depth.
//!
//! A node of depth `d` is the number that its `d` bits make; of those deeper than 64 bits only the last 64 are kept (its
//! *window*), and both bounds then must agree in the bits before. Where they do not, the nodes between them are too many for
//! any budget, or the range lies across such a border: no span, which is answered as "may be".

use std::ops::Bound;

use tamis_bits::key_head;

use crate::{KeyRange, Upper};

/// Keys of one length up to this are handled as integers, exactly.
pub(super) const WORD_BYTES: u32 = 8;

/// One end of a range as an endless string: bytes, the last of them one smaller where `is_before`, then `fill` for ever.
#[derive(Debug, Clone, Copy)]
struct Edge<'a> {
    bytes: &'a [u8],
    is_before: bool,
    fill: u8,
}

impl<'a> Edge<'a> {
    fn lower(range: &KeyRange<'a>) -> Self {
        Self { bytes: range.lower_bytes(), is_before: false, fill: 0 }
    }

    fn upper(range: &KeyRange<'a>) -> Self {
        match range.upper {
            Upper::Open => Self { bytes: b"", is_before: false, fill: 0xff },
            Upper::Included(bytes) => Self { bytes, is_before: false, fill: 0 },
            Upper::Prefix(bytes) => Self { bytes, is_before: false, fill: 0xff },
            // Whatever is smaller than "ab" is at most "aa" continued by ones. Behind a zero there is nothing to take from:
            // the bound itself is let in, which costs a false positive at most.
            Upper::Excluded(bytes) => {
                let is_before = bytes.last().is_some_and(|last| *last != 0);
                Self { bytes, is_before, fill: if is_before { 0xff } else { 0 } }
            }
        }
    }

    fn byte(&self, index: usize) -> u8 {
        let is_last = index + 1 == self.bytes.len();
        self.bytes.get(index).map_or(self.fill, |byte| byte.wrapping_sub(u8::from(is_last && self.is_before)))
    }

    /// The eight bytes that end before byte `end`, which is at least 8.
    fn window(&self, end: usize) -> u64 {
        if let Some(bytes) =
            self.bytes.get(end - 8..end).filter(|_| end < self.bytes.len() || !self.is_before)
        {
            return key_head(bytes);
        }
        (end - 8..end).fold(0, |window, index| window << 8 | u64::from(self.byte(index)))
    }

    fn head(&self) -> u64 {
        let length = self.bytes.len();
        let filled = if length < 8 && self.fill != 0 { u64::MAX >> (8 * length) } else { 0 };
        let taken = if self.is_before && (1..=8).contains(&length) { 1 << (64 - 8 * length) } else { 0 };
        (key_head(self.bytes) | filled).wrapping_sub(taken)
    }

    /// In how many leading bits this and a key, continued by zeros, agree; `u32::MAX` where in all.
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

/// Both ends of a range that some key could lie in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds<'a> {
    /// Of keys of one length up to eight bytes: the least and the greatest of them, as integers.
    Words {
        /// The least key.
        lower: u64,
        /// The greatest key.
        upper: u64,
        /// Bits of a key.
        bit_count: u32,
    },
    /// Of other keys.
    Bytes(Ends<'a>),
}

/// Both ends as endless strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    lower: Edge<'a>,
    upper: Edge<'a>,
    heads: (u64, u64),
    /// Leading bytes in which both agree, counted up to where one of them is only fill.
    shared_bytes: usize,
}

impl<'a> Bounds<'a> {
    /// `key_bytes` is the length of all keys, 0 where they have several. `None` where no such key can lie in the range.
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
        let (lower, upper) = (Edge::lower(range), Edge::upper(range));
        let length = lower.bytes.len().max(upper.bytes.len());
        // The byte behind both is that of the fills: bounds that agree in all given bytes may still differ there.
        let shared_bytes =
            (0..=length).find(|index| lower.byte(*index) != upper.byte(*index)).unwrap_or(usize::MAX);
        let heads = (lower.head(), upper.head());
        Some(Self::Bytes(Ends { lower, upper, heads, shared_bytes }))
    }

    /// The first and the last node that the range touches at a depth; `None` where they are too far apart to be told.
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

    /// In how many leading bytes both bounds agree, and how many values of the next byte lie between them. Of integers nothing is told.
    #[inline]
    pub(super) fn first_difference(&self) -> (usize, u32) {
        let Self::Bytes(ends) = self else { return (0, 1) };
        let index = ends.shared_bytes.min(ends.lower.bytes.len().max(ends.upper.bytes.len()));
        let values = u32::from(ends.upper.byte(index).saturating_sub(ends.lower.byte(index))) + 1;
        (index, values)
    }

    /// The bytes of a node deeper than 64 bits before its window: those of the lower bound.
    pub(super) fn copy_front(&self, byte_count: usize, target: &mut Vec<u8>) {
        target.clear();
        if let Self::Bytes(ends) = self {
            target.extend((0..byte_count).map(|index| ends.lower.byte(index)));
        }
    }

    /// How far, in bits, the lower and the upper bound agree with one of two keys.
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

/// The least key of a length that meets a lower bound.
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

/// The greatest key of a length that meets an upper bound.
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
