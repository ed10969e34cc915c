//! Many questions at once to a Bloom filter of integers alone: what `quick.rs` does for one.
//!
//! All questions of a batch go through the same step before any goes through the next, so that their cache misses overlap and few jumps
//! depend on what is found. What takes more than these steps is asked for by itself.

use std::ops::Bound;

use tamis_bits::{kernel, prefetch, scatter_bits};

use super::bloom::{LEAST_TOGETHER, start_and_step};
use super::quick::FirstBloom;
use crate::bloom::standard::place;
use crate::filter::BATCH_KEYS;
use crate::{Digester, KeyRange, Upper};

/// Questions of a batch, and prefixes that are looked for at once.
pub(super) const BATCH: usize = BATCH_KEYS;

/// Questions whose keys are integers of eight bytes.
pub(super) trait Questions: Copy {
    /// The least and the greatest key that is asked for, in this order; `None` where it is another kind of question.
    fn bounds(&self, number: usize) -> Option<(u64, u64)>;
}

impl Questions for &[&[u8]] {
    #[inline(always)]
    fn bounds(&self, number: usize) -> Option<(u64, u64)> {
        let key = word(self.get(number)?)?;
        Some((key, key))
    }
}

impl Questions for &[KeyRange<'_>] {
    #[inline(always)]
    fn bounds(&self, number: usize) -> Option<(u64, u64)> {
        closed_words(self.get(number)?).filter(|(lower, upper)| lower <= upper)
    }
}

/// A key of eight bytes.
#[inline(always)]
pub(super) fn word(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// Lower and upper bound, in whichever order, where both are keys of eight bytes and belong to the range.
#[inline(always)]
pub(super) fn closed_words(range: &KeyRange<'_>) -> Option<(u64, u64)> {
    match (range.lower, range.upper) {
        (Bound::Included(lower), Upper::Included(upper)) => Some((word(lower)?, word(upper)?)),
        _ => None,
    }
}

impl FirstBloom {
    /// `otherwise` asks for one that takes more.
    #[inline(always)]
    pub(super) fn ask_batch(
        &self,
        filter: &[u8],
        digester: &Digester,
        questions: impl Questions,
        answers: &mut [bool],
        otherwise: impl Fn(usize) -> bool,
    ) {
        let count = answers.len().min(BATCH);
        let mut sieve = Sieve {
            bloom: self,
            digester,
            bits: self.bits(filter),
            answers,
            words: [0; BATCH],
            numbers: [0; BATCH],
            count: 0,
        };
        for number in 0..count {
            let Some(answer) = sieve.answers.get_mut(number).filter(|answer| **answer) else { continue };
            let bounds = questions.bounds(number);
            if bounds.is_some_and(|(lower, upper)| self.is_beyond_cap(lower, upper)) {
                continue;
            }
            let Some(prefixes) = bounds.and_then(|(lower, upper)| self.prefixes(lower, upper)) else {
                *answer = otherwise(number);
                continue;
            };
            // Until one of its prefixes is found.
            *answer = false;
            if sieve.count + prefixes.count as usize > BATCH {
                sieve.sift();
            }
            sieve.push(prefixes.first, number);
            for prefix in 1..prefixes.count {
                sieve.push(prefixes.first.wrapping_add(prefix * prefixes.step), number);
            }
        }
        sieve.sift();
    }
}

/// Prefixes that are looked for in a Bloom filter whose bits are spread, and the questions that they belong to.
struct Sieve<'a> {
    bloom: &'a FirstBloom,
    digester: &'a Digester,
    bits: &'a [u8],
    answers: &'a mut [bool],
    /// At the high ends of words.
    words: [u64; BATCH],
    numbers: [u8; BATCH],
    count: usize,
}

impl Sieve<'_> {
    #[inline(always)]
    fn push(&mut self, word: u64, number: usize) {
        put(&mut self.words, self.count, word);
        put(&mut self.numbers, self.count, number as u8);
        self.count += 1;
    }

    /// Looks for what was pushed.
    #[inline(always)]
    fn sift(&mut self) {
        kernel::run(Sift(self));
        self.count = 0;
    }

    /// Digests of the prefixes, which take `BYTES` bytes, in the place of the words.
    #[inline(always)]
    fn digest_all<const BYTES: usize>(&mut self) {
        let mark = self.bloom.digest_mark();
        for word in self.words.iter_mut().take(self.count) {
            *word = self.digester.head_digest::<BYTES>(*word) ^ mark;
            prefetch_bit(self.bits, *word);
        }
    }
}

/// Asks for the cache line of the bit of a number.
#[inline(always)]
fn prefetch_bit(bits: &[u8], number: u64) {
    prefetch(bits, (place(number, bits.len() as u64 * 8) / 8) as usize);
}

#[inline(always)]
pub(super) fn put<T>(list: &mut [T; BATCH], index: usize, value: T) {
    if let Some(slot) = list.get_mut(index % BATCH) {
        *slot = value;
    }
}

/// The first bit of all, three more of the half that is left, and all bits of the few that are left then: each time the others close up.
/// More rounds would look at fewer bits, but each waits for the last bit of the one before. What a round reads is asked for ahead.
struct Sift<'s, 'a>(&'s mut Sieve<'a>);

impl kernel::Task for Sift<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: kernel::Steps>(self, _: S) {
        let sieve = self.0;
        match sieve.bloom.byte_count() {
            8 => sieve.digest_all::<8>(),
            7 => sieve.digest_all::<7>(),
            6 => sieve.digest_all::<6>(),
            5 => sieve.digest_all::<5>(),
            4 => sieve.digest_all::<4>(),
            3 => sieve.digest_all::<3>(),
            2 => sieve.digest_all::<2>(),
            _ => sieve.digest_all::<1>(),
        }
        let Sieve { bloom, bits, answers, words: digests, numbers, count, .. } = sieve;
        let mut left = 0;
        for index in 0..(*count).min(BATCH) {
            let digest = get(digests, index);
            put(digests, left, digest);
            put(numbers, left, get(numbers, index));
            left += usize::from(scatter_bits::is_set(bits, digest));
        }
        let mut steps = [0; BATCH];
        for (digest, step) in digests.iter_mut().zip(&mut steps).take(left) {
            let (start, next) = start_and_step(*digest);
            (*digest, *step) = (start.wrapping_add(next), next);
            prefetch_bit(bits, *digest);
            prefetch_bit(bits, digest.wrapping_add(next));
            prefetch_bit(bits, digest.wrapping_add(next.wrapping_mul(2)));
        }
        for index in 0..std::mem::take(&mut left).min(BATCH) {
            let (second, step) = (get(digests, index), get(&steps, index));
            let (third, fourth) = (second.wrapping_add(step), second.wrapping_add(step.wrapping_mul(2)));
            put(digests, left, fourth.wrapping_add(step));
            put(&mut steps, left, step);
            put(numbers, left, get(numbers, index));
            left += usize::from(scatter_bits::are_set(bits, [second, third, fourth]));
        }
        let others = bloom.probe_count().saturating_sub(LEAST_TOGETHER);
        for index in 0..std::mem::take(&mut left).min(BATCH) {
            let (mut value, step) = (get(digests, index), get(&steps, index));
            let mut has_all = true;
            for _ in 0..others {
                has_all &= scatter_bits::is_set(bits, value);
                value = value.wrapping_add(step);
            }
            put(numbers, left, get(numbers, index));
            left += usize::from(has_all);
        }
        for number in numbers.iter().take(left) {
            if let Some(answer) = answers.get_mut(usize::from(*number)) {
                *answer = true;
            }
        }
    }
}

#[inline(always)]
pub(super) fn get<T: Copy + Default>(list: &[T; BATCH], index: usize) -> T {
    list.get(index % BATCH).copied().unwrap_or_default()
}
