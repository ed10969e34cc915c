//! One step from node to node over the encoded bytes; the choice between dense and sparse.
//!
//! Bytes that no builder writes give wrong steps, but no panic and no endless walk: a child's number is always above its
//! parent's, or it is no child.

use tamis_bits::{EliasFano, RankBits, prefetch, rank::Select};

use super::Layout;

/// An encoded trie: its bytes, from the first part on, and where its parts lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trie<'a> {
    pub(super) bytes: &'a [u8],
    pub(crate) layout: &'a Layout,
}

/// A node: its number and, where it is sparse, the position of its first label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) number: u32,
    pub(super) start: u32,
}

/// A label of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Number of the node.
    pub(super) node: u32,
    /// The label itself where the node is dense, its position where it is sparse.
    pub(super) at: u32,
    pub(crate) label: u8,
    pub(crate) has_child: bool,
}

/// Where bytes of a part lie.
#[inline(always)]
pub(super) fn chunk<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>()) {
        Some(chunk) => *chunk,
        None => padded(bytes.get(offset..).unwrap_or_default()),
    }
}

#[cold]
fn padded<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut chunk = [0; N];
    chunk.iter_mut().zip(rest).for_each(|(target, source)| *target = *source);
    chunk
}

impl<'a> Trie<'a> {
    /// A trie over a payload that the layout was read from.
    #[inline(always)]
    pub(crate) const fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        Self { bytes, layout }
    }

    #[inline(always)]
    pub(super) const fn is_dense(&self, number: u32) -> bool {
        number < self.layout.counts.dense_node_count
    }

    /// The root; `None` where there are no keys.
    #[inline(always)]
    pub(crate) const fn root(&self) -> Option<Node> {
        if self.layout.counts.node_count == 0 { None } else { Some(Node { number: 0, start: 0 }) }
    }

    /// The least label that is at least `byte`.
    #[inline(always)]
    pub(crate) fn at_or_after(&self, node: Node, byte: u8) -> Option<Edge> {
        if self.is_dense(node.number) {
            self.dense_at_or_after(node.number, byte)
        } else {
            let (position, label) = self.search(node.start, byte);
            label.map(|label| self.sparse_edge(node.number, position, label))
        }
    }

    /// The greatest label that is at most `byte`.
    #[inline(always)]
    pub(crate) fn at_or_before(&self, node: Node, byte: u8) -> Option<Edge> {
        if self.is_dense(node.number) {
            return self.dense_at_or_before(node.number, byte);
        }
        let (position, label) = self.search(node.start, byte);
        if label == Some(byte) {
            return Some(self.sparse_edge(node.number, position, byte));
        }
        let before = position.checked_sub(1).filter(|before| *before >= node.start)?;
        Some(self.sparse_edge(node.number, before, self.label_at(before)))
    }

    /// The label itself, where the node has it.
    #[inline(always)]
    pub(crate) fn find(&self, node: Node, byte: u8) -> Option<Edge> {
        if self.is_dense(node.number) {
            return self.dense_find(node.number, byte);
        }
        let (position, label) = self.search(node.start, byte);
        (label == Some(byte)).then(|| self.sparse_edge(node.number, position, byte))
    }

    /// The label after another one in the same node.
    pub(crate) fn next(&self, edge: &Edge) -> Option<Edge> {
        if self.is_dense(edge.node) {
            return self.dense_at_or_after(edge.node, edge.label.checked_add(1)?);
        }
        let next = edge.at + 1;
        let is_inside = next < self.layout.counts.sparse_label_count && !self.is_first_label(next);
        is_inside.then(|| self.sparse_edge(edge.node, next, self.label_at(next)))
    }

    /// The label before another one in the same node.
    pub(crate) fn previous(&self, edge: &Edge) -> Option<Edge> {
        if self.is_dense(edge.node) {
            return self.dense_at_or_before(edge.node, edge.label.checked_sub(1)?);
        }
        let before = edge.at.checked_sub(1).filter(|_| !self.is_first_label(edge.at))?;
        Some(self.sparse_edge(edge.node, before, self.label_at(before)))
    }

    /// The node behind a label; `None` where the label has no child.
    #[inline(always)]
    pub(crate) fn child(&self, edge: &Edge) -> Option<Node> {
        if !edge.has_child {
            return None;
        }
        let children_before = self.children_before(edge.node, edge.at);
        let number = children_before.wrapping_add(1);
        (number > edge.node).then(|| self.node(number))
    }

    /// A node by its number; beyond the last one, the end of all labels.
    #[inline(always)]
    pub(crate) fn node(&self, number: u32) -> Node {
        let start = match number.checked_sub(self.layout.counts.dense_node_count) {
            None => 0,
            Some(_) if number >= self.layout.counts.node_count => self.layout.counts.sparse_label_count,
            Some(relative) => self.sparse_start(relative),
        };
        Node { number, start }
    }

    /// The place behind the last label of a node.
    pub(super) fn node_end(&self, node: Node) -> u32 {
        if self.is_dense(node.number) {
            return 256;
        }
        match self.search(node.start, u8::MAX) {
            (position, Some(_)) => position + 1,
            (position, None) => position,
        }
    }

    /// Brings the labels of a node into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Node) {
        if self.is_dense(node.number) {
            prefetch(self.bytes, node.number as usize * super::layout::DENSE_NODE_BYTES);
        } else {
            prefetch(self.bytes, self.block_offset(node.start / super::layout::BLOCK_LABELS));
            prefetch(self.bytes, self.block_offset(node.start / super::layout::BLOCK_LABELS) + 64);
        }
    }

    /// Number of a label without a child among the leaves.
    #[inline(always)]
    pub(crate) fn leaf_index(&self, edge: &Edge) -> u64 {
        self.leaves_before(edge.node, edge.at)
    }

    /// Labels with a child before a place: labels of the node below `at` (dense) or labels before position `at` (sparse).
    #[inline(always)]
    pub(super) fn children_before(&self, node: u32, at: u32) -> u32 {
        if self.is_dense(node) {
            self.dense_children_before(node, at)
        } else {
            self.layout.counts.dense_child_count.wrapping_add(self.sparse_children_before(at))
        }
    }

    /// Labels without a child before a place.
    #[inline(always)]
    pub(super) fn leaves_before(&self, node: u32, at: u32) -> u64 {
        if self.is_dense(node) {
            u64::from(self.dense_leaves_before(node, at))
        } else {
            let leaves = at.saturating_sub(self.sparse_children_before(at));
            u64::from(self.layout.counts.dense_leaf_count) + u64::from(leaves)
        }
    }

    /// Whether the path to a node is a key.
    #[inline(always)]
    pub(crate) fn is_prefix_key(&self, number: u32) -> bool {
        if self.layout.counts.prefix_key_count == 0 {
            return false;
        }
        let [byte] = chunk(self.bytes, self.layout.prefix_keys + (number / 8) as usize);
        byte >> (number % 8) & 1 == 1 && number < self.layout.counts.node_count
    }

    /// Prefix keys that end at nodes before a number.
    pub(crate) fn prefix_keys_before(&self, number: u32) -> u64 {
        let counts = &self.layout.counts;
        if counts.prefix_key_count == 0 {
            return 0;
        }
        let bytes = self.bytes.get(self.layout.prefix_keys..).unwrap_or_default();
        RankBits::open(bytes, u64::from(counts.node_count), Select::None)
            .map_or(0, |(bits, _)| bits.rank(u64::from(number)))
    }

    /// Whether a leaf may stand for several keys, without looking it up.
    #[inline(always)]
    pub(crate) fn may_be_capped(&self, leaf_index: u64) -> bool {
        let counts = &self.layout.counts;
        counts.capped_leaf_count != 0
            && leaf_index >= counts.leaf_count().saturating_sub(u64::from(counts.capped_leaf_count))
    }

    /// How many keys lie below the leaves before a number, where the height is capped; leaves before the last level count 1.
    pub(crate) fn keys_before_leaf(&self, leaf_index: u64) -> u64 {
        let counts = &self.layout.counts;
        let first = counts.leaf_count().saturating_sub(u64::from(counts.capped_leaf_count));
        let Some(last) = leaf_index.min(counts.leaf_count()).checked_sub(first + 1) else {
            return leaf_index;
        };
        let bytes = self.bytes.get(self.layout.capped..).unwrap_or_default();
        let ends = EliasFano::open(bytes, u64::from(counts.capped_leaf_count), counts.capped_key_count);
        let end = ends.and_then(|(ends, _)| ends.get(last)).unwrap_or(last + 1);
        first + end.min(counts.capped_key_count)
    }

    /// How many keys a leaf stands for; 1 but for capped leaves.
    #[inline(always)]
    pub(crate) fn keys_of_leaf(&self, leaf_index: u64) -> u64 {
        if self.may_be_capped(leaf_index) { self.keys_of_capped_leaf(leaf_index) } else { 1 }
    }

    #[cold]
    fn keys_of_capped_leaf(&self, leaf_index: u64) -> u64 {
        self.keys_before_leaf(leaf_index + 1).saturating_sub(self.keys_before_leaf(leaf_index)).max(1)
    }
}
