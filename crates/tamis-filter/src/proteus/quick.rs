//! The most frequent questions, by themselves: one or a few prefixes of a Bloom filter of integers, or one of their
//! set.
//!
//! A few dozen steps with one call at most. All else goes the way of `words.rs`, which gives the same answers.

use tamis_bits::{EliasFanoShape, kernel};

use super::bloom::BloomView;
use super::design::BloomLayout;
use super::fixed::FixedKeys;
use super::layout::{FirstPart, Parts, SetPart, SetShape};
use crate::hash::length_mark;
use crate::probe::FRONT_SLOTS;
use crate::{Probe, RangeProbe};

/// What the questions need, put together when the filter is opened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Quick {
    /// One Bloom filter and nothing else.
    Bloom(QuickBloom),
    /// A set of integers in one of their forms, whatever stands behind it.
    Set(FixedKeys),
}

impl Quick {
    /// `None` for filters of other parts.
    pub(super) fn new(parts: &Parts) -> Option<Self> {
        let fixed = parts.fixed?;
        match (&parts.first, &parts.bloom) {
            (FirstPart::None, Some(bloom)) if bloom.layout == BloomLayout::Spread && parts.cap > 0 => {
                Some(Self::Bloom(QuickBloom {
                    fixed,
                    prefix: bloom.prefix,
                    mask: u64::MAX.checked_shl(64 - bloom.prefix).unwrap_or(0),
                    byte_count: bloom.prefix.div_ceil(8),
                    mark: length_mark(bloom.prefix),
                    holds_keys: bloom.prefix == fixed.bit_count(),
                    probe_count: bloom.probe_count,
                    few: parts.cap.min(FRONT_SLOTS as u64),
                    start: bloom.start,
                    end: bloom.start + bloom.length,
                }))
            }
            (FirstPart::Set(SetPart { shape: SetShape::Trie(_), .. }), _) => None,
            (FirstPart::Set(_), _) => Some(Self::Set(fixed)),
            _ => None,
        }
    }

    /// Whether the key may be there; `None` where more is to be asked.
    #[inline(always)]
    pub(super) fn may_contain(
        &self,
        parts: Option<&Parts>,
        payload: &[u8],
        seed: u64,
        probe: &Probe<'_>,
    ) -> Option<bool> {
        match self {
            Self::Bloom(bloom) => Some(bloom.may_contain(payload, seed, probe)),
            Self::Set(fixed) => {
                let word = fixed.point(probe.key())?;
                if QuickSet::new(parts)?.may_contain(payload, word, word)? {
                    return None;
                }
                probe.add_probes(1);
                Some(false)
            }
        }
    }

    /// Whether some key may lie in a range; `None` where that is another question.
    #[inline(always)]
    pub(super) fn may_contain_range(
        &self,
        parts: Option<&Parts>,
        payload: &[u8],
        seed: u64,
        probe: &RangeProbe<'_>,
    ) -> Option<bool> {
        match self {
            Self::Bloom(bloom) => bloom.may_contain_range(payload, seed, probe),
            Self::Set(fixed) => {
                let (lower, upper) = fixed.closed(probe.range())?;
                if lower > upper || QuickSet::new(parts)?.may_contain(payload, lower, upper)? {
                    return None;
                }
                probe.add_probes(1);
                Some(false)
            }
        }
    }
}

/// A Bloom filter of prefixes of integers, its bits spread.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuickBloom {
    fixed: FixedKeys,
    /// Bits of a prefix; shorter than the keys, or all of them.
    prefix: u32,
    /// Those bits, the bytes that they fill, and the mark of their digests.
    mask: u64,
    byte_count: u32,
    mark: u64,
    holds_keys: bool,
    probe_count: u32,
    /// Most prefixes that are asked for here.
    few: u64,
    start: usize,
    end: usize,
}

impl QuickBloom {
    #[inline(always)]
    fn has(&self, payload: &[u8], digest: u64) -> bool {
        let bytes = payload.get(self.start..self.end).unwrap_or_default();
        BloomView { bytes, layout: BloomLayout::Spread, probe_count: self.probe_count }.has_spread(digest)
    }

    #[inline(always)]
    fn may_contain(&self, payload: &[u8], seed: u64, probe: &Probe<'_>) -> bool {
        if self.fixed.point(probe.key()).is_none() {
            return false;
        }
        probe.add_probes(1);
        let digest =
            if self.holds_keys { probe.digest(seed) } else { probe.prefix_digest(seed, self.prefix) };
        self.has(payload, digest)
    }

    #[inline(always)]
    fn may_contain_range(&self, payload: &[u8], seed: u64, probe: &RangeProbe<'_>) -> Option<bool> {
        let (lower, upper) = self.fixed.closed(probe.range())?;
        if lower > upper || self.holds_keys {
            return None;
        }
        let word = lower & self.mask;
        if (lower ^ upper) & self.mask != 0 {
            return self.has_few(payload, seed, probe, (word, upper));
        }
        probe.add_probes(1);
        let digest = probe.masked_word_digest(seed, word, self.prefix, |digester| {
            digester.short_digest(word, self.byte_count) ^ self.mark
        });
        Some(self.has(payload, digest))
    }

    /// A few prefixes for a query that no filter was asked for before.
    #[inline(always)]
    fn has_few(
        &self,
        payload: &[u8],
        seed: u64,
        probe: &RangeProbe<'_>,
        (mut word, upper): (u64, u64),
    ) -> Option<bool> {
        let shift = 64 - self.prefix;
        let count = ((upper >> shift) - (word >> shift)).saturating_add(1);
        if count > self.few || !probe.is_fresh(seed) {
            return None;
        }
        for number in 0..count {
            let digest = probe.digester().short_digest(word, self.byte_count) ^ self.mark;
            probe.remember(number as usize, word, self.prefix, digest);
            if self.has(payload, digest) {
                probe.add_probes(number as u32 + 1);
                return Some(true);
            }
            word = word.wrapping_add(1 << shift);
        }
        probe.add_probes(count as u32);
        Some(false)
    }
}

/// Elias-Fano numbers or a bitmap.
#[derive(Debug, Clone, Copy)]
struct QuickSet<'a>(&'a SetPart);

impl<'a> QuickSet<'a> {
    #[inline(always)]
    fn new(parts: Option<&'a Parts>) -> Option<Self> {
        match &parts?.first {
            FirstPart::Set(part) => Some(Self(part)),
            _ => None,
        }
    }

    /// Whether the one prefix that two words share may be in the set; `None` where they do not share it, unless both lie beside
    /// the set.
    #[inline(always)]
    fn may_contain(&self, payload: &[u8], lower: u64, upper: u64) -> Option<bool> {
        let SetPart { depth, start, least, last, .. } = *self.0;
        let shift = 64 - depth;
        let (low, high) = (lower >> shift, upper >> shift);
        if high < least || low.saturating_sub(least) > last {
            return Some(false);
        }
        if low != high {
            return None;
        }
        let bytes = payload.get(start..).unwrap_or_default();
        match &self.0.shape {
            SetShape::EliasFano(shape) => Some(kernel::run(Contains { shape, bytes, value: low - least })),
            SetShape::Bitmap(shape) => Some(shape.view(bytes)?.bits().get(low - least)),
            SetShape::Trie(_) => None,
        }
    }
}

/// The question to Elias-Fano numbers, compiled for the processor.
struct Contains<'a> {
    shape: &'a EliasFanoShape,
    bytes: &'a [u8],
    value: u64,
}

impl kernel::Task for Contains<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> bool {
        self.shape.contains_in(steps, self.bytes, self.value)
    }
}
