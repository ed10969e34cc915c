//! Bloom filters.
//!
//! [`CacheLocalFilter`]: all bits of a key in one 512-bit line; one cache miss a key. The default for points.

mod builder;
pub mod formula;
mod reader;

pub use builder::CacheLocalBuilder;
pub use reader::CacheLocalFilter;

/// Parameter of the families of this module that fixes the number of bits a key sets.
const PROBES: &str = "probes";

#[cfg(test)]
mod tests;
