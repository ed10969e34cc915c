//! Many keys at once: walks side by side, in rounds of a step each.
//!
//! A walk alone waits for memory at every step, and for every jump that was foreseen wrongly. Here each step ends with asking for the
//! lines that the walk's next step will read, and all other walks take theirs before that; and whether a walk goes on, came to a leaf or
//! leads nowhere is no jump, but a number that lists grow by. Dense levels, which are few and small, are one step.

use tamis_bits::kernel::Steps;

use super::reader::{Ahead, Entered, Leaf, Node, Trie, Walked};
use super::sparse::Anyway;

/// Walks side by side.
pub(crate) const LANES: usize = 64;

/// Where a walk stands: before a sparse node, or at a leaf. Then its place is that of the leaf's label.
#[derive(Clone, Copy)]
struct Lane {
    ahead: Ahead,
    /// Bytes that lead there.
    depth: u32,
}

/// Walks by the numbers of their keys, and the numbers of those that go on and of those that came to a sparse leaf. A step changes a walk where
/// it stands: nothing of it is moved but its number.
struct Lanes<'k> {
    keys: [&'k [u8]; LANES],
    lanes: [Lane; LANES],
    going: Numbers,
    landed: Numbers,
}

/// Numbers of walks, none of them twice.
struct Numbers {
    items: [u8; LANES],
    count: usize,
}

impl Numbers {
    const NONE: Self = Self { items: [0; LANES], count: 0 };

    /// Adds a number, or does not: it is written all the same. A walk that is not in the list yet leaves room for that.
    #[inline(always)]
    fn push(&mut self, number: usize, is_added: bool) {
        if let Some(item) = self.items.get_mut(self.count % LANES) {
            *item = number as u8;
        }
        self.count += usize::from(is_added);
    }

    #[inline(always)]
    fn get(&self, index: usize) -> usize {
        self.items.get(index % LANES).map_or(0, |number| usize::from(*number) % LANES)
    }
}

/// A walk that came to a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Landed {
    leaf: Leaf,
    depth: u32,
    key_number: u32,
    number: u64,
}

impl Landed {
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
    pub(crate) fn walk_side_by_side<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> Option<&'k [u8]>,
        enter: impl Fn(usize, &[u8]) -> Entered,
        mut at_node: impl FnMut(usize, Node),
    ) -> Landings {
        let lane = Lane { ahead: Ahead::ROOT, depth: 0 };
        let (going, at_leaf) = (Numbers::NONE, Numbers::NONE);
        let mut lanes = Lanes { keys: [&[]; LANES], lanes: [lane; LANES], going, landed: at_leaf };
        let mut landed = Landings::NEW;
        for number in 0..count.min(LANES) {
            let Some(key) = key(number) else { continue };
            match enter(number, key) {
                Entered::Ended(Walked::Nowhere) => {}
                Entered::Ended(Walked::Node(node)) => at_node(number, node),
                Entered::Ended(Walked::Leaf(leaf, depth)) => {
                    landed.push(Landed { leaf, depth: depth as u32, key_number: number as u32, number: 0 });
                }
                Entered::Below(ahead, depth) | Entered::Exactly(ahead, depth) => {
                    self.prefetch(&ahead);
                    if let (Some(slot), Some(lane)) =
                        (lanes.keys.get_mut(number), lanes.lanes.get_mut(number))
                    {
                        (*slot, *lane) = (key, Lane { ahead, depth: depth as u32 });
                        lanes.going.push(number, true);
                    }
                }
            }
        }
        if self.layout.is_wide {
            // The first nodes have many labels; those below them have few, but lie far apart.
            let arrive = |ahead: &Ahead| {
                if ahead.number == Node::UNKNOWN { self.arrive(ahead) } else { self.arrive_below(ahead) }
            };
            self.round(&mut lanes, &mut at_node, arrive, true);
            let arrive = |ahead: &Ahead| ahead.node(self.locate_wide(ahead.block, ahead.index));
            self.round(&mut lanes, &mut at_node, arrive, false);
        }
        while lanes.going.count > 0 {
            let arrive = |ahead: &Ahead| ahead.node(self.locate_near(ahead.block, ahead.index));
            self.round(&mut lanes, &mut at_node, arrive, false);
        }
        for index in 0..lanes.landed.count {
            let number = lanes.landed.get(index);
            if let Some(Lane { ahead, depth }) = lanes.lanes.get(number) {
                let leaf = Leaf::sparse(ahead.place);
                landed.push(Landed { leaf, depth: *depth, key_number: number as u32, number: 0 });
            }
        }
        landed
    }

    /// A step of each walk.
    #[inline(always)]
    fn round(
        &self,
        lanes: &mut Lanes<'_>,
        at_node: &mut impl FnMut(usize, Node),
        arrive: impl Fn(&Ahead) -> Node,
        is_wide: bool,
    ) {
        let Lanes { keys, lanes, going, landed } = lanes;
        let count = std::mem::take(&mut going.count);
        for index in 0..count {
            let number = going.get(index);
            let (Some(key), Some(lane)) = (keys.get(number), lanes.get_mut(number)) else { break };
            let node = arrive(&lane.ahead);
            let Some(byte) = key.get(lane.depth as usize) else {
                at_node(number, node);
                continue;
            };
            let Anyway { is_there, has_child, ahead } = self.step_anyway(&node, *byte, is_wide);
            self.prefetch_near(&ahead);
            *lane = Lane { ahead, depth: lane.depth + 1 };
            going.push(number, has_child);
            landed.push(number, is_there & !has_child);
        }
    }
}

/// Walks that came to a leaf.
pub(crate) struct Landings {
    items: [Landed; LANES],
    count: usize,
}

impl Landings {
    const NEW: Self = {
        let landed = Landed { leaf: Leaf::sparse(0), depth: 0, key_number: 0, number: 0 };
        Self { items: [landed; LANES], count: 0 }
    };

    #[inline(always)]
    fn push(&mut self, landed: Landed) {
        if let Some(room) = self.items.get_mut(self.count) {
            *room = landed;
            self.count += 1;
        }
    }

    /// Counts the numbers of all leaves.
    #[inline(always)]
    pub(crate) fn count(&mut self, trie: &Trie<'_, impl Steps>) {
        self.iter().for_each(|landed| trie.prefetch_number(landed.leaf));
        for landed in self.items.iter_mut().take(self.count) {
            landed.number = trie.leaf_number(landed.leaf);
        }
    }

    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Landed> {
        self.items.iter().take(self.count)
    }
}
