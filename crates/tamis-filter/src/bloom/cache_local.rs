//! Cache-local Bloom filters: family 1 of `docs/format/filter.md`.
//!
//! Cost (`examples/measure_speed.rs`; one core of a shared Intel Xeon with AVX-512 and 2 MiB of cache of its own, whose
//! calibration unit is 90 to 100 ns; keys of 8 bytes, 1 million of them; ranges over four runs):
//!
//! | bits per key | build, ns a key | of it digests | of it bits | question with its digest | in batches of 64 | digests known |
//! |---|---|---|---|---|---|---|
//! | 10 | 10.6-12.3 | 1.5 | 4.6-5.1 | 8.2-8.7 | 7.4 | 2.3-2.9 |
//! | 12 | 12.6-14.9 | 1.5 | 6.1-8.0 | 9.4-10.2 | 8.1 | 3.0-3.3 |
//! | 16 | 16.4-17.4 | 1.5 | 10-12 | 10.6-13.2 | 9.1 | 3.7-4.8 |
//! | 20 | 20-27 | 1.5 | 14-16 | 12.2-15.3 | 9.6 | 3.8-5.0 |
//!
//! 150 million keys at 10 bits, each question waiting for the answer before: 232 ns one by one, 53 ns in batches of 16.
//!
//! From 16 bits on the filter is larger than the core's own cache. The goals (7 ns a question; 1.1 times the reference's rows,
//! which is 1.9 ns for known digests and 5.6 ns for a build without digests where the unit is 90 ns) are missed. Tried without
//! gain: asking two lines in one register, fetching ahead by 8, 16, 32 and 64 digests or not at all, setting bits in aligned
//! lines that are copied in the end, or by vectors of whole lines.

mod builder;
mod reader;

pub use builder::{CacheLocal, CacheLocalBuilder};
pub use reader::CacheLocalFilter;

#[cfg(test)]
mod tests;
