//! The most frequent questions, by themselves: one or a few prefixes of a Bloom filter of integers, or one of their
//! set.
//!
//! A few dozen steps with one call at most. All else goes the way of `words.rs`, which gives the same answers.

use tamis_bits::kernel::Steps;
use tamis_bits::{BitmapShape, MarkedEliasFano, key_head};

use super::batch::closed_words;
use super::bloom::{BloomView, LEAST_TOGETHER, has_many_spread};
use super::design::{BloomLayout, SetForm};
use super::fixed::FixedKeys;
use super::layout::{FirstPart, Parts, SetShape};
use crate::envelope::ENVELOPE_BYTES;
use crate::hash::length_mark;
use crate::probe::FRONT_SLOTS;
use crate::{Digester, Probe, RangeProbe};

/// A Bloom filter and nothing else; `None` for filters of other parts.
pub(super) fn bloom_alone(parts: &Parts) -> Option<QuickBloom> {
    if matches!(parts.first, FirstPart::None) { QuickBloom::new(parts) } else { None }
}

/// A Bloom filter of prefixes of integers, its bits spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuickBloom {
    fixed: FixedKeys,
    /// Bits of a prefix; shorter than the keys, or all of them.
    prefix: u32,
    /// Those bits, and the bytes that they fill.
    mask: u64,
    byte_count: u32,
    holds_keys: bool,
    probe_count: u32,
    start: usize,
    end: usize,
}

impl QuickBloom {
    /// `None` where prefixes lie in lines, or are none of integers.
    fn new(parts: &Parts) -> Option<Self> {
        let (fixed, bloom) = (parts.fixed?, parts.bloom?);
        (bloom.layout == BloomLayout::Spread && parts.cap > 0).then(|| Self {
            fixed,
            prefix: bloom.prefix,
            mask: u64::MAX.checked_shl(64 - bloom.prefix).unwrap_or(0),
            byte_count: bloom.prefix.div_ceil(8),
            holds_keys: bloom.prefix == fixed.bit_count(),
            probe_count: bloom.probe_count,
            start: bloom.start,
            end: bloom.start + bloom.length,
        })
    }

    #[inline(always)]
    fn has(&self, payload: &[u8], digest: u64) -> bool {
        let bytes = payload.get(self.start..self.end).unwrap_or_default();
        BloomView { bytes, layout: BloomLayout::Spread, probe_count: self.probe_count }.has_spread(digest)
    }

    /// Whether the key may be there.
    #[inline(always)]
    pub(super) fn may_contain(&self, payload: &[u8], seed: u64, probe: &Probe<'_>) -> bool {
        if self.fixed.point(probe.key()).is_none() {
            return false;
        }
        probe.add_probes(1);
        let digest =
            if self.holds_keys { probe.digest(seed) } else { probe.prefix_digest(seed, self.prefix) };
        self.has(payload, digest)
    }

    /// Whether some key may lie in a range; `None` where that is another question.
    #[inline(always)]
    pub(super) fn may_contain_range(
        &self,
        payload: &[u8],
        seed: u64,
        probe: &RangeProbe<'_>,
    ) -> Option<bool> {
        let (lower, upper) = self.fixed.closed(probe.range())?;
        if lower > upper || self.holds_keys {
            return None;
        }
        let word = lower & self.mask;
        if (lower ^ upper) & self.mask != 0 {
            return None;
        }
        probe.add_probes(1);
        let digest = probe.masked_word_digest(seed, word, self.prefix, |digester| {
            digester.short_digest(word, self.byte_count) ^ length_mark(self.prefix)
        });
        Some(self.has(payload, digest))
    }
}

/// What is asked without a step that could be left out.
///
/// Which it is has a byte of its own: told by what is in it, it would take more steps than some answers.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum First {
    Bloom(FirstBloom),
    Set(FirstSet),
    /// Nothing.
    None,
}

impl First {
    pub(super) fn new(parts: Option<&Parts>) -> Self {
        let Some(parts) = parts else { return Self::None };
        let bloom = bloom_alone(parts).and_then(|bloom| FirstBloom::new(bloom, parts.cap));
        // A prefix of so few bits that all of them are looked at one by one is asked for in another way.
        let bloom = bloom.filter(|bloom| bloom.probe_count >= LEAST_TOGETHER).map(Self::Bloom);
        bloom.or_else(|| FirstSet::new(parts).map(Self::Set)).unwrap_or(Self::None)
    }

    /// The set, where it is one of marked integers.
    #[inline(always)]
    pub(super) const fn marked_set(&self) -> Option<&MarkedEliasFano> {
        match self {
            Self::Set(FirstSet { form: QuickForm::Marked(set), .. }) => Some(set),
            _ => None,
        }
    }
}

/// One Bloom filter of prefixes of keys of eight bytes and nothing else, asked for one prefix, or a few, by a query that no filter was asked
/// for before. What a question needs lies together, and there is nothing to choose on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstBloom {
    mask: u64,
    /// What the digests of the prefixes are marked with: those of whole keys are digests of keys.
    mark: u64,
    /// Where the bits lie in the whole filter.
    start: usize,
    end: usize,
    prefix: u32,
    probe_count: u32,
    byte_count: u8,
    holds_keys: bool,
    /// Most prefixes that are asked for here, for one question of a batch, and at all.
    few: u8,
    batch_few: u8,
    cap: u64,
}

/// Prefixes of one length that a range touches, at the high ends of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touched {
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) count: u64,
}

/// Most prefixes of one question of a batch; more of them make a batch by themselves.
const BATCH_FEW: u64 = 16;

impl FirstBloom {
    /// `None` for keys of another length.
    fn new(bloom: QuickBloom, cap: u64) -> Option<Self> {
        let QuickBloom { fixed, prefix, mask, byte_count, holds_keys, probe_count, .. } = bloom;
        (fixed.byte_count == 8).then_some(Self {
            mask,
            mark: if holds_keys { 0 } else { length_mark(prefix) },
            start: ENVELOPE_BYTES + bloom.start,
            end: ENVELOPE_BYTES + bloom.end,
            prefix,
            byte_count: byte_count as u8,
            probe_count,
            holds_keys,
            few: cap.min(FRONT_SLOTS as u64) as u8,
            batch_few: cap.min(BATCH_FEW) as u8,
            cap,
        })
    }

    /// The bits of the Bloom filter.
    #[inline(always)]
    pub(super) fn bits<'a>(&self, filter: &'a [u8]) -> &'a [u8] {
        filter.get(self.start..self.end).unwrap_or_default()
    }

    /// Bits that a prefix sets.
    pub(super) const fn probe_count(&self) -> u32 {
        self.probe_count
    }

    /// How many prefixes lie from one word to another, which is not smaller.
    #[inline(always)]
    const fn count(&self, lower: u64, upper: u64) -> u64 {
        let shift = 64 - self.prefix;
        ((upper >> shift) - (lower >> shift)).saturating_add(1)
    }

    /// Whether a range touches more prefixes than are ever asked for: it may hold a key then.
    #[inline(always)]
    pub(super) const fn is_beyond_cap(&self, lower: u64, upper: u64) -> bool {
        self.count(lower, upper) > self.cap
    }

    /// The prefixes from one word to another, which is not smaller; `None` where they are too many for a batch.
    #[inline(always)]
    pub(super) fn prefixes(&self, lower: u64, upper: u64) -> Option<Touched> {
        let (shift, count) = (64 - self.prefix, self.count(lower, upper));
        let first = lower & self.mask;
        (count <= u64::from(self.batch_few)).then_some(Touched { first, step: 1 << shift, count })
    }

    /// What the digests of the prefixes are marked with.
    pub(super) const fn digest_mark(&self) -> u64 {
        self.mark
    }

    /// Bytes of a prefix.
    pub(super) const fn byte_count(&self) -> u8 {
        self.byte_count
    }

    /// Whether the key may be there; `None` where there is more to it.
    #[inline(always)]
    pub(super) fn may_contain(&self, filter: &[u8], seed: u64, probe: &Probe<'_>) -> Option<bool> {
        let bits = filter.get(self.start..self.end)?;
        let key: &[u8; 8] = probe.key().try_into().ok()?;
        let digest = if self.holds_keys {
            probe.first_digest(seed, key)?
        } else if probe.is_first_prefix(seed) {
            let digest = self.digest(probe.digester(), key_head(key) & self.mask);
            probe.remember_first_prefix(self.prefix, digest);
            digest
        } else {
            return None;
        };
        Some(has_many_spread(bits, self.probe_count, digest))
    }

    /// Whether some key may lie in a range that touches one prefix or a few; `None` where there is more to it.
    #[inline(always)]
    pub(super) fn may_contain_range(&self, filter: &[u8], seed: u64, probe: &RangeProbe<'_>) -> Option<bool> {
        let (lower, upper) = closed_words(probe.range())?;
        // Of whole keys it would be one key, which has a digest of its own kind.
        if lower > upper || self.holds_keys || !probe.is_fresh(seed) {
            return None;
        }
        let bits = filter.get(self.start..self.end)?;
        let word = lower & self.mask;
        if (lower ^ upper) & self.mask != 0 {
            return self.has_few(bits, probe, word, upper);
        }
        let digest = self.digest(probe.digester(), word);
        probe.remember_first(word, self.prefix, digest);
        Some(has_many_spread(bits, self.probe_count, digest))
    }

    /// Whether some key may lie between two, for a question that nothing is remembered of; `None` where there is more to it.
    #[inline(always)]
    pub(super) fn has_between(
        &self,
        filter: &[u8],
        digester: &Digester,
        lower: u64,
        upper: u64,
    ) -> Option<bool> {
        let bits = filter.get(self.start..self.end)?;
        if lower > upper || (lower ^ upper) & self.mask != 0 {
            return self.has_several(bits, digester, lower, upper);
        }
        Some(self.has(bits, digester, lower & self.mask))
    }

    #[inline(always)]
    fn has(&self, bits: &[u8], digester: &Digester, word: u64) -> bool {
        let digest = self.digest(digester, word);
        BloomView { bytes: bits, layout: BloomLayout::Spread, probe_count: self.probe_count }
            .has_spread(digest)
    }

    #[inline(never)]
    fn has_several(&self, bits: &[u8], digester: &Digester, lower: u64, upper: u64) -> Option<bool> {
        if lower > upper {
            return Some(false);
        }
        if self.is_beyond_cap(lower, upper) {
            return Some(true);
        }
        let Touched { first, step, count } = self.prefixes(lower, upper)?;
        Some((0..count).any(|number| self.has(bits, digester, first.wrapping_add(number * step))))
    }

    /// A few prefixes.
    #[inline(never)]
    fn has_few(&self, bits: &[u8], probe: &RangeProbe<'_>, mut word: u64, upper: u64) -> Option<bool> {
        let (shift, count) = (64 - self.prefix, self.count(word, upper));
        if count > u64::from(self.few) {
            return None;
        }
        for number in 0..count {
            let digest = self.digest(probe.digester(), word);
            probe.remember(number as usize, word, self.prefix, digest);
            if has_many_spread(bits, self.probe_count, digest) {
                probe.add_probes(number as u32 + 1);
                return Some(true);
            }
            word = word.wrapping_add(1 << shift);
        }
        probe.add_probes(count as u32);
        Some(false)
    }

    #[inline(always)]
    fn digest(&self, digester: &Digester, word: u64) -> u64 {
        digester.short_digest(word, u32::from(self.byte_count)) ^ self.mark
    }
}

/// What a set of integers says before anything of it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Beside all of its prefixes.
    Beside,
    /// One prefix, counted from the least one.
    Prefix(u64),
    /// From one of them to another.
    Several(u64, u64),
    /// Some of them before the least one, or bounds in the wrong order.
    Other,
}

/// A set of integers in one of the forms that are asked in a few steps, whatever stands behind it. What a question needs lies together.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstSet {
    pub(super) fixed: FixedKeys,
    /// The Bloom filter behind the set, where its bits are spread.
    below: Option<FirstBloom>,
    shift: u32,
    /// The least prefix, and how far the greatest lies above it.
    least: u64,
    last: u64,
    form: QuickForm,
}

/// Where a set lies in the whole filter.
#[derive(Debug, Clone, Copy)]
enum QuickForm {
    Marked(MarkedEliasFano),
    /// With its first byte.
    Bitmap(BitmapShape, usize),
}

impl FirstSet {
    fn new(parts: &Parts) -> Option<Self> {
        let fixed = parts.fixed?;
        let FirstPart::Set(part) = &parts.first else { return None };
        let start = ENVELOPE_BYTES + part.start;
        let form = match (&part.shape, part.form) {
            (SetShape::EliasFano(shape), SetForm::MarkedEliasFano) => {
                QuickForm::Marked(shape.marked_at(start)?)
            }
            (SetShape::Bitmap(shape), _) => QuickForm::Bitmap(*shape, start),
            (SetShape::Trie(_) | SetShape::EliasFano(_), _) => return None,
        };
        let below = QuickBloom::new(parts).and_then(|bloom| FirstBloom::new(bloom, parts.cap));
        Some(Self { fixed, below, shift: 64 - part.depth, least: part.least, last: part.last, form })
    }

    /// The Bloom filter behind the set, where its bits are spread.
    pub(super) const fn below(&self) -> Option<&FirstBloom> {
        self.below.as_ref()
    }

    /// Whether the keys have eight bytes.
    pub(super) const fn are_words(&self) -> bool {
        self.fixed.byte_count == 8
    }

    /// The only prefix from one word to another, counted from the least one and beyond all where it lies before that; `None` where there
    /// are several, or keys of another length.
    #[inline(always)]
    pub(super) fn only_prefix(&self, lower: u64, upper: u64) -> Option<u64> {
        let prefix = lower >> self.shift;
        (prefix == upper >> self.shift && self.are_words()).then(|| prefix.wrapping_sub(self.least))
    }

    /// Whether a prefix that is counted from the least one lies beside all of the set.
    #[inline(always)]
    pub(super) const fn is_beside(&self, value: u64) -> bool {
        value > self.last
    }

    /// Where the prefixes from one word to another lie.
    #[inline(always)]
    pub(super) fn place(&self, lower: u64, upper: u64) -> Place {
        let (low, high) = (lower >> self.shift, upper >> self.shift);
        // Those before the least one lie far behind the greatest so.
        let (from, to) = (low.wrapping_sub(self.least), high.wrapping_sub(self.least));
        if lower > upper {
            Place::Other
        } else if low == high {
            if from <= self.last { Place::Prefix(from) } else { Place::Beside }
        } else if high < self.least || (low >= self.least && from > self.last) {
            Place::Beside
        } else if low > self.least {
            Place::Several(from, to)
        } else {
            Place::Other
        }
    }

    /// Whether a prefix, counted from the least one, is in the set; `None` where that takes more than a few steps to know.
    #[inline(always)]
    pub(super) fn contains<S: Steps>(&self, steps: S, filter: &[u8], value: u64) -> Option<bool> {
        match &self.form {
            QuickForm::Marked(set) => set.contains_in(steps, filter, value),
            QuickForm::Bitmap(..) => self.bit(filter, value),
        }
    }

    /// Whether a prefix is in a set that is a bitmap; `None` where it is none.
    #[inline(always)]
    pub(super) fn bit(&self, filter: &[u8], value: u64) -> Option<bool> {
        let QuickForm::Bitmap(_, start) = &self.form else { return None };
        let byte = filter.get(start.checked_add((value / 8) as usize)?)?;
        Some(byte >> (value % 8) & 1 == 1)
    }

    /// Whether the set has the only prefix from one word to another; `false` where it has none of several, and `None` where that takes more
    /// than a few steps to know: which of several is there would be another question.
    #[inline(always)]
    pub(super) fn is_there<S: Steps>(&self, steps: S, filter: &[u8], lower: u64, upper: u64) -> Option<bool> {
        match self.place(lower, upper) {
            Place::Beside => Some(false),
            Place::Prefix(value) => self.contains(steps, filter, value),
            Place::Several(from, to) => {
                self.is_free(steps, filter, from, to).filter(|is_free| *is_free).map(|_| false)
            }
            Place::Other => None,
        }
    }

    /// Whether the set has no prefix from one to another, which is not smaller; `None` where that takes more than a few steps to know.
    #[inline(always)]
    pub(super) fn is_free<S: Steps>(&self, steps: S, filter: &[u8], from: u64, to: u64) -> Option<bool> {
        match &self.form {
            QuickForm::Marked(set) => set.is_free_in(steps, filter, from, to),
            QuickForm::Bitmap(shape, start) => {
                let set = shape.view(filter.get(*start..)?)?;
                Some(!set.has_between(from, to))
            }
        }
    }

    /// [`FirstSet::is_free`] for the pairs of prefixes of one batch, and what is told for the number of each.
    #[inline(always)]
    pub(super) fn are_free<S: Steps>(
        &self,
        steps: S,
        filter: &[u8],
        pairs: &[(u64, u64)],
        mut tell: impl FnMut(usize, Option<bool>),
    ) {
        if let QuickForm::Marked(set) = &self.form {
            set.are_free_in(steps, filter, pairs, tell);
            return;
        }
        for (number, (from, to)) in pairs.iter().enumerate() {
            let is_there = if from == to { self.contains(steps, filter, *from) } else { None };
            tell(number, is_there.map(|is_there| !is_there));
        }
    }
}
