//! The fast path: queries of eight-byte keys that a few prefixes of a Bloom filter decide, or a set of integers.
//!
//! It returns the answers of `query.rs`, or none if a query needs more. The fields of the layout that it reads are copied when the filter is
//! opened, so that they share cache lines. Digests come from a [`DigestSource`], the probe of the query, which caches them for other filters.

use tamis_bits::kernel::{self, Steps};
use tamis_bits::{BitmapShape, MarkedEliasFano};

use super::bloom::{BloomView, LEAST_TOGETHER, has_many_spread};
use super::design::{BloomLayout, SetForm};
use super::layout::{FirstPart, Parts, SetShape};
use super::string_path::StringPath;
use crate::envelope::ENVELOPE_BYTES;
use crate::hash::length_mark;
use crate::{Digester, Probe, RangeProbe};

/// A filter that has a fast path, and its bytes.
pub(super) trait FastFilter {
    fn fast_path(&self) -> &FastPath;
    fn bytes(&self) -> &[u8];
}

/// Computes the digests of a query under its seed.
pub(super) trait DigestSource {
    fn digester(&self) -> &Digester;

    /// The digest of a prefix, in the top bits of a word whose other bits are zero. `None` if it may be cached: the cache contains others
    /// than those of the `index` prefixes that the caller hashed before.
    fn new_digest(&self, bloom: &FastBloom, index: usize, word: u64) -> Option<u64>;

    /// The digest of a prefix that may be cached.
    fn cached_digest(&self, bloom: &FastBloom, word: u64) -> u64;

    /// Counts tests.
    fn add_probes(&self, count: u32);
}

impl DigestSource for Probe<'_> {
    #[inline(always)]
    fn digester(&self) -> &Digester {
        Probe::digester(self)
    }

    #[inline(always)]
    fn new_digest(&self, bloom: &FastBloom, _: usize, word: u64) -> Option<u64> {
        if bloom.holds_keys {
            return Some(self.own_digest());
        }
        if self.has_prefix_digest() {
            return None;
        }
        let digest = bloom.digest(self.digester(), word);
        self.cache_prefix_digest(bloom.prefix, digest);
        Some(digest)
    }

    fn cached_digest(&self, bloom: &FastBloom, _: u64) -> u64 {
        self.prefix_digest(bloom.seed, bloom.prefix)
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
    fn new_digest(&self, bloom: &FastBloom, index: usize, word: u64) -> Option<u64> {
        if bloom.holds_keys {
            self.add_digests(1);
            return Some(self.digester().head_digest::<8>(word));
        }
        if self.has_word_digest(index) {
            return None;
        }
        let digest = bloom.digest(self.digester(), word);
        self.cache_word_digest(index, word, bloom.prefix, digest);
        Some(digest)
    }

    fn cached_digest(&self, bloom: &FastBloom, word: u64) -> u64 {
        self.other_word_digest(word, bloom.prefix)
    }

    #[inline(always)]
    fn add_probes(&self, count: u32) {
        RangeProbe::add_probes(self, count);
    }
}

/// The part of a filter that the fast path tests first. The tag is a separate byte: a niche would cost instructions.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum FastPath {
    /// A Bloom filter of many spread bits.
    Bloom(FastBloom),
    /// One of few bits, or in lines.
    OtherBloom(FastBloom),
    Set(FastSet),
    Strings(StringPath),
    None,
}

impl FastPath {
    pub(super) fn new(parts: Option<&Parts>, seed: u64) -> Self {
        let Some(parts) = parts else { return Self::None };
        match parts.first {
            _ if parts.fixed.is_none() => StringPath::new(parts, seed).map_or(Self::None, Self::Strings),
            _ if parts.fixed.is_some_and(|fixed| fixed.byte_count != 8) => Self::None,
            FirstPart::None => match FastBloom::new(parts, seed) {
                Some(bloom) if bloom.has_many_bits() => Self::Bloom(bloom),
                Some(bloom) => Self::OtherBloom(bloom),
                None => Self::None,
            },
            FirstPart::Set(_) => FastSet::new(parts, seed).map_or(Self::None, Self::Set),
            FirstPart::Bloom(_) => Self::None,
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

/// A Bloom filter of prefixes of eight-byte keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastBloom {
    mask: u64,
    /// Distinguishes the digests of prefixes of different lengths; 0 for those of keys.
    mark: u64,
    /// Where the bits are in the whole filter.
    start: usize,
    end: usize,
    seed: u64,
    pub(super) cap: u64,
    prefix: u32,
    layout: BloomLayout,
    probe_count: u32,
    byte_count: u32,
    holds_keys: bool,
}

impl FastBloom {
    fn new(parts: &Parts, seed: u64) -> Option<Self> {
        let bloom = parts.bloom.filter(|_| parts.cap > 0)?;
        Some(Self {
            mask: u64::MAX << (64 - bloom.prefix),
            mark: if bloom.holds_keys { 0 } else { length_mark(bloom.prefix) },
            start: ENVELOPE_BYTES + bloom.start,
            end: ENVELOPE_BYTES + bloom.start + bloom.length,
            seed,
            cap: parts.cap,
            prefix: bloom.prefix,
            layout: bloom.layout,
            probe_count: bloom.probe_count,
            byte_count: bloom.prefix.div_ceil(8),
            holds_keys: bloom.holds_keys,
        })
    }

    #[inline(always)]
    pub(super) fn digest(&self, digester: &Digester, word: u64) -> u64 {
        digester.short_digest(word, self.byte_count) ^ self.mark
    }

    /// Whether the bits of a digest are spread and so many that [`has_many_spread`] can test them.
    fn has_many_bits(&self) -> bool {
        self.layout == BloomLayout::Spread && self.probe_count >= LEAST_TOGETHER
    }

    /// Tests a digest. `MANY`: the filter is known to have many bits.
    #[inline(always)]
    pub(super) fn has<const MANY: bool>(&self, bits: &[u8], digest: u64) -> bool {
        if MANY {
            return has_many_spread(bits, self.probe_count, digest);
        }
        BloomView { bytes: bits, layout: self.layout, probe_count: self.probe_count }.may_contain(digest)
    }

    /// The prefixes from `lower` to `upper`, which is not smaller.
    #[inline(always)]
    pub(super) const fn prefixes(&self, lower: u64, upper: u64) -> PrefixRun {
        let shift = 64 - self.prefix;
        let count = ((upper >> shift) - (lower >> shift)).saturating_add(1);
        PrefixRun { first: lower & self.mask, step: 1 << shift, count }
    }

    /// Whether the filter may contain a key from `lower` to `upper`; `None` for another seed and for too many prefixes.
    #[inline(always)]
    pub(super) fn test<const MANY: bool>(
        &self,
        filter: &[u8],
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        if source.digester().seed() != self.seed {
            return None;
        }
        let bits = filter.get(self.start..self.end)?;
        if lower > upper {
            return Some(false);
        }
        if (lower ^ upper) & self.mask != 0 {
            let run = self.prefixes(lower, upper);
            return (run.count <= RUN_MAX).then(|| self.test_several::<MANY>(bits, source, run));
        }
        source.add_probes(1);
        let word = lower & self.mask;
        Some(match source.new_digest(self, 0, word) {
            Some(digest) => self.has::<MANY>(bits, digest),
            None => self.has_cached::<MANY>(bits, source, word),
        })
    }

    #[inline(never)]
    fn has_cached<const MANY: bool>(&self, bits: &[u8], source: &impl DigestSource, word: u64) -> bool {
        self.has::<MANY>(bits, source.cached_digest(self, word))
    }

    #[inline(never)]
    fn test_several<const MANY: bool>(
        &self,
        bits: &[u8],
        source: &impl DigestSource,
        PrefixRun { first, step, count }: PrefixRun,
    ) -> bool {
        if count > self.cap {
            return true;
        }
        let mut word = first;
        for index in 0..count as usize {
            source.add_probes(1);
            let digest = source.new_digest(self, index, word);
            let digest = digest.unwrap_or_else(|| source.cached_digest(self, word));
            if self.has::<MANY>(bits, digest) {
                return true;
            }
            word = word.wrapping_add(step);
        }
        false
    }
}

/// A set of integers in a form that is tested in a few instructions, and the second stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastSet {
    second: Option<FastBloom>,
    shift: u32,
    /// The least prefix, and the distance to the greatest.
    least: u64,
    last: u64,
    form: FastForm,
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
        let second = FastBloom::new(parts, seed);
        if parts.bloom.is_some() && second.is_none() {
            return None;
        }
        Some(Self { second, shift: 64 - part.depth, least: part.least, last: part.last, form })
    }

    /// Whether the filter may contain a key from `lower` to `upper`; `None` if the query needs more.
    #[inline(always)]
    pub(super) fn test<F: FastFilter>(
        &self,
        filter: &F,
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        let prefix = lower >> self.shift;
        if prefix != upper >> self.shift {
            return self.test_several(filter, source, lower, upper);
        }
        // A prefix below the least one is far above the last one after the subtraction.
        let value = prefix.wrapping_sub(self.least);
        let has_prefix = value <= self.last && {
            let has_bit = self.bit(filter.bytes(), value);
            has_bit.or_else(|| kernel::run(SetTest(filter, u128::from(value) << 64 | u128::from(value))))?
        };
        if has_prefix {
            return self.test_second(filter.bytes(), source, lower, upper);
        }
        source.add_probes(1);
        Some(false)
    }

    /// The second stage, for a range whose only prefix is in the set.
    #[inline(never)]
    fn test_second(&self, filter: &[u8], source: &impl DigestSource, lower: u64, upper: u64) -> Option<bool> {
        let answer = match &self.second {
            Some(bloom) => bloom.test::<false>(filter, source, lower, upper)?,
            None => lower <= upper,
        };
        source.add_probes(1);
        Some(answer)
    }

    /// A range of several prefixes: if the set contains any, the general path finds which.
    #[inline(never)]
    fn test_several<F: FastFilter>(
        &self,
        filter: &F,
        source: &impl DigestSource,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        // No prefix is below the least one.
        let (low, high) = (lower >> self.shift, upper >> self.shift);
        let from = low.saturating_sub(self.least);
        let is_inside = lower <= upper && high >= self.least && from <= self.last;
        if is_inside && kernel::run(SetTest(filter, u128::from(from) << 64 | u128::from(high - self.least)))?
        {
            return None;
        }
        source.add_probes(1);
        Some(false)
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
