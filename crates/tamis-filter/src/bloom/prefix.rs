//! Prefix Bloom filters: family 3 of `docs/format/filter.md`.
//!
//! Digests of the distinct prefixes of the keys, in blocked lines: of a set of byte lengths, up to each separator, of whole keys. A range
//! query probes the longest of these prefixes that contains the whole range. If all prefixes have one length of at most 64 bits, a range may also
//! be within at most [`PREFIXES_MAX`] adjacent ones. A point query probes the longest prefix of the key.
//!
//! **Keys shorter than a length** are continued by zero bits, both in the filter and in queries; prefixes keep the order of the keys.

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

/// Maximum number of bits per prefix: if keys share prefixes, the budget of the keys may be far more than their
/// prefixes need.
pub(crate) const BITS_PER_PREFIX_MAX: f64 = 24.0;

#[cfg(test)]
mod tests;
