//! Standard Bloom filters: family 2 of `docs/format/filter.md`.
//!
//! The bits of a key are scattered over the whole filter: the lowest rate for a budget, at one cache miss per tested
//! bit. For cold data that needs a very low rate, and as the baseline of experiments.
//!
//! Double hashing derives the positions of the bits from the digest of the key. Independent digests and the rotated
//! digest of the paper on hash sharing have the same rate; the experiments in `research/` compare them.

mod builder;
mod reader;

pub use builder::{Standard, StandardBuilder};
pub use reader::StandardFilter;

pub(crate) use tamis_bits::kernel::place;

/// Maximum number of bits that a key sets.
const PROBE_MAX: u32 = 64;

/// Parameter byte 1 of the format: double hashing, the only scheme.
const SCHEME_DOUBLE: u8 = 2;

#[cfg(test)]
mod tests;
