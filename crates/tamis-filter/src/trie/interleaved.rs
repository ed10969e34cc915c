//! Many keys at once: walks side by side, in rounds of a step each.
//!
//! A walk alone waits for memory at every step, and for every jump that was foreseen wrongly. Here each step ends with asking for the
//! lines that the walk's next step will read, and all other walks take theirs before that; and whether a walk goes on, came to a leaf or
//! leads nowhere is no jump, but a number that lists grow by. Dense levels, which are few and small, are one step.

use tamis_bits::kernel::Steps;

use super::node::{DenseWalk, Leaf, Lookahead, Node, WalkResult};
use super::reader::Trie;
use super::sparse::SpeculativeStep;

/// Walks side by side.
pub(crate) const INTERLEAVE_WIDTH: usize = 64;

/// Where a walk stands: before a sparse node, or at a leaf. Then its place is that of the leaf's label.
#[derive(Clone, Copy)]
struct WalkState {
    lookahead: Lookahead,
    /// Bytes that lead there.
    depth: u32,
}

/// Walks by the numbers of their keys, and the numbers of those that go on and of those that came to a sparse leaf. A step changes a walk where
/// it stands: nothing of it is moved but its number.
struct Walks<'k> {
    keys: [&'k [u8]; INTERLEAVE_WIDTH],
    walks: [WalkState; INTERLEAVE_WIDTH],
    going: Numbers,
    hits: Numbers,
}

/// Numbers of walks, none of them twice.
struct Numbers {
    items: [u8; INTERLEAVE_WIDTH],
    count: usize,
}

impl Numbers {
    const NONE: Self = Self { items: [0; INTERLEAVE_WIDTH], count: 0 };

    /// Adds a number, or does not: it is written all the same. A walk that is not in the list yet leaves room for that.
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

/// A walk that came to a leaf.
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

    /// The number of the leaf, once it was counted.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

impl<S: Steps> Trie<'_, S> {
    /// Follows up to [`LANES`] keys, given by their numbers; some may be none. `enter` leads to sparse nodes, as [`Trie::enter`] does. Calls with
    /// walks that come to a node with the last byte of their key; gives those that came to a leaf.
    #[inline(always)]
    pub(crate) fn walk_interleaved<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> Option<&'k [u8]>,
        enter: impl Fn(usize, &[u8]) -> DenseWalk,
        mut at_node: impl FnMut(usize, Node),
    ) -> LeafHits {
        let walk = WalkState { lookahead: Lookahead::ROOT, depth: 0 };
        let (going, at_leaf) = (Numbers::NONE, Numbers::NONE);
        let mut walks =
            Walks { keys: [&[]; INTERLEAVE_WIDTH], walks: [walk; INTERLEAVE_WIDTH], going, hits: at_leaf };
        let mut hits = LeafHits::NEW;
        for number in 0..count.min(INTERLEAVE_WIDTH) {
            let Some(key) = key(number) else { continue };
            match enter(number, key) {
                DenseWalk::Ended(WalkResult::Absent) => {}
                DenseWalk::Ended(WalkResult::Node(node)) => at_node(number, node),
                DenseWalk::Ended(WalkResult::Leaf(leaf, depth)) => {
                    hits.push(LeafHit { leaf, depth: depth as u32, key_number: number as u32, number: 0 });
                }
                DenseWalk::Sparse(lookahead, depth) | DenseWalk::SparseExact(lookahead, depth) => {
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
            // The first nodes have many labels; those below them have few, but lie far apart.
            let arrive = |lookahead: &Lookahead| {
                if lookahead.number == Node::UNKNOWN {
                    self.arrive(lookahead)
                } else {
                    self.arrive_below(lookahead)
                }
            };
            self.round(&mut walks, &mut at_node, arrive, true);
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

    /// A step of each walk.
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

/// Walks that came to a leaf.
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

    /// Counts the numbers of all leaves.
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
