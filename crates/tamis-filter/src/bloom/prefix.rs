//! Prefix Bloom filters: family 3 of `docs/format/filter.md`.
//!
//! One digest for each distinct prefix of the keys, in blocked lines. A range is denied where it lies within one prefix,
//! or, up to 64 bits, within at most [`PREFIXES_MAX`] neighbouring ones, and none of them is there. Points ask for the prefix
//! of the key.
//!
//! **Keys shorter than the prefix** are continued by zero bits, when they are added and when they are asked for. So `"a"` and
//! `"a\0"` have the same prefix of 16 bits; prefixes keep the order of the keys.

mod builder;
mod reader;

pub use builder::PrefixBuilder;
pub use reader::PrefixFilter;

/// Most neighbouring prefixes that a range is looked up under.
pub const PREFIXES_MAX: u64 = 16;

/// Longest prefix.
const BIT_COUNT_MAX: u32 = 65_535 * 8;

/// Where keys share prefixes, the budget of the keys may be far more than their prefixes need: the filter takes at most so
/// many bits for each.
const BITS_PER_PREFIX_MAX: f64 = 24.0;

#[cfg(test)]
mod tests;
