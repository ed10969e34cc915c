//! Tests of the range tombstones of a memtable.

use tamis_workload::SplitMix64;

use super::RangeTombstones;
use crate::{
    key::{SEQUENCE_MAX, Sequence},
    observe::steps::{self, Step},
    range_tombstone::{RangeTombstone, is_below_upper},
};

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn tombstone(lower: u64, upper: Option<u64>, sequence: Sequence) -> RangeTombstone {
    RangeTombstone { lower: key(lower), upper: upper.map_or_else(Vec::new, key), sequence }
}

fn span_count(tombstones: &RangeTombstones, snapshot: Sequence) -> usize {
    tombstones.spans_at(snapshot).iter().count()
}

#[test]
fn adjacent_and_overlapping_tombstones_are_one_span_for_readers_that_see_both() {
    let tombstones = RangeTombstones::new();
    for number in 0..1_000 {
        tombstones.add(tombstone(10 * number, Some(10 * number + 10 + number % 5), number + 1), 0);
    }
    assert_eq!(span_count(&tombstones, SEQUENCE_MAX), 1);
    // Each older reader sees those before its snapshot, also as one.
    for snapshot in [1, 17, 500, 999] {
        assert_eq!(span_count(&tombstones, snapshot), 1);
        assert!(tombstones.sequence_at(&key(10 * snapshot - 1), snapshot) > 0);
        assert_eq!(tombstones.sequence_at(&key(10 * snapshot + 5), snapshot), 0);
    }
    assert_eq!(tombstones.all().len(), 1_000);
}

#[test]
fn a_span_with_a_newer_put_is_not_joined() {
    let tombstones = RangeTombstones::new();
    tombstones.add(tombstone(0, Some(10), 1), 0);
    tombstones.note_newer_put(&key(3));
    tombstones.add(tombstone(10, Some(20), 3), 2);
    assert_eq!(span_count(&tombstones, SEQUENCE_MAX), 2);
    assert_eq!(tombstones.sequence_at(&key(3), SEQUENCE_MAX), 1);
    // One over the put joins both.
    tombstones.add(tombstone(2, Some(12), 4), 2);
    assert_eq!(tombstones.sequence_at(&key(3), SEQUENCE_MAX), 4);
    assert_eq!(tombstones.sequence_at(&key(1), SEQUENCE_MAX), 1);
    assert_eq!(tombstones.sequence_at(&key(3), 3), 1);
}

/// Under any snapshot a lookup compares about as many spans as a binary search.
#[test]
fn a_lookup_is_a_binary_search_under_snapshots() {
    const COUNT: u64 = 4_096;
    let tombstones = RangeTombstones::new();
    let mut random = SplitMix64::new(3);
    for sequence in 1..=COUNT {
        let lower = 10 * random.below(100_000);
        tombstones.add(tombstone(lower, Some(lower + 5), sequence), 0);
    }
    for snapshot in [1, 2, 100, 2_000, 4_000, COUNT, SEQUENCE_MAX] {
        steps::take(Step::ComparedTombstone);
        for _ in 0..1_000 {
            tombstones.sequence_at(&key(random.below(1_000_000)), snapshot);
        }
        let compared = steps::take(Step::ComparedTombstone);
        assert!(compared <= 1_000 * 40, "{compared} comparisons for 1,000 lookups at {snapshot}");
    }
}

/// Random tombstones and puts in between, against a list of all tombstones. An entry that a lookup at any snapshot deletes is one that
/// the list deletes.
#[test]
fn lookups_equal_those_in_a_list_at_every_snapshot() {
    for seed in 0..30 {
        let mut random = SplitMix64::new(seed);
        let tombstones = RangeTombstones::new();
        let mut all: Vec<RangeTombstone> = Vec::new();
        let mut puts: Vec<(Vec<u8>, Sequence)> = Vec::new();
        for sequence in 1..200_u64 {
            if random.below(3) == 0 {
                let key = key(random.below(60));
                tombstones.note_newer_put(&key);
                puts.push((key, sequence));
                continue;
            }
            let lower = random.below(60);
            let upper = (random.below(20) > 0).then(|| lower + 1 + random.below(12));
            let added = tombstone(lower, upper, sequence);
            let newest_put = puts.last().map_or(0, |(_, sequence)| *sequence);
            tombstones.add(added.clone(), newest_put);
            all.push(added);
        }
        let newest_of = |key: &[u8], snapshot: Sequence| {
            let covers = |tombstone: &&RangeTombstone| {
                tombstone.sequence <= snapshot
                    && tombstone.lower.as_slice() <= key
                    && is_below_upper(key, &tombstone.upper)
            };
            all.iter().rev().find(covers).map_or(0, |tombstone| tombstone.sequence)
        };
        for snapshot in [1, 2, 3, 20, 50, 77, 100, 150, 199, SEQUENCE_MAX] {
            let spans = tombstones.spans_at(snapshot);
            assert!(spans.iter().zip(spans.iter().skip(1)).all(|(left, right)| left.upper <= right.lower));
            for number in 0..90 {
                let key = key(number);
                let (found, expected) = (tombstones.sequence_at(&key, snapshot), newest_of(&key, snapshot));
                assert_eq!(found > 0, expected > 0, "seed {seed}, key {number} at {snapshot}");
                assert!(found >= expected && found <= snapshot);
                for (_, put) in puts.iter().filter(|(put, sequence)| *put == key && *sequence <= snapshot) {
                    let is_deleted = (found > *put, expected > *put);
                    assert_eq!(is_deleted.0, is_deleted.1, "seed {seed}, put {number}@{put} at {snapshot}");
                }
                let is_marked = spans.span_of(&key).is_some_and(|span| span.has_newer());
                let has_newer = puts.iter().any(|(put, sequence)| {
                    *put == key && *sequence <= snapshot && expected > 0 && *sequence > expected
                });
                assert!(is_marked || !has_newer, "seed {seed}, key {number} at {snapshot}");
            }
        }
    }
}

/// A repair may add tombstones of older entries: no span then claims that all of its entries are older.
#[test]
fn a_tombstone_below_newer_entries_deletes_only_older_ones() {
    let tombstones = RangeTombstones::new();
    tombstones.add(tombstone(0, Some(10), 7), 6);
    tombstones.add(tombstone(5, None, 3), 7);
    let found: Vec<_> = [4, 5, 12].iter().map(|&number| tombstones.sequence_at(&key(number), 9)).collect();
    assert_eq!(found, [7, 7, 3]);
    assert_eq!(tombstones.sequence_at(&key(5), 5), 3);
    assert!(tombstones.spans_at(9).iter().all(|span| span.has_newer()));
}
