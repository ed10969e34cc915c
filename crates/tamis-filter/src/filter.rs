//! The contract of all filters.

use std::fmt;
use std::ops::Bound;

use crate::{KeyRange, Probe, RangeProbe, Upper};

/// Direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// Information about the first key of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    /// Nothing.
    Unknown,
    /// There is certainly no such key.
    Absent,
    /// Forward: no key of the range is smaller than these bytes. Backward: every key of the range is smaller than these bytes
    /// or begins with them.
    Bytes(Vec<u8>),
}

impl Candidate {
    /// The candidate of a range from that of its lower bound, or backward from that of its upper bound: there is no key if the
    /// candidate is beyond the other end.
    pub(crate) fn within(self, range: &KeyRange<'_>, direction: Direction) -> Self {
        let Self::Bytes(bytes) = &self else { return self };
        let is_beyond = match (direction, range.lower, range.upper) {
            (Direction::Forward, _, Upper::Open) | (Direction::Backward, Bound::Unbounded, _) => false,
            (Direction::Forward, _, Upper::Included(upper)) => bytes.as_slice() > upper,
            (Direction::Forward, _, Upper::Excluded(upper)) => bytes.as_slice() >= upper,
            (Direction::Forward, _, Upper::Prefix(prefix)) => {
                bytes.as_slice() > prefix && !bytes.starts_with(prefix)
            }
            (Direction::Backward, Bound::Included(lower) | Bound::Excluded(lower), _) => {
                bytes.as_slice() < lower && !lower.starts_with(bytes)
            }
        };
        if is_beyond { Self::Absent } else { self }
    }
}

/// A filter over the sorted keys of one table.
///
/// `false`, [`Candidate::Absent`] and the bytes of a candidate are guarantees; everything else abstains. Each method
/// has a default that abstains. Readers work in place over borrowed bytes, allocate nothing to answer yes or no, take
/// `&self` and may be shared between threads. Opening reads the header only; [`Filter::verify`] reads everything.
pub trait Filter {
    /// Whether the filter may contain the key. Costs one digest, or none if the probe has computed it already.
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        let _ = probe;
        true
    }

    /// Whether the range may contain a key. A range that no byte string is in contains none, and a filter without keys
    /// neither.
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.key_count() > 0
            && !probe.range().is_empty()
            && probe.point().is_none_or(|point| self.may_contain(point))
    }

    /// Prefetches the bytes that [`Filter::may_contain`] will read, to look up one key in several filters.
    fn prefetch(&self, probe: &Probe<'_>) {
        let _ = probe;
    }

    /// Information about the first key of the range in a direction, for a range that [`Filter::may_contain_range`] admits: a
    /// scan may begin there. The range may be open at either end.
    fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        let _ = (probe, direction);
        Candidate::Unknown
    }

    /// Number of distinct keys.
    fn key_count(&self) -> u64;

    /// Bytes of the whole filter, envelope included.
    fn encoded_bytes(&self) -> u64;

    /// The false-positive rate that the builder predicts for absent keys, or for the sampled queries.
    fn predicted_fpr(&self) -> Option<f64>;

    /// The design that the builder chose, for people: one line.
    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result;

    /// Checks the checksum of the payload; reads all bytes.
    fn verify(&self) -> Result<(), crate::DecodeError>;
}

/// The methods of a reader that follow from its envelope and its field `bytes`.
macro_rules! envelope_methods {
    ($self:ident, $envelope:expr) => {
        fn key_count(&$self) -> u64 {
            $envelope.key_count
        }

        fn encoded_bytes(&$self) -> u64 {
            $self.bytes.as_ref().len() as u64
        }

        fn verify(&$self) -> Result<(), $crate::DecodeError> {
            $crate::envelope::verify(&$envelope, $self.bytes.as_ref())
        }
    };
}
pub(crate) use envelope_methods;

#[cfg(test)]
mod tests;
