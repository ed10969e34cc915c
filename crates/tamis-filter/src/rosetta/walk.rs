//! A range question: which nodes are asked, in which order, and where that ends.

use tamis_bits::key_head;

use super::LEVELS_MAX;
use super::bounds::Bounds;
use super::layout::{FULL_DEPTH, Level};
use super::level::{SIBLING_BITS, sibling_bits};
use crate::probe::Run;
use crate::{Digester, RangeProbe};

/// Nodes that are asked at once.
const BATCH_NODES: usize = 32;

/// So few whole keys of up to eight bytes below a node are digested anew for every table: that takes less than to remember them.
const FEW_KEYS: usize = 4;

/// Where a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Everything was denied.
    Absent,
    /// A node was not: it is the first in the direction of the walk under which a key may be. Everything before it was denied.
    Node {
        /// Depth of the node.
        depth: u32,
        /// Its window.
        node: u64,
        /// Whether the budget of probes, or what can be told of the bounds, ended the walk there.
        is_cut: bool,
    },
    /// Nothing was asked.
    Unknown,
}

/// What was asked of one level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) asked: u32,
    pub(super) positive: u32,
    /// Of these, nodes at an edge of the range.
    pub(super) edge_asked: u32,
    pub(super) edge_positive: u32,
}

/// The levels of a filter as a walk sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a> {
    /// From the shallowest to the deepest.
    pub(super) levels: &'a [Level],
    pub(super) payload: &'a [u8],
    pub(super) seed: u64,
    /// Length of all keys, 0 where they have several.
    pub(super) key_bytes: u32,
    pub(super) probe_cap: u32,
}

impl Tree<'_> {
    /// The depth of a level in the tree.
    #[inline]
    fn depth(&self, level: &Level) -> u32 {
        if level.depth == FULL_DEPTH { self.key_bytes * 8 } else { level.depth }
    }
}

/// One walk; `IS_FORWARD` is its direction.
pub(super) struct Walk<'a, 'p, const IS_FORWARD: bool> {
    tree: Tree<'a>,
    bounds: Bounds<'p>,
    probe: &'a RangeProbe<'p>,
    rest: u32,
    /// The nodes asked for now are few, and none of those around them are.
    is_few: bool,
    pub(super) tallies: [Tally; LEVELS_MAX],
    /// Of a foreign filter: made when first needed.
    foreign: Option<Box<Digester>>,
    front: Vec<u8>,
}

impl<'a, 'p, const IS_FORWARD: bool> Walk<'a, 'p, IS_FORWARD> {
    #[inline]
    pub(super) fn new(tree: Tree<'a>, bounds: Bounds<'p>, probe: &'a RangeProbe<'p>) -> Self {
        let tallies = [Tally::default(); LEVELS_MAX];
        let foreign = (tree.seed != probe.seed()).then(|| Box::new(Digester::new(tree.seed)));
        let rest = tree.probe_cap;
        Self { tree, bounds, probe, rest, is_few: false, tallies, foreign, front: Vec::new() }
    }

    /// Nodes that were asked.
    pub(super) const fn probe_count(&self) -> u32 {
        self.tree.probe_cap - self.rest
    }

    #[inline]
    pub(super) fn run(&mut self) -> End {
        let Some(top) = self.tree.levels.first() else { return End::Unknown };
        match self.bounds.span(self.tree.depth(top)) {
            Some(span) => self.visit(0, span, span).unwrap_or(End::Absent),
            None => End::Unknown,
        }
    }

    /// Asks the nodes of a level from first to last, and doubts those that are not denied. `span` is what the whole range touches
    /// of that level.
    fn visit(&mut self, index: usize, span: (u64, u64), (first, last): (u64, u64)) -> Option<End> {
        let level = *self.tree.levels.get(index)?;
        let depth = self.tree.depth(&level);
        let count = last.wrapping_sub(first).saturating_add(1);
        if count > u64::from(self.rest) {
            let node = if IS_FORWARD { first } else { last };
            return Some(End::Node { depth, node, is_cut: true });
        }
        let count = count as usize;
        let mut done = 0;
        while done < count {
            self.is_few = count <= FEW_KEYS;
            let length = (count - done).min(BATCH_NODES);
            let offset = if IS_FORWARD { done } else { count - done - length };
            let start = first.wrapping_add(offset as u64);
            let mut positive = self.ask(&level, depth, span.0, start, length);
            self.tally(index, span, start, length, positive);
            while positive != 0 {
                let bit = if IS_FORWARD { positive.trailing_zeros() } else { 31 - positive.leading_zeros() };
                positive &= !(1 << bit);
                if let Some(end) = self.doubt(index, depth, span, start.wrapping_add(u64::from(bit))) {
                    return Some(end);
                }
            }
            done += length;
        }
        None
    }

    /// A node that was not denied: its children within the range.
    #[inline]
    fn doubt(&mut self, index: usize, depth: u32, (first, last): (u64, u64), node: u64) -> Option<End> {
        let Some(below) = self.tree.levels.get(index + 1) else {
            return Some(End::Node { depth, node, is_cut: false });
        };
        let gap = self.tree.depth(below) - depth;
        let (is_first, is_last) = (node == first, node == last);
        let span = self.bounds.span(self.tree.depth(below));
        // Children of whole nodes that lie 64 bits and more below are too many; those of an edge may be few.
        let is_known = gap < 64 || is_first && is_last;
        let Some(span) = span.filter(|_| is_known) else {
            return Some(End::Node { depth, node, is_cut: true });
        };
        let start = if is_first { span.0 } else { node << gap };
        let end = if is_last { span.1 } else { node << gap | ((1 << gap) - 1) };
        self.visit(index + 1, span, (start, end))
    }

    #[inline]
    fn tally(&mut self, index: usize, span: (u64, u64), start: u64, length: usize, positive: u32) {
        let Some(tally) = self.tallies.get_mut(index) else { return };
        self.rest = self.rest.saturating_sub(length as u32);
        tally.asked += length as u32;
        tally.positive += positive.count_ones();
        let edges = [Some(span.0), (span.1 != span.0).then_some(span.1)];
        for edge in edges.into_iter().flatten() {
            let bit = edge.wrapping_sub(start);
            if bit < length as u64 {
                tally.edge_asked += 1;
                tally.edge_positive += positive >> bit & 1;
            }
        }
    }

    /// Bit `i` of the answer: whether node `start + i` may hold a key. `anchor` is the first node of the range at that depth.
    #[inline]
    fn ask(&mut self, level: &Level, depth: u32, anchor: u64, start: u64, length: usize) -> u32 {
        let bits = level.bits(self.tree.payload);
        let sibling_bits = if level.depth == FULL_DEPTH { 0 } else { sibling_bits(depth) };
        let first_group = start >> sibling_bits;
        let group_count =
            ((start.wrapping_add(length as u64 - 1) >> sibling_bits) - first_group + 1) as usize;
        let mut digests = [0_u64; BATCH_NODES];
        let digests = digests.get_mut(..group_count).unwrap_or_default();
        self.digest_groups(level, depth, (anchor >> sibling_bits, first_group), digests);
        let mut positive = 0;
        if length > 2 && sibling_bits == 0 {
            for digest in digests.iter() {
                level.prefetch(bits, *digest, 0);
            }
        }
        for bit in 0..length {
            let node = start.wrapping_add(bit as u64);
            let group = ((node >> sibling_bits) - first_group) as usize;
            let digest = digests.get(group).copied().unwrap_or(0);
            positive |= u32::from(level.may_hold(bits, digest, level.sibling(node))) << bit;
        }
        positive
    }

    /// The digests of consecutive groups of siblings (or of whole keys), those remembered from other tables included.
    #[inline]
    fn digest_groups(&mut self, level: &Level, depth: u32, (anchor, first): (u64, u64), digests: &mut [u64]) {
        let is_full = level.depth == FULL_DEPTH;
        let group_bits = depth - if is_full { 0 } else { sibling_bits(depth) };
        if depth > 64 {
            return self.digest_long(depth, is_full, (anchor, first), digests);
        }
        let word = |number: u64| {
            let group = first.wrapping_add(number);
            if group_bits == 0 { 0 } else { group << (64 - group_bits) }
        };
        if digests.len() <= 2 && !is_full {
            for (number, digest) in (0..).zip(digests) {
                *digest = self.probe.word_prefix_digest(self.tree.seed, word(number), group_bits);
            }
            return;
        }
        let run = Run { bit_count: group_bits, is_key: is_full, anchor };
        let key_bytes = (self.tree.key_bytes as usize).min(8);
        let digest = |digester: &Digester, number: u64| {
            if !is_full {
                return digester.word_prefix_digest(word(number), group_bits);
            }
            let key = word(number).to_be_bytes();
            match key.get(..key_bytes) {
                Some(short) if key_bytes < 8 => digester.digest(short),
                _ => digester.digest(&key),
            }
        };
        // No place in a run: not remembered.
        let offset = if is_full && self.is_few { u64::MAX } else { first.wrapping_sub(anchor) };
        self.probe.run_digests(self.foreign.as_deref(), run, offset, digests, digest);
    }

    /// Groups deeper than 64 bits: the bytes before the window are those of the lower bound.
    #[cold]
    fn digest_long(&mut self, depth: u32, is_full: bool, (anchor, first): (u64, u64), digests: &mut [u64]) {
        let mut bytes = std::mem::take(&mut self.front);
        let front = depth as usize / 8 - 8;
        self.bounds.copy_front(front, &mut bytes);
        bytes.resize(front + 8, 0);
        let sibling_bits = if is_full { 0 } else { SIBLING_BITS };
        let run = Run { bit_count: depth - sibling_bits, is_key: is_full, anchor };
        let digest = |digester: &Digester, number: u64| {
            let window = first.wrapping_add(number) << sibling_bits;
            if let Some(tail) = bytes.last_chunk_mut::<8>() {
                *tail = window.to_be_bytes();
            }
            if is_full {
                digester.digest(&bytes)
            } else {
                digester.masked_prefix_digest(&mut bytes, depth - sibling_bits)
            }
        };
        self.probe.run_digests(self.foreign.as_deref(), run, first.wrapping_sub(anchor), digests, digest);
        self.front = bytes;
    }
}

/// A node of at most 64 bits as the bits of a key.
pub(super) fn node_of_key(key: &[u8], depth: u32) -> u64 {
    if depth <= 64 {
        return key_head(key).checked_shr(64 - depth).unwrap_or(0);
    }
    let end = depth as usize / 8;
    (end - 8..end).fold(0, |window, index| window << 8 | u64::from(key.get(index).copied().unwrap_or(0)))
}
