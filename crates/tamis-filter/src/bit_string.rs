//! Keys and bounds as infinite strings of bits.
//!
//! A key continues with zeros, the upper end of a prefix with ones. An exclusive upper bound that ends with a nonzero byte becomes the
//! greatest string below it: its last byte minus one, then ones. If all keys have one length, an exclusive lower bound of that length becomes
//! the key after it. Nothing is copied: callers read some bits from a position. The first
//! bits, which most queries need, are kept in a `u128`.

use tamis_bits::long_key_head;

use crate::{KeyRange, Upper};

/// Bits of a string that are kept in its head.
pub(crate) const HEAD_BITS: u32 = u128::BITS;

/// Bytes and the bits that follow them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BitString<'a> {
    /// The first bits.
    head: u128,
    bytes: &'a [u8],
    /// Added to the last byte without a carry: 0, 1 or -1.
    step: i8,
    fill: u8,
}

impl<'a> BitString<'a> {
    /// A key.
    #[inline(always)]
    pub(crate) fn key(bytes: &'a [u8]) -> Self {
        Self { head: long_key_head(bytes), bytes, step: 0, fill: 0 }
    }

    /// Bytes followed by ones.
    #[inline(always)]
    fn before_ones(bytes: &'a [u8]) -> Self {
        let ones = u128::MAX.checked_shr(8 * bytes.len().min(16) as u32).unwrap_or(0);
        Self { head: long_key_head(bytes) | ones, bytes, step: 0, fill: 0xff }
    }

    /// The least string of a range. `key_bytes` is the length of all keys, 0 for keys of several lengths.
    #[inline(always)]
    pub(crate) fn lower(range: &KeyRange<'a>, key_bytes: usize) -> Self {
        if key_bytes != 0
            && let Some(bytes) = range.lower_to_increment(key_bytes)
        {
            return Self::incremented(bytes);
        }
        Self::key(range.lower_bytes())
    }

    #[inline(never)]
    fn incremented(bytes: &'a [u8]) -> Self {
        let string = Self::key(bytes);
        Self { head: string.head.wrapping_add(last_unit(bytes)), step: 1, ..string }
    }

    /// Whether it is the least key in a range, above a lower bound.
    #[inline(always)]
    pub(crate) const fn is_incremented(&self) -> bool {
        self.step > 0
    }

    /// Whether it is greater than another string.
    pub(crate) fn is_above(&self, other: &Self) -> bool {
        let shared = self.common_bits(other);
        shared != u32::MAX && self.bits(shared, 1) > other.bits(shared, 1)
    }

    /// Length of the common prefix of two strings in bits; `u32::MAX` if they are equal.
    pub(crate) fn common_bits(&self, other: &Self) -> u32 {
        // The bits after both strings are equal if the first eight of them are.
        let all = (self.bytes.len().max(other.bytes.len()) as u32 + 1).saturating_mul(8);
        let shared = self.shared_bits(other, all);
        if shared == all { u32::MAX } else { shared }
    }

    /// The greatest string of a range, or a greater one.
    #[inline(always)]
    pub(crate) fn upper(range: &KeyRange<'a>) -> Self {
        match range.upper {
            Upper::Open => Self::before_ones(b""),
            Upper::Prefix(prefix) => Self::before_ones(prefix),
            Upper::Included(upper) => Self::key(upper),
            Upper::Excluded(upper) if upper.last().is_some_and(|last| *last != 0) => {
                let string = Self::before_ones(upper);
                Self { head: string.head.wrapping_sub(last_unit(upper)), step: -1, ..string }
            }
            Upper::Excluded(upper) => Self::key(upper),
        }
    }

    /// The first [`HEAD_BITS`] bits.
    #[inline(always)]
    pub(crate) const fn head(&self) -> u128 {
        self.head
    }

    /// A byte by its index.
    #[inline(always)]
    pub(crate) fn byte(&self, index: usize) -> u8 {
        if index < 16 {
            // A shift of all of the head by a multiple of 8 becomes a load of a byte, which the compiler may move before the test of
            // the index. The shift of a half is always in bounds.
            let half = if index < 8 { (self.head >> 64) as u64 } else { self.head as u64 };
            return (half >> (56 - 8 * (index % 8))) as u8;
        }
        match self.bytes.get(index) {
            Some(byte) if index + 1 == self.bytes.len() => byte.wrapping_add_signed(self.step),
            Some(byte) => *byte,
            None => self.fill,
        }
    }

    /// The 64 bits from a position.
    #[inline(always)]
    pub(crate) fn word(&self, from: u32) -> u64 {
        if from <= 64 {
            return (self.head >> (64 - from)) as u64;
        }
        let start = (from / 8) as usize;
        let shift = from % 8;
        let (head, next) = match self.bytes.get(start..).and_then(|rest| rest.first_chunk::<9>()) {
            // A last byte that differs from that of the string is not one of those that are read.
            Some(chunk) if self.step == 0 || start + 9 < self.bytes.len() => {
                let [head @ .., next] = *chunk;
                (head, next)
            }
            _ => (std::array::from_fn(|index| self.byte(start + index)), self.byte(start + 8)),
        };
        let word = u64::from_be_bytes(head);
        if shift == 0 { word } else { word << shift | u64::from(next) >> (8 - shift) }
    }

    /// The `count` bits (at most 64) from a position, as a number.
    #[inline(always)]
    pub(crate) fn bits(&self, from: u32, count: u32) -> u64 {
        self.word(from).checked_shr(64 - count.min(64)).unwrap_or(0)
    }

    /// Length of the common prefix of two strings in bits, at most `max`.
    pub(crate) fn shared_bits(&self, other: &Self, max: u32) -> u32 {
        let mut shared = (self.head ^ other.head).leading_zeros();
        if shared < HEAD_BITS {
            return shared.min(max);
        }
        while shared < max {
            let difference = self.word(shared) ^ other.word(shared);
            shared = shared.saturating_add(difference.leading_zeros());
            if difference != 0 {
                break;
            }
        }
        shared.min(max)
    }

    /// Writes the first `bit_count` bits in whole bytes, the rest of the last byte zero.
    pub(crate) fn write_prefix(&self, bit_count: u32, target: &mut [u8]) {
        for (index, byte) in target.iter_mut().enumerate() {
            *byte = self.byte(index);
        }
        mask_last(target, bit_count);
    }
}

/// One in the last byte of a string, if the head has it.
#[inline(always)]
fn last_unit(bytes: &[u8]) -> u128 {
    if bytes.len() > 16 {
        return 0;
    }
    1_u128.checked_shl(HEAD_BITS - 8 * bytes.len() as u32).unwrap_or(0)
}

/// Clears the bits of the last byte that are not part of a prefix of `bit_count` bits.
pub(crate) fn mask_last(prefix: &mut [u8], bit_count: u32) {
    let spare = bit_count % 8;
    if spare != 0
        && let Some(last) = prefix.last_mut()
    {
        *last &= 0xff << (8 - spare);
    }
}

/// Adds `steps` to a prefix of `bit_count` bits in whole bytes (0: to all bits of the bytes). Wraps around at the greatest, and then returns `false`.
pub(crate) fn advance(prefix: &mut [u8], bit_count: u32, steps: u64) -> bool {
    let mut carry = u128::from(steps) << ((8 - bit_count % 8) % 8);
    for byte in prefix.iter_mut().rev() {
        carry += u128::from(*byte);
        *byte = carry as u8;
        carry >>= 8;
        if carry == 0 {
            break;
        }
    }
    carry == 0
}
