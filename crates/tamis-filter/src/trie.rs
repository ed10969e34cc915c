//! The Fast Succinct Trie: a static trie of sorted byte keys in about 10.6 bits for each label, used in place.
//!
//! ```text
//! level 0   ( a  b  t )        dense: 256 bits of labels and 256 of children a node
//! level 1   ( c ) ( s )        dense
//! ------------------------------------------------------------- the cut, by exact cost
//! level 2   ( a  k  u ) ( x )  sparse: label byte, has-child bit, first-of-its-node bit
//! level 3   ...
//! ```
//!
//! Nodes are numbered in level order, the root is 0: the child behind the k-th has-child bit (from 0) is node k + 1. A label
//! without a child is a **leaf**; leaves are numbered in the order of their labels. A key that ends at a node (it is a prefix
//! of others) is a **prefix key** and has a bit of its own for the node; no label is reserved, 0x00 and 0xff are like others.
//!
//! - `levels.rs`: takes sorted keys, one of look-ahead, and keeps the labels of each level; caps the height where asked.
//! - `plan.rs`: what a height and a cut cost in bytes, and the choice of both.
//! - `encode.rs`: writes the levels; `layout.rs`: where each part lies in the bytes.
//! - `reader.rs`, `dense.rs`, `sparse.rs`: one step from node to node over the bytes. `side_by_side.rs`: many walks at once.
//! - `cursor.rs`: a position with its path: seek, next, prev. `rank.rs`: how many keys lie before a bound.
//! - `index.rs`: complete keys with values of one size: [`TrieIndex`]. `tails.rs`: what is left of its keys; `prefix_table.rs`: where its searches begin.
//!
//! Bytes: section "Trie" of `docs/format/filter.md`.

mod cursor;
mod dense;
mod encode;
mod index;
mod interleaved;
mod key_suffixes;
mod layout;
mod levels;
mod node;
mod plan;
mod rank;
mod reader;
mod root_cache;
mod sparse;

pub(crate) use cursor::{Cursor, Stop};
pub(crate) use encode::{EncodedTrie, encode};
pub use index::{TrieCursor, TrieIndex, TrieIndexBuilder};
pub(crate) use interleaved::INTERLEAVE_WIDTH;
pub(crate) use layout::{Layout, TRAILER_BYTES};
pub(crate) use levels::{Depth, LeafWords, Levels, WordBits, shared_bytes};
pub(crate) use node::{Divergence, Edge, Leaf, Node, WalkResult};
#[cfg(test)]
pub(crate) use plan::plan_at;
pub(crate) use plan::{LevelCounts, Plan, level_bytes, plan, plan_within};
pub(crate) use rank::{Side, count_between};
pub(crate) use reader::Trie;

#[cfg(test)]
mod tests;
