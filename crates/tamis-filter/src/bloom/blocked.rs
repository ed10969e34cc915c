//! Blocked Bloom filters: family 1 of `docs/format/filter.md`.
//!
//! Cost: one cache line per key; `results/bloom.md` has the times, `research run bloom-rate-by-bits` measures them.

mod builder;
mod reader;

pub use builder::{BlockedBloom, BlockedBloomBuilder};
pub use reader::BlockedBloomFilter;

#[cfg(test)]
mod tests;
