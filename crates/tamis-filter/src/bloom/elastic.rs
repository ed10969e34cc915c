//! Elastic Bloom filters: family 4 of `docs/format/filter.md`.
//!
//! A table's filter is cut into units, each a small blocked Bloom filter over all its keys with digests of its own
//! (mixed from the shared one). A key may be present where all units that are asked say so: the rate is the product of
//! theirs. A store keeps all units on disk and in memory only as many as a table's lookups are worth:
//!
//! - [`ElasticUnits`] answers from the units it has; they are loaded and dropped one by one.
//! - [`allocate`] computes which units are best where it is known how often each table is asked in vain, and what a new table
//!   inherits. Measuring that, and loading and dropping, are the store's.
//! - [`ElasticFilter`] is the whole filter in one piece.

pub mod allocate;
mod builder;
mod probes;
mod reader;
mod units;

pub use builder::{Elastic, ElasticBuilder};
pub use reader::ElasticFilter;
pub use units::{ElasticHeader, ElasticUnits};

/// Most units: their checksums fill one line.
pub const UNITS_MAX: u32 = 8;

/// Bits per key that a unit is meant to have, where the number of units is not given.
const UNIT_BITS: f64 = 3.0;

/// Bytes of the directory at the payload's front.
const DIRECTORY_BYTES: usize = 64;

#[cfg(test)]
mod tests;
