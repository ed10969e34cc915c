//! Elastic Bloom filters: family 4 of `docs/format/filter.md`.
//!
//! The filter of a table is divided into units. Each is a small blocked Bloom filter of all keys of the table, with
//! its own digests (mixed from the shared one). A key may be present if all probed units contain it: the rate is the
//! product of the rates of the units. A store keeps all units on disk, and in memory only as many as the lookups of
//! the table justify:
//!
//! - [`ElasticHeader`] locates the units, checks them, and looks up a key in those that are in memory. The store
//!   counts lookups, and loads and unloads units.
//! - [`ElasticFilter`] is the whole filter in one piece.

mod builder;
mod header;
mod reader;

pub use builder::{Elastic, ElasticBuilder};
pub use header::ElasticHeader;
pub use reader::ElasticFilter;

/// Maximum number of units: their checksums fill one line.
pub const UNITS_MAX: u32 = 8;

/// Bits per key of a unit if the parameters do not give the number of units.
const UNIT_BITS: f64 = 3.0;

/// Bytes of the directory at the start of the payload.
const DIRECTORY_BYTES: usize = 64;

#[cfg(test)]
mod tests;
