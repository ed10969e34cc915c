//! The fast path of filters of byte strings that have one Bloom filter: points, and ranges within one prefix.
//!
//! It returns the answers of `query.rs`, or none if a range needs more. A prefix of at most 128 bits is compared in registers, and its digest is
//! cached in the probe for the filters of other tables.

use std::ops::Bound;

use tamis_bits::long_key_head;

use super::bloom::BloomView;
use super::design::WHOLE_KEYS;
use super::layout::{BloomPart, FirstPart, Parts};
use crate::bit_string::HEAD_BITS;
use crate::envelope;
use crate::{Probe, RangeProbe, Upper};

/// The Bloom filter, and the keys that it may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringPath {
    part: BloomPart,
    seed: u64,
    /// The length of all keys, 0 if lengths differ.
    string_bytes: u16,
}

impl StringPath {
    pub(super) fn new(parts: &Parts, seed: u64) -> Option<Self> {
        let part = parts.bloom.filter(|part| part.prefix <= HEAD_BITS || part.prefix == WHOLE_KEYS)?;
        let is_alone = parts.fixed.is_none() && matches!(parts.first, FirstPart::None) && parts.cap > 0;
        is_alone.then_some(Self { part, seed, string_bytes: parts.string_bytes })
    }

    #[inline(always)]
    fn view<'a>(&self, filter: &'a [u8]) -> BloomView<'a> {
        self.part.view(envelope::payload(filter))
    }

    /// Whether the filter may contain a key.
    #[inline(always)]
    pub(super) fn test_point(&self, filter: &[u8], probe: &Probe<'_>) -> bool {
        if self.string_bytes != 0 && probe.key().len() != usize::from(self.string_bytes) {
            return false;
        }
        probe.add_probes(1);
        self.view(filter).may_contain(self.part.key_digest(self.seed, probe))
    }

    /// Prefetches the cache line that [`StringPath::test_point`] reads first.
    #[inline(always)]
    pub(super) fn prefetch(&self, filter: &[u8], probe: &Probe<'_>) {
        self.view(filter).prefetch(self.part.key_digest(self.seed, probe));
    }

    /// Whether the filter may contain a key in a range that is no point; `None` if the range has several prefixes.
    #[inline(always)]
    pub(super) fn test_range(&self, filter: &[u8], probe: &RangeProbe<'_>) -> Option<bool> {
        let (range, bits) = (probe.range(), self.part.prefix);
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
