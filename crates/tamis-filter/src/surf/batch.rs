//! Many questions at once, to filters that caches do not hold.
//!
//! Points: walks side by side, and then the suffixes of their leaves. Ranges: walks side by side along what the bounds of each share; where
//! they part, what lies at both is asked for, and looked at when the others have come so far.

use tamis_bits::kernel::Steps;

use super::walk::{AtNode, View, shared_by_bounds};
use crate::trie::LANES;
use crate::{KeyRange, Probe};

/// A question of a batch.
pub(super) trait Question: Sized {
    /// Asks those of at most [`LANES`] whose answers are not `false` already.
    fn side_by_side<S: Steps>(view: &View<'_, S>, questions: &[Self], answers: &mut [bool]);
}

/// Asks every question whose answer is not `false` already.
#[inline(always)]
pub(super) fn walk_many<S: Steps>(view: &View<'_, S>, questions: &[impl Question], answers: &mut [bool]) {
    for (questions, answers) in questions.chunks(LANES).zip(answers.chunks_mut(LANES)) {
        Question::side_by_side(view, questions, answers);
    }
}

impl Question for Probe<'_> {
    #[inline(always)]
    fn side_by_side<S: Steps>(view: &View<'_, S>, probes: &[Self], answers: &mut [bool]) {
        points_side_by_side(view, probes, answers);
    }
}

/// Digest bits, which say more of a point, are left to the caller.
impl Question for KeyRange<'_> {
    #[inline(always)]
    fn side_by_side<S: Steps>(view: &View<'_, S>, ranges: &[Self], answers: &mut [bool]) {
        ranges_side_by_side(view, ranges, answers);
    }
}

#[inline(always)]
fn points_side_by_side<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    let trie = &view.trie;
    let mut asked = [None; LANES];
    for (asked, (probe, answer)) in asked.iter_mut().zip(probes.iter().zip(answers.iter())) {
        *asked = answer.then(|| probe.key());
    }
    answers.fill(false);
    let mut landed = trie.walk_side_by_side(
        probes.len(),
        |place| asked.get(place).copied().flatten(),
        |_, key| trie.enter(key),
        |place, node| {
            answers.get_mut(place).into_iter().for_each(|answer| *answer = trie.is_prefix_key(&node));
        },
    );
    let has_suffixes = view.widths.width() != 0;
    if has_suffixes {
        landed.count(trie);
        landed.iter().for_each(|landed| view.prefetch_suffix(landed.number()));
    }
    for landed in landed.iter() {
        if let (Some(probe), Some(answer)) =
            (probes.get(landed.key_number()), answers.get_mut(landed.key_number()))
        {
            *answer = !has_suffixes || view.may_equal_at(landed.number(), landed.depth(), probe);
        }
    }
}

#[inline(always)]
fn ranges_side_by_side<S: Steps>(view: &View<'_, S>, ranges: &[KeyRange<'_>], answers: &mut [bool]) {
    let trie = &view.trie;
    let mut paths = [None; LANES];
    for (path, (range, answer)) in paths.iter_mut().zip(ranges.iter().zip(answers.iter())) {
        *path = if *answer { range.lower_bytes().get(..shared_by_bounds(range)) } else { None };
    }
    let path = |place: usize| paths.get(place).copied().flatten();
    let shared = |place| path(place).map_or(0, <[u8]>::len);
    answers.fill(false);
    let mut partings = [None; LANES];
    let mut landed = trie.walk_side_by_side(
        ranges.len(),
        path,
        |_, path| trie.enter(path),
        |place, node| {
            let Some(range) = ranges.get(place) else { return };
            match view.at_node(node, range, shared(place)) {
                AtNode::Answer(answer) => answers.get_mut(place).into_iter().for_each(|slot| *slot = answer),
                AtNode::Parting(parting) => {
                    let below = [parting.low, parting.high].into_iter().flatten();
                    below.filter(|_| !parting.has_between).for_each(|edge| trie.prefetch_child(&edge));
                    partings.get_mut(place).into_iter().for_each(|slot| *slot = Some(parting));
                }
            }
        },
    );
    if view.compared != 0 {
        landed.count(trie);
        landed.iter().for_each(|landed| view.prefetch_suffix(landed.number()));
    }
    for landed in landed.iter() {
        let place = landed.key_number();
        if let (Some(range), Some(answer)) = (ranges.get(place), answers.get_mut(place)) {
            *answer = view.may_contain_at_leaf(landed.leaf(), landed.depth(), range, shared(place));
        }
    }
    for (place, (parting, (range, answer))) in partings.iter().zip(ranges.iter().zip(answers)).enumerate() {
        if let Some(parting) = parting {
            *answer = view.may_part(*parting, shared(place) + 1, range);
        }
    }
}
