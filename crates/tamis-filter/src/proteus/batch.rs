//! Batches of queries on the fast path: each step runs for all queries of a batch before the next one, so that their cache misses overlap.

use tamis_bits::kernel::{self, place};
use tamis_bits::{MarkedEliasFano, prefetch, scatter_bits};

use super::bloom::start_and_step;
use super::fast_path::{FastBloom, FastFilter, FastPart as _, FastPath, FastSet, PrefixRun, SetRange};
use crate::Digester;
use crate::filter::BATCH_KEYS;

/// Queries of a batch, and prefixes that are tested together.
pub(super) const BATCH: usize = BATCH_KEYS;
const _: () = assert!(BATCH <= MarkedEliasFano::BATCH, "a set tests a batch as a whole");

/// Most prefixes of a query that are tested with those of other queries; more of them overlap their own cache misses.
const RUN_MAX: u64 = 16;

/// Queries whose answers are `true` so far, and where these are stored.
pub(super) struct Batch<'a, B, O> {
    pub(super) digester: &'a Digester,
    pub(super) answers: &'a mut [bool],
    /// The least and the greatest key of a query by its index; `None` if they are no keys of eight bytes.
    pub(super) bounds: B,
    /// The answer of the general path for a query, and whether the set is known to contain its only prefix.
    pub(super) otherwise: O,
}

impl<B, O> Batch<'_, B, O>
where
    B: Fn(usize) -> Option<(u64, u64)>,
    O: Fn(usize, bool) -> bool,
{
    /// Makes the answers of the queries that the filter rejects `false`.
    pub(super) fn test(mut self, filter: &impl FastFilter) {
        match filter.fast_path() {
            FastPath::Bloom(bloom) => self.test_bloom(&bloom.0, bloom.0.bits(filter.bytes())),
            FastPath::Set(set) => self.test_set(set, filter.bytes()),
            FastPath::OtherBloom(bloom) => {
                let digester = self.digester;
                self.for_each_open(|_, (lower, upper)| bloom.test(filter, digester, lower, upper).ok());
            }
            FastPath::Strings(_) | FastPath::None => self.for_each_open(|_, _| None),
        }
    }

    /// Calls `test` for each query that is not rejected yet; without an answer from it, the general path answers.
    #[inline(always)]
    fn for_each_open(&mut self, mut test: impl FnMut(usize, (u64, u64)) -> Option<bool>) {
        for (index, answer) in self.answers.iter_mut().enumerate().take(BATCH) {
            if *answer {
                let fast = (self.bounds)(index).and_then(|bounds| test(index, bounds));
                *answer = fast.unwrap_or_else(|| (self.otherwise)(index, false));
            }
        }
    }

    fn test_bloom(&mut self, bloom: &FastBloom, bits: &[u8]) {
        let mut tests = BloomTests { bloom, bits, digests: [0; BATCH], owners: [0; BATCH], count: 0 };
        let digester = self.digester;
        let mut met = 0_u64;
        self.for_each_open(|index, (lower, upper)| {
            let run = (lower <= upper).then(|| bloom.prefixes(lower, upper))?;
            if run.count > bloom.cap {
                return Some(true);
            }
            if run.count > RUN_MAX {
                return None;
            }
            if tests.count + run.count as usize > BATCH {
                met |= tests.finish();
            }
            tests.push(digester, run, index);
            Some(false)
        });
        met |= tests.finish();
        for (index, answer) in self.answers.iter_mut().enumerate().take(BATCH) {
            *answer |= met >> index & 1 == 1;
        }
    }

    fn test_set(&mut self, set: &FastSet, filter: &[u8]) {
        let mut tests = SetTests { set, filter, ranges: [(0, 0); BATCH], owners: [0; BATCH], count: 0 };
        self.for_each_open(|index, (lower, upper)| match set.range(lower, upper) {
            SetRange::Outside => Some(false),
            SetRange::Prefixes(from, to) => {
                put(&mut tests.ranges, tests.count, (from, to));
                put(&mut tests.owners, tests.count, index as u8);
                tests.count += 1;
                Some(false)
            }
            SetRange::Below => None,
        });
        let (rest, count) = kernel::run(&tests);
        for (index, is_in_set) in rest.into_iter().take(count) {
            let index = usize::from(index);
            let fast = (self.bounds)(index)
                .filter(|_| is_in_set)
                .and_then(|(lower, upper)| set.test_second(filter, self.digester, lower, upper).ok());
            let answer = fast.unwrap_or_else(|| (self.otherwise)(index, is_in_set));
            if let Some(slot) = self.answers.get_mut(index) {
                *slot = answer;
            }
        }
    }
}

/// Prefixes to test in a Bloom filter, by their digests, and the indices of their queries.
struct BloomTests<'a> {
    bloom: &'a FastBloom,
    bits: &'a [u8],
    digests: [u64; BATCH],
    owners: [u8; BATCH],
    count: usize,
}

impl BloomTests<'_> {
    #[inline(always)]
    fn push(&mut self, digester: &Digester, run: PrefixRun, owner: usize) {
        let mut word = run.first;
        for _ in 0..run.count {
            let digest = self.bloom.digest(digester, word);
            self.prefetch(digest);
            put(&mut self.digests, self.count, digest);
            put(&mut self.owners, self.count, owner as u8);
            self.count += 1;
            word = word.wrapping_add(run.step);
        }
    }

    /// Prefetches the cache line of the bit of a number.
    #[inline(always)]
    fn prefetch(&self, number: u64) {
        prefetch(self.bits, (place(number, self.bits.len() as u64 * 8) / 8) as usize);
    }

    /// The queries of the prefixes that the filter may contain, as bits. Tests the first bit of all prefixes, then all bits of the half that
    /// remains, without a branch on a single result. More rounds would read fewer bits, but each waits for the previous one.
    fn finish(&mut self) -> u64 {
        let mut rest = 0;
        for index in 0..std::mem::take(&mut self.count).min(BATCH) {
            let (digest, owner) = (get(&self.digests, index), get(&self.owners, index));
            put(&mut self.digests, rest, digest);
            put(&mut self.owners, rest, owner);
            rest += usize::from(scatter_bits::is_set(self.bits, digest));
        }
        for digest in self.digests.iter().take(rest) {
            let (start, step) = start_and_step(*digest);
            (1..4).for_each(|number| self.prefetch(start.wrapping_add(step.wrapping_mul(number))));
        }
        let has = |digest: &u64| u64::from(self.bloom.has::<true>(self.bits, *digest));
        let tested = self.digests.iter().zip(&self.owners).take(rest);
        tested.fold(0, |met, (digest, owner)| met | has(digest) << (owner & 63))
    }
}

/// Ranges of prefixes to look up in a set, and the indices of their queries.
struct SetTests<'a> {
    set: &'a FastSet,
    filter: &'a [u8],
    ranges: [(u64, u64); BATCH],
    owners: [u8; BATCH],
    count: usize,
}

impl kernel::Task for &SetTests<'_> {
    /// The queries that the set does not reject, and whether it contains their only prefix; how many they are.
    type Output = ([(u8, bool); BATCH], usize);

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> Self::Output {
        let SetTests { set, filter, ranges, owners, count } = self;
        let mut rest = ([(0, false); BATCH], 0);
        set.has_any_each(steps, filter, ranges.get(..*count).unwrap_or_default(), |index, has_any| {
            let (from, to) = get(ranges, index);
            let entry = (get(owners, index), has_any == Some(true) && from == to);
            put(&mut rest.0, rest.1, entry);
            rest.1 += usize::from(has_any != Some(false));
        });
        rest
    }
}

#[inline(always)]
fn put<T>(list: &mut [T; BATCH], index: usize, value: T) {
    if let Some(slot) = list.get_mut(index % BATCH) {
        *slot = value;
    }
}

#[inline(always)]
fn get<T: Copy + Default>(list: &[T; BATCH], index: usize) -> T {
    list.get(index % BATCH).copied().unwrap_or_default()
}
