//! Grafite: family 15 of `docs/format/filter.md`. For ranges and points; the family for unknown or hostile queries.
//!
//! A window of each key is a number of 64 bits. Numbers are hashed so that a block of `r` consecutive
//! numbers is rotated by an offset that only the hash of its block number determines, and the hashes modulo `r` are
//! stored in Elias-Fano. A range of at most `r` numbers maps to one interval of hashes, or to two if it crosses a
//! block border, and is rejected if they contain no stored hash.
//!
//! **Guarantee.** Rotations are pairwise independent, so an empty range of `l` numbers passes with a probability of
//! at most `l * n / r`, about `l / 2^(bits per key - 2)`, for any keys and queries, as long as the
//! queries do not depend on the seed. Numbers of one block keep their order: they never collide.
//!
//! **Strings.** The window begins after the bytes that all keys share; these are compared exactly. Of keys with few
//! different bytes it is a number of symbols, and holds more than eight of their bytes (`symbols.rs`). Keys that differ
//! only after the window cannot be distinguished. The predicted rate counts them.
//!
//! Cost of a query: one multiplication modulo a prime, and one lookup in Elias-Fano: three to five cache misses.

mod bounds;
mod builder;
mod hash;
mod reader;
mod rests;
mod symbols;
mod window;

pub use builder::GrafiteBuilder;
pub use reader::GrafiteFilter;
pub(crate) use rests::Rests;
pub(crate) use window::Window;

/// Greatest modulus: far below the prime of the hash, so that rotations are uniform.
const MODULUS_MAX: u64 = 1 << 56;

/// Bytes of the payload before the hashes: their number.
const FRONT_BYTES: usize = 8;

/// Flags in the parameters: no key continues after its window.
const FLAG_WHOLE: u8 = 1;
/// Each key ends exactly after its window of bytes.
const FLAG_FIXED: u8 = 2;
/// Windows are not hashed.
const FLAG_EXACT: u8 = 4;
/// Windows of symbols.
const FLAG_SYMBOLS: u8 = 8;
/// Keys end inside their window of symbols.
const FLAG_ENDS_INSIDE: u8 = 16;

#[cfg(test)]
mod tests;
