//! Tests of the ranges without entries.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::{EmptyRange, EmptyRanges, RANGE_COUNT_MAX};
use crate::key::{SEQUENCE_MAX, Sequence};

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn range(lower: u64, upper: u64, sequence: Sequence) -> EmptyRange {
    EmptyRange { lower: key(lower), upper: key(upper), sequence }
}

fn note(ranges: &EmptyRanges, range: EmptyRange) -> bool {
    let sequence = range.sequence;
    ranges.begin(range).is_some_and(|candidate| candidate.confirm(sequence))
}

/// Whether a reader at a sequence number jumps over a key.
fn is_known(ranges: &EmptyRanges, number: u64, snapshot: Sequence) -> bool {
    ranges.load().is_some_and(|known| known.cover_at(&key(number), snapshot).sequence == SEQUENCE_MAX)
}

#[test]
fn a_range_is_valid_from_its_number_on_until_a_newer_put() {
    let ranges = EmptyRanges::default();
    assert!(!ranges.are_used() && ranges.load().is_none());
    assert!(note(&ranges, range(10, 20, 7)));
    assert!(is_known(&ranges, 10, 7) && is_known(&ranges, 19, 99));
    assert!(!is_known(&ranges, 9, 7) && !is_known(&ranges, 20, 7) && !is_known(&ranges, 10, 6));
    // An entry that is retained in a newer memtable keeps its number.
    ranges.note_put(&key(15), 5);
    assert!(is_known(&ranges, 15, 7));
    let before = ranges.load().unwrap();
    ranges.note_put(&key(15), 8);
    assert!(is_known(&ranges, 14, 9) && !is_known(&ranges, 15, 9) && is_known(&ranges, 16, 9));
    // A reader that loaded the ranges before the put was published does not see the put.
    assert_eq!(before.cover_at(&key(15), 7).sequence, SEQUENCE_MAX);
    ranges.clear();
    assert!(ranges.load().is_none());
}

#[test]
fn a_candidate_is_not_known_and_ended_by_each_newer_put() {
    let ranges = EmptyRanges::default();
    let candidate = ranges.begin(range(10, 20, 7)).unwrap();
    assert!(!is_known(&ranges, 12, 7));
    assert!(ranges.begin(range(30, 40, 7)).is_none(), "one at a time");
    ranges.note_put(&key(19), 8);
    assert!(!candidate.confirm(9) && !is_known(&ranges, 12, 9));
    drop(candidate);
    let candidate = ranges.begin(range(10, 20, 8)).unwrap();
    ranges.clear();
    assert!(!candidate.confirm(9));
    drop(candidate);
    drop(ranges.begin(range(10, 20, 8)));
    assert!(note(&ranges, range(30, 40, 8)) && !is_known(&ranges, 12, 8));
}

#[test]
fn ranges_that_touch_are_joined() {
    let ranges = EmptyRanges::default();
    assert!(note(&ranges, range(10, 20, 5)) && note(&ranges, range(30, 40, 6)));
    assert_eq!(ranges.load().unwrap().ranges.len(), 2);
    assert!(note(&ranges, range(20, 30, 7)));
    assert_eq!(ranges.load().unwrap().ranges[0].as_ref(), &range(10, 40, 7));
    assert!(note(&ranges, EmptyRange { upper: Vec::new(), ..range(35, 0, 8) }));
    let known = ranges.load().unwrap();
    assert_eq!(known.ranges.len(), 1);
    assert!(known.ranges[0].upper.is_empty() && known.ranges[0].lower == key(10));
}

#[test]
fn the_number_of_ranges_is_bounded() {
    let ranges = EmptyRanges::default();
    for number in 0..200 {
        assert!(note(&ranges, range(10 * number, 10 * number + 5, number + 1)));
    }
    assert_eq!(ranges.load().unwrap().ranges.len(), RANGE_COUNT_MAX);
    assert!(is_known(&ranges, 1_992, 999) && !is_known(&ranges, 2, 999), "the oldest are dropped");
    for number in 0..2_000 {
        ranges.note_put(&key(number), 1_000);
    }
    // Parts without these keys may be left.
    assert!((0..2_000).all(|number| !is_known(&ranges, number, 1_001)));
    assert!(ranges.load().is_none_or(|known| known.ranges.len() <= RANGE_COUNT_MAX));
}
