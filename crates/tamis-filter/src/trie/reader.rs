//! One step from node to node over the encoded bytes, and the choice between dense and sparse.
//!
//! Bytes that no builder writes cause wrong steps, but no panic and no endless walk: a child must come after its
//! parent.

use tamis_bits::kernel::{Portable, Steps};
use tamis_bits::{EliasFano, key_head};

use super::Layout;
use super::layout::{Block, DENSE_NODE_BYTES, chunk};
use super::node::{DenseStep, Divergence, Edge, Leaf, Lookahead, Node, Split, WalkResult};
use crate::envelope::nothing;

/// An encoded trie: its bytes, from the first part on, its layout, and the instruction set for its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trie<'a, S = Portable> {
    pub(crate) bytes: &'a [u8],
    /// The dense nodes, then the blocks.
    pub(super) dense: &'a [[u8; DENSE_NODE_BYTES]],
    pub(super) blocks: &'a [Block],
    pub(crate) layout: &'a Layout,
    pub(super) steps: S,
}

impl<'a> Trie<'a> {
    /// A trie over a payload from which the layout was read.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        let lines = bytes.get(..layout.lines).map(|lines| lines.as_chunks().0);
        let parts = lines.and_then(|lines| lines.split_at_checked(layout.counts.dense_node_count as usize));
        let (dense, blocks) = match parts {
            Some(parts) => parts,
            None => (nothing(), nothing()),
        };
        Self { bytes, dense, blocks, layout, steps: Portable }
    }
}

impl<'a, S: Steps> Trie<'a, S> {
    /// The same trie with steps for another instruction set.
    #[inline(always)]
    pub(crate) fn with<T: Steps>(self, steps: T) -> Trie<'a, T> {
        Trie { bytes: self.bytes, dense: self.dense, blocks: self.blocks, layout: self.layout, steps }
    }

    #[inline(always)]
    pub(super) const fn is_dense(&self, node: &Node) -> bool {
        node.number < self.layout.counts.dense_node_count
    }

    /// The root; `None` if there are no keys.
    #[inline(always)]
    pub(crate) fn root(&self) -> Option<Node> {
        let counts = &self.layout.counts;
        match (counts.node_count, counts.dense_node_count) {
            (0, _) => None,
            (_, 0) => Some(self.located(&Lookahead::ROOT)),
            _ => Some(self.node(0)),
        }
    }

    /// The least label that is at least `byte`.
    #[inline(always)]
    pub(crate) fn at_or_after(&self, node: Node, byte: u8) -> Option<Edge> {
        if self.is_dense(&node) {
            self.dense_at_or_after(node, byte)
        } else {
            self.sparse_at_or_after(node, byte)
        }
    }

    /// The greatest label that is at most `byte`.
    #[inline(always)]
    pub(crate) fn at_or_before(&self, node: Node, byte: u8) -> Option<Edge> {
        if self.is_dense(&node) {
            self.dense_at_or_before(node, byte)
        } else {
            self.sparse_at_or_before(node, byte)
        }
    }

    /// The labels of the node below, at and above a byte.
    #[inline(always)]
    pub(crate) fn split(&self, node: Node, byte: u8) -> Split {
        if self.is_dense(&node) { self.dense_split(node, byte) } else { self.sparse_split(node, byte) }
    }

    /// The labels of the node at two bytes, `low < high`, and whether any label is strictly between them.
    #[inline(always)]
    pub(crate) fn divergence(&self, node: Node, low: u8, high: u8) -> Divergence {
        if self.is_dense(&node) {
            self.dense_divergence(node, low, high)
        } else {
            self.sparse_divergence(node, low, high)
        }
    }

    /// The next label in the same node.
    #[inline(always)]
    pub(crate) fn next(&self, edge: &Edge) -> Option<Edge> {
        if self.is_dense(&edge.node) {
            self.dense_at_or_after(edge.node, edge.label.checked_add(1)?)
        } else {
            self.sparse_next(edge)
        }
    }

    /// The previous label in the same node.
    #[inline(always)]
    pub(crate) fn previous(&self, edge: &Edge) -> Option<Edge> {
        if self.is_dense(&edge.node) {
            self.dense_at_or_before(edge.node, edge.label.checked_sub(1)?)
        } else {
            self.sparse_previous(edge)
        }
    }

    /// The child of a label; `None` if it has none.
    #[inline(always)]
    pub(crate) fn child(&self, edge: &Edge) -> Option<Node> {
        if !edge.has_child {
            return None;
        }
        if self.is_dense(&edge.node) {
            let number = self.dense_children_before(edge.node.number, edge.at).wrapping_add(1);
            return (number > edge.node.number).then(|| self.node(number));
        }
        let child = self.sparse_child(edge.at);
        (child.start() > edge.at).then_some(child)
    }

    /// Follows a key as far as possible: one loop over dense nodes, one over sparse nodes.
    #[inline(always)]
    pub(crate) fn walk(&self, key: &[u8]) -> WalkResult {
        let counts = &self.layout.counts;
        if counts.node_count == 0 {
            return WalkResult::Absent;
        }
        if counts.dense_node_count == 0 {
            return self.walk_sparse(&Lookahead::ROOT, key, 0);
        }
        let stem_length = self.layout.stem_length;
        let (mut number, mut depth) = (0, 0);
        if stem_length != 0 && key.len() >= usize::from(stem_length) {
            if (key_head(key) ^ self.layout.stem) >> (64 - 8 * u32::from(stem_length)) != 0 {
                return WalkResult::Absent;
            }
            (number, depth) = (u32::from(stem_length), usize::from(stem_length));
        }
        // A key that ends within the stem is walked node by node.
        if self.layout.full_levels != 0 && depth == usize::from(stem_length) {
            (number, depth) = self.pass_full_levels(key, number, depth);
        }
        loop {
            let Some(line) = self.dense.get(number as usize) else {
                return self.walk_sparse(&self.below(number), key, depth);
            };
            let Some(byte) = key.get(depth) else {
                return WalkResult::Node(Node::dense(number));
            };
            depth += 1;
            number = match self.dense_step(number, line, *byte) {
                DenseStep::Absent => return WalkResult::Absent,
                DenseStep::Leaf => return WalkResult::Leaf(Leaf { number, at: u32::from(*byte) }, depth),
                DenseStep::Child(child) => child,
            };
        }
    }

    /// The node below the full levels that a key leads to, and its depth. A key that ends within them is walked node by
    /// node.
    #[inline(always)]
    fn pass_full_levels(&self, key: &[u8], number: u32, depth: usize) -> (u32, usize) {
        match key.get(depth..) {
            Some([first, second, ..]) if self.layout.full_levels == 2 => {
                let path = u32::from(u16::from_be_bytes([*first, *second]));
                (number + 1 + 256 + path, depth + 2)
            }
            Some([first, ..]) => (number + 1 + u32::from(*first), depth + 1),
            _ => (number, depth),
        }
    }

    /// A node below the dense ones by its number, not located yet.
    #[inline(always)]
    fn below(&self, number: u32) -> Lookahead {
        let relative = number.wrapping_sub(self.layout.counts.dense_node_count);
        if relative < self.layout.hinted_count {
            self.hinted_lookahead(number, relative)
        } else {
            self.sparse_lookahead(0)
        }
    }

    /// The child of a dense node (or a dense root) by its number.
    #[inline(always)]
    fn node(&self, number: u32) -> Node {
        if number < self.layout.counts.dense_node_count {
            Node::dense(number)
        } else {
            self.located(&self.below(number))
        }
    }

    /// The number of a node in level order; the number of nodes if it is beyond the last one.
    #[inline(always)]
    pub(crate) fn number(&self, node: &Node) -> u32 {
        if node.number != Node::UNKNOWN {
            return node.number;
        }
        let before =
            self.layout.counts.dense_child_count.wrapping_add(self.sparse_children_before(node.place));
        before.saturating_add(1)
    }

    /// The number of a label without a child among the leaves.
    #[inline(always)]
    pub(crate) fn leaf_number(&self, Leaf { number, at }: Leaf) -> u64 {
        let counts = &self.layout.counts;
        if number < counts.dense_node_count {
            u64::from(self.dense_leaves_before(number, at))
        } else {
            u64::from(counts.dense_leaf_count) + u64::from(self.sparse_leaves_before(at))
        }
    }

    /// Whether the path to a node is a key.
    #[inline(always)]
    pub(crate) fn is_prefix_key(&self, node: &Node) -> bool {
        if self.layout.counts.prefix_key_count == 0 {
            return false;
        }
        let number = self.number(node);
        let [byte] = chunk(self.bytes, self.layout.prefix_keys + (number / 8) as usize);
        byte >> (number % 8) & 1 == 1 && number < self.layout.counts.node_count
    }

    /// Whether a leaf represents several keys.
    #[inline(always)]
    pub(crate) fn has_several_keys(&self, leaf_index: u64) -> bool {
        self.layout.counts.capped_leaf_count != 0 && has_several_keys(self.bytes, self.layout, leaf_index)
    }
}

/// [`Trie::has_several_keys`] of a capped trie. Not inlined, so that the common path does not keep the trie in memory.
#[cold]
#[inline(never)]
fn has_several_keys(bytes: &[u8], layout: &Layout, leaf_index: u64) -> bool {
    let counts = &layout.counts;
    let capped_count = u64::from(counts.capped_leaf_count);
    let bytes = bytes.get(layout.capped..).unwrap_or_default();
    let ends = EliasFano::open(bytes, capped_count, counts.capped_key_count);
    let number = leaf_index.checked_sub(counts.leaf_count().saturating_sub(capped_count));
    let (Some((ends, _)), Some(number)) = (ends, number) else { return false };
    let before = number.checked_sub(1).map_or(Some(0), |before| ends.get(before));
    before.zip(ends.get(number)).is_some_and(|(before, end)| end > before.saturating_add(1))
}
