//! Many points at once, in filters that caches do not hold: walks side by side, and then the suffixes of their leaves.

use tamis_bits::kernel::Steps;

use super::walk::View;
use crate::Probe;
use crate::trie::LANES;

/// Asks for every probe whose answer is not `false` already.
#[inline(always)]
pub(super) fn walk_many<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
    for (probes, answers) in probes.chunks(LANES).zip(answers.chunks_mut(LANES)) {
        walk_side_by_side(view, probes, answers);
    }
}

#[inline(always)]
fn walk_side_by_side<S: Steps>(view: &View<'_, S>, probes: &[Probe<'_>], answers: &mut [bool]) {
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
