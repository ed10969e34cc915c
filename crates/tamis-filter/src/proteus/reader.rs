//! Reads filters of this module in place.

use std::fmt;

use tamis_bits::kernel::{self, Portable};

use super::design::{Design, Stage};
use super::fast_path::{FastBloom, FastFilter, FastPath, FastSet};
use super::layout::{FirstPart, Parts};
use super::query::{PointQuery, Query, RangeQuery};
use crate::envelope::{self, Envelope};
use crate::filter::envelope_methods;
use crate::fixed_keys::{closed_words, word};
use crate::{DecodeError, Family, Filter, Probe, RangeProbe};

/// A filter of [`Family::Proteus`], [`Family::OnePrefixBloom`] or [`Family::TwoPrefixBloom`].
#[derive(Debug, Clone)]
pub struct ProteusFilter<D> {
    bytes: D,
    envelope: Envelope,
    family: Family,
    /// `None` without keys.
    parts: Option<Box<Parts>>,
    fast_path: FastPath,
}

impl<D: AsRef<[u8]>> ProteusFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let family = Family::from_number(envelope.family)?;
        let payload = envelope::payload(bytes.as_ref());
        let parts = if envelope.key_count == 0 {
            if !payload.is_empty() {
                return Err(DecodeError::Field { field: "payload_bytes", got: envelope.payload_bytes });
            }
            envelope::check_reserved(&envelope.parameters, 0)?;
            None
        } else {
            Some(Box::new(Parts::read(family, &envelope.parameters, payload)?))
        };
        let fast_path = FastPath::new(parts.as_deref(), envelope.seed);
        Ok(Self { bytes, envelope, family, parts, fast_path })
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The parts of the filter; `None` without keys.
    pub fn parts_design(&self) -> Option<Design> {
        let parts = self.parts.as_ref()?;
        let first = match &parts.first {
            FirstPart::None => Stage::None,
            FirstPart::Set(set) => Stage::Set { depth: set.depth, form: set.form },
            FirstPart::Bloom(first) => {
                let second = parts.bloom.map_or(0, |bloom| bloom.length);
                let share = first.length as f64 / (first.length + second).max(1) as f64;
                Stage::Bloom { depth: first.prefix, share }
            }
        };
        let layout = parts.bloom.map_or(super::BloomLayout::Spread, |bloom| bloom.layout);
        Some(Design { first, prefix: parts.bloom.map_or(0, |bloom| bloom.prefix), layout })
    }

    /// The fast path for a key of eight bytes. Not inline, so that each form of the fast path saves only its own registers.
    #[inline(never)]
    fn test_word<const MANY: bool>(&self, bloom: &FastBloom, probe: &Probe<'_>) -> bool {
        bloom.test_word::<MANY>(self.bytes.as_ref(), probe)
    }

    #[inline(never)]
    fn test_point_in_set(&self, set: &FastSet, probe: &Probe<'_>) -> bool {
        let answer = word(probe.key()).and_then(|word| set.test_point(self, probe, word));
        answer.unwrap_or_else(|| self.query_point(probe))
    }

    /// The fast path for a range between keys of eight bytes.
    #[inline(never)]
    fn test_words(
        &self,
        probe: &RangeProbe<'_>,
        test: impl FnOnce(&Self, &RangeProbe<'_>, u64, u64) -> Option<bool>,
    ) -> bool {
        let Some((lower, upper)) = closed_words(probe.range()) else { return self.query_range(probe) };
        if lower >= upper {
            // The digests of a single key are cached in its own probe.
            return probe.point().is_some_and(|point| self.may_contain(point));
        }
        test(self, probe, lower, upper).unwrap_or_else(|| self.query_range(probe))
    }

    /// The fast path for a byte string.
    #[inline(never)]
    fn test_string(&self, bloom: &FastBloom, probe: &Probe<'_>) -> bool {
        bloom.test_string(self.bytes.as_ref(), probe)
    }

    #[inline(never)]
    fn test_strings(&self, bloom: &FastBloom, probe: &RangeProbe<'_>) -> bool {
        if let Some(point) = probe.point() {
            return bloom.test_string(self.bytes.as_ref(), point);
        }
        bloom.test_strings(self.bytes.as_ref(), probe).unwrap_or_else(|| self.query_range(probe))
    }

    /// The general path for a key.
    #[inline(never)]
    fn query_point(&self, probe: &Probe<'_>) -> bool {
        self.query().is_some_and(|query| kernel::run(PointQuery(query, probe)))
    }

    /// The general path for a range.
    #[inline(never)]
    fn query_range(&self, probe: &RangeProbe<'_>) -> bool {
        let Some(query) = self.query() else { return false };
        if query.parts.fixed.is_none()
            && let Some(point) = probe.point()
        {
            return kernel::run(PointQuery(query, point));
        }
        kernel::run(RangeQuery(query, probe))
    }

    #[inline(always)]
    fn query(&self) -> Option<Query<'_>> {
        let payload = envelope::payload(self.bytes.as_ref());
        let seed = self.envelope.seed;
        self.parts.as_deref().map(|parts| Query { parts, payload, seed, steps: Portable })
    }

    /// A copy that uses the general path only.
    #[cfg(test)]
    pub(super) fn without_fast_path(&self) -> Self
    where
        D: Clone,
    {
        Self { fast_path: FastPath::None, ..self.clone() }
    }
}

impl<D: AsRef<[u8]>> FastFilter for ProteusFilter<D> {
    #[inline(always)]
    fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<D: AsRef<[u8]>> Filter for ProteusFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match &self.fast_path {
            FastPath::Words(bloom) => self.test_word::<true>(bloom, probe),
            FastPath::OtherWords(bloom) => self.test_word::<false>(bloom, probe),
            FastPath::Strings(bloom) => self.test_string(bloom, probe),
            FastPath::Set(set) => self.test_point_in_set(set, probe),
            FastPath::None => self.query_point(probe),
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        match &self.fast_path {
            FastPath::Words(bloom) => self.test_words(probe, |own, probe, lower, upper| {
                bloom.test_words::<true>(own.bytes(), probe, lower, upper)
            }),
            FastPath::OtherWords(bloom) => self.test_words(probe, |own, probe, lower, upper| {
                bloom.test_words::<false>(own.bytes(), probe, lower, upper)
            }),
            FastPath::Strings(bloom) => self.test_strings(bloom, probe),
            FastPath::Set(set) => {
                self.test_words(probe, |own, probe, lower, upper| set.test_range(own, probe, lower, upper))
            }
            FastPath::None => self.query_range(probe),
        }
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        if let FastPath::Strings(bloom) = &self.fast_path {
            bloom.prefetch(self.bytes.as_ref(), probe);
        } else if let Some(Parts { first: FirstPart::None, bloom: Some(part), .. }) = self.parts.as_deref()
            && part.holds_keys
        {
            let payload = envelope::payload(self.bytes.as_ref());
            part.view(payload).prefetch(probe.digest(self.envelope.seed));
        }
    }

    envelope_methods!(self, self.envelope);

    fn predicted_fpr(&self) -> Option<f64> {
        self.parts.as_ref().map_or(Some(0.0), |parts| parts.predicted)
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        let (Some(parts), Some(design)) = (&self.parts, self.parts_design()) else {
            return target.write_str("no keys");
        };
        if design.prefix == 0 && design.first == Stage::None {
            return target.write_str("nothing: the budget is too small");
        }
        write!(target, "{design}")?;
        if let Some(bloom) = &parts.bloom {
            write!(target, ", {} bytes, {} bits set by a prefix", bloom.length, bloom.probe_count)?;
        }
        write!(target, "; at most {} tests", parts.cap)
    }
}
