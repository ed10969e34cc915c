//! Dense nodes: 256 bits of labels and 256 bits of children in one cache line; their ranks are in a separate list.

use tamis_bits::kernel::Steps;

use super::layout::{
    CHILD_SHIFT, DENSE_GROUP, DENSE_NODE_BYTES, DENSE_RANK_BYTES, LEAVES_BITS, LEAVES_SHIFT, chunk, item,
};
use super::node::{DenseStep, Divergence, Edge, Node, Split};
use super::reader::Trie;

const NOTHING: [u8; DENSE_NODE_BYTES] = [0; DENSE_NODE_BYTES];

/// 64 bits of a node's labels (words 0 to 3) or children (words 4 to 7).
#[inline(always)]
fn word(line: &[u8; DENSE_NODE_BYTES], index: u8) -> u64 {
    u64::from_le_bytes(chunk(line, usize::from(index & 7) * 8))
}

#[inline(always)]
fn edge(node: Node, line: &[u8; DENSE_NODE_BYTES], label: u8) -> Edge {
    let has_child = word(line, 4 + label / 64) >> (label % 64) & 1 == 1;
    Edge { node, at: u32::from(label), label, has_child }
}

impl<S: Steps> Trie<'_, S> {
    #[inline(always)]
    fn line(&self, node: &Node) -> &[u8; DENSE_NODE_BYTES] {
        self.dense.get(node.number as usize).unwrap_or(&NOTHING)
    }

    /// One step along a key from the node with a number and its cache line.
    #[inline(always)]
    pub(super) fn dense_step(&self, number: u32, line: &[u8; DENSE_NODE_BYTES], byte: u8) -> DenseStep {
        let (index, bit) = (byte / 64, 1_u64 << (byte % 64));
        if word(line, index) & bit == 0 {
            return DenseStep::Absent;
        }
        if word(line, 4 + index) & bit == 0 {
            return DenseStep::Leaf;
        }
        // The counts before each 64 labels are stored with the rank of the node: only one word is counted.
        let own = self.dense_rank(number);
        // The count before the first 64 labels is 0.
        let before = (own << 8) >> (8 * index) & 0xff;
        let inside = (word(line, 4 + index) & (bit - 1)).count_ones();
        DenseStep::Child((own >> CHILD_SHIFT) as u32 + before as u32 + inside)
    }

    #[inline(always)]
    pub(super) fn dense_find(&self, node: Node, byte: u8) -> Option<Edge> {
        let line = self.line(&node);
        (word(line, byte / 64) >> (byte % 64) & 1 == 1).then(|| edge(node, line, byte))
    }

    #[inline(always)]
    pub(super) fn dense_at_or_after(&self, node: Node, byte: u8) -> Option<Edge> {
        let line = self.line(&node);
        let mut mask = u64::MAX << (byte % 64);
        for index in byte / 64..4 {
            let labels = word(line, index) & mask;
            if labels != 0 {
                return Some(edge(node, line, index * 64 + labels.trailing_zeros() as u8));
            }
            mask = u64::MAX;
        }
        None
    }

    #[inline(always)]
    pub(super) fn dense_at_or_before(&self, node: Node, byte: u8) -> Option<Edge> {
        let line = self.line(&node);
        let mut mask = u64::MAX >> (63 - byte % 64);
        for index in (0..=byte / 64).rev() {
            let labels = word(line, index) & mask;
            if labels != 0 {
                return Some(edge(node, line, index * 64 + 63 - labels.leading_zeros() as u8));
            }
            mask = u64::MAX;
        }
        None
    }

    #[inline(always)]
    pub(super) fn dense_split(&self, node: Node, byte: u8) -> Split {
        let labels = self.bitmap(node.number, 0);
        let (all, before) = (ones_before(labels, 256), ones_before(labels, u32::from(byte)));
        let edge = self.dense_find(node, byte);
        let has_greater = before + u32::from(edge.is_some()) < all;
        Split { has_smaller: before > 0, edge, has_greater }
    }

    #[inline(always)]
    pub(super) fn dense_divergence(&self, node: Node, low: u8, high: u8) -> Divergence {
        let labels = self.bitmap(node.number, 0);
        let has_between = ones_before(labels, u32::from(high)) > ones_before(labels, u32::from(low) + 1);
        if has_between {
            return Divergence { has_between, ..Divergence::default() };
        }
        Divergence { low: self.dense_find(node, low), has_between, high: self.dense_find(node, high) }
    }

    #[inline(always)]
    fn dense_rank(&self, number: u32) -> u64 {
        u64::from_le_bytes(item::<DENSE_RANK_BYTES>(self.bytes, self.layout.dense_ranks, number))
    }

    /// The ranks of a node: labels with a child and leaves before it.
    #[inline(always)]
    fn dense_ranks(&self, number: u32) -> (u32, u32) {
        let own = self.dense_rank(number);
        let group = u32::from_le_bytes(item(self.bytes, self.layout.dense_groups, number / DENSE_GROUP));
        let leaves = (own >> LEAVES_SHIFT) as u32 & ((1 << LEAVES_BITS) - 1);
        (((own >> CHILD_SHIFT) as u32).wrapping_sub(1), group.wrapping_add(leaves))
    }

    /// One of the two bitmaps of a node.
    #[inline(always)]
    fn bitmap(&self, number: u32, first: u8) -> [u64; 4] {
        let line = self.dense.get(number as usize).unwrap_or(&NOTHING);
        [word(line, first), word(line, first + 1), word(line, first + 2), word(line, first + 3)]
    }

    /// Labels with a child before label `at` (up to 256) of a node.
    #[inline(always)]
    pub(super) fn dense_children_before(&self, number: u32, at: u32) -> u32 {
        self.dense_ranks(number).0.wrapping_add(ones_before(self.bitmap(number, 4), at))
    }

    /// Labels without a child before label `at` (up to 256) of a node.
    #[inline(always)]
    pub(super) fn dense_leaves_before(&self, number: u32, at: u32) -> u32 {
        let [a, b, c, d] = self.bitmap(number, 0);
        let [e, f, g, h] = self.bitmap(number, 4);
        self.dense_ranks(number).1.wrapping_add(ones_before([a & !e, b & !f, c & !g, d & !h], at))
    }
}

/// Bits set before bit `at` of 256.
#[inline(always)]
fn ones_before([a, b, c, d]: [u64; 4], at: u32) -> u32 {
    let whole = at / 64;
    let partial = (1_u64 << (at % 64)) - 1;
    // No branch: each word counts as a whole, in part, or not at all.
    let masked = |index: u32, word: u64| {
        let mask = if whole > index { u64::MAX } else { partial };
        if whole < index { 0 } else { (word & mask).count_ones() }
    };
    masked(0, a) + masked(1, b) + masked(2, c) + masked(3, d)
}
