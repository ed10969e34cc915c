//! SuRF, the succinct range filter: families 6 to 10 of `docs/format/filter.md`.
//!
//! A trie of the keys, each cut behind the first byte that no other key shares, with some bits of what was cut off at each
//! leaf: bits of the key's digest (they make absent points rarer), real bits of the key (they help points and ranges), or
//! both. Points are one walk; a range is at most two, which end as soon as the answer is certain; nothing is allocated.
//!
//! | family | suffix | parameters |
//! |---|---|---|
//! | `surf` | what a budget leaves room for, split by the samples | |
//! | `surf-base` | none | |
//! | `surf-hash` | digest bits | `bits` |
//! | `surf-real` | key bits | `bits` |
//! | `surf-mixed` | both | `hash`, `real` |
//!
//! **Keys of any length** are kept as they are: a key that is a prefix of others is known exactly, other keys up to where they
//! differ from all others and some bits more. Real bits of a key that ends early are continued by zeros; that keeps the order.
//!
//! **Least size.** The trie has a size of its own; a budget below it is refused, and the refusal names it. Where keys share
//! long prefixes the height of the trie is cut, so that it takes at most 64 bits a key, suffix included as far as that has at
//! most 40 bits, and 256 bytes. A leaf at that height stands for all keys below it and knows their number.

mod batch;
mod builder;
mod candidate;
mod count;
mod reader;
mod suffix;
mod walk;

pub use builder::SurfBuilder;
pub use reader::SurfFilter;
pub use suffix::SuffixBits;

/// Bits a key that a trie may take, with its suffix.
const BITS_PER_KEY_MAX: u64 = 64;

/// Suffixes longer than this do not make the trie smaller.
const SUFFIX_BITS_COUNTED_MAX: u64 = 40;

/// Bytes beyond that, for sets of few keys.
const SMALL_SET_BYTES: u64 = 256;

#[cfg(test)]
mod tests;
