use super::*;

fn budget(gap_count: u64) -> Arc<GapBudget> {
    Arc::new(GapBudget::new(gap_count * (GAP_BYTES + 2)))
}

/// A cache with a gap between each pair of neighbours.
fn cache(budget: &Arc<GapBudget>, gaps: &[(&[u8], &[u8])]) -> Arc<GapCache> {
    let cache = Arc::new(GapCache::default());
    gaps.iter().for_each(|(predecessor, successor)| cache.record(budget, predecessor, successor));
    cache
}

#[test]
fn ranges_within_a_gap_are_rejected_and_all_others_are_not() {
    let budget = budget(10);
    let cache = cache(&budget, &[(b"d", b"h"), (b"m", b"n")]);
    let bounds: Vec<Vec<u8>> = (b'a'..=b'z').flat_map(|byte| [vec![byte], vec![byte, 0]]).collect();
    let keys: Vec<u8> = (b'a'..=b'z').filter(|byte| !(b'e'..=b'g').contains(byte)).collect();
    let mut rejected = 0;
    for lower in &bounds {
        for upper in &bounds {
            for range in [
                KeyRange::closed(lower, upper),
                KeyRange { lower: Bound::Excluded(lower), upper: Upper::Excluded(upper) },
                KeyRange { lower: Bound::Included(lower), upper: Upper::Open },
                KeyRange { lower: Bound::Unbounded, upper: Upper::Included(upper) },
                KeyRange::prefix(lower),
            ] {
                if cache.rejects(&range) {
                    rejected += 1;
                    let found = keys.iter().find(|byte| range.contains(&[**byte]));
                    assert!(found.is_none() || range.is_empty(), "{range:?} has {found:?}");
                }
            }
        }
    }
    assert!(rejected > 40, "{rejected}");
    assert!(cache.rejects(&KeyRange { lower: Bound::Excluded(b"d"), upper: Upper::Excluded(b"h") }));
    assert!(cache.rejects(&KeyRange::prefix(b"e")) && !cache.rejects(&KeyRange::prefix(b"h")));
}

#[test]
fn unused_gaps_are_evicted_first_and_the_budget_is_kept() {
    let budget = budget(3);
    let cache = cache(&budget, &[(b"a", b"b"), (b"c", b"d"), (b"e", b"f")]);
    assert!(cache.rejects(&KeyRange::point(b"aa")) && cache.rejects(&KeyRange::point(b"ee")));
    cache.record(&budget, b"g", b"h");
    assert!(!cache.rejects(&KeyRange::point(b"cc")), "the unused gap is evicted");
    assert!([b"aa", b"ee", b"gg"].iter().all(|key| cache.rejects(&KeyRange::point(*key))));
    assert_eq!(budget.used_bytes(), 3 * (GAP_BYTES + 2));
    drop(cache);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn a_new_table_evicts_gaps_of_other_tables() {
    let budget = budget(3);
    let older = cache(&budget, &[(b"a", b"b"), (b"c", b"d"), (b"e", b"f")]);
    let newer = cache(&budget, &[(b"g", b"h")]);
    assert!(newer.rejects(&KeyRange::point(b"gg")));
    let left = [b"aa", b"cc", b"ee"].iter().filter(|key| older.rejects(&KeyRange::point(**key))).count();
    assert_eq!((left, budget.used_bytes()), (2, 3 * (GAP_BYTES + 2)));
}

#[test]
fn a_gap_that_exceeds_the_budget_is_not_recorded() {
    let budget = budget(1);
    let cache = cache(&budget, &[(b"a", b"b")]);
    cache.record(&budget, b"long long long", b"longer longer");
    assert!(!cache.rejects(&KeyRange::point(b"long long longa")));
    assert!(!GapCache::default().should_record(&GapBudget::new(0)));
}

#[test]
fn points_search_only_while_gaps_are_hit() {
    let budget = budget(10);
    let cache = cache(&budget, &[(b"a", b"c")]);
    assert!(!cache.may_reject_points());
    cache.expect_points();
    assert!(cache.may_reject_points() && cache.rejects_point(b"b"));
    for _ in 0..2 * POINT_CREDIT {
        assert!(cache.may_reject_points() && !cache.rejects_point(b"x"));
    }
    assert!(!cache.may_reject_points());
}

#[test]
fn false_positives_are_recorded_rarely_if_gaps_are_not_hit() {
    let budget = budget(10);
    let cache = GapCache::default();
    let recorded = (0..100_000).filter(|_| cache.should_record(&budget)).count();
    assert!((6_000..9_000).contains(&recorded), "{recorded}");
}

/// A gap may reject a range only if no key is in it. All gaps of the keys are known, so each range between two keys is rejected.
#[test]
fn exactly_the_ranges_without_a_key_are_rejected_also_among_prefixes_of_keys() {
    const BYTES: [u8; 4] = [0, 1, b'a', 0xff];
    let mut bounds: Vec<Vec<u8>> = vec![Vec::new()];
    for length in 1..4 {
        let shorter: Vec<_> = bounds.iter().filter(|bound| bound.len() + 1 == length).cloned().collect();
        bounds
            .extend(shorter.iter().flat_map(|bound| BYTES.map(|byte| [bound.as_slice(), &[byte]].concat())));
    }
    bounds.sort();
    let keys: Vec<&[u8]> = bounds.iter().map(Vec::as_slice).skip(3).step_by(5).collect();
    let budget = Arc::new(GapBudget::new(1 << 20));
    let gaps: Vec<_> = keys.iter().zip(keys.iter().skip(1)).map(|(left, right)| (*left, *right)).collect();
    let cache = cache(&budget, &gaps);
    let (first, last) = (*keys.first().expect("keys"), *keys.last().expect("keys"));
    let mut counts = [0, 0];
    for lower in &bounds {
        for upper in &bounds {
            for range in [
                KeyRange::closed(lower, upper),
                KeyRange { lower: Bound::Excluded(lower), upper: Upper::Included(upper) },
                KeyRange { lower: Bound::Included(lower), upper: Upper::Excluded(upper) },
                KeyRange { lower: Bound::Excluded(lower), upper: Upper::Excluded(upper) },
                KeyRange::prefix(lower),
            ] {
                let is_between = first <= lower.as_slice() && last > lower.max(upper).as_slice();
                if range.is_empty() || !is_between {
                    continue;
                }
                let found = keys.iter().find(|key| range.contains(key));
                assert_eq!(cache.rejects(&range), found.is_none(), "{range:?} has {found:?}");
                if let Some(count) = counts.get_mut(usize::from(found.is_some())) {
                    *count += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
}

#[test]
fn false_positives_are_all_recorded_while_gaps_are_hit() {
    let budget = budget(10);
    let cache = cache(&budget, &[(b"a", b"c")]);
    for number in 0..4 * ALL_RECORDED {
        assert!(number % 4 != 0 || cache.rejects(&KeyRange::point(b"b")));
        assert!(cache.should_record(&budget), "{number}");
    }
}
