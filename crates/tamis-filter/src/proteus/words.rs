//! One question to the parts of a filter of integers: what `walk.rs` does for strings, on words.
//!
//! A prefix stands at the low end of a word. A long run of prefixes is hashed and asked for some at a time: the loops that do so hold
//! no jump that depends on what is found, so that the cache misses of many prefixes overlap.

use tamis_bits::kernel::{self, Portable, Steps};

use super::bits::{BitString, padded};
use super::bloom::{self, BloomView};
use super::design::SetForm;
use super::fixed::FixedKeys;
use super::layout::{BloomPart, FirstPart, SetPart};
use super::prefix_set::{Ends, SetView};
use super::walk::{View, with_digester};
use crate::hash::length_mark;
use crate::{Digester, Probe, RangeProbe};

/// Runs of up to so many prefixes share their digests through the probe.
const SHARED_RUN: usize = 4;
/// Prefixes of a longer run that are asked for at first, before as many as a Bloom filter takes at once: a hit ends the run.
const FIRST_BATCH: u64 = 16;

/// A filter of integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordView<'a, S = Portable> {
    pub(super) view: View<'a, S>,
    pub(super) fixed: FixedKeys,
}

/// Neighbouring prefixes at the high ends of words.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    step: u64,
    count: u64,
    /// What the digest of a prefix of that length is marked with.
    mark: u64,
}

impl<S: Steps> WordView<'_, S> {
    /// Whether the key may be there.
    #[inline(always)]
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        let Some(word) = self.fixed.point(probe.key()) else { return false };
        let parts = self.view.parts;
        let is_there = match &parts.first {
            FirstPart::None => true,
            FirstPart::Set(part) => {
                probe.add_probes(1);
                self.set_ends(part, word, word).has_first
            }
            FirstPart::Bloom(part) => {
                let digest = self.point_digest(part, probe);
                part.view(self.view.payload).may_contain_first(digest)
            }
        };
        is_there && self.has_below_point(probe)
    }

    /// Whether the key may be there, as far as the second stage tells.
    #[inline(always)]
    pub(super) fn has_below_point(&self, probe: &Probe<'_>) -> bool {
        self.view.parts.bloom.as_ref().is_none_or(|part| self.has_point(part, probe))
    }

    #[inline(always)]
    fn has_point(&self, part: &BloomPart, probe: &Probe<'_>) -> bool {
        part.view(self.view.payload).may_contain(self.point_digest(part, probe))
    }

    /// The digest of a key in a Bloom filter that is asked now.
    #[inline(always)]
    fn point_digest(&self, part: &BloomPart, probe: &Probe<'_>) -> u64 {
        probe.add_probes(1);
        if self.holds_keys(part) {
            probe.digest(self.view.seed)
        } else {
            probe.prefix_digest(self.view.seed, part.prefix)
        }
    }

    /// Whether a Bloom filter has the digests of whole keys.
    #[inline(always)]
    fn holds_keys(&self, part: &BloomPart) -> bool {
        part.prefix == self.fixed.bit_count()
    }

    /// Whether some key may lie in a range.
    #[inline(always)]
    pub(super) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        let Some((lower, upper)) = self.fixed.bounds(probe.range()) else { return false };
        if lower == upper
            && let Some(point) = probe.point()
        {
            return self.may_contain(point);
        }
        let parts = self.view.parts;
        match &parts.first {
            FirstPart::None => {
                let Some(part) = &parts.bloom else { return true };
                self.is_met_between(probe, part, lower, upper)
            }
            FirstPart::Set(part) => {
                probe.add_probes(1);
                let ends = self.set_ends(part, lower, upper);
                ends.has_between
                    || ((ends.has_first || ends.has_last)
                        && self.is_met_below(probe, part.depth, ends, (lower, upper)))
            }
            FirstPart::Bloom(part) => self.is_met_in_two(probe, part, (lower, upper)),
        }
    }

    #[inline(always)]
    fn set_ends(&self, part: &SetPart, lower: u64, upper: u64) -> Ends {
        let view = SetView::new(part, self.view.payload);
        if part.form == SetForm::Trie {
            let (lower, upper) = (padded(lower), padded(upper));
            return view.string_ends(self.view.steps, &BitString::key(&lower), &BitString::key(&upper));
        }
        let shift = 64 - part.depth;
        view.integer_ends(lower >> shift, upper >> shift)
    }

    /// All prefixes between two words.
    #[inline(always)]
    fn is_met_between(&self, probe: &RangeProbe<'_>, part: &BloomPart, lower: u64, upper: u64) -> bool {
        let shift = 64 - part.prefix;
        let first = lower >> shift;
        let count = (upper >> shift).saturating_sub(first).saturating_add(1);
        count > self.view.parts.cap || self.has_any(probe, part, first, count)
    }

    /// Below the first and the last prefix of a set.
    #[inline(always)]
    fn is_met_below(
        &self,
        probe: &RangeProbe<'_>,
        depth: u32,
        ends: Ends,
        (lower, upper): (u64, u64),
    ) -> bool {
        let Some(part) = &self.view.parts.bloom else { return true };
        if (lower ^ upper) >> (64 - depth) == 0 {
            return self.is_met_between(probe, part, lower, upper);
        }
        let shift = 64 - part.prefix;
        let (first, last) = (lower >> shift, upper >> shift);
        let mask = (1 << (part.prefix - depth)) - 1;
        let left = if ends.has_first { mask - (first & mask) + 1 } else { 0 };
        let right = if ends.has_last { (last & mask) + 1 } else { 0 };
        left.saturating_add(right) > self.view.parts.cap
            || self.has_any(probe, part, first, left)
            || self.has_any(probe, part, last & !mask, right)
    }

    /// Whether some prefix of a run is in a Bloom filter. Questions behind the one that says yes do not count.
    #[inline(always)]
    fn has_any(&self, probe: &RangeProbe<'_>, part: &BloomPart, first: u64, count: u64) -> bool {
        let view = part.view(self.view.payload);
        match count {
            0 => false,
            1 => {
                probe.add_probes(1);
                view.may_contain(self.digest(probe, part, first, true))
            }
            _ if count <= SHARED_RUN as u64 => {
                let mut digests = [0; SHARED_RUN];
                let digests = digests.get_mut(..count as usize).unwrap_or_default();
                for (slot, number) in digests.iter_mut().zip(0..) {
                    *slot = self.digest(probe, part, first.wrapping_add(number), true);
                }
                let found = view.first_of(digests);
                probe.add_probes(found.map_or(count as u32, |index| index as u32 + 1));
                found.is_some()
            }
            _ => self.has_any_of_many(probe, part, first, count),
        }
    }

    /// The digest of a prefix; shared with other filters of the query, or computed for this one alone.
    #[inline(always)]
    fn digest(&self, probe: &RangeProbe<'_>, part: &BloomPart, prefix: u64, is_shared: bool) -> u64 {
        let word = prefix << (64 - part.prefix);
        if self.holds_keys(part) {
            probe.add_digests(1);
            let length = usize::from(self.fixed.byte_count);
            let key = word.to_be_bytes();
            return with_digester(probe, self.view.seed, |digester| {
                // Of a known length the digest is a few steps.
                if length == 8 {
                    digester.digest(&key)
                } else {
                    digester.digest(key.get(..length).unwrap_or(&key))
                }
            });
        }
        if is_shared {
            return probe.word_prefix_digest(self.view.seed, word, part.prefix);
        }
        probe.add_digests(1);
        with_digester(probe, self.view.seed, |digester| digester.word_prefix_digest(word, part.prefix))
    }

    #[inline(always)]
    fn has_any_of_many(&self, probe: &RangeProbe<'_>, part: &BloomPart, first: u64, count: u64) -> bool {
        let view = part.view(self.view.payload);
        let shift = 64 - part.prefix;
        let mark = if self.holds_keys(part) { 0 } else { length_mark(part.prefix) };
        let run = Run { first: first << shift, step: 1 << shift, count, mark };
        probe.add_digests(count as u32);
        let found = with_digester(probe, self.view.seed, |digester| match part.prefix.div_ceil(8) {
            8 => first_of_run::<8>(digester, &view, run),
            7 => first_of_run::<7>(digester, &view, run),
            6 => first_of_run::<6>(digester, &view, run),
            5 => first_of_run::<5>(digester, &view, run),
            4 => first_of_run::<4>(digester, &view, run),
            3 => first_of_run::<3>(digester, &view, run),
            2 => first_of_run::<2>(digester, &view, run),
            _ => first_of_run::<1>(digester, &view, run),
        });
        probe.add_probes(found.map_or(count, |number| number + 1) as u32);
        found.is_some()
    }

    /// Two Bloom filters: each prefix that passes the first one is asked for, below itself, in the second.
    fn is_met_in_two(&self, probe: &RangeProbe<'_>, part: &BloomPart, (lower, upper): (u64, u64)) -> bool {
        let Some(second) = &self.view.parts.bloom else { return true };
        let view = part.view(self.view.payload);
        let (shift, below) = (64 - part.prefix, second.prefix - part.prefix);
        let (first, last) = (lower >> shift, upper >> shift);
        let count = last.saturating_sub(first).saturating_add(1);
        let Some(mut budget) = self.view.parts.cap.checked_sub(count) else { return true };
        let mask = (1 << below) - 1;
        for number in 0..count {
            let prefix = first + number;
            probe.add_probes(1);
            if !view.may_contain_first(self.digest(probe, part, prefix, count <= SHARED_RUN as u64)) {
                continue;
            }
            let from = if prefix == first { lower >> (64 - second.prefix) } else { prefix << below };
            let to = if prefix == last { upper >> (64 - second.prefix) } else { prefix << below | mask };
            let members = (to - from).saturating_add(1);
            let Some(left) = budget.checked_sub(members) else { return true };
            budget = left;
            if self.has_any(probe, second, from, members) {
                return true;
            }
        }
        false
    }
}

/// Behind a set that holds the prefix which two words share, compiled for the processor.
pub(super) struct BelowWalk<'a, 'p, 'k> {
    pub(super) words: WordView<'a>,
    pub(super) probe: &'p RangeProbe<'k>,
    pub(super) lower: u64,
    pub(super) upper: u64,
}

impl kernel::Task for BelowWalk<'_, '_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        let Self { words, probe, lower, upper } = self;
        let words = WordView { view: words.view.with(steps), fixed: words.fixed };
        let bloom = words.view.parts.bloom.as_ref();
        bloom.is_none_or(|part| words.is_met_between(probe, part, lower, upper))
    }
}

/// The number of the first prefix of a run that may be in a Bloom filter; its prefixes take `BYTES` bytes.
#[inline(always)]
fn first_of_run<const BYTES: usize>(digester: &Digester, view: &BloomView<'_>, run: Run) -> Option<u64> {
    let mut batch = [0; bloom::BATCH];
    let (mut done, mut length) = (0, FIRST_BATCH);
    let mut word = run.first;
    while done < run.count {
        let slots = batch.get_mut(..(run.count - done).min(length) as usize).unwrap_or_default();
        for slot in slots.iter_mut() {
            *slot = digester.head_digest::<BYTES>(word) ^ run.mark;
            word = word.wrapping_add(run.step);
        }
        if let Some(index) = view.first_of(slots) {
            return Some(done + index as u64);
        }
        done += slots.len() as u64;
        length = bloom::BATCH as u64;
    }
    None
}
