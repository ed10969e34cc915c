//! Binary fuse filters: family 5 of `docs/format/filter.md`.
//!
//! A static filter with a fingerprint of 8, 16 or 32 bits: about 1.13 bits for each bit of fingerprint, where a Bloom filter
//! needs 1.44, at three scattered reads a key. For the deepest level, whose filters are large and live long. Construction is
//! that of the crate `xorf` (about 30 bytes of memory a key); reading in place is ours.

mod builder;
mod reader;

pub use builder::{Fuse, FuseBuilder};
pub use reader::FuseFilter;

/// Widths of fingerprints in bits.
const WIDTHS: [u8; 3] = [8, 16, 32];

/// Largest segment that the construction makes: 2^18 fingerprints.
const SEGMENT_BITS_MAX: u8 = 18;

#[cfg(test)]
mod tests;
