//! Counts the keys between two bounds with one or two ranks per level, however many keys there are.
//!
//! On each level a bound has a **frontier**: the first label that is not left of the bound's path. One rank counts the
//! leaves left of it; the frontier of the next level begins with the child of the first label at or right of it. The
//! result is the sum of the differences of both bounds over all levels. Two frontiers that meet off their paths stay
//! equal.

use tamis_bits::kernel::Steps;

use super::node::{Edge, Node};
use super::reader::Trie;

/// The side of a key on which a bound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before the key.
    Before,
    /// After the key, before its extensions.
    After,
    /// After all keys that begin with it.
    AfterPrefix,
}

/// A bound on its way down the levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frontier<'k> {
    key: &'k [u8],
    side: Side,
    depth: usize,
    node: Node,
    is_on_path: bool,
    /// The leaf whose path is a prefix of the key, and the length of its path: the trie cannot decide whether its key
    /// is before the bound. It is not counted.
    pub(crate) tie: Option<(Edge, usize)>,
}

impl<'k> Frontier<'k> {
    fn new(root: Node, key: &'k [u8], side: Side) -> Self {
        Self { key, side, depth: 0, node: root, is_on_path: true, tie: None }
    }

    /// Keys of this level before the bound, counted from the first key of the level; then moves down.
    fn descend(&mut self, trie: &Trie<'_, impl Steps>) -> u64 {
        let mut at = trie.node_start(&self.node);
        let mut prefix_keys = trie.prefix_keys_before(&self.node);
        let mut child = None;
        if self.is_on_path {
            let byte = self.key.get(self.depth);
            if byte.is_some() || self.side != Side::Before {
                prefix_keys += u64::from(trie.is_prefix_key(&self.node));
            }
            let edge = byte.and_then(|byte| trie.at_or_after(self.node, *byte));
            match (byte, edge) {
                (Some(byte), Some(edge)) => {
                    at = edge.at;
                    if edge.label == *byte {
                        child = trie.child(&edge);
                        if child.is_none() {
                            self.tie = Some((edge, self.depth + 1));
                        }
                    }
                }
                (Some(_), None) => at = trie.node_end(&self.node),
                (None, _) if self.side == Side::AfterPrefix => at = trie.node_end(&self.node),
                (None, _) => {}
            }
        }
        let leaves = trie.keys_before_leaf(trie.leaves_before(&self.node, at));
        self.depth += 1;
        self.is_on_path = child.is_some();
        self.node = child.unwrap_or_else(|| trie.next_child(&self.node, at));
        // Damaged bytes may mark more prefix keys than the count.
        leaves.wrapping_add(prefix_keys)
    }
}

/// Keys that are certainly at or after the lower bound and before the upper bound, without ties, and both frontiers
/// with their ties. Never below 0.
pub(crate) fn count_between<'k>(
    trie: &Trie<'_, impl Steps>,
    lower: (&'k [u8], Side),
    upper: (&'k [u8], Side),
) -> Option<(u64, Frontier<'k>, Frontier<'k>)> {
    let root = trie.root()?;
    let mut lower = Frontier::new(root, lower.0, lower.1);
    let mut upper = Frontier::new(root, upper.0, upper.1);
    let mut count = 0_u64;
    for _ in 0..trie.layout.counts.height {
        if !lower.is_on_path && !upper.is_on_path && trie.is_same(&lower.node, &upper.node) {
            break;
        }
        let before_lower = lower.descend(trie);
        count = count.saturating_add(upper.descend(trie).saturating_sub(before_lower));
    }
    Some((count, lower, upper))
}
