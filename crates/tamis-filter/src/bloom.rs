//! Bloom filters.
//!
//! - [`blocked`]: all bits of a key in one 512-bit line, one cache miss per key; the default for points.
//! - [`prefix`]: digests of prefixes, for ranges within few prefixes.
//! - [`elastic`]: several small filters per table, of which a store loads as many as pay off.

pub mod blocked;
mod digests;
pub mod elastic;
pub mod formula;
mod lines;
pub mod prefix;

pub use digests::{DigestBuilder, DigestFamily, DigestKeeper};
pub(crate) use lines::{LINE_BITS, best_probe_count, empty_filter};

/// Parameter of the families of this module that sets the number of bits per key.
const PROBES: &str = "probes";
