//! The query path: tests one key or one range against the parts of a filter.
//!
//! It is generic over the representation of a key ([`RangeEnd`]): a `u64` in filters of integers, a [`BitString`] in filters of byte
//! strings. `fast_path.rs` decides the most frequent queries of integers in fewer instructions, with the same answers.
//!
//! The second stage tests runs of consecutive prefixes. The length of the runs is known before the first test: a range that needs more
//! tests than the cap passes untested. The model counts in the same way (`counts.rs`).
//!
//! A run is hashed and tested in batches, so that the cache misses of its prefixes overlap. Short runs use the digests that the probe
//! caches for all filters of the query. Prefixes of at most 128 bits are hashed in registers, longer ones in a buffer on the stack, and
//! beyond [`STACK_BYTES`] on the heap.

use tamis_bits::kernel::{self, Portable, Steps};

use super::bits::{BitString, HEAD_BITS, advance, mask_last};
use super::bloom::BATCH;
use super::design::WHOLE_KEYS;
use super::layout::{BloomPart, FirstPart, Parts};
use super::prefix_set::{Ends, SetView};
use crate::hash::length_mark;
use crate::{Digester, Probe, RangeProbe};

/// Runs of at most this many prefixes use the digests that the probe caches.
const CACHED_RUN: usize = 4;
/// Longest prefix that is hashed without a heap allocation.
const STACK_BYTES: usize = 256;

/// An end of a range in one representation of keys.
pub(super) trait RangeEnd: Copy {
    /// Prefixes in the first batch of a run; later batches are full. Small where a digest is expensive, because a match ends the run.
    const FIRST_BATCH: usize;

    /// Number of prefixes of `bits` bits from this end to `upper`, inclusive.
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64;

    /// Number of prefixes of `bits` bits below this end's prefix of `depth` bits: from this end on, and up to this end.
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64);

    /// Whether both ends have the same prefix of `depth` bits.
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool;

    /// Which prefixes from this end to `upper` are in a set.
    fn ends_in<S: Steps>(&self, upper: &Self, set: SetView<'_>, steps: S) -> Ends;

    /// The first 64 bits.
    fn head_word(&self) -> u64;

    /// The end as a string; `None` for integers, whose prefixes have at most 64 bits.
    fn as_string(&self) -> Option<&BitString<'_>>;
}

impl RangeEnd for u64 {
    const FIRST_BATCH: usize = 16;

    #[inline(always)]
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64 {
        let shift = 64 - bits;
        (upper >> shift).saturating_sub(self >> shift).saturating_add(1)
    }

    #[inline(always)]
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64) {
        let mask = (1 << (bits - depth)) - 1;
        let own = self >> (64 - bits) & mask;
        (mask - own + 1, own + 1)
    }

    #[inline(always)]
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool {
        (self ^ other) >> (64 - depth) == 0
    }

    #[inline(always)]
    fn ends_in<S: Steps>(&self, upper: &Self, set: SetView<'_>, steps: S) -> Ends {
        set.word_ends(steps, *self, *upper)
    }

    #[inline(always)]
    fn head_word(&self) -> u64 {
        *self
    }

    #[inline(always)]
    fn as_string(&self) -> Option<&BitString<'_>> {
        None
    }
}

impl RangeEnd for BitString<'_> {
    const FIRST_BATCH: usize = 4;

    #[inline(always)]
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64 {
        if bits <= HEAD_BITS {
            let prefix = |string: &Self| string.head().checked_shr(HEAD_BITS - bits).unwrap_or(0);
            let count = prefix(upper).saturating_sub(prefix(self));
            return u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
        }
        let shared = self.shared_bits(upper, bits);
        match bits - shared {
            0 => 1,
            rest @ 1..=64 => {
                upper.bits(shared, rest).saturating_sub(self.bits(shared, rest)).saturating_add(1)
            }
            _ => u64::MAX,
        }
    }

    #[inline(always)]
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64) {
        let rest = bits - depth;
        if rest > 63 {
            return (u64::MAX, u64::MAX);
        }
        let own = self.bits(depth, rest);
        ((1 << rest) - own, own + 1)
    }

    #[inline(always)]
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool {
        self.shared_bits(other, depth) == depth
    }

    #[inline(always)]
    fn ends_in<S: Steps>(&self, upper: &Self, set: SetView<'_>, steps: S) -> Ends {
        set.string_ends(steps, self, upper)
    }

    #[inline(always)]
    fn head_word(&self) -> u64 {
        (self.head() >> 64) as u64
    }

    #[inline(always)]
    fn as_string(&self) -> Option<&BitString<'_>> {
        Some(self)
    }
}

/// A run of consecutive prefixes. The first one is: `bits` bits of `start`, plus `skip` in the last of them, then zeros.
#[derive(Debug, Clone, Copy)]
struct Run<E> {
    start: E,
    bits: u32,
    skip: u64,
    count: u64,
}

impl<E> Run<E> {
    const fn new(start: E, bits: u32, count: u64) -> Self {
        Self { start, bits, skip: 0, count }
    }
}

/// The parts of a filter and the payload that contains them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a, S = Portable> {
    pub(super) parts: &'a Parts,
    pub(super) payload: &'a [u8],
    pub(super) seed: u64,
    /// The first stage is a set that is known to contain the only prefix of the range.
    pub(super) is_in_set: bool,
    pub(super) steps: S,
}

impl<'a> Query<'a> {
    #[inline(always)]
    fn with<S: Steps>(self, steps: S) -> Query<'a, S> {
        let Self { parts, payload, seed, is_in_set, .. } = self;
        Query { parts, payload, seed, is_in_set, steps }
    }
}

impl<S: Steps> Query<'_, S> {
    /// Whether the filter may contain the key.
    #[inline(always)]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self.parts.fixed {
            Some(fixed) => fixed.point(probe.key()).is_some_and(|word| self.has_point(probe, word)),
            None => self.has_point(probe, BitString::key(probe.key())),
        }
    }

    #[inline(always)]
    fn has_point<E: RangeEnd>(&self, probe: &Probe<'_>, end: E) -> bool {
        let has_prefix = match &self.parts.first {
            FirstPart::None => true,
            FirstPart::Set(part) => {
                probe.add_probes(1);
                self.is_in_set || end.ends_in(&end, SetView::new(part, self.payload), self.steps).has_first
            }
            FirstPart::Bloom(part) => part.view(self.payload).may_contain_first(self.digest(part, probe)),
        };
        let has_rest = |part: &BloomPart| part.view(self.payload).may_contain(self.digest(part, probe));
        has_prefix && self.parts.bloom.as_ref().is_none_or(has_rest)
    }

    /// The digest of a key in a Bloom filter; counts a test.
    #[inline(always)]
    fn digest(&self, part: &BloomPart, probe: &Probe<'_>) -> u64 {
        probe.add_probes(1);
        if part.holds_keys { probe.digest(self.seed) } else { probe.prefix_digest(self.seed, part.prefix) }
    }

    /// Whether the filter may contain a key in the range, which for byte strings is more than one point.
    #[inline(always)]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        let range = probe.range();
        let Some(fixed) = self.parts.fixed else {
            // The filter rejects most empty ranges before their bounds are compared.
            return self.has_between(probe, BitString::lower(range), BitString::upper(range))
                && !range.is_empty();
        };
        let Some((lower, upper)) = fixed.bounds(range) else { return false };
        if lower == upper
            && let Some(point) = probe.point()
        {
            return self.may_contain(point);
        }
        self.has_between(probe, lower, upper)
    }

    #[inline(always)]
    fn has_between<E: RangeEnd>(&self, probe: &RangeProbe<'_>, lower: E, upper: E) -> bool {
        match &self.parts.first {
            FirstPart::None => self.any_between(probe, lower, upper),
            FirstPart::Set(part) => {
                probe.add_probes(1);
                let ends = if self.is_in_set {
                    Ends::FIRST
                } else {
                    lower.ends_in(&upper, SetView::new(part, self.payload), self.steps)
                };
                ends.has_between
                    || ((ends.has_first || ends.has_last)
                        && self.any_below(probe, part.depth, ends, lower, upper))
            }
            FirstPart::Bloom(part) => self.any_in_two(probe, part, lower, upper),
        }
    }

    /// The Bloom filter of the second stage, if it can test ranges.
    #[inline(always)]
    fn prefix_bloom(&self) -> Option<&BloomPart> {
        self.parts.bloom.as_ref().filter(|part| part.prefix != WHOLE_KEYS)
    }

    /// Tests all prefixes of a range.
    #[inline(always)]
    fn any_between<E: RangeEnd>(&self, probe: &RangeProbe<'_>, lower: E, upper: E) -> bool {
        let Some(part) = self.prefix_bloom() else { return true };
        let count = lower.prefixes_to(&upper, part.prefix);
        count > self.parts.cap || self.any_of(probe, part, Run::new(lower, part.prefix, count))
    }

    /// Tests the prefixes below the first and the last prefix of a set, as far as the set contains these.
    #[inline(always)]
    fn any_below<E: RangeEnd>(
        &self,
        probe: &RangeProbe<'_>,
        depth: u32,
        ends: Ends,
        lower: E,
        upper: E,
    ) -> bool {
        let Some(part) = self.prefix_bloom() else { return true };
        if lower.has_same_prefix(&upper, depth) {
            return self.any_between(probe, lower, upper);
        }
        let left = if ends.has_first { lower.prefixes_below(depth, part.prefix).0 } else { 0 };
        let right = if ends.has_last { upper.prefixes_below(depth, part.prefix).1 } else { 0 };
        left.saturating_add(right) > self.parts.cap
            || self.any_of(probe, part, Run::new(lower, part.prefix, left))
            || self.any_of(probe, part, Run::new(upper, depth, right))
    }

    /// Two Bloom filters: for each prefix that passes the first one, tests the prefixes below it in the second.
    fn any_in_two<E: RangeEnd>(&self, probe: &RangeProbe<'_>, first: &BloomPart, lower: E, upper: E) -> bool {
        let Some(second) = self.prefix_bloom() else { return true };
        let (view, depth, bits) = (first.view(self.payload), first.prefix, second.prefix);
        let count = lower.prefixes_to(&upper, depth);
        let Some(mut budget) = self.parts.cap.checked_sub(count) else { return true };
        let whole = 1_u64.checked_shl(bits - depth).unwrap_or(u64::MAX);
        let mut tested = 0;
        let mut has_below = |digest: u64| {
            let skip = tested;
            tested += 1;
            if !view.may_contain_first(digest) {
                return false;
            }
            let below = match (skip == 0, tested == count) {
                (true, true) => lower.prefixes_to(&upper, bits),
                (true, false) => lower.prefixes_below(depth, bits).0,
                (false, true) => upper.prefixes_below(depth, bits).1,
                (false, false) => whole,
            };
            let Some(rest) = budget.checked_sub(below) else { return true };
            budget = rest;
            let bits = if skip == 0 { bits } else { depth };
            self.any_of(probe, second, Run { start: lower, bits, skip, count: below })
        };
        let run = Run::new(lower, depth, count);
        let is_met =
            self.any_batch(probe, first, run, |digests| digests.iter().any(|digest| has_below(*digest)));
        probe.add_probes(tested as u32);
        is_met
    }

    /// Whether a Bloom filter may contain a prefix of a run. Counts the tests up to the first match.
    #[inline(always)]
    fn any_of<E: RangeEnd>(&self, probe: &RangeProbe<'_>, part: &BloomPart, run: Run<E>) -> bool {
        let view = part.view(self.payload);
        let mut tested = 0;
        let is_met = self.any_batch(probe, part, run, |digests| {
            let found = view.first_of(digests);
            tested += found.map_or(digests.len(), |index| index + 1) as u32;
            found.is_some()
        });
        probe.add_probes(tested);
        is_met
    }

    /// Passes the digests of a run to `test`, batch by batch, until it returns `true`.
    #[inline(always)]
    fn any_batch<E: RangeEnd>(
        &self,
        probe: &RangeProbe<'_>,
        part: &BloomPart,
        run: Run<E>,
        test: impl FnMut(&[u64]) -> bool,
    ) -> bool {
        let (bits, seed) = (part.prefix, self.seed);
        if run.count == 0 {
            return false;
        }
        if bits > 64 {
            let Some(start) = run.start.as_string() else { return true };
            let Run { bits: start_bits, skip, count, .. } = run;
            return self.any_long_batch(probe, bits, Run { start, bits: start_bits, skip, count }, test);
        }
        let mut word = run.start.head_word() & u64::MAX << (64 - run.bits);
        word = word.wrapping_add(run.skip << (64 - run.bits));
        let step = 1 << (64 - bits);
        if run.count <= CACHED_RUN as u64 && !part.holds_keys {
            let fill = |slots: &mut [u64]| {
                for slot in slots {
                    *slot = probe.word_prefix_digest(seed, word, bits);
                    word = word.wrapping_add(step);
                }
            };
            return in_batches::<CACHED_RUN>(run.count, CACHED_RUN, fill, test);
        }
        let mark = if part.holds_keys { 0 } else { length_mark(bits) };
        probe.add_digests(run.count as u32);
        with_digester(probe, seed, |digester| {
            let fill = |slots: &mut [u64]| {
                fill_digests(digester, bits.div_ceil(8), (word, step, mark), slots);
                word = word.wrapping_add(step.wrapping_mul(slots.len() as u64));
            };
            in_batches::<BATCH>(run.count, E::FIRST_BATCH, fill, test)
        })
    }

    /// [`Query::any_batch`] for prefixes of more than 64 bits.
    #[inline(always)]
    fn any_long_batch(
        &self,
        probe: &RangeProbe<'_>,
        bits: u32,
        run: Run<&BitString<'_>>,
        mut test: impl FnMut(&[u64]) -> bool,
    ) -> bool {
        // Only a run from the range's lower end begins with all bits of its first prefix.
        if run.count == 1 && run.bits == bits {
            return test(&[probe.lower_prefix_digest(self.seed, bits)]);
        }
        probe.add_digests(run.count as u32);
        with_digester(probe, self.seed, |digester| {
            if bits > HEAD_BITS {
                return any_buffered_batch(digester, bits, run, test);
            }
            let mut word = run.start.head() & !u128::MAX.checked_shr(run.bits).unwrap_or(0);
            word = word.wrapping_add(u128::from(run.skip).checked_shl(HEAD_BITS - run.bits).unwrap_or(0));
            let step = 1_u128.checked_shl(HEAD_BITS - bits).unwrap_or(0);
            let fill = |slots: &mut [u64]| {
                for slot in slots {
                    *slot = digester.long_word_prefix_digest(word, bits);
                    word = word.wrapping_add(step);
                }
            };
            in_batches::<BATCH>(run.count, BitString::FIRST_BATCH, fill, test)
        })
    }
}

/// [`Query::any_batch`] for prefixes of more than [`HEAD_BITS`] bits.
#[cold]
fn any_buffered_batch(
    digester: &Digester,
    bits: u32,
    run: Run<&BitString<'_>>,
    test: impl FnMut(&[u64]) -> bool,
) -> bool {
    let mut stack = [0; STACK_BYTES];
    let mut heap = Vec::new();
    let length = bits.div_ceil(8) as usize;
    let prefix = match stack.get_mut(..length) {
        Some(prefix) => prefix,
        None => {
            heap.resize(length, 0);
            heap.as_mut_slice()
        }
    };
    let start = prefix.get_mut(..run.bits.div_ceil(8) as usize).unwrap_or_default();
    run.start.write_prefix(run.bits, start);
    advance(start, run.bits, run.skip);
    mask_last(prefix, bits);
    let fill = |slots: &mut [u64]| {
        for slot in slots {
            *slot = digester.whole_byte_prefix_digest(prefix, bits);
            advance(prefix, bits, 1);
        }
    };
    in_batches::<BATCH>(run.count, BitString::FIRST_BATCH, fill, test)
}

/// Fills batches of digests, the first of `first` and the others of `N`, and tests each, until a test returns `true`.
#[inline(always)]
fn in_batches<const N: usize>(
    count: u64,
    first: usize,
    mut fill: impl FnMut(&mut [u64]),
    mut test: impl FnMut(&[u64]) -> bool,
) -> bool {
    let mut batch = [0; N];
    let (mut rest, mut length) = (count, first);
    while rest > 0 {
        let slots = batch.get_mut(..rest.min(length as u64) as usize).unwrap_or_default();
        fill(slots);
        if test(slots) {
            return true;
        }
        rest -= slots.len() as u64;
        length = N;
    }
    false
}

/// Digests of consecutive prefixes of `byte_count` bytes: the word of the first, the step to the next, and the mark of their length.
#[inline(always)]
fn fill_digests(digester: &Digester, byte_count: u32, run: (u64, u64, u64), slots: &mut [u64]) {
    match byte_count {
        8 => fill_with(digester, Digester::head_digest::<8>, run, slots),
        7 => fill_with(digester, Digester::head_digest::<7>, run, slots),
        6 => fill_with(digester, Digester::head_digest::<6>, run, slots),
        5 => fill_with(digester, Digester::head_digest::<5>, run, slots),
        4 => fill_with(digester, Digester::head_digest::<4>, run, slots),
        3 => fill_with(digester, Digester::head_digest::<3>, run, slots),
        2 => fill_with(digester, Digester::head_digest::<2>, run, slots),
        _ => fill_with(digester, Digester::head_digest::<1>, run, slots),
    }
}

#[inline(always)]
fn fill_with(
    digester: &Digester,
    digest: impl Fn(&Digester, u64) -> u64,
    (mut word, step, mark): (u64, u64, u64),
    slots: &mut [u64],
) {
    for slot in slots {
        *slot = digest(digester, word) ^ mark;
        word = word.wrapping_add(step);
    }
}

/// Calls `call` with the digester of a seed: that of the query, or a new one.
#[inline(always)]
fn with_digester<T>(probe: &RangeProbe<'_>, seed: u64, call: impl FnOnce(&Digester) -> T) -> T {
    if seed == probe.digester().seed() { call(probe.digester()) } else { call(&Digester::new(seed)) }
}

/// A query for a key, compiled for the processor.
pub(super) struct PointQuery<'a, 'p>(pub(super) Query<'a>, pub(super) &'p Probe<'p>);

impl kernel::Task for PointQuery<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain(self.1)
    }
}

/// A query for a range, compiled for the processor.
pub(super) struct RangeQuery<'a, 'p, 'q>(pub(super) Query<'a>, pub(super) &'p RangeProbe<'q>);

impl kernel::Task for RangeQuery<'_, '_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> bool {
        self.0.with(steps).may_contain_range(self.1)
    }
}
