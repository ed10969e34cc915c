//! The default methods of a reader.

use std::fmt;

use super::{Candidate, Direction, Filter};
use crate::{DecodeError, Digester, KeyRange, Probe, RangeProbe};

/// A reader with nothing but the required methods.
struct Silent;

impl Filter for Silent {
    fn key_count(&self) -> u64 {
        3
    }

    fn encoded_bytes(&self) -> u64 {
        64
    }

    fn predicted_fpr(&self) -> Option<f64> {
        None
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        target.write_str("silent")
    }

    fn verify(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}

#[test]
fn every_method_abstains_by_default() {
    let digester = Digester::new(1);
    let probe = Probe::new(b"b", &digester);
    assert!(Silent.may_contain(&probe));
    Silent.prefetch(&probe);
    for range in [KeyRange::ALL, KeyRange::prefix(b"b"), KeyRange::point(b"b"), KeyRange::closed(b"a", b"c")]
    {
        let probe = RangeProbe::new(range, &digester);
        assert!(Silent.may_contain_range(&probe), "{range:?}");
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(Silent.candidate(&probe, direction), Candidate::Unknown, "{range:?}");
        }
    }
    assert_eq!(probe.digest_count(), 0);
}

#[test]
fn every_family_rejects_a_range_without_any_byte_string() {
    let digester = Digester::new(1);
    let probe = RangeProbe::new(KeyRange::closed(b"c", b"a"), &digester);
    assert!(!Silent.may_contain_range(&probe));
}
