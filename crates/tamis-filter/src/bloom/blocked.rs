//! Blocked Bloom filters: family 1 of `docs/format/filter.md`.
//!
//! Cost: one cache line per key; `results/bloom.md`, written by `research/examples/measure_speed.rs`, has the times.

mod builder;
mod reader;

pub use builder::{BlockedBloom, BlockedBloomBuilder};
pub use reader::BlockedBloomFilter;

#[cfg(test)]
mod tests;
