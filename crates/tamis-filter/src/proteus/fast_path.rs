//! The fast path: queries that a few prefixes of one Bloom filter decide, or a set of integers of eight bytes.
//!
//! It returns the answers of `query.rs`, or none if a query needs more. The fields of the layout that it reads are copied when the filter is
//! opened, so that they share cache lines. Digests come from the probe of the query, which caches them for the filters of other tables.
//!
//! Keys of eight bytes have a separate path, in which calls of rare cases come last: the others then save no registers.

use std::ops::Bound;

use tamis_bits::kernel::{self, Steps};
use tamis_bits::{BitmapShape, MarkedEliasFano, long_key_head};

use super::bloom::{BloomView, LEAST_TOGETHER, has_many_spread};
use super::design::{BloomLayout, SetForm, WHOLE_KEYS};
use super::layout::{BloomPart, FirstPart, Parts, SetPart, SetShape};
use crate::bit_string::HEAD_BITS;
use crate::envelope::ENVELOPE_BYTES;
use crate::fixed_keys::word;
use crate::{Probe, RangeProbe, Upper};

/// A filter that has a fast path, and its bytes.
pub(super) trait FastFilter {
    fn fast_path(&self) -> &FastPath;
    fn bytes(&self) -> &[u8];
}

/// The part of a filter that the fast path tests first. The tag is a separate byte: a niche would cost instructions.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum FastPath {
    /// A Bloom filter of many spread bits, of keys of eight bytes and without a first stage.
    Words(FastBloom),
    /// One of few bits, or in lines.
    OtherWords(FastBloom),
    /// One of byte strings.
    Strings(FastBloom),
    Set(FastSet),
    None,
}

impl FastPath {
    pub(super) fn new(parts: Option<&Parts>, seed: u64) -> Self {
        let Some(parts) = parts else { return Self::None };
        match (&parts.first, FastBloom::new(parts, seed)) {
            _ if parts.fixed.is_some_and(|fixed| fixed.byte_count != 8) => Self::None,
            (FirstPart::None, Some(bloom)) if parts.fixed.is_none() => Self::Strings(bloom),
            (FirstPart::None, Some(bloom)) if bloom.has_many_bits() => Self::Words(bloom),
            (FirstPart::None, Some(bloom)) => Self::OtherWords(bloom),
            (FirstPart::Set(part), second) if parts.fixed.is_some() => {
                let has_all = parts.bloom.is_none() || second.is_some();
                FastSet::new(part, second).filter(|_| has_all).map_or(Self::None, Self::Set)
            }
            _ => Self::None,
        }
    }
}

/// Most prefixes of a range that the fast path tests: those that a probe caches.
const RUN_MAX: u64 = 4;

/// A Bloom filter, and the keys that it may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastBloom {
    mask: u64,
    /// Where the bits are in the whole filter.
    start: usize,
    end: usize,
    seed: u64,
    cap: u64,
    prefix: u32,
    probe_count: u32,
    layout: BloomLayout,
    holds_keys: bool,
    /// The length of all byte strings, 0 if lengths differ.
    string_bytes: u16,
}

impl FastBloom {
    fn new(parts: &Parts, seed: u64) -> Option<Self> {
        let part = parts.bloom.filter(|part| part.prefix <= HEAD_BITS || part.prefix == WHOLE_KEYS)?;
        let start = ENVELOPE_BYTES + part.start;
        let BloomPart { prefix, holds_keys, layout, probe_count, length, .. } = part;
        let string_bytes = parts.string_bytes;
        let mask = u64::MAX << 64_u32.saturating_sub(prefix).min(63);
        let (end, cap) = (start + length, parts.cap);
        let bloom =
            Self { mask, start, end, seed, cap, prefix, probe_count, layout, holds_keys, string_bytes };
        (cap > 0).then_some(bloom)
    }

    /// Whether the bits of a digest are spread and so many that [`has_many_spread`] can test them.
    fn has_many_bits(&self) -> bool {
        self.layout == BloomLayout::Spread && self.probe_count >= LEAST_TOGETHER
    }

    /// Tests a digest. `MANY`: [`FastBloom::has_many_bits`].
    #[inline(always)]
    fn has<const MANY: bool>(&self, bytes: &[u8], digest: u64) -> bool {
        if MANY {
            return has_many_spread(bytes, self.probe_count, digest);
        }
        BloomView { bytes, layout: self.layout, probe_count: self.probe_count }.may_contain(digest)
    }

    fn view<'a>(&self, filter: &'a [u8]) -> BloomView<'a> {
        let bytes = filter.get(self.start..self.end).unwrap_or_default();
        BloomView { bytes, layout: self.layout, probe_count: self.probe_count }
    }

    /// Whether the filter may contain a key of eight bytes.
    #[inline(always)]
    pub(super) fn test_word<const MANY: bool>(&self, filter: &[u8], probe: &Probe<'_>) -> bool {
        let Some(word) = word(probe.key()) else { return false };
        let Some(bits) = filter.get(self.start..self.end) else { return true };
        probe.add_probes(1);
        let digest = if self.holds_keys {
            probe.quick_word_digest(self.seed, word)
        } else {
            probe.quick_prefix_digest(self.seed, word & self.mask, self.prefix)
        };
        match digest {
            Some(digest) => self.has::<MANY>(bits, digest),
            None => self.has_key(filter, probe),
        }
    }

    #[inline(never)]
    fn has_key(&self, filter: &[u8], probe: &Probe<'_>) -> bool {
        self.view(filter).may_contain(self.key_digest(probe))
    }

    /// Whether the filter may contain a key in a range between two keys of eight bytes, the lower one not above the upper one; `None` if the
    /// query needs more.
    #[inline(always)]
    pub(super) fn test_words<const MANY: bool>(
        &self,
        filter: &[u8],
        probe: &RangeProbe<'_>,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        if self.holds_keys || self.seed != probe.seed() {
            return None;
        }
        let bits = filter.get(self.start..self.end)?;
        if (lower ^ upper) & self.mask != 0 {
            return self.test_several::<MANY>(bits, probe, lower, upper);
        }
        probe.add_probes(1);
        let word = lower & self.mask;
        Some(match probe.quick_word_digest(0, word, self.prefix) {
            Some(digest) => self.has::<MANY>(bits, digest),
            None => self.has_prefix(filter, probe),
        })
    }

    /// Whether the filter may contain the prefix of the lower bound.
    #[inline(never)]
    fn has_prefix(&self, filter: &[u8], probe: &RangeProbe<'_>) -> bool {
        self.view(filter).may_contain(probe.lower_prefix_digest(self.seed, self.prefix))
    }

    #[inline(never)]
    fn test_several<const MANY: bool>(
        &self,
        bits: &[u8],
        probe: &RangeProbe<'_>,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        let shift = 64 - self.prefix;
        let further = (upper >> shift) - (lower >> shift);
        if further >= RUN_MAX {
            return None;
        }
        if further >= self.cap {
            return Some(true);
        }
        let mut word = lower & self.mask;
        for index in 0..=further as usize {
            probe.add_probes(1);
            let quick = probe.quick_word_digest(index, word, self.prefix);
            if self.has::<MANY>(bits, quick.unwrap_or_else(|| probe.other_word_digest(word, self.prefix))) {
                return Some(true);
            }
            word = word.wrapping_add(1 << shift);
        }
        Some(false)
    }

    fn key_digest(&self, probe: &Probe<'_>) -> u64 {
        if self.holds_keys { probe.digest(self.seed) } else { probe.prefix_digest(self.seed, self.prefix) }
    }

    /// Whether the filter may contain a byte string.
    #[inline(always)]
    pub(super) fn test_string(&self, filter: &[u8], probe: &Probe<'_>) -> bool {
        if self.string_bytes != 0 && probe.key().len() != usize::from(self.string_bytes) {
            return false;
        }
        probe.add_probes(1);
        self.view(filter).may_contain(self.key_digest(probe))
    }

    /// Prefetches the cache line that [`FastBloom::test_string`] reads first.
    pub(super) fn prefetch(&self, filter: &[u8], probe: &Probe<'_>) {
        self.view(filter).prefetch(self.key_digest(probe));
    }

    /// Whether the filter may contain a string in a range that is no point; `None` if the range has several prefixes.
    #[inline(always)]
    pub(super) fn test_strings(&self, filter: &[u8], probe: &RangeProbe<'_>) -> Option<bool> {
        let (range, bits) = (probe.range(), self.prefix);
        let Bound::Included(lower) = range.lower else { return None };
        let upper = match range.upper {
            Upper::Included(upper) | Upper::Excluded(upper) => upper,
            Upper::Prefix(prefix) if prefix.len() * 8 >= bits as usize => prefix,
            Upper::Prefix(_) | Upper::Open => return None,
        };
        // The least key that is not below a longer bound has another prefix, perhaps.
        let is_longer = self.string_bytes != 0 && lower.len() > usize::from(self.string_bytes);
        if bits > HEAD_BITS || is_longer {
            return None;
        }
        let differing = long_key_head(lower) ^ long_key_head(upper);
        if differing.leading_zeros() < bits {
            return None;
        }
        probe.add_probes(1);
        let digest = probe.lower_prefix_digest(self.seed, bits);
        Some(self.view(filter).may_contain(digest) && !range.is_empty())
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
    fn new(part: &SetPart, second: Option<FastBloom>) -> Option<Self> {
        let start = ENVELOPE_BYTES + part.start;
        let form = match (&part.shape, part.form) {
            (SetShape::EliasFano(shape), SetForm::MarkedEliasFano) => {
                FastForm::Marked(shape.marked_at(start)?)
            }
            (SetShape::Bitmap(shape), _) => FastForm::Bitmap(*shape, start),
            (SetShape::Trie(_) | SetShape::EliasFano(_), _) => return None,
        };
        Some(Self { second, shift: 64 - part.depth, least: part.least, last: part.last, form })
    }

    /// Whether the filter may contain a key; `None` if the query needs more.
    #[inline(always)]
    pub(super) fn test_point<F: FastFilter>(&self, filter: &F, probe: &Probe<'_>, word: u64) -> Option<bool> {
        let has_prefix = self.has_prefix(filter, word, word)?;
        probe.add_probes(1);
        match &self.second {
            Some(second) if has_prefix => Some(second.test_word::<false>(filter.bytes(), probe)),
            _ => Some(has_prefix),
        }
    }

    /// Whether the filter may contain a key from `lower` to `upper`, the bounds of the range; `None` if the query needs more.
    #[inline(always)]
    pub(super) fn test_range<F: FastFilter>(
        &self,
        filter: &F,
        probe: &RangeProbe<'_>,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        let has_prefix = self.has_prefix(filter, lower, upper)?;
        let answer = match &self.second {
            Some(second) if has_prefix => second.test_words::<false>(filter.bytes(), probe, lower, upper)?,
            _ => has_prefix,
        };
        probe.add_probes(1);
        Some(answer)
    }

    /// Whether the set contains the only prefix of a range. `None` for a range of several prefixes if it contains any of them: the general
    /// path finds which.
    #[inline(always)]
    fn has_prefix<F: FastFilter>(&self, filter: &F, lower: u64, upper: u64) -> Option<bool> {
        let prefix = lower >> self.shift;
        if prefix != upper >> self.shift {
            return self.has_several(filter, lower, upper);
        }
        // A prefix below the least one is far above the last one after the subtraction.
        let value = prefix.wrapping_sub(self.least);
        if value > self.last {
            return Some(false);
        }
        let has_bit = self.bit(filter.bytes(), value);
        has_bit.or_else(|| kernel::run(SetTest(filter, u128::from(value) << 64 | u128::from(value))))
    }

    #[inline(never)]
    fn has_several<F: FastFilter>(&self, filter: &F, lower: u64, upper: u64) -> Option<bool> {
        // No prefix is below the least one.
        let (low, high) = (lower >> self.shift, upper >> self.shift);
        let from = low.saturating_sub(self.least);
        let is_inside = high >= self.least && from <= self.last;
        let has_any = is_inside
            && kernel::run(SetTest(filter, u128::from(from) << 64 | u128::from(high - self.least)))?;
        (!has_any).then_some(false)
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
