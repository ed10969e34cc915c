//! Reads filters of this module in place.

use std::fmt;

use tamis_bits::kernel::{self, Portable};

use super::design::{Design, Stage};
use super::fast_path::{FastFilter, FastPart, FastPath, Undecided};
use super::fixed::{closed_words, word};
use super::layout::{FirstPart, NO_PREDICTION, Parts};
use super::query::{PointQuery, Query, RangeQuery};
use super::string_path::StringPath;
use crate::envelope::{self, Envelope};
use crate::{DecodeError, Digester, Family, Filter, KeyRange, Probe, RangeProbe};

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

    /// The fast path for a key.
    #[inline(never)]
    fn test_point(&self, part: &impl FastPart, probe: &Probe<'_>) -> bool {
        let Some(word) = word(probe.key()) else { return self.query_point(probe, false) };
        let answer = part.test(self, probe, word, word);
        answer.unwrap_or_else(|Undecided { is_in_set }| self.query_point(probe, is_in_set))
    }

    /// The fast path for a range.
    #[inline(never)]
    fn test_range(&self, part: &impl FastPart, probe: &RangeProbe<'_>) -> bool {
        let Some((lower, upper)) = closed_words(probe.range()) else { return self.query_range(probe, false) };
        // The digests of a single key are cached in its own probe.
        if lower == upper
            && let Some(point) = probe.point()
        {
            return self.may_contain(point);
        }
        let answer = part.test(self, probe, lower, upper);
        answer.unwrap_or_else(|Undecided { is_in_set }| self.query_range(probe, is_in_set))
    }

    /// The fast path for a byte string. Not inline, because others would save registers for it.
    #[inline(never)]
    fn test_string(&self, path: &StringPath, probe: &Probe<'_>) -> bool {
        path.test_point(self.bytes.as_ref(), probe)
    }

    /// The fast path for a range of byte strings.
    #[inline(never)]
    fn test_strings(&self, path: &StringPath, probe: &RangeProbe<'_>) -> bool {
        if let Some(point) = probe.point() {
            return path.test_point(self.bytes.as_ref(), point);
        }
        let answer = path.test_range(self.bytes.as_ref(), probe);
        answer.unwrap_or_else(|| self.query_range(probe, false))
    }

    /// The fast path for keys of eight bytes, without a probe.
    #[inline(always)]
    fn test_words(&self, digester: &Digester, lower: u64, upper: u64) -> bool {
        let answer = match &self.fast_path {
            FastPath::Set(set) => set.test(self, digester, lower, upper),
            FastPath::Bloom(bloom) => bloom.test(self, digester, lower, upper),
            FastPath::OtherBloom(bloom) => bloom.test(self, digester, lower, upper),
            FastPath::Strings(_) | FastPath::None => Err(Undecided { is_in_set: false }),
        };
        answer.unwrap_or_else(|Undecided { is_in_set }| self.query_words(digester, lower, upper, is_in_set))
    }

    /// The general path for a key.
    #[inline(never)]
    fn query_point(&self, probe: &Probe<'_>, is_in_set: bool) -> bool {
        self.query(is_in_set).is_some_and(|query| kernel::run(PointQuery(query, probe)))
    }

    /// The general path for a range.
    #[inline(never)]
    fn query_range(&self, probe: &RangeProbe<'_>, is_in_set: bool) -> bool {
        let Some(query) = self.query(is_in_set) else { return false };
        if query.parts.fixed.is_none()
            && let Some(point) = probe.point()
        {
            return kernel::run(PointQuery(query, point));
        }
        kernel::run(RangeQuery(query, probe))
    }

    #[inline(always)]
    fn query(&self, is_in_set: bool) -> Option<Query<'_>> {
        let payload = envelope::payload(self.bytes.as_ref());
        let seed = self.envelope.seed;
        self.parts.as_deref().map(|parts| Query { parts, payload, seed, is_in_set, steps: Portable })
    }

    /// [`ProteusFilter::query_point`] for a key without a probe; strings take the fast path.
    #[inline(never)]
    fn query_key(&self, digester: &Digester, key: &[u8], is_in_set: bool) -> bool {
        let probe = Probe::new(key, digester);
        match &self.fast_path {
            FastPath::Strings(path) => self.test_string(path, &probe),
            _ => self.query_point(&probe, is_in_set),
        }
    }

    /// [`ProteusFilter::query_range`] for a range without a probe; strings take the fast path.
    #[inline(never)]
    fn query_key_in(&self, digester: &Digester, range: KeyRange<'_>, is_in_set: bool) -> bool {
        let probe = RangeProbe::new(range, digester);
        match &self.fast_path {
            FastPath::Strings(path) => self.test_strings(path, &probe),
            _ => self.query_range(&probe, is_in_set),
        }
    }

    /// The general path for keys of eight bytes, which are stored only here: the fast path keeps them in registers.
    #[inline(never)]
    fn query_words(&self, digester: &Digester, lower: u64, upper: u64, is_in_set: bool) -> bool {
        let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
        if lower == upper {
            return self.query_key(digester, &lower, is_in_set);
        }
        self.query_key_in(digester, KeyRange::closed(&lower, &upper), is_in_set)
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
            FastPath::Bloom(bloom) => self.test_point(bloom, probe),
            FastPath::OtherBloom(bloom) => self.test_point(bloom, probe),
            FastPath::Set(set) => self.test_point(set, probe),
            FastPath::Strings(path) => self.test_string(path, probe),
            FastPath::None => self.query_point(probe, false),
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        match &self.fast_path {
            FastPath::Bloom(bloom) => self.test_range(bloom, probe),
            FastPath::OtherBloom(bloom) => self.test_range(bloom, probe),
            FastPath::Set(set) => self.test_range(set, probe),
            FastPath::Strings(path) => self.test_strings(path, probe),
            FastPath::None => self.query_range(probe, false),
        }
    }

    #[inline(always)]
    fn may_contain_key(&self, digester: &Digester, key: &[u8]) -> bool {
        match word(key) {
            Some(word) => self.test_words(digester, word, word),
            None => self.query_key(digester, key, false),
        }
    }

    #[inline(always)]
    fn may_contain_key_in(&self, digester: &Digester, range: KeyRange<'_>) -> bool {
        match closed_words(&range) {
            Some((lower, upper)) => self.test_words(digester, lower, upper),
            None => self.query_key_in(digester, range, false),
        }
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        if let FastPath::Strings(path) = &self.fast_path {
            path.prefetch(self.bytes.as_ref(), probe);
        } else if let Some(Parts { first: FirstPart::None, bloom: Some(part), .. }) = self.parts.as_deref()
            && part.holds_keys
        {
            let payload = envelope::payload(self.bytes.as_ref());
            part.view(payload).prefetch(probe.digest(self.envelope.seed));
        }
    }

    fn key_count(&self) -> u64 {
        self.envelope.key_count
    }

    fn encoded_bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn predicted_fpr(&self) -> Option<f64> {
        match &self.parts {
            None => Some(0.0),
            Some(parts) => (parts.predicted != NO_PREDICTION).then(|| f64::from(parts.predicted)),
        }
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

    fn verify(&self) -> Result<(), DecodeError> {
        envelope::verify(&self.envelope, self.bytes.as_ref())
    }
}
