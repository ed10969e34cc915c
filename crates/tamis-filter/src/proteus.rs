//! Filters that design themselves: Proteus, 1PBF and 2PBF, families 12 to 14 of `docs/format/filter.md`.
//!
//! Keys are strings of bits that go on as zeros behind their end. `K_n` is the set of the first `n` bits of the keys.
//!
//! | family | first stage | second stage |
//! |---|---|---|
//! | `1pbf` | none | Bloom filter of `K_l` |
//! | `2pbf` | Bloom filter of `K_t` | Bloom filter of `K_l`, `t < l` |
//! | `proteus` | the set `K_t` itself, or nothing | Bloom filter of `K_l`, or nothing |
//!
//! A range is covered by its prefixes of `t` bits. In Proteus all but the first and the last of them are known to hold a key
//! where they are in the set; below those two, and in the other families below each that may be there, the Bloom filter is
//! asked for the prefixes of `l` bits that the range touches.
//!
//! **What decides** (`model.rs`): from one pass over the sorted keys and a sample of queries, the rate of every `(t, l)` is
//! predicted, its price in cache lines and reads with it, and the cheapest one is built. [`Model`] can be used alone.
//!
//! **Keys of any length.** A key that ends before a prefix does is continued by zeros, on both sides: `"a"` and `"a\0"` are
//! one and the same to all parts that hold prefixes, which can cost a false positive and nothing else. Keys of one length of
//! at most eight bytes are integers (`fixed.rs`): their bounds are exact, their set may be a bitmap or Elias-Fano numbers, and
//! prefixes of their whole length are kept under the digest of the key, so that a point costs its one digest. Keys of other
//! lengths have [`WHOLE_KEYS`] as a prefix length of its own, for points.
//!
//! **Without a sample** that says something (there is none, or all of its queries hold a key) the set of whole keys is built
//! of integers where it fits, as it answers everything; otherwise one Bloom filter of whole keys: points are denied at the rate of a Bloom
//! filter, and short ranges of integers with them; all other ranges of strings are let pass. No sample is needed for either to be right.
//!
//! - `bits.rs`: bounds as bit strings; `fixed.rs`: bounds of integers.
//! - `counts.rs`: the pass over the keys: sizes of `K_n`, the neighbours of each query. `sizes.rs`: what a set costs.
//! - `model.rs`, `tally.rs`, `pair.rs`, `choice.rs`: rates, prices, the choice.
//! - `prefix_set.rs`, `bloom.rs`, `layout.rs`: the parts and where they lie. `builder.rs`, `reader.rs`; `walk.rs`
//!   and `words.rs`, questions to filters of strings and of integers; `quick.rs`, the most frequent ones.

mod batch;
mod bits;
mod bloom;
mod builder;
mod choice;
mod counts;
mod design;
mod fast_path;
mod fixed;
mod keys;
mod layout;
mod model;
mod pair;
mod prefix_set;
mod query;
mod reader;
mod sizes;
mod tally;

pub use builder::ProteusBuilder;
pub use design::{BloomLayout, Design, Prediction, Prices, SetForm, Stage, WHOLE_KEYS};
pub use model::Model;
pub use reader::ProteusFilter;

#[cfg(test)]
mod tests;
