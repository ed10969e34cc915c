//! The most frequent question, by itself: a filter that is one Bloom filter of integers, asked for one prefix.
//!
//! A few dozen steps without a call. All else goes the way of `words.rs`, which gives the same answers.

use super::bloom::BloomView;
use super::design::BloomLayout;
use super::fixed::FixedKeys;
use super::layout::{FirstPart, Parts};
use crate::{Probe, RangeProbe};

/// What the question needs, put together when the filter is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quick {
    fixed: FixedKeys,
    /// Bits of a prefix; shorter than the keys, or all of them.
    prefix: u32,
    holds_keys: bool,
    probe_count: u32,
    start: usize,
    end: usize,
}

impl Quick {
    /// `None` for filters of other parts.
    pub(super) fn new(parts: &Parts) -> Option<Self> {
        let (fixed, bloom) = (parts.fixed?, parts.bloom?);
        let is_one = matches!(parts.first, FirstPart::None) && parts.cap > 0;
        (is_one && bloom.layout == BloomLayout::Spread).then_some(Self {
            fixed,
            prefix: bloom.prefix,
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
        let is_one = lower <= upper && (lower ^ upper).checked_shr(64 - self.prefix).unwrap_or(0) == 0;
        if !is_one || self.holds_keys {
            return None;
        }
        probe.add_probes(1);
        Some(self.has(payload, probe.word_prefix_digest(seed, lower, self.prefix)))
    }
}
