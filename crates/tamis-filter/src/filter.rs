//! What a reader answers. The contract of all families.

use std::fmt;

use crate::{Digester, KeyRange, Probe, RangeProbe};

/// Keys that are made ready before the first of them is asked for.
pub(crate) const BATCH_KEYS: usize = 64;

/// In which direction a scan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to great ones.
    Forward,
    /// From great keys to small ones.
    Backward,
}

/// What a filter knows about the first key that a scan would meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    /// Nothing.
    Unknown,
    /// There certainly is no such key.
    Absent,
    /// Forward: no key of the filter that meets the bound is smaller than these bytes. Backward: every key that meets the
    /// bound is smaller than these bytes or begins with them.
    Bytes(Vec<u8>),
}

/// An estimate of how many keys lie in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The estimate.
    pub keys: u64,
    /// How far the truth may lie from it, in either direction.
    pub error_max: u64,
}

/// A filter over the sorted keys of one table.
///
/// `false`, [`Candidate::Absent`] and the bytes of a candidate are guarantees; everything else abstains. Each method has a
/// default that abstains. Readers work in place over borrowed bytes, allocate nothing in yes-or-no questions, take `&self`
/// and may be shared between threads. Opening reads the header only; [`Filter::verify`] reads everything.
pub trait Filter {
    /// Whether the key may be among the keys. Costs one digest, or none where the probe has it already.
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        let _ = probe;
        true
    }

    /// Whether some key may lie in the range. A range of no strings at all holds none, and a filter of no keys neither.
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.key_count() > 0
            && !probe.range().is_empty()
            && probe.point().is_none_or(|point| self.may_contain(point))
    }

    /// [`Filter::may_contain`] for a key that no other filter will be asked for: nothing is remembered, so that no probe is made, which takes
    /// longer than some filters take to answer.
    #[inline(always)]
    fn may_contain_key(&self, digester: &Digester, key: &[u8]) -> bool {
        self.may_contain(&Probe::new(key, digester))
    }

    /// [`Filter::may_contain_range`] for a range that no other filter will be asked for.
    #[inline(always)]
    fn may_contain_key_in(&self, digester: &Digester, range: KeyRange<'_>) -> bool {
        self.may_contain_range(&RangeProbe::new(range, digester))
    }

    /// Asks for many keys at once: `answers[i]` becomes `false` where `probes[i]` is certainly absent, and is not asked
    /// where it is `false` already. Overlaps the cache misses of the keys.
    fn may_contain_many(&self, probes: &[Probe<'_>], answers: &mut [bool]) {
        for (probes, answers) in probes.chunks(BATCH_KEYS).zip(answers.chunks_mut(BATCH_KEYS)) {
            for (probe, answer) in probes.iter().zip(&*answers) {
                if *answer {
                    self.prefetch(probe);
                }
            }
            for (probe, answer) in probes.iter().zip(answers) {
                *answer = *answer && self.may_contain(probe);
            }
        }
    }

    /// [`Filter::may_contain_key`] for many keys at once: `answers[i]` becomes `false` where `keys[i]` is certainly absent, and is not asked
    /// where it is `false` already.
    fn may_contain_keys(&self, digester: &Digester, keys: &[&[u8]], answers: &mut [bool]) {
        for (keys, answers) in keys.chunks(BATCH_KEYS).zip(answers.chunks_mut(BATCH_KEYS)) {
            let probes: Vec<Probe<'_>> = keys.iter().map(|key| Probe::new(key, digester)).collect();
            self.may_contain_many(&probes, answers);
        }
    }

    /// [`Filter::may_contain_key_in`] for many ranges at once: `answers[i]` becomes `false` where certainly no key lies in `ranges[i]`, and is
    /// not asked where it is `false` already.
    fn may_contain_ranges(&self, digester: &Digester, ranges: &[KeyRange<'_>], answers: &mut [bool]) {
        ranges_one_by_one(self, digester, ranges, answers);
    }

    /// Brings what [`Filter::may_contain`] will need into the processor's cache; for asking several filters for one key.
    fn prefetch(&self, probe: &Probe<'_>) {
        let _ = probe;
    }

    /// What is known about the first key that a scan of the range would meet.
    fn tighten(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        let _ = direction;
        if self.may_contain_range(probe) { Candidate::Unknown } else { Candidate::Absent }
    }

    /// What is known about the least key that is not below `lower` (above it, where it is excluded).
    fn least_candidate(&self, lower: std::ops::Bound<&[u8]>) -> Candidate {
        let _ = lower;
        Candidate::Unknown
    }

    /// What is known about the greatest key that does not lie above `upper`.
    fn greatest_candidate(&self, upper: crate::Upper<'_>) -> Candidate {
        let _ = upper;
        Candidate::Unknown
    }

    /// How many keys lie in the range, where the family can tell.
    fn count(&self, probe: &RangeProbe<'_>) -> Option<Count> {
        probe.range().is_empty().then_some(Count { keys: 0, error_max: 0 })
    }

    /// How many keys were added (those that equal the one before them counted once).
    fn key_count(&self) -> u64;

    /// Bytes of the whole filter, envelope included.
    fn encoded_bytes(&self) -> u64;

    /// The rate of false positives that the builder expects for absent keys, or for the queries it was shown.
    fn predicted_fpr(&self) -> Option<f64>;

    /// What the builder chose, for people: one line.
    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result;

    /// Compares the checksum of the payload; reads all bytes.
    fn verify(&self) -> Result<(), crate::DecodeError>;
}

/// [`Filter::may_contain_ranges`] by as many single questions.
pub(crate) fn ranges_one_by_one(
    filter: &(impl Filter + ?Sized),
    digester: &Digester,
    ranges: &[KeyRange<'_>],
    answers: &mut [bool],
) {
    for (range, answer) in ranges.iter().zip(answers) {
        *answer = *answer && filter.may_contain_key_in(digester, *range);
    }
}

#[cfg(test)]
mod tests;
