//! The fast path: queries of eight-byte keys that a few prefixes of a Bloom filter decide, or a set of integers.
//!
//! It returns the answers of `query.rs`, or none where a query needs more. What it reads of a filter's layout is copied here, close
//! together, when the filter is opened. The digest function is a parameter ([`DigestSource`]): queries that no other filter will see
//! compute digests directly, others cache them in their probe.

use tamis_bits::kernel::{self, Steps};
use tamis_bits::{BitmapShape, MarkedEliasFano};

use super::bloom::BloomView;
use super::design::{BloomLayout, SetForm};
use super::layout::{FirstPart, Parts, SetShape};
use crate::envelope::ENVELOPE_BYTES;
use crate::hash::length_mark;
use crate::{Digester, Probe, RangeProbe};

/// What the fast path knows of a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum FastAnswer {
    Is(bool),
    /// The set contains the only prefix of the range; the second stage is not tested.
    InSet,
    Unknown,
}

/// A filter that has a fast path, and its bytes.
pub(super) trait FastFilter {
    fn fast_path(&self) -> &FastPath;
    fn bytes(&self) -> &[u8];
}

/// Computes the digests of a query.
pub(super) trait DigestSource {
    fn digester(&self) -> &Digester;

    /// The digest of a prefix, whose bits are the top bits of a word and the others zero.
    fn digest(&self, bloom: &FastBloom, word: u64) -> u64;

    /// Counts tests.
    fn add_probes(&self, count: u32);
}

/// Without a cache.
impl DigestSource for Digester {
    #[inline(always)]
    fn digester(&self) -> &Digester {
        self
    }

    #[inline(always)]
    fn digest(&self, bloom: &FastBloom, word: u64) -> u64 {
        bloom.digest(self, word)
    }

    #[inline(always)]
    fn add_probes(&self, _: u32) {}
}

impl DigestSource for Probe<'_> {
    #[inline(always)]
    fn digester(&self) -> &Digester {
        Probe::digester(self)
    }

    #[inline(always)]
    fn digest(&self, bloom: &FastBloom, word: u64) -> u64 {
        if bloom.holds_keys {
            return self.cached_digest(|digester| digester.head_digest::<8>(word));
        }
        self.cached_prefix_digest(bloom.prefix, |digester| bloom.digest(digester, word))
    }

    #[inline(always)]
    fn add_probes(&self, count: u32) {
        Probe::add_probes(self, count);
    }
}

impl DigestSource for RangeProbe<'_> {
    #[inline(always)]
    fn digester(&self) -> &Digester {
        RangeProbe::digester(self)
    }

    #[inline(always)]
    fn digest(&self, bloom: &FastBloom, word: u64) -> u64 {
        if bloom.holds_keys {
            self.add_digests(1);
            return self.digester().head_digest::<8>(word);
        }
        self.masked_word_digest(bloom.seed, word, bloom.prefix, |digester| bloom.digest(digester, word))
    }

    #[inline(always)]
    fn add_probes(&self, count: u32) {
        RangeProbe::add_probes(self, count);
    }
}

/// The part of a filter that the fast path tests first. The tag has a byte of its own: a niche would cost instructions.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum FastPath {
    Bloom(FastBloom),
    Set(FastSet),
    None,
}

impl FastPath {
    pub(super) fn new(parts: Option<&Parts>, seed: u64) -> Self {
        let Some(parts) = parts.filter(|parts| parts.fixed.is_some_and(|fixed| fixed.byte_count == 8)) else {
            return Self::None;
        };
        match parts.first {
            FirstPart::None => FastBloom::new(parts, seed).map_or(Self::None, Self::Bloom),
            FirstPart::Set(_) => FastSet::new(parts, seed).map_or(Self::None, Self::Set),
            FirstPart::Bloom(_) => Self::None,
        }
    }

    /// Tests the keys from `lower` to `upper`.
    #[inline(always)]
    pub(super) fn test<F: FastFilter>(
        filter: &F,
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> FastAnswer {
        match filter.fast_path() {
            Self::Bloom(bloom) => bloom.test(filter.bytes(), source, lower, upper),
            Self::Set(set) => set.test(filter, source, lower, upper),
            Self::None => FastAnswer::Unknown,
        }
    }
}

/// Most prefixes of a range that the fast path tests: those that a probe caches.
const RUN_MAX: u64 = 4;

/// Prefixes of one length, each in the top bits of a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrefixRun {
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) count: u64,
}

/// A Bloom filter of prefixes of eight-byte keys, its bits spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastBloom {
    mask: u64,
    /// Distinguishes the digests of prefixes of different lengths; 0 for those of keys.
    mark: u64,
    /// Where the bits are in the whole filter.
    start: usize,
    end: usize,
    seed: u64,
    cap: u64,
    prefix: u32,
    probe_count: u32,
    byte_count: u32,
    holds_keys: bool,
}

impl FastBloom {
    fn new(parts: &Parts, seed: u64) -> Option<Self> {
        let bloom = parts.bloom.filter(|bloom| bloom.layout == BloomLayout::Spread && parts.cap > 0)?;
        Some(Self {
            mask: u64::MAX << (64 - bloom.prefix),
            mark: if bloom.holds_keys { 0 } else { length_mark(bloom.prefix) },
            start: ENVELOPE_BYTES + bloom.start,
            end: ENVELOPE_BYTES + bloom.start + bloom.length,
            seed,
            cap: parts.cap,
            prefix: bloom.prefix,
            probe_count: bloom.probe_count,
            byte_count: bloom.prefix.div_ceil(8),
            holds_keys: bloom.holds_keys,
        })
    }

    /// The bits of the Bloom filter.
    #[inline(always)]
    pub(super) fn bits<'a>(&self, filter: &'a [u8]) -> &'a [u8] {
        filter.get(self.start..self.end).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn digest(&self, digester: &Digester, word: u64) -> u64 {
        digester.short_digest(word, self.byte_count) ^ self.mark
    }

    #[inline(always)]
    pub(super) fn has(&self, bits: &[u8], digest: u64) -> bool {
        BloomView { bytes: bits, layout: BloomLayout::Spread, probe_count: self.probe_count }
            .has_spread(digest)
    }

    /// The prefixes from `lower` to `upper`, which is not smaller.
    #[inline(always)]
    pub(super) const fn prefixes(&self, lower: u64, upper: u64) -> PrefixRun {
        let shift = 64 - self.prefix;
        let count = ((upper >> shift) - (lower >> shift)).saturating_add(1);
        PrefixRun { first: lower & self.mask, step: 1 << shift, count }
    }

    /// Whether a range has more prefixes than a query may test: it passes.
    #[inline(always)]
    pub(super) const fn is_beyond_cap(&self, run: &PrefixRun) -> bool {
        run.count > self.cap
    }

    #[inline(always)]
    fn test(&self, filter: &[u8], source: &impl DigestSource, lower: u64, upper: u64) -> FastAnswer {
        if source.digester().seed() != self.seed {
            return FastAnswer::Unknown;
        }
        let bits = self.bits(filter);
        if lower > upper || (lower ^ upper) & self.mask != 0 {
            return self.test_several(bits, source, lower, upper);
        }
        source.add_probes(1);
        FastAnswer::Is(self.has(bits, source.digest(self, lower & self.mask)))
    }

    #[inline(never)]
    fn test_several(&self, bits: &[u8], source: &impl DigestSource, lower: u64, upper: u64) -> FastAnswer {
        if lower > upper {
            return FastAnswer::Is(false);
        }
        let run = self.prefixes(lower, upper);
        if self.is_beyond_cap(&run) {
            return FastAnswer::Is(true);
        }
        if run.count > RUN_MAX {
            return FastAnswer::Unknown;
        }
        let mut word = run.first;
        for _ in 0..run.count {
            source.add_probes(1);
            if self.has(bits, source.digest(self, word)) {
                return FastAnswer::Is(true);
            }
            word = word.wrapping_add(run.step);
        }
        FastAnswer::Is(false)
    }
}

/// Where the prefixes of a range are among those of a set, counted from its least prefix.
#[derive(Debug, Clone, Copy)]
pub(super) enum SetRange {
    /// Outside the set.
    Outside,
    /// From one prefix to another; they are equal if the range has only one.
    Prefixes(u64, u64),
    /// Partly below the least prefix.
    Below,
}

/// A set of integers in a form that is tested in a few instructions, and the second stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastSet {
    second: SecondStage,
    shift: u32,
    /// The least prefix, and the distance to the greatest.
    least: u64,
    last: u64,
    form: FastForm,
}

#[derive(Debug, Clone, Copy)]
enum SecondStage {
    None,
    Bloom(FastBloom),
    /// A Bloom filter that the fast path does not test.
    Other,
}

/// The form of a set and where it begins in the whole filter.
#[derive(Debug, Clone, Copy)]
enum FastForm {
    Marked(MarkedEliasFano),
    Bitmap(BitmapShape, usize),
}

impl FastSet {
    fn new(parts: &Parts, seed: u64) -> Option<Self> {
        let FirstPart::Set(part) = &parts.first else { return None };
        let start = ENVELOPE_BYTES + part.start;
        let form = match (&part.shape, part.form) {
            (SetShape::EliasFano(shape), SetForm::MarkedEliasFano) => {
                FastForm::Marked(shape.marked_at(start)?)
            }
            (SetShape::Bitmap(shape), _) => FastForm::Bitmap(*shape, start),
            (SetShape::Trie(_) | SetShape::EliasFano(_), _) => return None,
        };
        let second = match FastBloom::new(parts, seed) {
            Some(bloom) => SecondStage::Bloom(bloom),
            None if parts.bloom.is_none() => SecondStage::None,
            None => SecondStage::Other,
        };
        Some(Self { second, shift: 64 - part.depth, least: part.least, last: part.last, form })
    }

    #[inline(always)]
    fn test<F: FastFilter>(
        &self,
        filter: &F,
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> FastAnswer {
        let prefix = lower >> self.shift;
        if prefix != upper >> self.shift {
            return self.test_several(filter, source, lower, upper);
        }
        // A prefix below the least one is far above the last one after the subtraction.
        let value = prefix.wrapping_sub(self.least);
        if value > self.last {
            source.add_probes(1);
            return FastAnswer::Is(false);
        }
        let has_prefix = match self.bit(filter.bytes(), value) {
            None => kernel::run(SetTest(filter, u128::from(value) << 64 | u128::from(value))),
            has_prefix => has_prefix,
        };
        match has_prefix {
            Some(true) => self.test_second(filter.bytes(), source, lower, upper),
            Some(false) => {
                source.add_probes(1);
                FastAnswer::Is(false)
            }
            None => FastAnswer::Unknown,
        }
    }

    /// A range of several prefixes: if the set contains any, the general path finds which.
    #[inline(never)]
    fn test_several<F: FastFilter>(
        &self,
        filter: &F,
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> FastAnswer {
        let has_prefix = match self.range(lower, upper) {
            SetRange::Outside => Some(false),
            SetRange::Prefixes(from, to) => {
                kernel::run(SetTest(filter, u128::from(from) << 64 | u128::from(to)))
            }
            SetRange::Below => None,
        };
        if has_prefix != Some(false) {
            return FastAnswer::Unknown;
        }
        source.add_probes(1);
        FastAnswer::Is(false)
    }

    /// The second stage, for a range whose only prefix is in the set.
    #[inline(never)]
    pub(super) fn test_second(
        &self,
        filter: &[u8],
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> FastAnswer {
        let answer = match &self.second {
            SecondStage::None => FastAnswer::Is(lower <= upper),
            SecondStage::Bloom(bloom) => bloom.test(filter, source, lower, upper),
            SecondStage::Other => FastAnswer::Unknown,
        };
        match answer {
            FastAnswer::Is(_) => {
                source.add_probes(1);
                answer
            }
            _ => FastAnswer::InSet,
        }
    }

    /// Where the prefixes from `lower` to `upper` are.
    #[inline(always)]
    pub(super) fn range(&self, lower: u64, upper: u64) -> SetRange {
        let (low, high) = (lower >> self.shift, upper >> self.shift);
        let (from, to) = (low.wrapping_sub(self.least), high.wrapping_sub(self.least));
        if lower > upper || high < self.least || (low >= self.least && from > self.last) {
            SetRange::Outside
        } else if low >= self.least {
            SetRange::Prefixes(from, to)
        } else {
            SetRange::Below
        }
    }

    /// Whether a bitmap contains a prefix; `None` for the other form.
    #[inline(always)]
    fn bit(&self, filter: &[u8], value: u64) -> Option<bool> {
        let FastForm::Bitmap(_, start) = &self.form else { return None };
        let byte = filter.get(start.checked_add((value / 8) as usize)?)?;
        Some(byte >> (value % 8) & 1 == 1)
    }

    /// Whether the set contains a prefix from one to another; `None` where that takes more than a few instructions.
    #[inline(always)]
    fn has_any<S: Steps>(&self, steps: S, filter: &[u8], from: u64, to: u64) -> Option<bool> {
        match &self.form {
            FastForm::Marked(set) if from == to => set.contains_in(steps, filter, from),
            FastForm::Marked(set) => set.is_free_in(steps, filter, from, to).map(|is_free| !is_free),
            FastForm::Bitmap(shape, start) => Some(shape.view(filter.get(*start..)?)?.has_between(from, to)),
        }
    }

    /// [`FastSet::has_any`] for the ranges of a batch; passes the index and the answer of each to `report`.
    #[inline(always)]
    pub(super) fn has_any_each<S: Steps>(
        &self,
        steps: S,
        filter: &[u8],
        ranges: &[(u64, u64)],
        mut report: impl FnMut(usize, Option<bool>),
    ) {
        if let FastForm::Marked(set) = &self.form {
            set.are_free_in(steps, filter, ranges, |index, is_free| {
                report(index, is_free.map(|is_free| !is_free));
            });
            return;
        }
        for (index, (from, to)) in ranges.iter().enumerate() {
            report(index, self.has_any(steps, filter, *from, *to));
        }
    }
}

/// [`FastSet::has_any`] compiled for the processor; the range is in one number, the first prefix in its high half. A task of two scalars is
/// passed in registers: through memory, each query would wait for it.
struct SetTest<'a, F>(&'a F, u128);

impl<F: FastFilter> kernel::Task for SetTest<'_, F> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> Option<bool> {
        let Self(filter, range) = self;
        let FastPath::Set(set) = filter.fast_path() else { return None };
        set.has_any(steps, filter.bytes(), (range >> 64) as u64, range as u64)
    }
}
