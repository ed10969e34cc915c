//! SuRF, the succinct range filter: families 6 to 10 of `docs/format/filter.md`.
//!
//! A trie of the keys, each cut after the first byte that no other key shares, with a suffix at each leaf: bits of the key's
//! digest (fewer false positives for points), real bits of the key (for points and ranges), or both. A point is one walk; a
//! range is at most two, which end as soon as the answer is certain. Queries allocate nothing.
//!
//! | family | suffix | parameters |
//! |---|---|---|
//! | `surf` | the rest of the budget, divided by the samples | `truncate` |
//! | `surf-base` | none | |
//! | `surf-hash` | digest bits | `bits` |
//! | `surf-real` | key bits | `bits` |
//! | `surf-mixed` | both | `hash`, `real` |
//!
//! **Keys of any length** are stored as they are: a key that is a prefix of others is stored exactly, other keys up to the byte
//! that distinguishes them, and some bits more. Real bits of a key that ends early are continued by zeros, which keeps the order.
//!
//! **Least size.** The trie of a key set has a least size; a smaller budget is rejected, and the error names the least size. With
//! `surf:truncate=yes` the trie is shortened instead: it has as many levels as the budget allows, and the filter distinguishes
//! only strings that differ in these first bytes (or in the suffix of a leaf with one key). If keys share long prefixes, every
//! family caps the height of the trie, so that it takes at most 64 bits per key, suffixes of up to 40 bits included, and 256
//! bytes. A leaf at that height represents all keys below it and stores their number.

mod builder;
mod candidate;
mod reader;
mod suffix;
mod walk;

pub use builder::SurfBuilder;
pub use reader::SurfFilter;
pub use suffix::SuffixBits;

/// Maximal bits per key of a trie with its suffixes.
const BITS_PER_KEY_MAX: u64 = 64;

/// Longer suffixes do not make the trie smaller.
const SUFFIX_BITS_COUNTED_MAX: u64 = 40;

/// Additional bytes, for sets of few keys.
const SMALL_SET_BYTES: u64 = 256;

#[cfg(test)]
mod tests;
