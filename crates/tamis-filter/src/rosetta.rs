//! Rosetta, a range filter of Bloom filters over binary prefixes: family 11 of `docs/format/filter.md`.
//!
//! **What it is.** The keys are the leaves of a binary tree of their bits. A *level* of depth `d` is a Bloom filter of the
//! distinct first `d` bits of the keys; the *full* level is one of the whole keys, by their point digests. A filter has few
//! levels, at the depths and with the bits that pay.
//!
//! **Points** ask the full level alone, with the digest that the query has anyway. Where a filter has none (nobody
//! was expected to ask for points) the prefixes of the key are asked from the shallowest on.
//!
//! **Ranges** begin at the shallowest level, with the nodes there that the range touches: at most two of them lie partly
//! outside, all others are the dyadic intervals of the range at that depth. A node that is denied takes all below it along
//! (early answers from common ancestors are this, with one node). One that is not is doubted: its children *within the
//! range* at the next level that exists are asked, in the direction of the scan. A node of the deepest level that is not
//! denied makes the answer yes. There is no walk from the root, and levels that do not exist cost nothing. Up to 64 nodes of a level
//! are asked beside one another before the children of those that are left, so that few reads wait for others.
//!
//! **Budget of probes.** More nodes than `probe-cap` are never asked: their number is known before the first of them is, and the
//! answer is then "may be".
//!
//! **Places of bits.** A node of `d` bits has the digest of its first `d - 3` bits, and its last three bits say which of eight
//! siblings it is. In a blocked level the digest chooses the line, so that eight siblings cost one line and one digest;
//! in a standard level the bits lie anywhere. The digest is defined on the key from its first bit and remembered by
//! [`crate::RangeProbe`], so that all tables of a query share it. Keys of the full level have no siblings' line: theirs is
//! the digest of the point.
//!
//! **Keys of any length.** Where all keys have the same length (kept in the filter), the full level is the deepest level of
//! the tree, and integers of up to eight bytes are exact at both ends. Otherwise a prefix is continued by zero bits where a
//! key ends before it, and the full level serves points only. Levels deeper than 64 bits end at whole bytes.
//!
//! **Memory** goes to the levels by one of the strategies of [`Strategy`]; the default minimises the expected cost of a query,
//!
//! ```text
//! cost = probes * probe-cost + rate * read-cost          (nanoseconds)
//! ```
//!
//! over the sampled queries that hold no key (`model.rs`, `search.rs`). A sampled query is known by the nodes it touches at each
//! depth and by two depths: how far its lower and its upper bound share their bits with a key. A node at the edge of the range
//! is *present* above that depth, and its filter then says yes for certain; every other node is absent and passes at the
//! rate of its level. From the deepest level up, with `e` the rate of a level and `Q'`, `A'` the answer and the cost of a whole
//! node one level deeper:
//!
//! ```text
//! Q = e * (1 - (1 - Q')^children)                        a whole node says yes
//! A = price of a probe + e * A' * (1 - (1 - Q')^children) / Q'
//! ```
//!
//! and likewise for the two edges, with their own numbers of children and with 1 for `e` where they are present. A probe is
//! priced by the cache lines it waits for: one in a blocked level; in a standard one the first two, read at once, count
//! little more than one, and each further one, which is looked at where all bits before are set, counts in full.
//!
//! **Design time.** The search counts its steps (`search_limit.rs`) and takes at most 32 for each key, about a tenth of the time in which
//! the table is written. Within this limit it evaluates as many of the sampled queries and designs as it can; a search that the
//! limit ends takes the best design found so far, and [`crate::Filter::design`] reports it. Samples larger than 2,048 queries and than
//! one query for four keys are thinned first.
//!
//! **Cost.** Building keeps the keys (8 bytes for integers of 8 bytes) and passes over them once for each level. A question
//! allocates nothing in the filter; the memo of digests is the query's.

mod allocate;
mod bounds;
mod builder;
mod counters;
mod decompose;
mod insert;
mod keys;
mod layout;
mod level;
mod model;
mod reader;
mod sample;
mod search;
mod search_limit;
mod strategy;
mod walk;
mod workload_from_counters;

pub use builder::RosettaBuilder;
pub use counters::{LevelUsage, SHARED_BUCKETS, SIZE_BUCKETS, SPAN_BUCKETS, Usage};
pub use reader::RosettaFilter;
pub use strategy::{Prices, Strategy};

/// Most levels of a filter.
const LEVELS_MAX: usize = 16;

#[cfg(test)]
mod tests;
