//! Rosetta, a range filter of Bloom filters over binary prefixes: family 11 of `docs/format/filter.md`.
//!
//! **Structure.** The keys are the leaves of a binary tree of their bits. A *level* of depth `d` is a Bloom filter of
//! the distinct first `d` bits of the keys; the *full* level is a Bloom filter of the whole keys, by their point
//! digests. A filter has only the levels that reduce the expected cost of a query.
//!
//! **Point queries** probe the full level only, with the digest that the query has anyway. A filter without a full
//! level (the sample had no points) probes the prefixes of the key, the shallowest first.
//!
//! **Range queries** start at the shallowest level, with the nodes there that the range touches: at most two of them
//! are partly outside the range, the others are its dyadic intervals at that depth. A rejected node rejects everything
//! below it. Of a node that is not rejected, the children *within the range* at the next existing level are probed, in
//! the direction of the scan. A node of the deepest level that is not rejected makes the answer `true`. There is no
//! walk from the root, and missing levels cost nothing. Up to 64 nodes of a level are probed together before the
//! children of the remaining ones, so that their cache misses overlap.
//!
//! **Probe limit.** A query never probes more than `probe-cap` nodes. Their number is known before the first probe; if
//! it is too large, the answer is `true` without a probe.
//!
//! **Positions of bits.** A node of `d` bits has the digest of its first `d - 3` bits; its last three bits are its
//! number among eight siblings. In a blocked level the digest selects the cache line, so eight siblings cost one line
//! and one digest; in a standard level the bits may be anywhere. The digest depends on the key from its first bit on
//! and that of at most 64 bits is cached by [`crate::RangeProbe`], so that all tables of a query share it. Keys of the full level have no
//! siblings: each has the digest of its point.
//!
//! **Keys of any length.** If all keys have the same length (stored in the filter), the full level is the deepest
//! level of the tree, and integers of up to eight bytes are exact at both ends. Otherwise keys that are shorter than a
//! prefix are continued by zero bits, and the full level serves points only. Levels deeper than 64 bits end at whole
//! bytes.
//!
//! **Memory** is allocated to the levels so that the expected cost of a query is least,
//!
//! ```text
//! cost = probes * probe-cost + rate * read-cost          (nanoseconds)
//! ```
//!
//! over the sampled queries that contain no key (`model.rs`, `search.rs`). A sampled query is described by the nodes
//! it touches at each depth and by two depths: the number of bits that its lower and its upper bound share with a key.
//! A node at the edge of the range is *present* above that depth, and its filter certainly returns `true`; every other
//! node is absent and passes at the false-positive rate of its level. From the deepest level up, with `e` the rate of
//! a level, and `Q'`, `A'` the probability of `true` and the cost of a whole node one level deeper:
//!
//! ```text
//! Q = e * (1 - (1 - Q')^children)                        a whole node returns `true`
//! A = price of a probe + e * A' * (1 - (1 - Q')^children) / Q'
//! ```
//!
//! and likewise for the two edges, with their own numbers of children, and with 1 instead of `e` where they are
//! present. The price of a probe is the number of cache lines that it waits for: one in a blocked level; in a standard
//! level the first two lines are read together and count little more than one, and each further line, read if all bits
//! before are set, counts in full.
//!
//! **Design time.** The search counts its steps (`search_limit.rs`) and takes at most 40 per key, about a tenth of the
//! time in which the table is written. Of the sampled queries it evaluates as many as usually fit within this
//! limit. If the limit ends the search, it returns the best design so far, and [`crate::Filter::design`] reports that.
//! Samples of more than 2,048 queries and of more than one query per four keys are thinned first.
//!
//! **Cost.** The builder stores the keys (8 bytes for integers of 8 bytes) and iterates over them once per level. A
//! query allocates nothing in the filter, except the bytes of one prefix beyond 64 bits.

mod builder;
mod insert;
mod keys;
mod layout;
mod level;
mod model;
mod prices;
mod reader;
mod sample;
mod search;
mod search_limit;
mod walk;

pub use builder::RosettaBuilder;
pub use prices::Prices;
pub use reader::RosettaFilter;

/// Maximum number of levels of a filter.
const LEVELS_MAX: usize = 16;

#[cfg(test)]
mod tests;
