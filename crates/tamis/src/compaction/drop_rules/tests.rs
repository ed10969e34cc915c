#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::*;

/// Runs entries (key, sequence, kind) through the rules; the result is what is kept.
fn kept(points: &[Sequence], entries: &[(&str, Sequence, Kind)], is_lowest: bool) -> Vec<(String, Sequence)> {
    let mut rules = DropRules::new(points.to_vec(), []);
    let keeps = |&&(key, sequence, kind): &&(&str, Sequence, Kind)| {
        rules.decide(key.as_bytes(), sequence, kind, || is_lowest).is_kept()
    };
    entries.iter().filter(keeps).map(|&(key, sequence, _)| (key.to_owned(), sequence)).collect()
}

/// The entries that a reader at `point` sees: the newest entry at or below it, if that is a put.
fn seen(point: Sequence, entries: &[(&str, Sequence, Kind)]) -> Vec<(String, Sequence)> {
    let mut seen = Vec::new();
    let mut last = None;
    for &(key, sequence, kind) in entries {
        if sequence <= point && last != Some(key) {
            last = Some(key);
            if kind == Kind::Put {
                seen.push((key.to_owned(), sequence));
            }
        }
    }
    seen
}

#[test]
fn only_the_newest_version_is_kept_when_no_snapshot_is_held() {
    use Kind::Put;
    let entries = [("a", 9, Put), ("a", 5, Put), ("a", 1, Put), ("b", 2, Put)];
    assert_eq!(kept(&[10], &entries, false), [("a".to_owned(), 9), ("b".to_owned(), 2)]);
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    use Kind::Put;
    let entries = [("a", 9, Put), ("a", 5, Put), ("a", 4, Put), ("a", 1, Put)];
    assert_eq!(kept(&[5, 10], &entries, false), [("a".to_owned(), 9), ("a".to_owned(), 5)]);
}

#[test]
fn a_tombstone_is_dropped_only_if_no_older_entry_can_exist() {
    use Kind::{Put, Tombstone};
    let entries = [("a", 9, Tombstone), ("a", 5, Put)];
    assert_eq!(kept(&[10], &entries, true), []);
    assert_eq!(kept(&[10], &entries, false), [("a".to_owned(), 9)]);
    // A snapshot at 5 keeps the put, so the tombstone above it has to stay.
    assert_eq!(kept(&[5, 10], &entries, true), [("a".to_owned(), 9), ("a".to_owned(), 5)]);
}

#[test]
fn entries_above_every_read_point_are_all_kept() {
    use Kind::{Put, Tombstone};
    let entries = [("a", 9, Tombstone), ("a", 8, Put), ("a", 3, Put)];
    assert_eq!(kept(&[5], &entries, true).len(), 3);
}

#[test]
fn every_reader_sees_the_same_before_and_after_in_all_small_cases() {
    let kinds = [Kind::Put, Kind::Tombstone];
    // Every kind of four versions of one key, with every set of read points over them, next to a second key.
    for bits in 0..16_u32 {
        for point_bits in 0..32_u32 {
            let kind = |index: u32| kinds[(bits >> index & 1) as usize];
            let mut entries: Vec<_> = (1..=4_u64).rev().map(|s| ("k", s * 2, kind(s as u32 - 1))).collect();
            entries.push(("l", 1, Kind::Put));
            let mut points: Vec<Sequence> =
                (0..5_u64).filter(|point| point_bits >> point & 1 == 1).map(|point| point * 2 + 1).collect();
            points.push(10);
            let kept_entries = kept(&points, &entries, true);
            let rest: Vec<_> = entries
                .iter()
                .copied()
                .filter(|(key, s, _)| kept_entries.contains(&((*key).to_owned(), *s)))
                .collect();
            for &point in &points {
                assert_eq!(
                    seen(point, &rest),
                    seen(point, &entries),
                    "points {points:?}, entries {entries:?}"
                );
            }
        }
    }
}

fn tombstone(lower: &str, upper: &str, sequence: Sequence) -> RangeTombstone {
    RangeTombstone { lower: lower.into(), upper: upper.into(), sequence }
}

/// The range tombstones that are kept of these, with older entries everywhere up to `older_sequence`.
fn kept_ranges(
    points: &[Sequence],
    tombstones: &[RangeTombstone],
    older_sequence: Sequence,
) -> Vec<(String, String, Vec<Sequence>)> {
    let rules = DropRules::new(points.to_vec(), tombstones.iter().cloned());
    let older = |lower: &[u8], upper: &[u8]| Some((lower.to_vec(), upper.to_vec()));
    let name = |key: Vec<u8>| String::from_utf8(key).unwrap_or_default();
    let kept = rules.kept_range_tombstones(older, older_sequence).into_iter();
    kept.map(|kept| (name(kept.lower), name(kept.upper), kept.sequences)).collect()
}

#[test]
fn adjacent_range_tombstones_between_the_same_read_points_are_one() {
    let all = [tombstone("a", "c", 12), tombstone("c", "e", 15), tombstone("d", "f", 18)];
    let one = |lower: &str, upper: &str, sequence| (lower.to_owned(), upper.to_owned(), vec![sequence]);
    assert_eq!(kept_ranges(&[20], &all, 9), [one("a", "f", 10)]);
    // A snapshot between them sees the first one only.
    let expected = [one("a", "c", 10), one("c", "f", 15)];
    assert_eq!(kept_ranges(&[14, 20], &all, 9), expected);
    // An older entry outside of the job is newer than the first one, elsewhere.
    assert_eq!(kept_ranges(&[20], &all, 13), [one("a", "c", 12), one("c", "f", 14)]);
    // Above the last read point every number may become one.
    assert_eq!(kept_ranges(&[11], &all, 9).len(), 4);
}
