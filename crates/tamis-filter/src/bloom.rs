//! Bloom filters.
//!
//! - [`blocked`]: all bits of a key in one 512-bit line, one cache miss a key; the default for points.
//! - [`standard`]: bits spread over the whole filter; the three ways to derive their places.
//! - [`prefix`]: digests of prefixes, for ranges within few prefixes.
//! - [`elastic`]: small filters one beside the other, of which a store loads as many as they are worth.

pub mod blocked;
mod digests;
pub mod elastic;
pub mod formula;
mod lines;
pub mod prefix;
pub mod standard;

pub use digests::{DigestBuilder, DigestFamily, DigestKeeper};
pub(crate) use lines::{LINE_BITS, best_probe_count, empty_filter};

/// Parameter of the families of this module that fixes the number of bits a key sets.
const PROBES: &str = "probes";
