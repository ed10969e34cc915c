//! The query path: tests one key or one range against the parts of a filter.
//!
//! It is generic over the representation of a key ([`QueryEnd`]): a `u64` in filters of integers, a [`BitString`] in filters of byte
//! strings. `fast_path.rs` decides the most frequent queries of integers in fewer instructions, with the same answers.
//!
//! The second stage tests runs of consecutive prefixes. The length of the runs is known before the first test: a range that needs more
//! tests than the cap passes untested. The model counts in the same way (`counts.rs`).
//!
//! A run is hashed and tested in batches, so that the cache misses of its prefixes overlap. Short runs use the digests that the probe
//! caches for all filters of the query. Prefixes of at most 128 bits are hashed in registers, longer ones in a buffer on the stack, and
//! beyond [`STACK_BYTES`] on the heap.

use tamis_bits::kernel::{self, Portable, Steps};

use super::bloom::BATCH;
use super::design::WHOLE_KEYS;
use super::layout::{BloomPart, FirstPart, Parts};
use super::prefix_set::{Ends, SetView};
use crate::bit_string::{BitString, HEAD_BITS, advance, mask_last};
use crate::bounds::RangeEnd;
use crate::hash::length_mark;
use crate::{Digester, Probe, RangeProbe};

/// Runs of at most this many prefixes use the digests that the probe caches.
const CACHED_RUN: u64 = 4;
/// Longest prefix that is hashed without a heap allocation.
const STACK_BYTES: usize = 256;

/// An end of a range, with the methods that only queries need.
pub(super) trait QueryEnd: RangeEnd {
    /// Prefixes in the first batch of a run; later batches are full. Small where a digest is expensive, because a match ends the run.
    const FIRST_BATCH: usize;

    /// Which prefixes from this end to `upper` are in a set.
    fn ends_in<S: Steps>(&self, upper: &Self, set: SetView<'_>, steps: S) -> Ends;

    /// The first 64 bits.
    fn head_word(&self) -> u64;

    /// The end as a string; `None` for integers, whose prefixes have at most 64 bits.
    fn as_string(&self) -> Option<&BitString<'_>>;
}

impl QueryEnd for u64 {
    const FIRST_BATCH: usize = 16;

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

impl QueryEnd for BitString<'_> {
    const FIRST_BATCH: usize = 4;

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
    pub(super) steps: S,
}

impl<'a> Query<'a> {
    #[inline(always)]
    fn with<S: Steps>(self, steps: S) -> Query<'a, S> {
        let Self { parts, payload, seed, .. } = self;
        Query { parts, payload, seed, steps }
    }
}

impl<S: Steps> Query<'_, S> {
    /// Whether the filter may contain the key.
    #[inline(always)]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match self.parts.fixed {
            Some(fixed) => fixed.point(probe.key()).is_some_and(|word| self.has_point(probe, word)),
            None if !self.parts.is_length(probe.key().len()) => false,
            None => self.has_point(probe, BitString::key(probe.key())),
        }
    }

    #[inline(always)]
    fn has_point<E: QueryEnd>(&self, probe: &Probe<'_>, end: E) -> bool {
        let has_prefix = match &self.parts.first {
            FirstPart::None => true,
            FirstPart::Set(part) => {
                probe.add_probes(1);
                end.ends_in(&end, SetView::new(part, self.payload), self.steps).has_first
            }
            FirstPart::Bloom(part) => part.view(self.payload).may_contain_first(self.digest(part, probe)),
        };
        if !has_prefix {
            return false;
        }
        let Some(part) = &self.parts.bloom else { return true };
        part.view(self.payload).may_contain(self.digest(part, probe))
    }

    /// The digest of a key in a Bloom filter; counts a test.
    #[inline(always)]
    fn digest(&self, part: &BloomPart, probe: &Probe<'_>) -> u64 {
        probe.add_probes(1);
        part.key_digest(self.seed, probe)
    }

    /// Whether the filter may contain a key in the range, which for byte strings is more than one point.
    #[inline(always)]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        let range = probe.range();
        let Some(fixed) = self.parts.fixed else {
            // The filter rejects most empty ranges before their bounds are compared.
            let lower = BitString::lower(range, usize::from(self.parts.string_bytes));
            let upper = BitString::upper(range);
            if lower.is_incremented() && lower.is_above(&upper) {
                return false;
            }
            return self.has_between(probe, lower, upper) && !range.is_empty();
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
    fn has_between<E: QueryEnd>(&self, probe: &RangeProbe<'_>, lower: E, upper: E) -> bool {
        // The depth of the set and the ends in it, if they are different prefixes.
        let ends = match &self.parts.first {
            FirstPart::None => None,
            FirstPart::Set(part) => {
                probe.add_probes(1);
                let ends = lower.ends_in(&upper, SetView::new(part, self.payload), self.steps);
                if ends.has_between {
                    return true;
                }
                if !ends.has_first && !ends.has_last {
                    return false;
                }
                Some((part.depth, ends)).filter(|_| !lower.has_same_prefix(&upper, part.depth))
            }
            FirstPart::Bloom(part) => return self.any_in_two(probe, part, lower, upper),
        };
        let Some(part) = self.prefix_bloom() else { return true };
        let (depth, left, right) = match ends {
            None => (0, lower.prefixes_to(&upper, part.prefix), 0),
            Some((depth, ends)) => {
                let left = if ends.has_first { lower.prefixes_below(depth, part.prefix).0 } else { 0 };
                let right = if ends.has_last { upper.prefixes_below(depth, part.prefix).1 } else { 0 };
                (depth, left, right)
            }
        };
        left.saturating_add(right) > self.parts.cap
            || self.any_of(probe, part, Run::new(lower, part.prefix, left))
            || (right > 0 && self.any_of_other(probe, part, Run::new(upper, depth, right)))
    }

    /// The Bloom filter of the second stage, if it can test ranges.
    #[inline(always)]
    fn prefix_bloom(&self) -> Option<&BloomPart> {
        self.parts.bloom.as_ref().filter(|part| part.prefix != WHOLE_KEYS)
    }

    /// Two Bloom filters: for each prefix that passes the first one, tests the prefixes below it in the second.
    #[inline(always)]
    fn any_in_two<E: QueryEnd>(&self, probe: &RangeProbe<'_>, first: &BloomPart, lower: E, upper: E) -> bool {
        let Some(second) = self.prefix_bloom() else { return true };
        let (view, depth, bits) = (first.view(self.payload), first.prefix, second.prefix);
        let count = lower.prefixes_to(&upper, depth);
        let Some(mut budget) = self.parts.cap.checked_sub(count) else { return true };
        let own = self.own_digester(probe);
        let digester = own.as_ref().unwrap_or(probe.digester());
        let mut digests = RunDigests::new(self.seed, probe, digester, first, Run::new(lower, depth, count));
        let mut batch = [0; BATCH];
        let mut skip = 0;
        loop {
            let digests = digests.next(&mut batch);
            if digests.is_empty() {
                return false;
            }
            for digest in digests {
                probe.add_probes(1);
                if view.may_contain_first(*digest) {
                    let below = match (skip == 0, skip + 1 == count) {
                        (true, true) => lower.prefixes_to(&upper, bits),
                        (true, false) => lower.prefixes_below(depth, bits).0,
                        (false, true) => upper.prefixes_below(depth, bits).1,
                        (false, false) => 1_u64.checked_shl(bits - depth).unwrap_or(u64::MAX),
                    };
                    let Some(rest) = budget.checked_sub(below) else { return true };
                    budget = rest;
                    let bits = if skip == 0 { bits } else { depth };
                    if self.any_of_other(probe, second, Run { start: lower, bits, skip, count: below }) {
                        return true;
                    }
                }
                skip += 1;
            }
        }
    }

    /// A digester of the filter's seed, if the query has another one.
    #[inline(always)]
    fn own_digester(&self, probe: &RangeProbe<'_>) -> Option<Digester> {
        (self.seed != probe.digester().seed()).then(|| Digester::new(self.seed))
    }

    /// [`Query::any_of`] out of line, for runs that few queries have.
    #[inline(never)]
    fn any_of_other<E: QueryEnd>(&self, probe: &RangeProbe<'_>, part: &BloomPart, run: Run<E>) -> bool {
        self.any_of(probe, part, run)
    }

    /// Whether a Bloom filter may contain a prefix of a run. Counts the tests up to the first match.
    #[inline(always)]
    fn any_of<E: QueryEnd>(&self, probe: &RangeProbe<'_>, part: &BloomPart, run: Run<E>) -> bool {
        if run.count == 0 {
            return false;
        }
        let view = part.view(self.payload);
        let own = self.own_digester(probe);
        let digester = own.as_ref().unwrap_or(probe.digester());
        let mut digests = RunDigests::new(self.seed, probe, digester, part, run);
        let mut batch = [0; BATCH];
        let mut tested = 0;
        loop {
            let digests = digests.next(&mut batch);
            let found = view.first_of(digests);
            tested += found.map_or(digests.len(), |index| index + 1) as u32;
            if found.is_some() || digests.is_empty() {
                probe.add_probes(tested);
                return found.is_some();
            }
        }
    }
}

/// The digests of a run, computed batch by batch.
struct RunDigests<'d, 'p> {
    digester: &'d Digester,
    bits: u32,
    /// Prefixes that remain, and those of the next batch.
    rest: u64,
    length: usize,
    next: NextPrefix<'d, 'p>,
}

/// The next prefix of a run by its length.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack during one query; a box would allocate")]
enum NextPrefix<'d, 'p> {
    /// The digest of the only prefix, which is one of the range's lower end.
    Known(u64),
    /// At most 64 bits, of a short run.
    Cached { probe: &'d RangeProbe<'p>, seed: u64, word: u64 },
    /// At most 64 bits; the mark distinguishes the digests of prefixes of different lengths.
    Word { word: u64, mark: u64 },
    /// At most [`HEAD_BITS`] bits.
    Head(u128),
    /// More bits, in whole bytes: on the stack, or on the heap if there are any.
    Bytes { stack: [u8; STACK_BYTES], heap: Vec<u8> },
}

impl<'d, 'p> RunDigests<'d, 'p> {
    #[inline(always)]
    fn new<E: QueryEnd>(
        seed: u64,
        probe: &'d RangeProbe<'p>,
        digester: &'d Digester,
        part: &BloomPart,
        run: Run<E>,
    ) -> Self {
        let Run { start, bits, skip, count } = run;
        let next = match start.as_string() {
            // Only a run from the lower end of the range begins with all bits of its first prefix.
            Some(start)
                if part.prefix > 64 && count == 1 && bits == part.prefix && !start.is_incremented() =>
            {
                NextPrefix::Known(probe.lower_prefix_digest(seed, bits))
            }
            Some(start) if part.prefix > HEAD_BITS => NextPrefix::bytes(start, bits, skip, part.prefix),
            Some(start) if part.prefix > 64 => {
                let head = start.head() & !u128::MAX.checked_shr(bits).unwrap_or(0);
                let skip = u128::from(skip).checked_shl(HEAD_BITS - bits).unwrap_or(0);
                NextPrefix::Head(head.wrapping_add(skip))
            }
            _ => {
                let word = start.head_word() & u64::MAX << (64 - bits);
                let word = word.wrapping_add(skip << (64 - bits));
                if count <= CACHED_RUN && !part.holds_keys {
                    NextPrefix::Cached { probe, seed, word }
                } else {
                    let mark = if part.holds_keys { 0 } else { length_mark(part.prefix) };
                    NextPrefix::Word { word, mark }
                }
            }
        };
        if !matches!(next, NextPrefix::Known(_) | NextPrefix::Cached { .. }) {
            probe.add_digests(count as u32);
        }
        Self { digester, bits: part.prefix, rest: count, length: E::FIRST_BATCH, next }
    }

    /// The next digests; none at the end.
    #[inline(always)]
    fn next<'b>(&mut self, batch: &'b mut [u64; BATCH]) -> &'b [u64] {
        let Self { digester, bits, .. } = *self;
        let slots = batch.get_mut(..self.rest.min(self.length as u64) as usize).unwrap_or_default();
        self.rest -= slots.len() as u64;
        self.length = BATCH;
        match &mut self.next {
            NextPrefix::Known(digest) => slots.fill(*digest),
            NextPrefix::Cached { probe, seed, word } => {
                for slot in &mut *slots {
                    *slot = probe.word_prefix_digest(*seed, *word, bits);
                    *word = word.wrapping_add(1 << (64 - bits));
                }
            }
            NextPrefix::Word { word, mark } => {
                let byte_count = bits.div_ceil(8);
                for slot in &mut *slots {
                    *slot = digester.short_digest(*word, byte_count) ^ *mark;
                    *word = word.wrapping_add(1 << (64 - bits));
                }
            }
            NextPrefix::Head(head) => {
                for slot in &mut *slots {
                    *slot = digester.long_word_prefix_digest(*head, bits);
                    *head = head.wrapping_add(1_u128.checked_shl(HEAD_BITS - bits).unwrap_or(0));
                }
            }
            NextPrefix::Bytes { stack, heap } => fill_long(digester, bits, stack, heap, slots),
        }
        slots
    }
}

impl NextPrefix<'_, '_> {
    #[cold]
    fn bytes(start: &BitString<'_>, start_bits: u32, skip: u64, bits: u32) -> Self {
        let (mut stack, mut heap) = ([0; STACK_BYTES], Vec::new());
        let prefix = long_prefix(bits, &mut stack, &mut heap);
        let own = prefix.get_mut(..start_bits.div_ceil(8) as usize).unwrap_or_default();
        start.write_prefix(start_bits, own);
        advance(own, start_bits, skip);
        mask_last(prefix, bits);
        Self::Bytes { stack, heap }
    }
}

/// The buffer for a prefix.
fn long_prefix<'b>(bits: u32, stack: &'b mut [u8; STACK_BYTES], heap: &'b mut Vec<u8>) -> &'b mut [u8] {
    let length = bits.div_ceil(8) as usize;
    if length <= STACK_BYTES {
        return stack.get_mut(..length).unwrap_or_default();
    }
    heap.resize(length, 0);
    heap
}

#[cold]
fn fill_long(
    digester: &Digester,
    bits: u32,
    stack: &mut [u8; STACK_BYTES],
    heap: &mut Vec<u8>,
    slots: &mut [u64],
) {
    let prefix = long_prefix(bits, stack, heap);
    for slot in slots {
        *slot = digester.whole_byte_prefix_digest(prefix, bits);
        advance(prefix, bits, 1);
    }
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
