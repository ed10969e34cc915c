//! What a reader answers that answers nothing itself.

use std::fmt;
use std::ops::Bound;

use super::{Candidate, Count, Direction, Filter};
use crate::{DecodeError, Digester, KeyRange, Probe, RangeProbe, Upper};

/// Has nothing but what every family must tell.
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
    assert!(Silent.may_contain_key(&digester, b"b"));
    Silent.prefetch(&probe);
    for range in [KeyRange::ALL, KeyRange::prefix(b"b"), KeyRange::point(b"b"), KeyRange::closed(b"a", b"c")]
    {
        let probe = RangeProbe::new(range, &digester);
        assert!(Silent.may_contain_range(&probe), "{range:?}");
        assert!(Silent.may_contain_key_in(&digester, range), "{range:?}");
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(Silent.tighten(&probe, direction), Candidate::Unknown, "{range:?}");
        }
        assert_eq!(Silent.count(&probe), None);
    }
    assert_eq!(Silent.least_candidate(Bound::Excluded(b"b")), Candidate::Unknown);
    assert_eq!(Silent.greatest_candidate(Upper::Prefix(b"b")), Candidate::Unknown);
    // What was denied before stays denied.
    let mut answers = [true, false];
    Silent.may_contain_many(&[probe.clone(), Probe::new(b"c", &digester)], &mut answers);
    assert_eq!(answers, [true, false]);
    Silent.may_contain_keys(&digester, &[b"b", b"c"], &mut answers);
    assert_eq!(answers, [true, false]);
    assert_eq!(probe.digest_count(), 0);
}

#[test]
fn a_range_that_no_key_can_lie_in_is_empty_for_every_family() {
    let digester = Digester::new(1);
    let probe = RangeProbe::new(KeyRange::closed(b"c", b"a"), &digester);
    assert!(!Silent.may_contain_range(&probe));
    assert!(!Silent.may_contain_key_in(&digester, *probe.range()));
    assert_eq!(Silent.tighten(&probe, Direction::Forward), Candidate::Absent);
    assert_eq!(Silent.count(&probe), Some(Count { keys: 0, error_max: 0 }));
}
