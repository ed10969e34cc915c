//! Many points at once, in filters that caches do not hold: walks side by side, in rounds of a step each.
//!
//! A walk alone waits for memory at every step. Here each step ends with asking for the lines that the walk's next step will
//! read, and all other walks take theirs before that. Dense levels, which are few and small, are one step. Walks that came to
//! a leaf wait until all have: then the ranks of their leaves are counted and suffixes asked for, and at last compared.

use tamis_bits::kernel::Steps;

use super::walk::View;
use crate::Probe;
use crate::trie::{Ahead, Entered, Leaf, Stepped, Walked};

/// Walks side by side.
const LANES: usize = 64;

/// A walk on its way.
#[derive(Clone, Copy)]
struct Lane {
    ahead: Ahead,
    depth: u32,
    place: u32,
}

/// A walk that came to a leaf.
#[derive(Clone, Copy)]
struct Landed {
    leaf: Leaf,
    depth: u32,
    place: u32,
    leaf_index: u64,
}

/// A list of fixed room.
struct List<T> {
    items: [Option<T>; LANES],
    count: usize,
}

impl<T: Copy> List<T> {
    const NEW: Self = Self { items: [const { None }; LANES], count: 0 };

    #[inline(always)]
    fn push(&mut self, item: T) {
        if let Some(room) = self.items.get_mut(self.count) {
            *room = Some(item);
            self.count += 1;
        }
    }
}

/// Asks for every probe whose answer is not `false` already.
#[inline(always)]
pub(super) fn walk_many<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    for (probes, answers) in probes.chunks(LANES).zip(answers.chunks_mut(LANES)) {
        walk_side_by_side(view, probes, answers);
    }
}

#[inline(always)]
fn walk_side_by_side<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    let mut lanes: List<Lane> = List::NEW;
    let mut landed: List<Landed> = List::NEW;
    for (place, (probe, answer)) in (0..).zip(probes.iter().zip(answers.iter_mut())) {
        if !*answer {
            continue;
        }
        match view.trie.enter(probe.key()) {
            Entered::Below(ahead, depth) => {
                view.trie.prefetch(&ahead);
                lanes.push(Lane { ahead, depth: depth as u32, place });
            }
            Entered::Ended(Walked::Nowhere) => *answer = false,
            Entered::Ended(Walked::Node(node)) => *answer = view.trie.is_prefix_key(&node),
            Entered::Ended(Walked::Leaf(leaf, depth)) => {
                landed.push(Landed { leaf, depth: depth as u32, place, leaf_index: 0 });
            }
        }
    }
    while lanes.count > 0 {
        let mut kept = 0;
        for index in 0..lanes.count {
            let Some(Some(mut lane)) = lanes.items.get(index).copied() else { break };
            let (Some(probe), Some(answer)) =
                (probes.get(lane.place as usize), answers.get_mut(lane.place as usize))
            else {
                break;
            };
            let node = view.trie.arrive(&lane.ahead);
            let Some(byte) = probe.key().get(lane.depth as usize) else {
                *answer = view.trie.is_prefix_key(&node);
                continue;
            };
            lane.depth += 1;
            match view.trie.step(node, *byte) {
                Stepped::Nowhere => *answer = false,
                Stepped::Leaf(edge) => {
                    let leaf = edge.leaf();
                    landed.push(Landed { leaf, depth: lane.depth, place: lane.place, leaf_index: 0 });
                }
                Stepped::Child(ahead) => {
                    view.trie.prefetch(&ahead);
                    lane.ahead = ahead;
                    if let Some(room) = lanes.items.get_mut(kept) {
                        *room = Some(lane);
                        kept += 1;
                    }
                }
            }
        }
        lanes.count = kept;
    }
    land(view, &mut landed, probes, answers);
}

/// Compares the suffixes of leaves.
#[inline(always)]
fn land<S: Steps>(view: &View<'_, S>, landed: &mut List<Landed>, probes: &[Probe<'_>], answers: &mut [bool]) {
    if view.widths.width() == 0 {
        return;
    }
    let count = landed.count;
    for landed in landed.items.iter_mut().take(count).flatten() {
        landed.leaf_index = view.trie.leaf_number(landed.leaf);
        view.prefetch_suffix(landed.leaf_index);
    }
    for landed in landed.items.iter().take(count).flatten() {
        let place = landed.place as usize;
        if let (Some(probe), Some(answer)) = (probes.get(place), answers.get_mut(place)) {
            *answer = view.may_equal_at(landed.leaf_index, landed.depth as usize, probe);
        }
    }
}
