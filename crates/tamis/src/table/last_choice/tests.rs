//! When the filters of the last table are used again.

use tamis_filter::{
    Family, FilterSpec, KeyRange,
    auto::{Effort, Pause, Prices, Query, QueryKind, Workload},
};
use tamis_workload::mix64;

use super::*;

const KEY_COUNT: u64 = 20_000;
/// A count of sampled queries above this means one after a refill.
const REFILL: u64 = 1_000_000;

/// Random integers, or ones with small distances.
fn keys(seed: u64, is_dense: bool) -> Arc<KeySet> {
    let number = |index: u64| {
        let random = mix64((seed << 40) + index);
        if is_dense { 3 * index + random % 3 } else { random }
    };
    sorted((0..KEY_COUNT).map(number).collect())
}

/// Random integers of which each table lacks other ones.
fn most_keys(table: u64) -> Arc<KeySet> {
    sorted((0..KEY_COUNT).filter(|index| index % 50 != table).map(|index| mix64((1 << 40) + index)).collect())
}

fn sorted(mut numbers: Vec<u64>) -> Arc<KeySet> {
    numbers.sort_unstable();
    let mut keys = KeySet::new();
    for number in numbers {
        let _ = keys.push(&number.to_be_bytes());
    }
    Arc::new(keys)
}

/// Bounds of ranges without a key: anywhere, or right after keys.
fn bounds(keys: &KeySet, is_near: bool) -> Vec<([u8; 8], [u8; 8])> {
    let lower = |index: u64| {
        let key =
            keys.get((mix64((3 << 50) + index) % KEY_COUNT) as usize).and_then(|key| key.try_into().ok());
        let near = u64::from_be_bytes(key.unwrap_or_default()).saturating_add(1 + index % 4);
        if is_near { near } else { mix64((5 << 50) + index) >> 1 }
    };
    (0..2_000).map(lower).map(|lower| (lower.to_be_bytes(), (lower + 15).to_be_bytes())).collect()
}

fn choose(last: &LastChoice, keys: &Arc<KeySet>, bounds: &[([u8; 8], [u8; 8])], count: u64) -> Choice {
    let (again, new) = choices(last, keys, bounds, count);
    // A choice that is used again costs about as much as a new one.
    assert!(again.chosen.cost_ns <= 1.3 * new.chosen.cost_ns, "{again:?}, {new:?}");
    again
}

fn queries_of(bounds: &[([u8; 8], [u8; 8])]) -> Vec<Query<'_>> {
    let query =
        |(lower, upper)| Query { kind: QueryKind::Range, range: KeyRange::closed(lower, upper), weight: 1.0 };
    bounds.iter().map(|(lower, upper)| (&lower[..], &upper[..])).map(query).collect()
}

fn request<'a>(queries: &'a [Query<'a>], current: Option<&'a [Part]>, effort: Effort) -> Request<'a> {
    Request {
        workload: Workload { queries },
        prices: Prices::default(),
        bits_per_key_max: 14.0,
        overlapping_tables: 1,
        current,
        effort,
        seed: 1,
        pause: Pause::default(),
    }
}

/// The choice by the last one, and that of a search.
fn choices(
    last: &LastChoice,
    keys: &Arc<KeySet>,
    bounds: &[([u8; 8], [u8; 8])],
    count: u64,
) -> (Choice, Choice) {
    let queries = queries_of(bounds);
    let request = request(&queries, None, Effort::Write);
    let sample = SampleAge { sampled_count: count % REFILL, refills: (count / REFILL) as u32 };
    let small = last.for_small(keys.len(), &request, sample);
    (small.unwrap_or_else(|| last.choose(keys, &request, sample).0), auto::choose(keys, &request))
}

fn use_count(last: &LastChoice) -> u32 {
    last.0.lock().as_ref().map_or(0, |found| found.use_count)
}

#[test]
fn tables_with_similar_keys_and_queries_get_the_filters_of_one_search() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let first = choose(&last, &most_keys(1), &uniform, 5_000);
    for table in 2..6 {
        let choice = choose(&last, &most_keys(table), &uniform, 5_000 + 100 * table);
        assert_eq!(choice.chosen.parts, first.chosen.parts);
        assert_eq!(u64::from(use_count(&last)), table - 1);
        assert!(choice.chosen.cost_ns > 0.0 && choice.empty_queries > 1_000);
    }
}

#[test]
fn other_keys_other_queries_and_many_new_ones_begin_a_search() {
    let last = LastChoice::default();
    let random = keys(1, false);
    let uniform = bounds(&random, false);
    let search = |keys: &Arc<KeySet>, bounds: &[([u8; 8], [u8; 8])], count| {
        let (choice, new) = choices(&last, keys, bounds, count);
        assert_eq!(choice, new);
        assert_eq!(use_count(&last), 0);
    };
    search(&random, &uniform, 5_000);
    // These cost much more with the filters for uniform ones.
    search(&random, &bounds(&random, true), 5_100);
    let dense = keys(2, true);
    search(&dense, &bounds(&dense, true), 5_200);
    search(&random, &uniform, 5_300);
    search(&random, &uniform, 7_301);
    search(&random, &uniform, REFILL + 7_302);
}

#[test]
fn a_search_is_repeated_after_some_tables() {
    let last = LastChoice::default();
    let (keys, uniform) = (keys(1, false), bounds(&keys(1, false), false));
    let searched = (0..=USES_MAX + 1).filter(|_| {
        choose(&last, &keys, &uniform, 5_000);
        use_count(&last) == 0
    });
    assert_eq!(searched.count(), 2);
}

/// A check compares the filters of its table with those that were found for another one.
#[test]
fn the_filters_of_a_table_are_priced_when_those_of_the_last_search_are_used_again() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let queries = queries_of(&uniform);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let searched = last.search(&most_keys(1), &request(&queries, None, Effort::Background), sample);
    let of_points = Part { spec: FilterSpec::new(Family::BlockedBloom), bits_per_key: Some(10.0) };
    let current = [of_points];
    let request = request(&queries, Some(&current), Effort::Background);
    let (again, is_used_again) = last.choose(&most_keys(2), &request, sample);
    assert!(is_used_again);
    assert_eq!(use_count(&last), 1);
    assert_eq!((&again.chosen.parts, again.current.parts.as_slice()), (&searched.chosen.parts, &current[..]));
    // All ranges read the table.
    assert!(again.current.cost_ns > 10.0 * again.chosen.cost_ns, "{again:?}");
}

/// The false positives of overlapping tables add up.
#[test]
fn the_filters_of_a_table_alone_are_not_used_for_one_of_eight() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let queries = queries_of(&uniform);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let prices = Prices { read_ns: 300.0, ..Prices::default() };
    let with = |overlapping_tables| Request {
        prices,
        overlapping_tables,
        ..request(&queries, None, Effort::Background)
    };
    let meets = |choice: &Choice| auto::meets_targets(&choice.chosen.false_positive_rates, 8);
    let alone = last.search(&most_keys(1), &with(1), sample);
    assert!(!meets(&alone), "{alone:?}");
    let (of_eight, is_used_again) = last.choose(&most_keys(2), &with(8), sample);
    assert!(!is_used_again && meets(&of_eight), "{of_eight:?}");
    let (again, is_used_again) = last.choose(&most_keys(3), &with(8), sample);
    assert!(is_used_again && meets(&again), "{again:?}");
    // Few tables more, for which they let too many queries pass.
    let mut found = last.0.lock().clone().expect("the choice was kept");
    found.choice.chosen = alone.chosen;
    (found.circumstances.overlapping_tables, found.use_count) = (1, 0);
    assert!(super::again(&most_keys(2), &with(8), found).is_none());
}

#[test]
fn kept_filters_of_a_table_that_no_query_reaches_are_not_shared() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let queries = queries_of(&uniform);
    let found = last.search(&most_keys(1), &request(&queries, None, Effort::Background), sample);
    let others: Vec<Part> = auto::choose(&most_keys(2), &request(&[], None, Effort::Background)).chosen.parts;
    assert_ne!(others, found.chosen.parts, "the test compares different filters");
    let kept = last.search(&most_keys(2), &request(&[], Some(&others), Effort::Background), sample);
    assert_eq!((kept.empty_queries, &kept.chosen.parts), (0, &others));
    let stays = last.0.lock().clone().map(|found| found.choice.chosen.parts);
    assert_eq!(stays, Some(found.chosen.parts));
}

/// A flush does not search over models; the filters of a check, which does, serve the next flushes.
#[test]
fn new_tables_get_the_filters_that_a_check_finds() {
    let last = LastChoice::default();
    // Wide ranges at a greater distance from keys: a model finds the length of their prefixes.
    let number = |bound: [u8; 8]| u64::from_be_bytes(bound);
    let wide = |(near, _)| (number(near).saturating_add(1 << 45), number(near).saturating_add(3 << 44));
    let wide = bounds(&keys(1, false), true).into_iter().map(wide);
    let wide: Vec<_> = wide.map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes())).collect();
    let queries = queries_of(&wide);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let quick = request(&queries, None, Effort::Quick);
    let thorough = request(&queries, None, Effort::Background);
    let written = |table| last.choose(&most_keys(table), &quick, sample);
    let (first, is_used_again) = written(1);
    assert!(first.was_cut && !is_used_again);
    let (second, is_used_again) = written(2);
    assert!(second.was_cut && is_used_again, "no thorough search since");
    // A check does not use the filters of a quick search.
    let (found, is_used_again) = last.choose(&most_keys(2), &thorough, sample);
    assert!(!is_used_again);
    assert!(found.chosen.cost_ns < 0.9 * second.chosen.cost_ns, "{found:?}, {second:?}");
    let (third, is_used_again) = written(3);
    assert!(!third.was_cut && is_used_again);
    assert_eq!(third.chosen.parts, found.chosen.parts);
    // Another quick search, because there are many new queries, keeps them.
    let sample = SampleAge { sampled_count: 8_000, ..sample };
    let (fourth, is_used_again) = last.choose(&most_keys(4), &quick, sample);
    assert!(fourth.was_cut && !is_used_again);
    assert_eq!(fourth.chosen.parts, found.chosen.parts);
}

/// A table of a flush into many partitions.
fn small_keys(table: u64) -> Arc<KeySet> {
    sorted((0..500).map(|index| mix64((table << 40) + index)).collect())
}

#[test]
fn many_small_tables_share_a_search_until_the_queries_change() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let searches = |tables: std::ops::Range<u64>, count: u64| {
        let of_table = |table| choices(&last, &small_keys(table), &uniform, count);
        // A search computes the rates for the keys of this table: they differ from those of the last one.
        tables.map(of_table).filter(|(choice, new)| choice.chosen.cost_ns == new.chosen.cost_ns).count()
    };
    let per_search = SMALL_KEYS_MAX as u64 / 500;
    assert_eq!(searches(0..per_search + 1, 5_000), 1);
    assert_eq!(searches(200..200 + per_search, 5_000), 1, "a search is repeated after many keys");
    assert_eq!(searches(400..410, 5_000 + NEW_QUERIES_MAX + 1), 1, "and for new queries");
}

/// For a few keys filters are not worth their headers.
#[test]
fn the_choice_for_a_few_keys_serves_tables_of_a_few_keys() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let of_table = |table: u64, key_count: u64| {
        let keys = sorted((0..key_count).map(|index| mix64((table << 40) + index)).collect());
        choices(&last, &keys, &uniform, 5_000).0
    };
    let searched_for =
        |last: &LastChoice| last.0.lock().as_ref().map_or(0.0, |found| found.circumstances.key_count);
    let few = of_table(1, 20);
    for table in 2..100 {
        assert_eq!(of_table(table, 20 + table % 60).chosen, few.chosen, "a search per table");
    }
    of_table(100, 81);
    assert_eq!(searched_for(&last), 81.0, "a search for more keys");
    of_table(101, 5);
    assert_eq!(searched_for(&last), 81.0, "serves fewer keys");
}

#[test]
fn a_choice_that_says_little_about_other_tables_is_not_shared() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let found = |last: &LastChoice| last.0.lock().clone().map(|found| found.choice);
    choices(&last, &small_keys(1), &uniform, 5_000);
    let by_queries = found(&last).expect("the choice was kept");
    assert!(by_queries.empty_queries >= auto::SAMPLE_MIN, "{by_queries:?}");
    // A table that no query reaches: the choice is that for the assumed workload.
    let circumstances = last.0.lock().as_ref().expect("the choice was kept").circumstances;
    let (of_assumed, _) = choices(&LastChoice::default(), &small_keys(2), &[], 5_000);
    assert_eq!(of_assumed.empty_queries, 0);
    last.note(500, &of_assumed, circumstances, true);
    assert_eq!(found(&last).expect("it stays").chosen.parts, by_queries.chosen.parts);
    assert_ne!(of_assumed.chosen.parts, by_queries.chosen.parts, "the test compares different choices");
}

/// Symptom: the filters that a search found for one run were used for small tables that overlap eight.
#[test]
fn small_tables_that_overlap_many_others_get_their_own_search() {
    let last = LastChoice::default();
    let keys = small_keys(1);
    let bounds = bounds(&small_keys(1), false);
    let queries = queries_of(&bounds);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let prices = Prices { read_ns: 300.0, ..Prices::default() };
    let with =
        |overlapping_tables| Request { prices, overlapping_tables, ..request(&queries, None, Effort::Write) };
    let serves = |count| last.for_small(keys.len(), &with(count), sample).is_some();
    let one = last.choose(&keys, &with(1), sample).0;
    assert!(!auto::meets_targets(&one.chosen.false_positive_rates, 8), "{one:?}");
    assert!(serves(1) && !serves(8));
    let eight = last.choose(&keys, &with(8), sample).0;
    assert!(auto::meets_targets(&eight.chosen.false_positive_rates, 8), "{eight:?}");
    assert!(serves(8) && serves(1), "few false positives suit fewer tables, too");
    let _ = last.choose(&keys, &with(100_000), sample);
    assert!(serves(100_000) && serves(1), "no filter suits so many");
    assert!(!serves(1_000_000));
}

/// Filters that were found when reads and memory cost more are dearer than necessary, and still about as good as they were.
#[test]
fn a_search_is_repeated_when_reads_or_memory_become_cheaper() {
    let uniform = bounds(&keys(1, false), false);
    let queries = queries_of(&uniform);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let request = request(&queries, None, Effort::Write);
    let Prices { read_ns, bit_ns, .. } = request.prices;
    let is_used_again = |prices: Prices| {
        let last = LastChoice::default();
        let _ = last.choose(&most_keys(1), &request, sample);
        last.choose(&most_keys(2), &Request { prices, ..request }, sample).1
    };
    assert!(is_used_again(Prices { read_ns: read_ns / 1.5, bit_ns: bit_ns / 1.5, ..request.prices }));
    assert!(!is_used_again(Prices { read_ns: read_ns / 3.0, ..request.prices }));
    assert!(!is_used_again(Prices { bit_ns: bit_ns / 3.0, ..request.prices }));
}

#[test]
fn filters_above_a_budget_that_became_smaller_are_not_used_again() {
    let last = LastChoice::default();
    let uniform = bounds(&keys(1, false), false);
    let queries = queries_of(&uniform);
    let sample = SampleAge { sampled_count: 5_000, refills: 0 };
    let request = request(&queries, None, Effort::Write);
    let bits = last.choose(&most_keys(1), &request, sample).0.chosen.bits_per_key;
    let with = |bits_per_key_max| Request { bits_per_key_max, ..request };
    assert!(last.choose(&most_keys(2), &with(1.01 * bits), sample).1, "they fit");
    let less = 0.98 * bits;
    assert!(LIKE_BITS * less > request.bits_per_key_max, "budgets are alike");
    let (choice, is_used_again) = last.choose(&most_keys(3), &with(less), sample);
    assert!(!is_used_again && choice.chosen.bits_per_key <= less, "{choice:?}");
    // Small tables take the filters of the last search without a computation.
    let small = LastChoice::default();
    let bits = small.choose(&small_keys(1), &request, sample).0.chosen.bits_per_key;
    assert!(small.for_small(500, &with(bits), sample).is_some());
    assert!(bits > 0.0 && small.for_small(500, &with(0.98 * bits), sample).is_none());
}
