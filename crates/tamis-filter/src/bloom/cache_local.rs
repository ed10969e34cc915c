//! Cache-local Bloom filters: family 1 of `docs/format/filter.md`.
//!
//! Cost (`examples/measure_speed.rs`; one core of a shared Intel Xeon whose calibration unit is 97 ns; keys of 8 bytes, 1 million
//! of them, 12 bits per key; single runs, which differ by up to 80 %): built in 14 ns a key, 3 of them for its digest; a question
//! takes 9 ns with its digest; in batches of 64, 9 ns with the digests and 4 ns without. These miss the goals of 7 ns a question
//! and of 1.1 times the reference in units. An AMD EPYC Zen 5 took 7, 5.3 and 1.9 ns at 10 bits with an earlier form.

mod builder;
mod reader;

pub use builder::{CacheLocal, CacheLocalBuilder};
pub use reader::CacheLocalFilter;

#[cfg(test)]
mod tests;
