#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use proptest::prelude::*;

use super::{
    Fragments, RangeTombstone, compare_uppers, fragment, half_open, is_below_upper, key_after, least_upper,
};
use crate::key::{KEY_LENGTH_MAX, SEQUENCE_MAX, Sequence};

fn tombstone(lower: &str, upper: &str, sequence: Sequence) -> RangeTombstone {
    RangeTombstone { lower: lower.into(), upper: upper.into(), sequence }
}

fn shown(fragments: &Fragments) -> String {
    let shown = fragments.list().iter().map(|fragment| {
        let (lower, upper) = (fragment.lower.escape_ascii(), fragment.upper.escape_ascii());
        format!("[{lower},{upper})@{:?}", fragment.sequences)
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn overlapping_tombstones_become_disjoint_fragments() {
    let tombstones = [tombstone("a", "h", 7), tombstone("c", "f", 9)];
    assert_eq!(shown(&fragment(tombstones, &[])), "[a,c)@[7] [c,f)@[9, 7] [f,h)@[7]");
    let open = [tombstone("", "c", 3), tombstone("b", "", 5)];
    assert_eq!(shown(&fragment(open, &[])), "[,b)@[3] [b,c)@[5, 3] [c,)@[5]");
}

#[test]
fn parts_of_one_tombstone_join_again() {
    let parts = [tombstone("a", "c", 7), tombstone("c", "f", 7), tombstone("b", "d", 7)];
    assert_eq!(shown(&fragment(parts, &[])), "[a,f)@[7]");
}

#[test]
fn only_the_newest_of_each_stratum_is_kept() {
    let nested = (1..=9).map(|sequence| tombstone("a", "z", sequence));
    assert_eq!(shown(&fragment(nested.clone(), &[9])), "[a,z)@[9]");
    assert_eq!(shown(&fragment(nested.clone(), &[2, 5, 7])), "[a,z)@[9, 8, 7, 5, 2]");
    assert_eq!(shown(&fragment(nested, &[20])), "[a,z)@[9]");
}

#[test]
fn nested_tombstones_take_memory_in_proportion_to_their_number() {
    let count = 10_000;
    let nested = (1..=count).map(|end: u64| RangeTombstone {
        lower: Vec::new(),
        upper: end.to_be_bytes().to_vec(),
        sequence: end,
    });
    assert_eq!(fragment(nested.clone(), &[count]).list().len(), 1);
    let shrinking =
        nested.map(|tombstone| RangeTombstone { sequence: count + 1 - tombstone.sequence, ..tombstone });
    let fragments = fragment(shrinking, &[count]);
    let kept: usize = fragments.list().iter().map(|fragment| fragment.sequences.len()).sum();
    assert_eq!((fragments.list().len() as u64, kept as u64), (count, count));
}

#[test]
fn bounds_become_half_open() {
    let half = |lower: Bound<&str>, upper: Bound<&str>| {
        let as_bytes = |bound: Bound<&'static str>| bound.map(str::as_bytes);
        let (lower, upper) = (leak(lower), leak(upper));
        half_open(as_bytes(lower), as_bytes(upper))
            .map(|(lower, upper)| (lower.into_owned(), upper.into_owned()))
    };
    let some = |lower: &[u8], upper: &[u8]| Some((lower.to_vec(), upper.to_vec()));
    assert_eq!(half(Bound::Included("a"), Bound::Excluded("b")), some(b"a", b"b"));
    assert_eq!(half(Bound::Excluded("a"), Bound::Included("b")), some(b"a\0", b"b\0"));
    assert_eq!(half(Bound::Unbounded, Bound::Unbounded), some(b"\0", b""));
    assert_eq!(half(Bound::Included("b"), Bound::Excluded("b")), None);
    assert_eq!(half(Bound::Excluded("b"), Bound::Included("b")), None);
    assert_eq!(half(Bound::Included("c"), Bound::Included("b")), None);
    assert_eq!(half(Bound::Unbounded, Bound::Excluded("")), None);
    assert_eq!(half(Bound::Unbounded, Bound::Excluded("\0")), None, "no key is below the least");
    assert_eq!(half(Bound::Included("b"), Bound::Included("b")), some(b"b", b"b\0"));
}

fn leak(bound: Bound<&str>) -> Bound<&'static str> {
    bound.map(|text| &*Box::leak(text.to_owned().into_boxed_str()))
}

#[test]
fn bounds_of_the_longest_keys_stay_possible_keys() {
    let longest = vec![b'k'; KEY_LENGTH_MAX];
    let after = key_after(&longest).expect("a greater key");
    assert!(after.len() <= KEY_LENGTH_MAX && after > longest);
    let greatest = vec![0xFF; KEY_LENGTH_MAX];
    assert_eq!(key_after(&greatest), None);
    assert_eq!(half_open(Bound::Excluded(&greatest), Bound::Unbounded), None);
    let (_, upper) = half_open(Bound::Unbounded, Bound::Included(&greatest)).expect("all keys");
    assert!(upper.is_empty());
    let too_long = vec![b'k'; KEY_LENGTH_MAX + 9];
    for bounds in [
        (Bound::Included(&too_long[..]), Bound::Unbounded),
        (Bound::Excluded(&too_long[..]), Bound::Unbounded),
    ] {
        let (lower, _) = half_open(bounds.0, bounds.1).expect("keys");
        assert_eq!(lower, after);
    }
    for end in [Bound::Included(&too_long[..]), Bound::Excluded(&too_long[..])] {
        let (_, upper) = half_open(Bound::Unbounded, end).expect("keys");
        assert_eq!(upper, after);
    }
}

#[test]
fn decoded_fragments_must_be_ascending_and_disjoint() {
    let list = fragment([tombstone("a", "h", 7), tombstone("c", "f", 9)], &[]).list().to_vec();
    assert!(Fragments::new(list.clone()).is_some());
    let mut swapped = list.clone();
    swapped.swap(0, 1);
    assert!(Fragments::new(swapped).is_none());
    let mut overlapping = list.clone();
    overlapping[0].upper = b"d".to_vec();
    assert!(Fragments::new(overlapping).is_none());
    let mut ascending = list;
    ascending[1].sequences.reverse();
    assert!(Fragments::new(ascending).is_none());
}

#[test]
fn adjacent_fragments_give_one_tombstone() {
    let sorted = |mut tombstones: Vec<RangeTombstone>| {
        tombstones.sort_unstable_by_key(|tombstone| tombstone.sequence);
        tombstones
    };
    let nested = vec![tombstone("a", "z", 3), tombstone("b", "y", 5), tombstone("c", "x", 8)];
    assert_eq!(sorted(fragment(nested.clone(), &[]).tombstones()), nested);
    let apart = vec![tombstone("a", "c", 3), tombstone("b", "f", 5), tombstone("g", "", 6)];
    assert_eq!(sorted(fragment(apart.clone(), &[]).tombstones()), apart);
}

#[test]
fn parts_of_fragments_are_cut_at_the_bounds() {
    let whole = fragment([tombstone("b", "h", 7), tombstone("d", "f", 9), tombstone("p", "", 8)], &[]);
    let mut parts = whole.into_parts();
    let shown: Vec<String> = ["a", "b", "c", "e", "o", "q", ""]
        .iter()
        .map(|upper| shown(&parts.next_below(upper.as_bytes())))
        .collect();
    assert_eq!(
        shown,
        ["", "", "[b,c)@[7]", "[c,d)@[7] [d,e)@[9, 7]", "[e,f)@[9, 7] [f,h)@[7]", "[p,q)@[8]", "[q,)@[8]"]
    );
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0xFE, 0xFF]), 0..4)
}

fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
    prop::collection::vec((keys(), keys(), 1..30_u64), 0..20).prop_map(|bounds| {
        bounds
            .into_iter()
            .filter(|(lower, upper, _)| is_below_upper(lower, upper))
            .map(|(lower, upper, sequence)| RangeTombstone { lower, upper, sequence })
            .collect()
    })
}

/// Ascending.
fn read_points() -> impl Strategy<Value = Vec<Sequence>> {
    prop::collection::btree_set(1..30_u64, 0..4).prop_map(|points| points.into_iter().collect())
}

/// The part of a tombstone between two bounds.
fn part_of(tombstone: &RangeTombstone, lower: &[u8], upper: &[u8]) -> Option<RangeTombstone> {
    let lower = tombstone.lower.as_slice().max(lower).to_vec();
    let upper = least_upper(&tombstone.upper, upper).to_vec();
    is_below_upper(&lower, &upper).then_some(RangeTombstone { lower, upper, sequence: tombstone.sequence })
}

proptest! {
    #[test]
    fn parts_of_fragments_are_the_fragments_of_parts(
        tombstones in tombstones(),
        points in read_points(),
        cuts in prop::collection::btree_set(keys(), 0..6),
    ) {
        let mut parts = fragment(tombstones.clone(), &points).into_parts();
        let mut lower = Vec::new();
        for upper in cuts.into_iter().filter(|cut| !cut.is_empty()).chain([Vec::new()]) {
            let within = tombstones.iter().filter_map(|tombstone| part_of(tombstone, &lower, &upper));
            prop_assert_eq!(parts.next_below(&upper), fragment(within, &points));
            lower = upper;
        }
    }

    #[test]
    fn fragments_give_the_tombstones_that_made_them(
        tombstones in tombstones(),
        points in read_points(),
    ) {
        let fragments = fragment(tombstones, &points);
        prop_assert_eq!(fragment(fragments.tombstones(), &points), fragments);
    }

    #[test]
    fn fragments_answer_as_the_tombstones_do(
        tombstones in tombstones(),
        points in read_points(),
        asked in prop::collection::vec(keys(), 1..30),
    ) {
        let fragments = fragment(tombstones.clone(), &points);
        prop_assert!(Fragments::new(fragments.list().to_vec()).is_some());
        let snapshots = points.iter().copied().chain([SEQUENCE_MAX]);
        for snapshot in snapshots {
            for key in &asked {
                let covers = |tombstone: &&RangeTombstone| {
                    tombstone.lower <= *key && is_below_upper(key, &tombstone.upper) && tombstone.sequence <= snapshot
                };
                let expected = tombstones.iter().filter(covers).map(|tombstone| tombstone.sequence).max();
                prop_assert_eq!(fragments.sequence_at(key, snapshot), expected.unwrap_or(0));
                let cover = fragments.cover_at(key, snapshot);
                prop_assert!(cover.lower <= key.as_slice() && is_below_upper(key, cover.upper));
                prop_assert_eq!(fragments.sequence_at(cover.lower, snapshot), cover.sequence);
            }
            for pair in asked.windows(2) {
                let [lower, upper] = pair else { continue };
                if !is_below_upper(lower, upper) {
                    continue;
                }
                let mut reached = lower.as_slice();
                let mut is_covered = true;
                while is_covered {
                    let cover = fragments.cover_at(reached, snapshot);
                    is_covered = cover.sequence > 10;
                    if compare_uppers(upper, cover.upper).is_le() {
                        break;
                    }
                    reached = cover.upper;
                }
                prop_assert_eq!(fragments.cover_all(lower, upper, 10, snapshot), is_covered);
            }
        }
    }
}
