//! Keys, bounds and values of a history: hostile shapes, and few enough keys that they meet.

use std::ops::Bound;

use tamis_workload::SplitMix64;

use crate::model::{Bounds, prefix_bounds};

/// How the keys of a keyspace are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Four bytes, in order.
    Dense,
    /// Eight bytes, spread over all keys.
    Spread,
    /// A long prefix that all share, and a number.
    SharedPrefix,
    /// Each is a prefix of the next one.
    Nested,
    /// Runs of 0x00 and 0xFF, up to six bytes.
    Runs,
    /// One byte.
    OneByte,
    /// As Dense, but most keys are one of two.
    Hot,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 7] =
        [Self::Dense, Self::Spread, Self::SharedPrefix, Self::Nested, Self::Runs, Self::OneByte, Self::Hot];

    /// A key among `count` ones.
    pub fn key(self, random: &mut SplitMix64, count: u64) -> Vec<u8> {
        // One of many thousand has the greatest length.
        if count > 64 && random.below(5_000) == 0 {
            let byte = [0x00, b'm', 0xFF].get(random.below(3) as usize).copied().unwrap_or(0x00);
            return vec![byte; tamis::KEY_LENGTH_MAX];
        }
        let number = random.below(count);
        match self {
            Self::Runs => {
                let length = 1 + random.below(6) as usize;
                let mut byte = || {
                    [0x00, 0x01, b'a', b'b', 0xFE, 0xFF].get(random.below(6) as usize).copied().unwrap_or(0)
                };
                (0..length).map(|_| byte()).collect()
            }
            Self::Hot if random.below(4) > 0 => vec![b'h', random.below(2) as u8],
            _ => self.key_at(number),
        }
    }

    /// The key of a number; greater numbers have greater keys, except in `Spread` and when the bytes of a key do not suffice.
    pub fn key_at(self, number: u64) -> Vec<u8> {
        match self {
            Self::Dense | Self::Hot => (number as u32).to_be_bytes().to_vec(),
            Self::Spread => tamis_workload::mix64(number).to_be_bytes().to_vec(),
            Self::SharedPrefix => {
                [b"a/long/prefix/that/all/share/".as_slice(), &(number as u16).to_be_bytes()].concat()
            }
            Self::Nested => vec![b'n'; 1 + (number % 400) as usize],
            Self::Runs => vec![
                [0x00, 0x01, 0xFE, 0xFF].get(number as usize % 4).copied().unwrap_or(0);
                1 + (number / 4 % 6) as usize
            ],
            Self::OneByte => vec![number as u8],
        }
    }

    /// Bounds of a range; some are reversed or empty.
    pub fn bounds(self, random: &mut SplitMix64, count: u64) -> Bounds {
        if random.below(6) == 0 {
            return prefix_bounds(&self.prefix(random, count));
        }
        let bound = |random: &mut SplitMix64| match random.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.key(random, count)),
            _ => Bound::Excluded(self.key(random, count)),
        };
        let (lower, upper) = (bound(random), bound(random));
        let is_reversed = match (&lower, &upper) {
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower > upper,
            _ => false,
        };

        if is_reversed && random.below(20) > 0 { (upper, lower) } else { (lower, upper) }
    }

    /// A short range from a key on.
    pub fn short_bounds(self, random: &mut SplitMix64, count: u64) -> Bounds {
        let lower = self.key(random, count);
        let mut upper = lower.clone();
        if let Some(last) = upper.last_mut() {
            *last = last.saturating_add(1 + random.below(20) as u8);
        }
        (Bound::Included(lower), Bound::Included(upper))
    }

    /// A key between those that are written, which are not longer or have another end.
    pub fn absent_key(self, number: u64) -> Vec<u8> {
        [self.key_at(number).as_slice(), b"~~~~~~~"].concat()
    }

    /// A prefix of keys.
    pub fn prefix(self, random: &mut SplitMix64, count: u64) -> Vec<u8> {
        let key = self.key(random, count);
        let length = 1 + random.below(key.len() as u64) as usize;
        key.get(..length).unwrap_or(&key).to_vec()
    }
}

/// A value as a step has it: the bytes follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueSpec {
    /// Makes the value unique.
    pub number: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Whether it repeats, so that it can be compressed.
    pub is_regular: bool,
}

impl ValueSpec {
    /// Draws a value; most are short.
    pub fn draw(random: &mut SplitMix64, length_max: u32) -> Self {
        let length = match random.below(1_000) {
            0..100 => 0,
            100..800 => random.below(100) as u32,
            800..960 => random.below(1_000) as u32,
            960..998 => random.below(9_000) as u32,
            998 => random.below(200_000) as u32,
            _ => random.below(4_000_000) as u32,
        };
        Self { number: random.next_u64(), length: length.min(length_max), is_regular: random.below(2) == 0 }
    }

    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        let mut random = SplitMix64::new(self.number);
        let mut word = self.number;
        let mut bytes = Vec::with_capacity(self.length as usize + 8);
        while bytes.len() < self.length as usize {
            bytes.extend(word.to_le_bytes());
            if !self.is_regular {
                word = random.next_u64();
            }
        }
        bytes.truncate(self.length as usize);
        bytes
    }
}
