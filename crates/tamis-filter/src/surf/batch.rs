//! Many points at once: eight walks side by side, each a step at a time.
//!
//! A walk alone waits for memory at every step. While one waits, the others go on: each step ends with asking for the lines
//! that the walk's next step will read.

use tamis_bits::kernel::{self, Steps};

use super::walk::View;
use crate::Probe;
use crate::trie::{Edge, Node};

/// Walks side by side.
const LANES: usize = 8;

/// One walk.
#[derive(Clone, Copy)]
enum Lane {
    /// At a node, with so many bytes of the key behind it.
    At(Node, usize),
    /// At a leaf.
    Leaf(Edge, usize),
    /// At its end.
    Ended(bool),
}

/// The walks of a batch, compiled for the processor.
pub(super) struct BatchWalk<'a, 'p>(
    pub(super) View<'a>,
    pub(super) &'p [Probe<'p>],
    pub(super) &'p mut [bool],
);

impl kernel::Task for BatchWalk<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) {
        let Self(view, probes, answers) = self;
        let view = view.with(steps);
        for (probes, answers) in probes.chunks(LANES).zip(answers.chunks_mut(LANES)) {
            walk_together(&view, probes, answers);
        }
    }
}

#[inline(always)]
fn walk_together<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    let start = view.trie.root().map_or(Lane::Ended(false), |root| Lane::At(root, 0));
    let mut lanes = [start; LANES];
    let mut is_walking = true;
    while is_walking {
        is_walking = false;
        for ((lane, probe), answer) in lanes.iter_mut().zip(probes).zip(answers.iter()) {
            if let Lane::At(node, depth) = *lane
                && *answer
            {
                *lane = step(view, node, depth, probe.key());
                is_walking |= matches!(lane, Lane::At(..));
            }
        }
    }
    for ((lane, probe), answer) in lanes.iter().zip(probes).zip(answers) {
        *answer = *answer
            && match lane {
                Lane::Leaf(edge, depth) => view.may_equal(edge, *depth, probe),
                Lane::Ended(answer) => *answer,
                Lane::At(..) => true,
            };
    }
}

#[inline(always)]
fn step<S: Steps>(view: &View<'_, S>, node: Node, depth: usize, key: &[u8]) -> Lane {
    let Some(byte) = key.get(depth) else { return Lane::Ended(view.trie.is_prefix_key(&node)) };
    let Some(edge) = view.trie.find(node, *byte) else { return Lane::Ended(false) };
    match view.trie.child(&edge) {
        Some(child) => {
            view.trie.prefetch(&child);
            Lane::At(child, depth + 1)
        }
        None => Lane::Leaf(edge, depth + 1),
    }
}
