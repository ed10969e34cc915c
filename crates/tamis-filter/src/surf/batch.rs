//! Many points at once: eight walks side by side, each a step at a time.
//!
//! A walk alone waits for memory at every step. While one waits, the others go on: each step ends with asking for the lines
//! that the walk's next step will read.

use tamis_bits::kernel::Steps;

use super::walk::View;
use crate::Probe;
use crate::trie::{Edge, Node, Stepped};

/// Walks side by side.
const LANES: usize = 8;

/// One walk.
#[derive(Clone, Copy)]
struct Lane {
    node: Node,
    depth: usize,
    place: usize,
}

/// A walk that came to a leaf: its suffix is read when the others have gone on, too.
#[derive(Clone, Copy)]
struct Landed {
    edge: Edge,
    depth: usize,
    place: usize,
}

/// Asks for every probe whose answer is not `false` already. The walks under way stand side by side without gaps: where one
/// ends, the next probe takes its place, and at the end of all probes the last walk does.
#[inline(always)]
pub(super) fn walk_many<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    let Some(root) = view.trie.root() else { return answers.fill(false) };
    let count = probes.len().min(answers.len());
    let mut lanes = [Lane { node: root, depth: 0, place: 0 }; LANES];
    let mut lane_count = 0;
    let mut next = 0;
    let mut landed: Option<Landed> = None;
    loop {
        // Fill up.
        while lane_count < LANES && next < count {
            if answers.get(next) == Some(&true)
                && let Some(lane) = lanes.get_mut(lane_count)
            {
                *lane = Lane { node: root, depth: 0, place: next };
                lane_count += 1;
            }
            next += 1;
        }
        if lane_count == 0 {
            break;
        }
        let mut index = 0;
        while index < lane_count {
            let Some(lane) = lanes.get_mut(index) else { break };
            let Some(probe) = probes.get(lane.place) else { break };
            let answer = match step(view, lane, probe.key()) {
                Step::Goes => {
                    index += 1;
                    continue;
                }
                Step::Lands(edge) => {
                    let leaf = Landed { edge, depth: lane.depth, place: lane.place };
                    if let Some(before) = landed.replace(leaf) {
                        land(view, probes, answers, &before);
                    }
                    true
                }
                Step::Ends(answer) => answer,
            };
            if let Some(target) = answers.get_mut(lane.place) {
                *target = answer;
            }
            lane_count -= 1;
            if let Some(last) = lanes.get(lane_count).copied()
                && let Some(lane) = lanes.get_mut(index)
            {
                *lane = last;
            }
        }
    }
    if let Some(last) = landed {
        land(view, probes, answers, &last);
    }
}

#[inline(always)]
fn land<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool], leaf: &Landed) {
    if let (Some(probe), Some(answer)) = (probes.get(leaf.place), answers.get_mut(leaf.place)) {
        *answer = view.may_equal(&leaf.edge, leaf.depth, probe);
    }
}

/// What a step leads to.
enum Step {
    Goes,
    Lands(Edge),
    Ends(bool),
}

#[inline(always)]
fn step<S: Steps>(view: &View<'_, S>, lane: &mut Lane, key: &[u8]) -> Step {
    let Some(byte) = key.get(lane.depth) else { return Step::Ends(view.trie.is_prefix_key(&lane.node)) };
    lane.depth += 1;
    match view.trie.step(lane.node, *byte) {
        Stepped::Nowhere => Step::Ends(false),
        Stepped::Leaf(edge) => Step::Lands(edge),
        Stepped::Child(child) => {
            view.trie.prefetch(&child);
            lane.node = child;
            Step::Goes
        }
    }
}
