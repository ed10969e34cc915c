//! Many questions at once to a set of integers: what `quick.rs` does for one.
//!
//! The prefixes of a batch go through the steps of the set together (`MarkedEliasFano::are_free_in`). Most are not there; each of the
//! others is asked for by itself, behind the set where its one prefix is known to be there.

use tamis_bits::{MarkedEliasFano, kernel};

use super::batch::{BATCH, Questions, get, put};
use super::quick::{FirstSet, Place};

const _: () = assert!(BATCH <= MarkedEliasFano::BATCH, "a batch goes through the steps as a whole");

impl FirstSet {
    /// `otherwise` asks for one that takes more, and `below` for keys whose only prefix the set has.
    #[inline(always)]
    pub(super) fn ask_batch(
        &self,
        filter: &[u8],
        questions: impl Questions,
        answers: &mut [bool],
        otherwise: impl Fn(usize) -> bool,
        below: impl Fn(u64, u64) -> bool,
    ) {
        let mut sieve = SetSieve { set: self, filter, pairs: [(0, 0); BATCH], numbers: [0; BATCH], count: 0 };
        let are_words = self.are_words();
        for number in 0..answers.len().min(BATCH) {
            let Some(answer) = answers.get_mut(number).filter(|answer| **answer) else { continue };
            let bounds = if are_words { questions.bounds(number) } else { None };
            let place = bounds.map_or(Place::Other, |(lower, upper)| self.place(lower, upper));
            *answer = false;
            match place {
                Place::Prefix(value) => sieve.push((value, value), number),
                Place::Several(from, to) => sieve.push((from, to), number),
                Place::Beside => {}
                Place::Other => *answer = otherwise(number),
            }
        }
        kernel::run(SetSift(&mut sieve));
        for index in 0..sieve.count {
            let number = usize::from(get(&sieve.numbers, index));
            let Some(answer) = answers.get_mut(number) else { continue };
            *answer = match get(&sieve.pairs, index) {
                IS_THERE => questions.bounds(number).is_none_or(|(lower, upper)| below(lower, upper)),
                _ => otherwise(number),
            };
        }
    }
}

/// In place of a pair whose two prefixes are one that is there.
const IS_THERE: (u64, u64) = (u64::MAX, 0);

/// Prefixes that are looked for in a set, from one to another of each pair, and the questions that they belong to.
struct SetSieve<'a> {
    set: &'a FirstSet,
    filter: &'a [u8],
    pairs: [(u64, u64); BATCH],
    numbers: [u8; BATCH],
    count: usize,
}

impl SetSieve<'_> {
    #[inline(always)]
    fn push(&mut self, pair: (u64, u64), number: usize) {
        put(&mut self.pairs, self.count, pair);
        put(&mut self.numbers, self.count, number as u8);
        self.count += 1;
    }
}

/// The questions that the set does not deny close up, compiled for the processor.
struct SetSift<'s, 'a>(&'s mut SetSieve<'a>);

impl kernel::Task for SetSift<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) {
        let SetSieve { set, filter, pairs, numbers, count } = self.0;
        let asked = pairs.get(..*count).unwrap_or_default();
        let mut left = 0;
        let mut kept = [(0, false); BATCH];
        set.are_free(steps, filter, asked, |index, is_free| {
            put(&mut kept, left, (index as u8, is_free.is_some()));
            left += usize::from(is_free != Some(true));
        });
        for (place, (index, is_known)) in kept.iter().enumerate().take(left) {
            let (from, to) = get(pairs, usize::from(*index));
            put(pairs, place, if *is_known && from == to { IS_THERE } else { (from, to) });
            put(numbers, place, get(numbers, usize::from(*index)));
        }
        *count = left;
    }
}
