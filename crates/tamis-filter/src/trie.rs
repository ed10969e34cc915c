//! The Fast Succinct Trie: a static trie of sorted byte keys in about 10.6 bits per label, used in place.
//!
//! ```text
//! level 0   ( a  b  t )        dense: 256 bits of labels and 256 bits of children per node
//! level 1   ( c ) ( s )        dense
//! ------------------------------------------------------------- the cut, chosen by exact cost
//! level 2   ( a  k  u ) ( x )  sparse: label byte, has-child bit, first-of-node bit
//! level 3   ...
//! ```
//!
//! Nodes are numbered in level order; the root is 0. The child of the k-th has-child bit (from 0) is node k + 1. A label
//! without a child is a **leaf**; leaves are numbered in the order of their labels. A key that ends at a node (it is a prefix
//! of other keys) is a **prefix key** and has its own bit for the node. No label is reserved: 0x00 and 0xff are ordinary.
//!
//! - `levels.rs`: takes sorted keys and collects the labels of each level; caps the height on request.
//! - `plan.rs`: the cost in bytes of a height and a cut, and the choice of both.
//! - `encode.rs`: writes the levels; `layout.rs`: the offsets of the parts in the bytes.
//! - `node.rs`: nodes, labels and results of steps; `reader.rs`, `dense.rs`, `sparse.rs`: one step from node to node.
//! - `cursor.rs`: a position with its path: seek, next, prev.
//! - `../internals/trie_index/`: complete keys with values of one size, for the experiments and tests.
//!
//! Bytes: section "Trie" of `docs/format/filter.md`.

mod cursor;
mod dense;
mod encode;
#[cfg(any(test, feature = "trie-index"))]
#[path = "../internals/trie_index/mod.rs"]
mod index;
mod layout;
mod levels;
mod node;
mod plan;
mod reader;
mod sparse;

pub(crate) use cursor::{Cursor, Stop};
pub(crate) use encode::{EncodedTrie, encode};
#[cfg(any(test, feature = "trie-index"))]
pub use index::{TrieCursor, TrieIndex, TrieIndexBuilder};
pub(crate) use layout::{Layout, TRAILER_BYTES};
pub(crate) use levels::{Depth, LeafWords, Levels, WordBits, shared_bytes};
pub(crate) use node::{Divergence, Edge, Leaf, Node, WalkResult};
#[cfg(test)]
pub(crate) use plan::plan_at;
pub(crate) use plan::{LevelCounts, LevelTally, Plan, capped_level_bytes, level_bytes, plan, plan_within};
pub(crate) use reader::Trie;

#[cfg(test)]
mod tests;
