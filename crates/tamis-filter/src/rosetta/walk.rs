//! A range query: which nodes it probes, in which order, and where it ends.

use super::layout::{FULL_DEPTH, Level};
use super::level::{SIBLING_BITS, sibling_bits};
use crate::bounds::Bounds;
use crate::{Digester, RangeProbe};

/// Nodes that are probed together: one for each bit of a mask.
const MASK_NODES: u64 = 64;

/// The result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// All nodes were rejected.
    Absent,
    /// The first node, in the direction of the walk, that may contain a key. All nodes before it were rejected.
    Node {
        /// Depth of the node.
        depth: u32,
        /// Its window.
        node: u64,
        /// Whether the probe limit, or bounds without a common window, ended the walk there.
        is_limited: bool,
    },
    /// Nothing was probed.
    Unknown,
}

/// The levels of a filter, as a walk needs them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a> {
    /// From the shallowest to the deepest.
    pub(super) levels: &'a [Level],
    pub(super) payload: &'a [u8],
    pub(super) seed: u64,
    /// Length of all keys, 0 for several lengths.
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

/// Nodes that are probed together: bit `i` of the mask is node `base + i`. The base is the first of eight siblings, so
/// each byte of the mask is one group of siblings.
#[derive(Debug, Clone, Copy)]
struct Nodes {
    base: u64,
    mask: u64,
}

impl Nodes {
    /// As many of the nodes from first to last as fit, from the end where the walk begins, and the remaining ones.
    #[inline]
    fn begin<const IS_FORWARD: bool>((first, last): (u64, u64)) -> (Self, Option<(u64, u64)>) {
        let (start, end, rest) = if IS_FORWARD {
            let end = last.min((first & !7).saturating_add(MASK_NODES - 1));
            (first, end, (end.wrapping_add(1), last))
        } else {
            let start = first.max((last | 7).saturating_sub(MASK_NODES - 1));
            (start, last, (first, start.wrapping_sub(1)))
        };
        let base = start & !7;
        let mask = u64::MAX << (start - base) & u64::MAX >> (MASK_NODES - 1 - (end - base));
        let is_all = (start, end) == (first, last);
        (Self { base, mask }, (!is_all).then_some(rest))
    }

    /// The first node in the direction of the walk.
    #[inline]
    fn foremost<const IS_FORWARD: bool>(self) -> u64 {
        let bit = if IS_FORWARD { self.mask.trailing_zeros() } else { 63 - self.mask.leading_zeros() };
        self.base.wrapping_add(u64::from(bit))
    }

    /// The children, `gap` (at most 6) bits deeper and within the span of the range there, of as many of these nodes
    /// as fit, from the end where the walk begins; removes those nodes from the mask.
    #[inline]
    fn take_children<const IS_FORWARD: bool>(&mut self, gap: u32, span: (u64, u64)) -> Self {
        let room = 64 >> gap;
        // This many nodes have eight children each: the first child of a base is a base.
        let unit = (8 >> gap).max(1);
        let low = if IS_FORWARD {
            self.mask.trailing_zeros() & !(unit - 1)
        } else {
            (64 - self.mask.leading_zeros()).saturating_sub(room).next_multiple_of(unit)
        };
        let mut taken = self.mask >> low & u64::MAX >> (64 - room);
        self.mask &= !(taken << low);
        let base = self.base.wrapping_add(u64::from(low)) << gap;
        let children = u64::MAX >> (64 - (1 << gap));
        let mut mask = 0;
        while taken != 0 {
            mask |= children << (taken.trailing_zeros() << gap);
            taken &= taken - 1;
        }
        mask &= u64::MAX << span.0.saturating_sub(base).min(63);
        mask &= u64::MAX >> (63 - span.1.wrapping_sub(base).min(63));
        Self { base, mask }
    }
}

/// One walk; `IS_FORWARD` is its direction.
pub(super) struct Walk<'a, 'p, const IS_FORWARD: bool> {
    tree: Tree<'a>,
    bounds: Bounds<'p>,
    probe: &'a RangeProbe<'p>,
    rest: u32,
    /// The digester of a filter with another seed: created when first needed.
    foreign: Option<Box<Digester>>,
    front: Vec<u8>,
}

impl<'a, 'p, const IS_FORWARD: bool> Walk<'a, 'p, IS_FORWARD> {
    #[inline]
    pub(super) fn new(tree: Tree<'a>, bounds: Bounds<'p>, probe: &'a RangeProbe<'p>) -> Self {
        let foreign = (tree.seed != probe.seed()).then(|| Box::new(Digester::new(tree.seed)));
        let rest = tree.probe_cap;
        Self { tree, bounds, probe, rest, foreign, front: Vec::new() }
    }

    /// Nodes that were probed.
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

    /// Probes the nodes of a level from first to last, and then the children of those that are not rejected. `span` is
    /// the span of the whole range at that level.
    fn visit(&mut self, index: usize, span: (u64, u64), (first, last): (u64, u64)) -> Option<End> {
        let level = self.tree.levels.get(index)?;
        let count = last.wrapping_sub(first).saturating_add(1);
        if count > u64::from(self.rest) {
            let node = if IS_FORWARD { first } else { last };
            return Some(End::Node { depth: self.tree.depth(level), node, is_limited: true });
        }
        let mut rest = Some((first, last));
        while let Some(range) = rest {
            let nodes;
            (nodes, rest) = Nodes::begin::<IS_FORWARD>(range);
            if let Some(end) = self.sweep(index, span, nodes) {
                return Some(end);
            }
        }
        None
    }

    /// Probes nodes of a level, then the children of all nodes that were not rejected: level by level, so that the
    /// cache misses of a level overlap.
    fn sweep(&mut self, index: usize, span: (u64, u64), nodes: Nodes) -> Option<End> {
        let level = self.tree.levels.get(index)?;
        let depth = self.tree.depth(level);
        let asked = nodes.mask.count_ones();
        if asked > self.rest {
            return Some(End::Node { depth, node: nodes.foremost::<IS_FORWARD>(), is_limited: true });
        }
        self.rest -= asked;
        let mut passed = Nodes { mask: self.ask(level, depth, nodes), ..nodes };
        if passed.mask == 0 {
            return None;
        }
        let Some(below) = self.tree.levels.get(index + 1) else {
            return Some(End::Node { depth, node: passed.foremost::<IS_FORWARD>(), is_limited: false });
        };
        let gap = self.tree.depth(below) - depth;
        match self.bounds.span(self.tree.depth(below)).filter(|_| gap <= 6) {
            Some(span) => {
                while passed.mask != 0 {
                    let children = passed.take_children::<IS_FORWARD>(gap, span);
                    if let Some(end) = self.sweep(index + 1, span, children) {
                        return Some(end);
                    }
                }
            }
            None => {
                while passed.mask != 0 {
                    let node = passed.foremost::<IS_FORWARD>();
                    passed.mask &= !(1 << node.wrapping_sub(passed.base));
                    if let Some(end) = self.expand(index, depth, span, node) {
                        return Some(end);
                    }
                }
            }
        }
        None
    }

    /// A node that was not rejected and has many children: probes those within the range.
    fn expand(&mut self, index: usize, depth: u32, (first, last): (u64, u64), node: u64) -> Option<End> {
        let below = self.tree.levels.get(index + 1)?;
        let gap = self.tree.depth(below) - depth;
        let (is_first, is_last) = (node == first, node == last);
        let span = self.bounds.span(self.tree.depth(below));
        // Whole nodes have too many children 64 bits and more below; a node at an edge may have few.
        let is_known = gap < 64 || is_first && is_last;
        let Some(span) = span.filter(|_| is_known) else {
            return Some(End::Node { depth, node, is_limited: true });
        };
        let start = if is_first { span.0 } else { node << gap };
        let end = if is_last { span.1 } else { node << gap | ((1 << gap) - 1) };
        self.visit(index + 1, span, (start, end))
    }

    /// Those of the nodes that may contain a key.
    #[inline]
    fn ask(&mut self, level: &Level, depth: u32, nodes: Nodes) -> u64 {
        let bits = level.bits(self.tree.payload);
        let (mut rest, mut offset, mut passed) = (nodes.mask, 0, 0);
        while rest != 0 {
            let skipped = rest.trailing_zeros() & !7;
            rest >>= skipped;
            offset += skipped;
            let wanted = rest as u8;
            let first = nodes.base.wrapping_add(u64::from(offset));
            let held = if level.depth == FULL_DEPTH {
                let mut digests = [0; 8];
                let mut each = wanted;
                while each != 0 {
                    let number = each.trailing_zeros();
                    each &= each - 1;
                    if let Some(digest) = digests.get_mut(number as usize) {
                        *digest = self.key_digest(depth, first.wrapping_add(u64::from(number)));
                    }
                }
                level.held_keys(bits, &digests, wanted)
            } else {
                level.held_siblings(bits, self.group_digest(depth, first), wanted)
            };
            passed |= u64::from(held) << offset;
            rest &= !0xff;
        }
        passed
    }

    /// The digest that a node shares with its siblings.
    #[inline]
    fn group_digest(&mut self, depth: u32, node: u64) -> u64 {
        if depth > 64 {
            return self.long_digest(depth, false, node >> SIBLING_BITS);
        }
        let sibling_bits = sibling_bits(depth);
        let group_bits = depth - sibling_bits;
        let group = node >> sibling_bits;
        let word = if group_bits == 0 { 0 } else { group << (64 - group_bits) };
        if let Some(foreign) = &self.foreign {
            self.probe.add_digests(1);
            return foreign.word_prefix_digest(word, group_bits);
        }
        self.probe.word_prefix_digest(self.tree.seed, word, group_bits)
    }

    /// The digest of a whole key. Those of up to eight bytes are computed again for every table, which is faster than to cache them.
    #[inline]
    fn key_digest(&mut self, depth: u32, node: u64) -> u64 {
        if depth > 64 {
            return self.long_digest(depth, true, node);
        }
        self.probe.add_digests(1);
        let digester = self.foreign.as_deref().unwrap_or(self.probe.digester());
        digester.short_digest(node << (64 - depth), depth / 8)
    }

    /// Nodes deeper than 64 bits: the bytes before the window are those of the lower bound.
    #[cold]
    fn long_digest(&mut self, depth: u32, is_full: bool, number: u64) -> u64 {
        let mut bytes = std::mem::take(&mut self.front);
        let front = depth as usize / 8 - 8;
        if bytes.len() != front + 8 {
            self.bounds.copy_front(front, &mut bytes);
            bytes.resize(front + 8, 0);
        }
        let sibling_bits = if is_full { 0 } else { SIBLING_BITS };
        if let Some(tail) = bytes.last_chunk_mut::<8>() {
            *tail = (number << sibling_bits).to_be_bytes();
        }
        let digest = |digester: &Digester| {
            if is_full {
                digester.digest(&bytes)
            } else {
                digester.whole_byte_prefix_digest(&bytes, depth - sibling_bits)
            }
        };
        let length = (depth - sibling_bits + 1) | u32::from(is_full) << 31;
        let digest = match self.foreign.as_deref() {
            None => self.probe.cached_digest(number, length, digest),
            Some(foreign) => {
                self.probe.add_digests(1);
                digest(foreign)
            }
        };
        self.front = bytes;
        digest
    }
}

#[cfg(test)]
mod tests;
