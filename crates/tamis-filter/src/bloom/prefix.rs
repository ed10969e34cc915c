//! Prefix Bloom filters: family 3 of `docs/format/filter.md`.
//!
//! One digest per distinct prefix of the keys, in blocked lines. A range is rejected if it is within one prefix, or,
//! up to 64 bits, within at most [`PREFIXES_MAX`] adjacent ones, and the filter contains none of them. A point query
//! probes the prefix of the key.
//!
//! A filter of a *set* of prefixes stores those at several byte lengths, after each separator, or both. A range query
//! probes the longest of them that contains the whole range. A key stores only the prefixes that it has.
//!
//! **Keys shorter than the prefix**, if the filter has one length, are continued by zero bits, both in the filter and
//! in queries. So `"a"` and `"a\0"` have the same prefix of 16 bits; prefixes keep the order of the keys.

mod builder;
mod prefix_set;
mod reader;

pub use builder::PrefixBuilder;
pub(crate) use prefix_set::{Lengths, PrefixSet, Separators, common_prefix};
pub use reader::PrefixFilter;

/// Maximum number of adjacent prefixes that a range query probes.
pub const PREFIXES_MAX: u64 = 16;

/// Longest prefix.
const BYTE_COUNT_MAX: usize = 65_535;
const BIT_COUNT_MAX: u32 = BYTE_COUNT_MAX as u32 * 8;

/// Maximum number of bits per prefix: if keys share prefixes, the budget of the keys may be far more than their
/// prefixes need.
pub(crate) const BITS_PER_PREFIX_MAX: f64 = 24.0;

#[cfg(test)]
mod tests;
