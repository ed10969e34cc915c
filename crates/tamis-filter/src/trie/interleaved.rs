//! Many keys at once: interleaved walks, in rounds of one step each.
//!
//! A single walk waits for memory at every step and for every branch misprediction. Here each step prefetches the cache
//! lines of the walk's next step, and all other walks take a step before that. No branch depends on whether a walk
//! continues, reaches a leaf or ends: the result is added to the lengths of lists. Dense levels, which are few and
//! small, are one step.

use tamis_bits::kernel::Steps;

use super::node::{DenseWalk, Leaf, Lookahead, Node, WalkResult};
use super::reader::Trie;
use super::sparse::SpeculativeStep;

/// Number of walks that are interleaved.
pub(crate) const INTERLEAVE_WIDTH: usize = 64;

/// The state of a walk: before a sparse node, or at a leaf. At a leaf, the lookahead has the position of the leaf's
/// label.
#[derive(Clone, Copy)]
struct WalkState {
    lookahead: Lookahead,
    /// Bytes that lead there.
    depth: u32,
}

/// Walks by the numbers of their keys, the numbers of those that continue and of those that reached a sparse leaf.
/// Walks stay in place; only their numbers move.
struct Walks<'k> {
    keys: [&'k [u8]; INTERLEAVE_WIDTH],
    walks: [WalkState; INTERLEAVE_WIDTH],
    going: Numbers,
    hits: Numbers,
}

/// Distinct numbers of walks.
struct Numbers {
    items: [u8; INTERLEAVE_WIDTH],
    count: usize,
}

impl Numbers {
    const NONE: Self = Self { items: [0; INTERLEAVE_WIDTH], count: 0 };

    /// Appends a number if `is_added`. It is written in both cases, to avoid a branch; there is room for it.
    #[inline(always)]
    fn push(&mut self, number: usize, is_added: bool) {
        if let Some(item) = self.items.get_mut(self.count % INTERLEAVE_WIDTH) {
            *item = number as u8;
        }
        self.count += usize::from(is_added);
    }

    #[inline(always)]
    fn get(&self, index: usize) -> usize {
        self.items.get(index % INTERLEAVE_WIDTH).map_or(0, |number| usize::from(*number) % INTERLEAVE_WIDTH)
    }
}

/// A walk that reached a leaf.
#[derive(Clone, Copy)]
pub(crate) struct LeafHit {
    leaf: Leaf,
    depth: u32,
    key_number: u32,
    number: u64,
}

impl LeafHit {
    /// The leaf.
    pub(crate) const fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Bytes that lead to the leaf.
    pub(crate) const fn depth(&self) -> usize {
        self.depth as usize
    }

    /// The number of the key.
    pub(crate) const fn key_number(&self) -> usize {
        self.key_number as usize
    }

    /// The number of the leaf, after [`LeafHits::count`].
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

impl<S: Steps> Trie<'_, S> {
    /// Follows up to [`INTERLEAVE_WIDTH`] keys, given by their numbers; `key` may return `None`. Calls `at_node` for
    /// walks that arrive at a node with the last byte of their key; returns those that reached a leaf.
    #[inline(always)]
    pub(crate) fn walk_interleaved<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> Option<&'k [u8]>,
        mut at_node: impl FnMut(usize, Node),
    ) -> LeafHits {
        let walk = WalkState { lookahead: Lookahead::ROOT, depth: 0 };
        let (going, at_leaf) = (Numbers::NONE, Numbers::NONE);
        let mut walks =
            Walks { keys: [&[]; INTERLEAVE_WIDTH], walks: [walk; INTERLEAVE_WIDTH], going, hits: at_leaf };
        let mut hits = LeafHits::NEW;
        for number in 0..count.min(INTERLEAVE_WIDTH) {
            let Some(key) = key(number) else { continue };
            match self.enter(key) {
                DenseWalk::Ended(WalkResult::Absent) => {}
                DenseWalk::Ended(WalkResult::Node(node)) => at_node(number, node),
                DenseWalk::Ended(WalkResult::Leaf(leaf, depth)) => {
                    hits.push(LeafHit { leaf, depth: depth as u32, key_number: number as u32, number: 0 });
                }
                DenseWalk::Sparse(lookahead, depth) => {
                    self.prefetch(&lookahead);
                    if let (Some(slot), Some(walk)) =
                        (walks.keys.get_mut(number), walks.walks.get_mut(number))
                    {
                        (*slot, *walk) = (key, WalkState { lookahead, depth: depth as u32 });
                        walks.going.push(number, true);
                    }
                }
            }
        }
        if self.layout.is_wide {
            // The first nodes have many labels; those below have few, but are far apart.
            self.round(&mut walks, &mut at_node, |lookahead| self.arrive_below(lookahead), true);
            let arrive =
                |lookahead: &Lookahead| lookahead.node(self.locate_wide(lookahead.block, lookahead.index));
            self.round(&mut walks, &mut at_node, arrive, false);
        }
        while walks.going.count > 0 {
            let arrive =
                |lookahead: &Lookahead| lookahead.node(self.locate_near(lookahead.block, lookahead.index));
            self.round(&mut walks, &mut at_node, arrive, false);
        }
        for index in 0..walks.hits.count {
            let number = walks.hits.get(index);
            if let Some(WalkState { lookahead, depth }) = walks.walks.get(number) {
                let leaf = Leaf::sparse(lookahead.place);
                hits.push(LeafHit { leaf, depth: *depth, key_number: number as u32, number: 0 });
            }
        }
        hits
    }

    /// One step of each walk.
    #[inline(always)]
    fn round(
        &self,
        walks: &mut Walks<'_>,
        at_node: &mut impl FnMut(usize, Node),
        arrive: impl Fn(&Lookahead) -> Node,
        is_wide: bool,
    ) {
        let Walks { keys, walks, going, hits } = walks;
        let count = std::mem::take(&mut going.count);
        for index in 0..count {
            let number = going.get(index);
            let (Some(key), Some(walk)) = (keys.get(number), walks.get_mut(number)) else { break };
            let node = arrive(&walk.lookahead);
            let Some(byte) = key.get(walk.depth as usize) else {
                at_node(number, node);
                continue;
            };
            let SpeculativeStep { is_there, has_child, lookahead } =
                self.speculative_step(&node, *byte, is_wide);
            self.prefetch_near(&lookahead);
            *walk = WalkState { lookahead, depth: walk.depth + 1 };
            going.push(number, has_child);
            hits.push(number, is_there & !has_child);
        }
    }
}

/// Walks that reached a leaf.
pub(crate) struct LeafHits {
    items: [LeafHit; INTERLEAVE_WIDTH],
    count: usize,
}

impl LeafHits {
    const NEW: Self = {
        let hits = LeafHit { leaf: Leaf::sparse(0), depth: 0, key_number: 0, number: 0 };
        Self { items: [hits; INTERLEAVE_WIDTH], count: 0 }
    };

    #[inline(always)]
    fn push(&mut self, hits: LeafHit) {
        if let Some(room) = self.items.get_mut(self.count) {
            *room = hits;
            self.count += 1;
        }
    }

    /// Computes the numbers of all leaves.
    #[inline(always)]
    pub(crate) fn count(&mut self, trie: &Trie<'_, impl Steps>) {
        self.iter().for_each(|hits| trie.prefetch_number(hits.leaf));
        for hits in self.items.iter_mut().take(self.count) {
            hits.number = trie.leaf_number(hits.leaf);
        }
    }

    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &LeafHit> {
        self.items.iter().take(self.count)
    }
}
