//! Reads filters of this module in place.

use std::fmt;

use tamis_bits::kernel::{self, Portable};

use super::batch::{BATCH, Questions, closed_words, word};
use super::design::{Design, Stage, WHOLE_KEYS};
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
    /// `None` without keys. Elsewhere: what most questions need lies in `first`.
    parts: Option<Box<Parts>>,
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
            Some(Box::new(Parts::read(family, &envelope.parameters, payload)?))
        };
        let bloom = parts.as_deref().and_then(bloom_alone);
        let first = First::new(parts.as_deref());
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

    /// From one key of eight bytes to another, for a question that nothing is remembered of: in registers all the way.
    #[inline(always)]
    fn has_between(&self, digester: &Digester, lower: u64, upper: u64) -> bool {
        if let First::Set(set) = &self.first {
            return self.set_has_between(set, digester, lower, upper);
        }
        if let First::Bloom(bloom) = &self.first {
            return self.bloom_has_between(bloom, digester, lower, upper);
        }
        self.has_between_otherwise(digester, lower, upper)
    }

    #[inline(always)]
    fn set_has_between(&self, set: &FirstSet, digester: &Digester, lower: u64, upper: u64) -> bool {
        let is_there = match set.only_prefix(lower, upper) {
            // Most questions beside crowded keys end here: in so few steps that several are under way at once, and those that wait for
            // memory wait together.
            Some(value) if set.is_beside(value) => return false,
            Some(value) => match set.bit(self.bytes.as_ref(), value) {
                None => kernel::run(MarkedHas(self, value)),
                is_there => is_there,
            },
            None => kernel::run(SetBetween(self, u128::from(lower) << 64 | u128::from(upper))),
        };
        match is_there {
            Some(false) => false,
            Some(true) => self.has_between_below(digester, lower, upper),
            None => self.has_between_otherwise(digester, lower, upper),
        }
    }

    #[inline(always)]
    fn bloom_has_between(&self, bloom: &FirstBloom, digester: &Digester, lower: u64, upper: u64) -> bool {
        let is_own = digester.seed() == self.envelope.seed;
        let answer =
            if is_own { bloom.has_between(self.bytes.as_ref(), digester, lower, upper) } else { None };
        answer.unwrap_or_else(|| self.has_between_otherwise(digester, lower, upper))
    }

    #[inline(never)]
    fn has_between_otherwise(&self, digester: &Digester, lower: u64, upper: u64) -> bool {
        let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
        if lower == upper {
            return self.may_contain_otherwise(&Probe::new(&lower, digester));
        }
        self.may_contain_range(&RangeProbe::new(KeyRange::closed(&lower, &upper), digester))
    }

    /// A set of integers, and perhaps a Bloom filter behind it.
    #[inline(never)]
    fn set_may_contain(&self, probe: &Probe<'_>) -> bool {
        kernel::run(SetPoint(self, probe))
    }

    #[inline(never)]
    fn set_may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        kernel::run(SetRange(self, probe))
    }

    /// Behind a set that has the only prefix from one key to another.
    #[inline(never)]
    fn has_between_below(&self, digester: &Digester, lower: u64, upper: u64) -> bool {
        if digester.seed() == self.envelope.seed
            && let First::Set(set) = &self.first
            && let Some(bloom) = set.below()
            && let Some(answer) = bloom.has_between(self.bytes.as_ref(), digester, lower, upper)
        {
            return answer;
        }
        let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
        if lower == upper {
            return self.may_contain_below(&Probe::new(&lower, digester));
        }
        self.may_contain_range_below(&RangeProbe::new(KeyRange::closed(&lower, &upper), digester))
    }

    /// Behind a set that has the key's prefix.
    #[inline(never)]
    fn may_contain_below(&self, probe: &Probe<'_>) -> bool {
        let Some(words) = self.words() else { return true };
        words.has_below_point(probe)
    }

    /// Behind a set that has the one prefix of a range.
    #[inline(never)]
    fn may_contain_range_below(&self, probe: &RangeProbe<'_>) -> bool {
        let Some(words) = self.words() else { return true };
        let Some((lower, upper)) = words.fixed.closed(probe.range()).filter(|(lower, upper)| lower < upper)
        else {
            return self.may_contain_range_otherwise(probe);
        };
        kernel::run(BelowWalk { words, probe, lower, upper })
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
        let bytes = self.bytes.as_ref();
        match &self.first {
            First::Bloom(bloom) => bloom.ask_batch(bytes, digester, questions, answers, each),
            First::Set(set) => {
                set.ask_batch(bytes, questions, answers, each, |lower, upper| {
                    self.has_between_below(digester, lower, upper)
                });
            }
            First::None => {
                for (number, answer) in answers.iter_mut().enumerate() {
                    *answer = *answer && each(number);
                }
            }
        }
    }

    /// The digester of the filter's seed, where it is not the given one.
    fn own_digester(&self, digester: &Digester) -> Option<Digester> {
        (self.envelope.seed != digester.seed()).then(|| Digester::new(self.envelope.seed))
    }

    /// A filter of integers.
    #[inline(always)]
    fn words(&self) -> Option<WordView<'_>> {
        let view = self.view()?;
        Some(WordView { view, fixed: view.parts.fixed? })
    }

    #[inline(always)]
    fn view(&self) -> Option<View<'_>> {
        let payload = envelope::payload(self.bytes.as_ref());
        self.parts.as_deref().map(|parts| View { parts, payload, seed: self.envelope.seed, steps: Portable })
    }
}

/// A point to a set, compiled for the processor.
struct SetPoint<'a, 'p, D>(&'a ProteusFilter<D>, &'a Probe<'p>);

impl<D: AsRef<[u8]>> kernel::Task for SetPoint<'_, '_, D> {
    type Output = bool;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> bool {
        let Self(filter, probe) = self;
        let First::Set(set) = &filter.first else { return filter.may_contain_otherwise(probe) };
        let Some(word) = set.fixed.point(probe.key()) else { return false };
        let is_there = match set.place(word, word) {
            Place::Prefix(value) => set.contains(steps, filter.bytes.as_ref(), value),
            _ => Some(false),
        };
        let Some(is_there) = is_there else { return filter.may_contain_otherwise(probe) };
        probe.add_probes(1);
        is_there && filter.may_contain_below(probe)
    }
}

/// A range to a set, compiled for the processor.
struct SetRange<'a, 'p, D>(&'a ProteusFilter<D>, &'a RangeProbe<'p>);

impl<D: AsRef<[u8]>> kernel::Task for SetRange<'_, '_, D> {
    type Output = bool;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> bool {
        let Self(filter, probe) = self;
        let First::Set(set) = &filter.first else { return filter.may_contain_range_otherwise(probe) };
        // One key has a probe of its own.
        let Some((lower, upper)) = set.fixed.closed(probe.range()).filter(|(lower, upper)| lower < upper)
        else {
            return filter.may_contain_range_otherwise(probe);
        };
        let Some(is_there) = set.is_there(steps, filter.bytes.as_ref(), lower, upper) else {
            return filter.may_contain_range_otherwise(probe);
        };
        probe.add_probes(1);
        is_there && filter.may_contain_range_below(probe)
    }
}

/// Whether a marked set has a prefix, counted from the least one and not beyond the greatest, compiled for the processor.
struct MarkedHas<'a, D>(&'a ProteusFilter<D>, u64);

impl<D: AsRef<[u8]>> kernel::Task for MarkedHas<'_, D> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> Option<bool> {
        let Self(filter, value) = self;
        filter.first.marked_set()?.contains_in(steps, filter.bytes.as_ref(), value)
    }
}

/// A question to a set from one key of eight bytes to another, the lower one in the high half, compiled for the processor. In two parts, which
/// need no memory on their way: each question waits for what goes through it.
struct SetBetween<'a, D>(&'a ProteusFilter<D>, u128);

impl<D: AsRef<[u8]>> kernel::Task for SetBetween<'_, D> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run<S: kernel::Steps>(self, steps: S) -> Option<bool> {
        let Self(filter, bounds) = self;
        let First::Set(set) = &filter.first else { return None };
        let (lower, upper) = ((bounds >> 64) as u64, bounds as u64);
        if set.are_words() { set.is_there(steps, filter.bytes.as_ref(), lower, upper) } else { None }
    }
}

impl<D: AsRef<[u8]>> Filter for ProteusFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        match &self.first {
            First::Bloom(bloom) => self.bloom_may_contain(bloom, probe),
            First::Set(_) => self.set_may_contain(probe),
            First::None => self.may_contain_otherwise(probe),
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        match &self.first {
            First::Bloom(bloom) => self.bloom_may_contain_range(bloom, probe),
            First::Set(_) => self.set_may_contain_range(probe),
            First::None => self.may_contain_range_otherwise(probe),
        }
    }

    #[inline(always)]
    fn may_contain_key(&self, digester: &Digester, key: &[u8]) -> bool {
        match word(key) {
            Some(word) => self.has_between(digester, word, word),
            None => self.may_contain_otherwise(&Probe::new(key, digester)),
        }
    }

    #[inline(always)]
    fn may_contain_key_in(&self, digester: &Digester, range: KeyRange<'_>) -> bool {
        match closed_words(&range) {
            Some((lower, upper)) => self.has_between(digester, lower, upper),
            None => self.may_contain_range_otherwise(&RangeProbe::new(range, digester)),
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
            part.view(view.payload).prefetch(probe.digest(self.envelope.seed));
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
