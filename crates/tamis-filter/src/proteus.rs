//! Filters that choose their own design: Proteus, 1PBF and 2PBF, families 12 to 14 of `docs/format/filter.md`.
//!
//! Keys are strings of bits, continued by zeros. `K_n` is the set of the prefixes of `n` bits of all keys.
//!
//! | family | first stage | second stage |
//! |---|---|---|
//! | `1pbf` | none | Bloom filter of `K_l` |
//! | `2pbf` | Bloom filter of `K_t` | Bloom filter of `K_l`, `t < l` |
//! | `proteus` | the set `K_t`, or none | Bloom filter of `K_l`, or none |
//!
//! A range is covered by its prefixes of `t` bits. In Proteus, a prefix of the set between the first and the last one proves that the range
//! contains a key. Below the first and the last prefix, and in 2PBF below each prefix that passes, the second Bloom filter tests the
//! prefixes of `l` bits of the range.
//!
//! **Design** (`model.rs`): from one scan of the sorted keys and a sample of queries, the model predicts the false positive rate of every
//! `(t, l)` and prices it in cache lines and reads. The cheapest design is built. [`Model`] can be used separately.
//!
//! **Keys of any length.** `"a"` and `"a\0"` have equal prefixes, which can cost a false positive and nothing else. Keys of one length of at
//! most eight bytes are integers (`fixed_keys.rs`): their bounds are exact, their set can be a bitmap or Elias-Fano numbers, and prefixes of the
//! whole length have the digests of keys, so that a point query needs one digest. Filters of other keys can have [`WHOLE_KEYS`] as prefix
//! length, for points only.
//!
//! **Without a sample** of empty queries, the set of whole keys is built if the keys are integers and it fits, because it has no false
//! positives. Otherwise the filter is one Bloom filter of whole keys: it rejects points, and short ranges of integers; ranges of strings
//! pass. Neither needs a sample to be correct.
//!
//! - Bounds: `bit_string.rs` (byte strings), `fixed_keys.rs` (integers).
//! - Design: `sizes.rs` (sizes of sets), `model.rs`, `expected.rs` and `two_bloom_model.rs` (results of queries), `design_search.rs`.
//! - Parts: `prefix_set.rs`, `bloom.rs`, `layout.rs`. `builder.rs` writes them.
//! - Queries: `reader.rs`, `fast_path.rs` (few prefixes, sets of integers), `query.rs` (all queries).

mod bloom;
mod builder;
mod design;
mod design_search;
mod expected;
mod fast_path;
mod keys;
mod layout;
mod model;
mod prefix_set;
mod query;
mod reader;
mod sizes;
mod two_bloom_model;

pub use builder::ProteusBuilder;
pub use design::{BloomLayout, Design, Prediction, Prices, SetForm, Stage, WHOLE_KEYS};
pub(crate) use design_search::Breadth;
pub(crate) use expected::SizedDesign;
pub use model::Model;
pub use reader::ProteusFilter;

#[cfg(test)]
mod tests;
