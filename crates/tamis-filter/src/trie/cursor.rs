//! A position in a trie, with the path that leads to it.
//!
//! A move reads only the levels that change: a step within a node reads its labels, a step down reads the rank of one
//! label. Order: a node's prefix key comes before everything below its labels.

use tamis_bits::kernel::Steps;

use super::node::{Edge, Node};
use super::reader::Trie;
use crate::Direction;

/// The item at which a cursor is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// A label without a child; the path has all its bytes.
    Leaf(Edge),
    /// A node whose path is a key.
    PrefixKey(Node),
}

/// A path from the root: the labels and the item at its end. The caller may extend the path by the rest of the key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    edges: Vec<Edge>,
    path: Vec<u8>,
    stop: Option<Stop>,
}

impl Cursor {
    /// The item at the cursor; `None` before the first and after the last.
    #[inline]
    pub(crate) const fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The bytes of the path.
    #[inline]
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Appends to the path the bytes of the key that the trie does not have, until the next move.
    #[cfg(any(test, feature = "trie-index"))]
    #[inline(always)]
    pub(crate) fn extend_path(&mut self, suffix: &[u8]) {
        self.path.extend_from_slice(suffix);
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.edges.clear();
        self.path.clear();
        self.stop = None;
    }

    #[inline(always)]
    fn push(&mut self, edge: Edge) {
        self.edges.push(edge);
        self.path.push(edge.label);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Edge> {
        self.path.pop();
        self.edges.pop()
    }

    /// Moves to the first key, or backward to the last one.
    #[inline(always)]
    pub(crate) fn move_to_end(&mut self, trie: &Trie<'_, impl Steps>, direction: Direction) {
        self.clear();
        if let Some(root) = trie.root() {
            self.descend(trie, root, direction);
        }
    }

    /// Moves to the first key, or leaf that represents keys, of which not all are smaller than `key`. If it is a leaf
    /// whose path is a prefix of `key`, its key may still be smaller: the caller decides and calls [`Cursor::step`].
    #[inline(always)]
    pub(crate) fn seek(&mut self, trie: &Trie<'_, impl Steps>, key: &[u8]) {
        if let Some(node) = self.follow(trie, key, Direction::Forward) {
            self.descend(trie, node, Direction::Forward);
        }
    }

    /// Moves to the last key, or leaf that represents keys, whose path is at most `key`; with `is_prefix`, also those
    /// that begin with `key`. If it is a leaf whose path is a prefix of `key`, its key may be greater: the caller
    /// decides.
    #[inline(always)]
    pub(crate) fn seek_for_prev(&mut self, trie: &Trie<'_, impl Steps>, key: &[u8], is_prefix: bool) {
        match self.follow(trie, key, Direction::Backward) {
            Some(node) if is_prefix => self.descend(trie, node, Direction::Backward),
            // Everything below the node is greater than the key; only the node's own key may equal it.
            Some(node) => self.stop_at_or_before(trie, node),
            None => {}
        }
    }

    /// Moves to the next key, or backward to the previous one.
    #[inline(always)]
    pub(crate) fn step(&mut self, trie: &Trie<'_, impl Steps>, direction: Direction) {
        self.path.truncate(self.edges.len());
        match self.stop.take() {
            None => {}
            Some(Stop::PrefixKey(node)) if direction == Direction::Forward => {
                match trie.at_or_after(node, 0) {
                    Some(edge) => self.enter(trie, edge, direction),
                    None => self.climb(trie, direction),
                }
            }
            Some(_) => self.climb(trie, direction),
        }
    }

    /// Follows a key from the root. Returns the node to which all its bytes lead; otherwise the cursor is at the nearest
    /// item in the direction.
    #[inline(always)]
    fn follow(&mut self, trie: &Trie<'_, impl Steps>, key: &[u8], direction: Direction) -> Option<Node> {
        self.clear();
        let mut node = trie.root()?;
        for byte in key {
            let nearest = match direction {
                Direction::Forward => trie.at_or_after(node, *byte),
                Direction::Backward => trie.at_or_before(node, *byte),
            };
            let Some(edge) = nearest else {
                match direction {
                    Direction::Forward => self.climb(trie, direction),
                    Direction::Backward => self.stop_at_or_before(trie, node),
                }
                return None;
            };
            if edge.label != *byte {
                self.enter(trie, edge, direction);
                return None;
            }
            self.push(edge);
            match trie.child(&edge) {
                Some(child) => node = child,
                None => {
                    self.stop = Some(Stop::Leaf(edge));
                    return None;
                }
            }
        }
        Some(node)
    }

    /// Climbs to the nearest label with another one after it in the direction, and enters that. Backward, a node that is
    /// a key comes before its labels.
    #[inline(always)]
    fn climb(&mut self, trie: &Trie<'_, impl Steps>, direction: Direction) {
        while let Some(edge) = self.pop() {
            let other = match direction {
                Direction::Forward => trie.next(&edge),
                Direction::Backward => trie.previous(&edge),
            };
            if let Some(other) = other {
                return self.enter(trie, other, direction);
            }
            if direction == Direction::Backward && trie.is_prefix_key(&edge.node) {
                self.stop = Some(Stop::PrefixKey(edge.node));
                return;
            }
        }
        self.stop = None;
    }

    /// Moves to the node's own key, or to what comes before it.
    #[inline(always)]
    fn stop_at_or_before(&mut self, trie: &Trie<'_, impl Steps>, node: Node) {
        if trie.is_prefix_key(&node) {
            self.stop = Some(Stop::PrefixKey(node));
        } else {
            self.climb(trie, Direction::Backward);
        }
    }

    /// Moves to the first or last key of a label.
    #[inline(always)]
    fn enter(&mut self, trie: &Trie<'_, impl Steps>, edge: Edge, direction: Direction) {
        self.push(edge);
        match trie.child(&edge) {
            Some(child) => self.descend(trie, child, direction),
            None => self.stop = Some(Stop::Leaf(edge)),
        }
    }

    /// Moves to the first or last key of a node.
    #[inline(always)]
    fn descend(&mut self, trie: &Trie<'_, impl Steps>, mut node: Node, direction: Direction) {
        loop {
            if direction == Direction::Forward && trie.is_prefix_key(&node) {
                self.stop = Some(Stop::PrefixKey(node));
                return;
            }
            let end = match direction {
                Direction::Forward => trie.at_or_after(node, 0),
                Direction::Backward => trie.at_or_before(node, u8::MAX),
            };
            let Some(edge) = end else {
                // Only a root without labels: the empty key.
                self.stop = trie.is_prefix_key(&node).then_some(Stop::PrefixKey(node));
                return;
            };
            self.push(edge);
            match trie.child(&edge) {
                Some(child) => node = child,
                None => {
                    self.stop = Some(Stop::Leaf(edge));
                    return;
                }
            }
        }
    }
}
