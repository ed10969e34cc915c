//! Fixed and variable-length integers (little-endian, LEB128) and the checksum of all files.
//!
//! Readers use a [`Decoder`] over a byte slice: every `take_*` returns `None` past the end, so that no decoder indexes
//! bytes from disk.

use std::fmt;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes of a checksum.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The checksum of all files: XXH3, 64 bits. The seed is the offset of the covered bytes (or 0 if it is not fixed), so that
/// bytes that were read from the wrong place are detected.
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// Computes the [`checksum`] of bytes that come in parts.
pub(crate) struct StreamedChecksum(Xxh3);

impl fmt::Debug for StreamedChecksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StreamedChecksum({:#018x})", self.finish())
    }
}

impl StreamedChecksum {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// Declares an enum whose variants are numbers of a format, and `from_number`: the variant of a number that this version knows.
macro_rules! numbered {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident: $number:ty {
        $($(#[$variant_meta:meta])* $variant:ident = $value:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr($number)]
        $visibility enum $name {
            $($(#[$variant_meta])* $variant = $value,)*
        }

        impl $name {
            $visibility const fn from_number(number: $number) -> Option<Self> {
                match number {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use numbered;

pub(crate) fn put_u16(target: &mut Vec<u8>, value: u16) {
    target.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u32(target: &mut Vec<u8>, value: u32) {
    target.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(target: &mut Vec<u8>, value: u64) {
    target.extend_from_slice(&value.to_le_bytes());
}

/// LEB128: seven bits a byte, least significant first; the top bit is set if more bytes follow.
pub(crate) fn put_varint(target: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        target.push((value as u8) | 0x80);
        value >>= 7;
    }
    target.push(value as u8);
}

/// Bytes of a varint.
pub(crate) const fn varint_length(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Writes a varint at the end of `room`; returns its position. Its front is lost if the room is too small.
pub(crate) fn put_varint_at_end(room: &mut [u8], value: u64) -> usize {
    let length = varint_length(value);
    let start = room.len().saturating_sub(length);
    for (index, byte) in room.iter_mut().skip(start).enumerate() {
        let more = if index + 1 < length { 0x80 } else { 0 };
        *byte = (value >> (7 * index)) as u8 & 0x7F | more;
    }
    start
}

/// A varint length and the bytes.
pub(crate) fn put_bytes(target: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(target, bytes.len() as u64);
    target.extend_from_slice(bytes);
}

/// Decodes values from the front of a byte slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(front)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*front)
    }

    /// All bytes that are left.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn take_u8(&mut self) -> Option<u8> {
        self.take_array::<1>().map(|[byte]| byte)
    }

    /// `None` also for a byte that is neither 0 nor 1.
    pub(crate) fn take_bool(&mut self) -> Option<bool> {
        self.take_u8().filter(|byte| *byte <= 1).map(|byte| byte == 1)
    }

    pub(crate) fn take_u16(&mut self) -> Option<u16> {
        self.take_array().map(u16::from_le_bytes)
    }

    pub(crate) fn take_u32(&mut self) -> Option<u32> {
        self.take_array().map(u32::from_le_bytes)
    }

    pub(crate) fn take_u64(&mut self) -> Option<u64> {
        self.take_array().map(u64::from_le_bytes)
    }

    /// `None` past the end, for a value above 64 bits, and for an encoding that is longer than necessary.
    pub(crate) fn take_varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take_u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 || shift > 0 && byte == 0 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A varint length and that many bytes.
    pub(crate) fn take_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.take_varint()?).ok()?;
        self.take(length)
    }
}

/// A length for a field of 32 bits. Writers bound their lengths before; one that does not fit is a bug and ends the job with a
/// panic, which refuses writes, instead of being cut in a file.
#[inline]
pub(crate) fn length_u32(length: usize) -> u32 {
    u32::try_from(length).expect("the writer bounds the length")
}

/// As [`length_u32`], for a field of 16 bits.
#[inline]
pub(crate) fn length_u16(length: usize) -> u16 {
    u16::try_from(length).expect("the writer bounds the length")
}

/// As [`length_u32`], for a field of 8 bits.
#[inline]
pub(crate) fn length_u8(length: usize) -> u8 {
    u8::try_from(length).expect("the writer bounds the length")
}
