//! Binary fuse filters: family 5 of `docs/format/filter.md`.
//!
//! A static filter with a fingerprint of 8, 16 or 32 bits: about 1.13 bits per bit of fingerprint, where a Bloom
//! filter needs 1.44, at three random reads per key. For the deepest level, whose filters are large and live long. The
//! crate `xorf` constructs it (about 30 bytes of memory per key); the reader is ours.

mod builder;
mod reader;

pub use builder::{Fuse, FuseBuilder};
pub use reader::FuseFilter;

/// Widths of fingerprints in bits.
const WIDTHS: [u8; 3] = [8, 16, 32];

/// Largest segment of the construction: 2^18 fingerprints.
const SEGMENT_BITS_MAX: u8 = 18;

#[cfg(test)]
mod tests;
