//! One question to the parts of a filter of strings; `words.rs` asks those of integers.
//!
//! Below a first and a last prefix of the first stage lie runs of longer prefixes, which are asked for one by one. How many there
//! are is known before the first is asked: where they pass the cap the answer is `true`, and nothing is asked at all. The
//! model counts in the same way (`counts.rs`).
//!
//! Digests of prefixes of at most 64 bits come from the probe, which remembers those that other filters of the query asked for, as
//! long as a run is short; a long run is hashed straight through. Prefixes of up to 128 bits are counted on in a word, longer ones are put
//! together in a buffer on the stack, in memory of the heap beyond [`STACK_BYTES`].

use tamis_bits::kernel::{self, Portable, Steps};

use super::bits::{BitString, HEAD_BITS, advance, mask_last, padded};
use super::bloom::{self, BloomView};
use super::design::WHOLE_KEYS;
use super::layout::{BloomPart, FirstPart, Parts};
use super::prefix_set::{Ends, SetView};
use super::words::WordView;
use crate::{Digester, Probe, RangeProbe};

/// Runs of up to so many prefixes share their digests through the probe.
const SHARED_RUN: u64 = 4;
/// Prefixes of a longer run that are asked for at first, before as many as a Bloom filter takes at once: a hit ends the run.
const FIRST_BATCH: u64 = 4;
/// Longest prefix that is put together without the heap.
const STACK_BYTES: usize = 256;

/// Parts and the payload that they lie in.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, S = Portable> {
    pub(super) parts: &'a Parts,
    pub(super) payload: &'a [u8],
    pub(super) seed: u64,
    /// In which form steps are done.
    pub(super) steps: S,
}

impl<'a> View<'a> {
    /// The same view with steps in another form.
    #[inline(always)]
    pub(super) fn with<S: Steps>(self, steps: S) -> View<'a, S> {
        let Self { parts, payload, seed, .. } = self;
        View { parts, payload, seed, steps }
    }
}

/// A run of neighbouring prefixes.
#[derive(Debug, Clone, Copy)]
struct Run<'s> {
    /// The first prefix begins with so many bits of this string, and goes on with zeros.
    start: BitString<'s>,
    bits: u32,
    count: u64,
    /// That string is the lower end of the range.
    is_lower: bool,
}

impl<'s> Run<'s> {
    const fn new(start: BitString<'s>, bits: u32, count: u64) -> Self {
        Self { start, bits, count, is_lower: false }
    }

    /// From the lower end of the range on.
    const fn from_lower(start: BitString<'s>, bits: u32, count: u64) -> Self {
        Self { is_lower: true, ..Self::new(start, bits, count) }
    }
}

/// How many prefixes of `bits` bits lie between two strings, both included.
#[inline(always)]
fn prefixes_between(lower: &BitString<'_>, upper: &BitString<'_>, bits: u32) -> u64 {
    if bits <= HEAD_BITS {
        let prefix = |string: &BitString<'_>| string.head().checked_shr(HEAD_BITS - bits).unwrap_or(0);
        let count = prefix(upper).saturating_sub(prefix(lower));
        return u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
    }
    let shared = lower.shared_bits(upper, bits);
    let behind = bits - shared;
    match behind {
        0 => 1,
        1..=64 => upper.bits(shared, behind).saturating_sub(lower.bits(shared, behind)).saturating_add(1),
        _ => u64::MAX,
    }
}

/// How many prefixes of `bits` bits lie below the string's prefix of `depth` bits, from the string on, and up to it.
#[inline(always)]
fn prefixes_below(string: &BitString<'_>, depth: u32, bits: u32) -> (u64, u64) {
    let behind = bits - depth;
    if behind > 63 {
        return (u64::MAX, u64::MAX);
    }
    let own = string.bits(depth, behind);
    ((1 << behind) - own, own + 1)
}

impl<'a, S: Steps> View<'a, S> {
    #[inline(always)]
    fn bloom(&self) -> Option<(&'a BloomPart, BloomView<'a>)> {
        self.parts.bloom.as_ref().map(|part| (part, part.view(self.payload)))
    }

    /// Whether the key may be there.
    #[inline(always)]
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self.parts.fixed {
            Some(fixed) => WordView { view: *self, fixed }.may_contain(probe),
            None => self.has_point(probe, BitString::key(probe.key())),
        }
    }

    #[inline(always)]
    fn has_point(&self, probe: &Probe<'_>, string: BitString<'_>) -> bool {
        let is_there = match &self.parts.first {
            FirstPart::None => true,
            FirstPart::Set(part) => {
                probe.add_probes(1);
                SetView::new(part, self.payload).string_ends(self.steps, &string, &string).has_first
            }
            FirstPart::Bloom(part) => {
                probe.add_probes(1);
                part.view(self.payload).may_contain_first(self.point_digest(part, probe))
            }
        };
        if !is_there {
            return false;
        }
        let Some((part, view)) = self.bloom() else { return true };
        probe.add_probes(1);
        view.may_contain(self.point_digest(part, probe))
    }

    #[inline(always)]
    fn point_digest(&self, part: &BloomPart, probe: &Probe<'_>) -> u64 {
        if part.prefix == WHOLE_KEYS {
            probe.digest(self.seed)
        } else {
            probe.prefix_digest(self.seed, part.prefix)
        }
    }

    /// Whether some key may lie in a range of more than one string.
    #[inline(always)]
    pub(super) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        if let Some(fixed) = self.parts.fixed {
            return WordView { view: *self, fixed }.may_contain_range(probe);
        }
        let range = probe.range();
        // Of a range without any string most end before that is looked at.
        self.is_met(probe, BitString::lower(range), BitString::upper(range)) && !range.is_empty()
    }

    #[inline(always)]
    fn is_met(&self, probe: &RangeProbe<'_>, lower: BitString<'_>, upper: BitString<'_>) -> bool {
        match &self.parts.first {
            FirstPart::None => {
                let Some((part, view)) = self.bloom() else { return true };
                if part.prefix == WHOLE_KEYS {
                    return true;
                }
                let count = prefixes_between(&lower, &upper, part.prefix);
                count > self.parts.cap
                    || self.has_any(probe, part, &view, Run::from_lower(lower, part.prefix, count))
            }
            FirstPart::Set(part) => {
                probe.add_probes(1);
                let ends = SetView::new(part, self.payload).string_ends(self.steps, &lower, &upper);
                ends.has_between
                    || ((ends.has_first || ends.has_last)
                        && self.is_met_below(probe, part.depth, ends, (lower, upper)))
            }
            FirstPart::Bloom(part) => self.is_met_in_two(probe, part, (lower, upper)),
        }
    }

    /// Below the first and the last prefix of a set.
    #[inline(always)]
    fn is_met_below(
        &self,
        probe: &RangeProbe<'_>,
        depth: u32,
        ends: Ends,
        (lower, upper): (BitString<'_>, BitString<'_>),
    ) -> bool {
        let Some((part, view)) = self.bloom() else { return true };
        let bits = part.prefix;
        if bits == WHOLE_KEYS {
            return true;
        }
        if lower.shared_bits(&upper, depth) == depth {
            let count = prefixes_between(&lower, &upper, bits);
            return count > self.parts.cap
                || self.has_any(probe, part, &view, Run::from_lower(lower, bits, count));
        }
        let left = if ends.has_first { prefixes_below(&lower, depth, bits).0 } else { 0 };
        let right = if ends.has_last { prefixes_below(&upper, depth, bits).1 } else { 0 };
        left.saturating_add(right) > self.parts.cap
            || self.has_any(probe, part, &view, Run::from_lower(lower, bits, left))
            || self.has_any(probe, part, &view, Run::new(upper, depth, right))
    }

    /// Whether some prefix of a run is in a Bloom filter. Questions behind the one that says yes do not count.
    #[inline(always)]
    fn has_any(&self, probe: &RangeProbe<'_>, part: &BloomPart, view: &BloomView<'_>, run: Run<'_>) -> bool {
        let mut asked = 0;
        let is_there = self.any_digests(probe, part, run, |digests| {
            let found = view.first_of(digests);
            asked += found.map_or(digests.len(), |index| index + 1) as u32;
            found.is_some()
        });
        probe.add_probes(asked);
        is_there
    }

    /// Calls with the digests of a run's prefixes, some at once, until one call says yes.
    #[inline(always)]
    fn any_digests(
        &self,
        probe: &RangeProbe<'_>,
        part: &BloomPart,
        run: Run<'_>,
        mut is_met: impl FnMut(&[u64]) -> bool,
    ) -> bool {
        let bits = part.prefix;
        if run.count == 0 {
            return false;
        }
        if bits > 64 {
            if run.count == 1 && run.bits == bits && run.is_lower {
                return is_met(&[probe.lower_prefix_digest(self.seed, bits)]);
            }
            probe.add_digests(run.count as u32);
            return with_digester(probe, self.seed, |digester| {
                if bits <= HEAD_BITS {
                    any_head_digests(digester, bits, run, &mut is_met)
                } else {
                    any_long_digests(digester, bits, run, &mut is_met)
                }
            });
        }
        let first = run.start.bits(0, run.bits).checked_shl(bits - run.bits).unwrap_or(0);
        let shift = 64 - bits;
        if run.count <= SHARED_RUN {
            let digest =
                |index| probe.word_prefix_digest(self.seed, first.wrapping_add(index) << shift, bits);
            return in_batches(run.count, digest, &mut is_met);
        }
        probe.add_digests(run.count as u32);
        with_digester(probe, self.seed, |digester| {
            let digest = |index| digester.word_prefix_digest(first.wrapping_add(index) << shift, bits);
            in_batches(run.count, digest, &mut is_met)
        })
    }

    /// Two Bloom filters: each prefix that passes the first one is asked for, below itself, in the second.
    fn is_met_in_two(
        &self,
        probe: &RangeProbe<'_>,
        first: &BloomPart,
        (lower, upper): (BitString<'_>, BitString<'_>),
    ) -> bool {
        let Some((second, second_view)) = self.bloom() else { return true };
        let first_view = first.view(self.payload);
        let depth = first.prefix;
        let count = prefixes_between(&lower, &upper, depth);
        if count > self.parts.cap {
            return true;
        }
        let mut budget = self.parts.cap - count;
        let whole = 1_u64.checked_shl(second.prefix - depth).unwrap_or(u64::MAX);
        let mut index = 0;
        let mut asked = 0;
        let run = Run::from_lower(lower, depth, count);
        let mut is_met = |digest: u64| {
            let place = index;
            index += 1;
            asked += 1;
            if !first_view.may_contain_first(digest) {
                return false;
            }
            let below = match (place == 0, place + 1 == count) {
                (true, true) => prefixes_between(&lower, &upper, second.prefix),
                (true, false) => prefixes_below(&lower, depth, second.prefix).0,
                (false, true) => prefixes_below(&upper, depth, second.prefix).1,
                (false, false) => whole,
            };
            let Some(left) = budget.checked_sub(below) else { return true };
            budget = left;
            if place == 0 {
                let run = Run::from_lower(lower, second.prefix, below);
                return self.has_any(probe, second, &second_view, run);
            }
            self.has_any_at(probe, (second, &second_view), (&lower, depth, place), below)
        };
        let is_there =
            self.any_digests(probe, first, run, |digests| digests.iter().any(|digest| is_met(*digest)));
        probe.add_probes(asked);
        is_there
    }

    /// The prefixes below the `place`-th prefix of `depth` bits from a string's on.
    fn has_any_at(
        &self,
        probe: &RangeProbe<'_>,
        (part, view): (&BloomPart, &BloomView<'_>),
        (lower, depth, place): (&BitString<'_>, u32, u64),
        count: u64,
    ) -> bool {
        if depth <= 64 {
            let prefix = lower.bits(0, depth).saturating_add(place) << (64 - depth);
            let bytes = padded(prefix);
            let run = Run::new(BitString::key(&bytes), depth, count);
            return self.has_any(probe, part, view, run);
        }
        let mut prefix = vec![0; depth.div_ceil(8) as usize];
        lower.write_prefix(depth, &mut prefix);
        advance(&mut prefix, depth, place);
        let run = Run::new(BitString::key(&prefix), depth, count);
        self.has_any(probe, part, view, run)
    }
}

/// [`View::any_digests`] for prefixes of 65 to 128 bits.
#[inline(always)]
fn any_head_digests(
    digester: &Digester,
    bits: u32,
    run: Run<'_>,
    is_met: &mut impl FnMut(&[u64]) -> bool,
) -> bool {
    // What lies behind the bits that the run begins with is zero.
    let mut word = run.start.head() & !u128::MAX.checked_shr(run.bits).unwrap_or(0);
    let step = 1_u128.checked_shl(HEAD_BITS - bits).unwrap_or(0);
    let digest = |_| {
        let digest = digester.long_word_prefix_digest(word, bits);
        word = word.wrapping_add(step);
        digest
    };
    in_batches(run.count, digest, is_met)
}

/// [`View::any_digests`] for prefixes of more bits than one word holds.
#[cold]
fn any_long_digests(
    digester: &Digester,
    bits: u32,
    run: Run<'_>,
    is_met: &mut impl FnMut(&[u64]) -> bool,
) -> bool {
    let length = bits.div_ceil(8) as usize;
    let mut stack = [0; STACK_BYTES];
    let mut heap = Vec::new();
    let prefix = match stack.get_mut(..length) {
        Some(prefix) => prefix,
        None => {
            heap.resize(length, 0);
            heap.as_mut_slice()
        }
    };
    // What lies behind the bits that the run begins with stays zero.
    let own = prefix.get_mut(..run.bits.div_ceil(8) as usize).unwrap_or_default();
    run.start.write_prefix(run.bits, own);
    mask_last(prefix, bits);
    let digest = |index| {
        if index > 0 {
            advance(prefix, bits, 1);
        }
        digester.whole_byte_prefix_digest(prefix, bits)
    };
    in_batches(run.count, digest, is_met)
}

/// Calls with so many digests, the first few, then more at once, until one call says yes.
#[inline(always)]
fn in_batches(
    count: u64,
    mut digest: impl FnMut(u64) -> u64,
    is_met: &mut impl FnMut(&[u64]) -> bool,
) -> bool {
    let mut batch = [0; bloom::BATCH];
    let (mut done, mut length) = (0, FIRST_BATCH);
    while done < count {
        let slots = batch.get_mut(..(count - done).min(length) as usize).unwrap_or_default();
        for (index, slot) in (done..).zip(slots.iter_mut()) {
            *slot = digest(index);
        }
        if is_met(slots) {
            return true;
        }
        done += slots.len() as u64;
        length = bloom::BATCH as u64;
    }
    false
}

/// Calls with the digester of a seed: the query's own, or one that is made for it.
#[inline(always)]
pub(super) fn with_digester<T>(probe: &RangeProbe<'_>, seed: u64, call: impl FnOnce(&Digester) -> T) -> T {
    if seed == probe.digester().seed() { call(probe.digester()) } else { call(&Digester::new(seed)) }
}

/// A point, compiled for the processor.
pub(super) struct PointWalk<'a, 'p>(pub(super) View<'a>, pub(super) &'p Probe<'p>);

impl kernel::Task for PointWalk<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain(self.1)
    }
}

/// A range, compiled for the processor.
pub(super) struct RangeWalk<'a, 'p, 'q>(pub(super) View<'a>, pub(super) &'p RangeProbe<'q>);

impl kernel::Task for RangeWalk<'_, '_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain_range(self.1)
    }
}
