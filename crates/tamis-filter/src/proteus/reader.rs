//! Reads filters of this module in place.

use std::fmt;

use tamis_bits::kernel;

use super::batch::{BATCH, Questions};
use super::design::{Design, Stage, WHOLE_KEYS};
use super::fixed::FixedKeys;
use super::layout::{FirstPart, NO_PREDICTION, Parts};
use super::quick::{First, FirstBloom, FirstSet, Place, QuickBloom, bloom_alone};
use super::walk::{PointWalk, RangeWalk, View};
use super::words::{BelowWalk, WordView};
use crate::envelope::{self, Envelope};
use crate::{DecodeError, Digester, Family, Filter, KeyRange, Probe, RangeProbe};

/// A filter of [`Family::Proteus`], [`Family::OnePrefixBloom`] or [`Family::TwoPrefixBloom`].
#[derive(Debug, Clone)]
pub struct ProteusFilter<D> {
    bytes: D,
    envelope: Envelope,
    family: Family,
    /// `None` without keys.
    parts: Option<Parts>,
    /// Where there is a Bloom filter of integers and nothing else.
    bloom: Option<QuickBloom>,
    first: First,
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
            Some(Parts::read(family, &envelope.parameters, payload)?)
        };
        let bloom = parts.as_ref().and_then(bloom_alone);
        let first = First::new(parts.as_ref());
        Ok(Self { bytes, envelope, family, parts, bloom, first })
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// What the filter is made of; `None` without keys.
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

    #[inline(never)]
    fn may_contain_otherwise(&self, probe: &Probe<'_>) -> bool {
        if let Some(bloom) = &self.bloom {
            return bloom.may_contain(envelope::payload(self.bytes.as_ref()), self.envelope.seed, probe);
        }
        let Some(view) = self.view() else { return false };
        kernel::run(PointWalk(view, probe))
    }

    #[inline(never)]
    fn may_contain_range_otherwise(&self, probe: &RangeProbe<'_>) -> bool {
        let payload = envelope::payload(self.bytes.as_ref());
        if let Some(bloom) = &self.bloom
            && let Some(answer) = bloom.may_contain_range(payload, self.envelope.seed, probe)
        {
            return answer;
        }
        let Some(view) = self.view() else { return false };
        if view.parts.fixed.is_none()
            && let Some(point) = probe.point()
        {
            return kernel::run(PointWalk(view, point));
        }
        kernel::run(RangeWalk(view, probe))
    }

    /// A Bloom filter and nothing else.
    #[inline(never)]
    fn bloom_may_contain(&self, bloom: &FirstBloom, probe: &Probe<'_>) -> bool {
        let answer = bloom.may_contain(self.bytes.as_ref(), self.envelope.seed, probe);
        answer.unwrap_or_else(|| self.may_contain_otherwise(probe))
    }

    #[inline(never)]
    fn bloom_may_contain_range(&self, bloom: &FirstBloom, probe: &RangeProbe<'_>) -> bool {
        let answer = bloom.may_contain_range(self.bytes.as_ref(), self.envelope.seed, probe);
        answer.unwrap_or_else(|| self.may_contain_range_otherwise(probe))
    }

    /// A set of integers, and perhaps a Bloom filter behind it.
    #[inline(never)]
    fn set_may_contain(&self, set: &FirstSet, probe: &Probe<'_>) -> bool {
        let Some(word) = set.fixed.point(probe.key()) else { return false };
        probe.add_probes(1);
        let Place::Prefix(value) = set.place(word, word) else { return false };
        set.may_contain(self.parts.as_ref(), self.bytes.as_ref(), value)
            && self.may_contain_below(set.fixed, probe)
    }

    #[inline(never)]
    fn set_may_contain_range(&self, set: &FirstSet, probe: &RangeProbe<'_>) -> bool {
        // One key has a probe of its own.
        let Some((lower, upper)) = set.fixed.closed(probe.range()).filter(|(lower, upper)| lower < upper)
        else {
            return self.may_contain_range_otherwise(probe);
        };
        let is_there = match set.place(lower, upper) {
            Place::Beside => false,
            Place::Prefix(value) => set.may_contain(self.parts.as_ref(), self.bytes.as_ref(), value),
            Place::Several(from, to)
                if set.is_surely_free(self.parts.as_ref(), self.bytes.as_ref(), from, to) =>
            {
                false
            }
            Place::Several(..) | Place::Other => return self.may_contain_range_otherwise(probe),
        };
        probe.add_probes(1);
        is_there && self.may_contain_range_below(set.fixed, probe, lower, upper)
    }

    /// Behind a set that has the key's prefix.
    #[inline(never)]
    fn may_contain_below(&self, fixed: FixedKeys, probe: &Probe<'_>) -> bool {
        self.view().is_none_or(|view| WordView { view, fixed }.has_below_point(probe))
    }

    /// Behind a set that has the one prefix of a range.
    #[inline(never)]
    fn may_contain_range_below(
        &self,
        fixed: FixedKeys,
        probe: &RangeProbe<'_>,
        lower: u64,
        upper: u64,
    ) -> bool {
        let Some(view) = self.view() else { return true };
        kernel::run(BelowWalk { words: WordView { view, fixed }, probe, lower, upper })
    }

    /// Questions of one batch; `each` asks for one of them by itself.
    #[inline(always)]
    fn ask_batch(
        &self,
        digester: &Digester,
        questions: impl Questions,
        answers: &mut [bool],
        each: impl Fn(usize) -> bool,
    ) {
        if let First::Bloom(bloom) = &self.first {
            bloom.ask_batch(self.bytes.as_ref(), digester, questions, answers, each);
            return;
        }
        for (number, answer) in answers.iter_mut().enumerate() {
            *answer = *answer && each(number);
        }
    }

    /// The digester of the filter's seed, where it is not the given one.
    fn own_digester(&self, digester: &Digester) -> Option<Digester> {
        (self.envelope.seed != digester.seed()).then(|| Digester::new(self.envelope.seed))
    }

    #[inline(always)]
    fn view(&self) -> Option<View<'_>> {
        let payload = envelope::payload(self.bytes.as_ref());
        self.parts.as_ref().map(|parts| View { parts, payload, seed: self.envelope.seed })
    }
}

impl<D: AsRef<[u8]>> Filter for ProteusFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match &self.first {
            First::Bloom(bloom) => self.bloom_may_contain(bloom, probe),
            First::Set(set) => self.set_may_contain(set, probe),
            First::None => self.may_contain_otherwise(probe),
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        match &self.first {
            First::Bloom(bloom) => self.bloom_may_contain_range(bloom, probe),
            First::Set(set) => self.set_may_contain_range(set, probe),
            First::None => self.may_contain_range_otherwise(probe),
        }
    }

    fn may_contain_keys(&self, digester: &Digester, keys: &[&[u8]], answers: &mut [bool]) {
        let own = self.own_digester(digester);
        let digester = own.as_ref().unwrap_or(digester);
        for (keys, answers) in keys.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let each = |number: usize| {
                keys.get(number).is_none_or(|key| self.may_contain(&Probe::new(key, digester)))
            };
            self.ask_batch(digester, keys, answers, each);
        }
    }

    fn may_contain_ranges(&self, digester: &Digester, ranges: &[KeyRange<'_>], answers: &mut [bool]) {
        let own = self.own_digester(digester);
        let digester = own.as_ref().unwrap_or(digester);
        for (ranges, answers) in ranges.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
            let each = |number: usize| {
                ranges
                    .get(number)
                    .is_none_or(|range| self.may_contain_range(&RangeProbe::new(*range, digester)))
            };
            self.ask_batch(digester, ranges, answers, each);
        }
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        let Some(view) = self.view() else { return };
        if let (FirstPart::None, Some(part)) = (&view.parts.first, &view.parts.bloom)
            && (part.prefix == WHOLE_KEYS
                || view.parts.fixed.is_some_and(|fixed| fixed.bit_count() == part.prefix))
        {
            part.view(view.payload).prefetch(probe.digest_ahead(self.envelope.seed));
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
        write!(target, "; at most {} questions", parts.cap)
    }

    fn verify(&self) -> Result<(), DecodeError> {
        envelope::verify(&self.envelope, self.bytes.as_ref())
    }
}
