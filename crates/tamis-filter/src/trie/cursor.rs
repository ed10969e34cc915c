//! A position in a trie, with the path that leads to it.
//!
//! A move reads only the levels that change: a step within a node reads its labels, a step down reads the rank of one
//! label. Order: a node's prefix key comes before everything below its labels.

use tamis_bits::kernel::Steps;

use super::node::{Edge, Node};
use super::reader::Trie;

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

    /// Moves to the first key.
    #[inline(always)]
    pub(crate) fn move_to_first(&mut self, trie: &Trie<'_, impl Steps>) {
        self.clear();
        if let Some(root) = trie.root() {
            self.descend_to_first(trie, root);
        }
    }

    /// Moves to the last key.
    #[inline(always)]
    pub(crate) fn move_to_last(&mut self, trie: &Trie<'_, impl Steps>) {
        self.clear();
        if let Some(root) = trie.root() {
            self.descend_to_last(trie, root);
        }
    }

    /// Moves to the first key, or leaf that represents keys, of which not all are smaller than `key`. If it is a leaf
    /// whose path is a prefix of `key`, its key may still be smaller: the caller decides and calls [`Cursor::next`].
    #[inline(always)]
    pub(crate) fn seek(&mut self, trie: &Trie<'_, impl Steps>, key: &[u8]) {
        self.clear();
        let Some(mut node) = trie.root() else { return };
        for byte in key {
            let Some(edge) = trie.at_or_after(node, *byte) else { return self.climb(trie) };
            if edge.label != *byte {
                return self.enter_first(trie, edge);
            }
            self.push(edge);
            match trie.child(&edge) {
                Some(child) => node = child,
                None => {
                    self.stop = Some(Stop::Leaf(edge));
                    return;
                }
            }
        }
        self.descend_to_first(trie, node);
    }

    /// Moves to the last key, or leaf that represents keys, whose path is at most `key`; with `is_prefix`, also those
    /// that begin with `key`. If it is a leaf whose path is a prefix of `key`, its key may be greater: the caller
    /// decides.
    #[inline(always)]
    pub(crate) fn seek_for_prev(&mut self, trie: &Trie<'_, impl Steps>, key: &[u8], is_prefix: bool) {
        self.clear();
        let Some(mut node) = trie.root() else { return };
        for byte in key {
            let Some(edge) = trie.at_or_before(node, *byte) else { return self.stop_at_or_above(trie, node) };
            if edge.label != *byte {
                return self.enter_last(trie, edge);
            }
            self.push(edge);
            match trie.child(&edge) {
                Some(child) => node = child,
                None => {
                    self.stop = Some(Stop::Leaf(edge));
                    return;
                }
            }
        }
        if is_prefix {
            self.descend_to_last(trie, node);
        } else {
            // Everything below the node is greater than the key; only the node's own key may equal it.
            self.stop_at_or_above(trie, node);
        }
    }

    /// Moves to the next key.
    #[inline(always)]
    pub(crate) fn next(&mut self, trie: &Trie<'_, impl Steps>) {
        self.path.truncate(self.edges.len());
        match self.stop.take() {
            None => {}
            Some(Stop::Leaf(_)) => self.climb(trie),
            Some(Stop::PrefixKey(node)) => match trie.at_or_after(node, 0) {
                Some(edge) => self.enter_first(trie, edge),
                None => self.climb(trie),
            },
        }
    }

    /// Moves to the previous key.
    #[inline(always)]
    pub(crate) fn previous(&mut self, trie: &Trie<'_, impl Steps>) {
        self.path.truncate(self.edges.len());
        if self.stop.take().is_some() {
            self.climb_back(trie);
        }
    }

    /// Climbs to the nearest label with a next one, and moves to the first key below that.
    #[inline(always)]
    fn climb(&mut self, trie: &Trie<'_, impl Steps>) {
        while let Some(edge) = self.pop() {
            if let Some(next) = trie.next(&edge) {
                return self.enter_first(trie, next);
            }
        }
        self.stop = None;
    }

    /// Climbs to the nearest label with a previous one, or node that is a key.
    #[inline(always)]
    fn climb_back(&mut self, trie: &Trie<'_, impl Steps>) {
        while let Some(edge) = self.pop() {
            if let Some(before) = trie.previous(&edge) {
                return self.enter_last(trie, before);
            }
            if trie.is_prefix_key(&edge.node) {
                self.stop = Some(Stop::PrefixKey(edge.node));
                return;
            }
        }
        self.stop = None;
    }

    /// Moves to the node's own key, or to what comes before it.
    #[inline(always)]
    fn stop_at_or_above(&mut self, trie: &Trie<'_, impl Steps>, node: Node) {
        if trie.is_prefix_key(&node) {
            self.stop = Some(Stop::PrefixKey(node));
        } else {
            self.climb_back(trie);
        }
    }

    #[inline(always)]
    fn enter_first(&mut self, trie: &Trie<'_, impl Steps>, edge: Edge) {
        self.push(edge);
        match trie.child(&edge) {
            Some(child) => self.descend_to_first(trie, child),
            None => self.stop = Some(Stop::Leaf(edge)),
        }
    }

    #[inline(always)]
    fn enter_last(&mut self, trie: &Trie<'_, impl Steps>, edge: Edge) {
        self.push(edge);
        match trie.child(&edge) {
            Some(child) => self.descend_to_last(trie, child),
            None => self.stop = Some(Stop::Leaf(edge)),
        }
    }

    #[inline(always)]
    fn descend_to_first(&mut self, trie: &Trie<'_, impl Steps>, mut node: Node) {
        loop {
            if trie.is_prefix_key(&node) {
                self.stop = Some(Stop::PrefixKey(node));
                return;
            }
            let Some(edge) = trie.at_or_after(node, 0) else { return };
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

    #[inline(always)]
    fn descend_to_last(&mut self, trie: &Trie<'_, impl Steps>, mut node: Node) {
        loop {
            let Some(edge) = trie.at_or_before(node, u8::MAX) else {
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
