//! Batches of queries to filters larger than the caches.
//!
//! Points: interleaved walks, then the suffixes of their leaves. Ranges: interleaved walks along the shared bytes of
//! the bounds of each; where the bounds diverge, both sides are prefetched and followed after all walks have ended.

use tamis_bits::kernel::Steps;

use super::walk::{AtNode, View, shared_by_bounds};
use crate::trie::INTERLEAVE_WIDTH;
use crate::{Digester, KeyRange, Probe};

/// A query of a batch.
pub(super) trait BatchQuery: Sized {
    /// Answers at most [`INTERLEAVE_WIDTH`] queries, except for answers that are already `false`.
    fn interleaved<S: Steps>(view: &View<'_, S>, digester: &Digester, queries: &[Self], answers: &mut [bool]);
}

/// Answers all queries, except for answers that are already `false`.
#[inline(always)]
pub(super) fn walk_many<S: Steps>(
    view: &View<'_, S>,
    digester: &Digester,
    queries: &[impl BatchQuery],
    answers: &mut [bool],
) {
    for (queries, answers) in queries.chunks(INTERLEAVE_WIDTH).zip(answers.chunks_mut(INTERLEAVE_WIDTH)) {
        BatchQuery::interleaved(view, digester, queries, answers);
    }
}

impl BatchQuery for &[u8] {
    #[inline(always)]
    fn interleaved<S: Steps>(view: &View<'_, S>, digester: &Digester, keys: &[Self], answers: &mut [bool]) {
        points_interleaved(view, digester, keys, answers);
    }
}

/// The caller tests the digest bits of points.
impl BatchQuery for KeyRange<'_> {
    #[inline(always)]
    fn interleaved<S: Steps>(view: &View<'_, S>, _: &Digester, ranges: &[Self], answers: &mut [bool]) {
        ranges_interleaved(view, ranges, answers);
    }
}

#[inline(always)]
fn points_interleaved<S: Steps>(
    view: &View<'_, S>,
    digester: &Digester,
    keys: &[&[u8]],
    answers: &mut [bool],
) {
    let trie = &view.trie;
    let mut asked = [None; INTERLEAVE_WIDTH];
    for (asked, (key, answer)) in asked.iter_mut().zip(keys.iter().zip(answers.iter())) {
        *asked = answer.then_some(*key);
    }
    answers.fill(false);
    let mut hits = trie.walk_interleaved(
        keys.len(),
        |place| asked.get(place).copied().flatten(),
        |place, node| {
            answers.get_mut(place).into_iter().for_each(|answer| *answer = trie.is_prefix_key(&node));
        },
    );
    let has_suffixes = view.widths.width() != 0;
    if has_suffixes {
        hits.count(trie);
        hits.iter().for_each(|hits| view.prefetch_suffix(hits.number()));
    }
    for hits in hits.iter() {
        if let (Some(key), Some(answer)) = (keys.get(hits.key_number()), answers.get_mut(hits.key_number())) {
            *answer =
                !has_suffixes || view.may_equal_at(hits.number(), hits.depth(), &Probe::new(key, digester));
        }
    }
}

#[inline(always)]
fn ranges_interleaved<S: Steps>(view: &View<'_, S>, ranges: &[KeyRange<'_>], answers: &mut [bool]) {
    let trie = &view.trie;
    let mut paths = [None; INTERLEAVE_WIDTH];
    for (path, (range, answer)) in paths.iter_mut().zip(ranges.iter().zip(answers.iter())) {
        *path = if *answer { range.lower_bytes().get(..shared_by_bounds(range)) } else { None };
    }
    let path = |place: usize| paths.get(place).copied().flatten();
    let shared = |place| path(place).map_or(0, <[u8]>::len);
    answers.fill(false);
    let mut divergences = [None; INTERLEAVE_WIDTH];
    let mut hits = trie.walk_interleaved(ranges.len(), path, |place, node| {
        let Some(range) = ranges.get(place) else { return };
        match view.at_node(node, range, shared(place)) {
            AtNode::Answer(answer) => answers.get_mut(place).into_iter().for_each(|slot| *slot = answer),
            AtNode::Divergence(divergence) => {
                let below = [divergence.low, divergence.high].into_iter().flatten();
                below.filter(|_| !divergence.has_between).for_each(|edge| trie.prefetch_child(&edge));
                divergences.get_mut(place).into_iter().for_each(|slot| *slot = Some(divergence));
            }
        }
    });
    if view.compared != 0 {
        hits.count(trie);
        hits.iter().for_each(|hits| view.prefetch_suffix(hits.number()));
    }
    for hits in hits.iter() {
        let place = hits.key_number();
        if let (Some(range), Some(answer)) = (ranges.get(place), answers.get_mut(place)) {
            *answer = view.may_contain_at_leaf(hits.leaf(), hits.depth(), range, shared(place));
        }
    }
    for (place, (divergence, (range, answer))) in
        divergences.iter().zip(ranges.iter().zip(answers)).enumerate()
    {
        if let Some(divergence) = divergence {
            *answer = view.may_contain_below(*divergence, shared(place) + 1, range);
        }
    }
}
