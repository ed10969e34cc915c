//! The chosen filters fit the workload.

use std::{cell::Cell, ops::ControlFlow, sync::Arc};

use super::{Effort, Pause, Prices, Query, QueryKind, Request, Workload, choose, work::Work};
use crate::{KeyRange, KeySet, steps};

fn key_set(count: u64) -> Arc<KeySet> {
    let mut keys: Vec<u64> = (0..count).map(|number| crate::mix64(number + 1, 0)).collect();
    keys.sort_unstable();
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(&key.to_be_bytes()).expect("sorted"));
    Arc::new(set)
}

fn request<'a>(queries: &'a [Query<'a>]) -> Request<'a> {
    Request {
        workload: Workload { queries },
        prices: Prices::default(),
        bits_per_key_max: 16.0,
        overlapping_tables: 1,
        current: None,
        effort: Effort::Write,
        seed: 1,
        pause: Pause::default(),
    }
}

#[test]
fn the_filters_reject_the_points_or_ranges_of_the_sample() {
    let keys = key_set(5000);
    let bounds: Vec<([u8; 8], [u8; 8])> = (0..1000_u64)
        // Right after keys, where prefixes do not help.
        .map(|number| crate::mix64(number + 1, 0) + 1)
        .map(|lower| (lower.to_be_bytes(), (lower + 30).to_be_bytes()))
        .collect();
    let point = |(lower, _): &'static ([u8; 8], [u8; 8])| KeyRange::point(lower);
    let bounds: &'static [([u8; 8], [u8; 8])] = bounds.leak();
    let points: Vec<Query<'_>> =
        bounds.iter().map(|pair| Query { kind: QueryKind::Point, range: point(pair), weight: 1.0 }).collect();
    let ranges: Vec<Query<'_>> = bounds
        .iter()
        .map(|(lower, upper)| Query {
            kind: QueryKind::Range,
            range: KeyRange::closed(lower, upper),
            weight: 1.0,
        })
        .collect();
    let choice = choose(&keys, &request(&points));
    assert!(choice.chosen.false_positive_rates.point.is_some_and(|rate| rate < 0.001), "{choice:?}");
    let choice = choose(&keys, &request(&ranges));
    assert!(choice.chosen.false_positive_rates.range.is_some_and(|rate| rate < 0.02), "{choice:?}");
    assert!(choice.chosen.parts.iter().any(|part| part.spec.family().answers_ranges()), "{choice:?}");
}

#[test]
fn small_tables_and_samples_without_use_give_a_choice() {
    for count in [0, 1, 2] {
        let keys = key_set(count);
        let choice = choose(&keys, &request(&[]));
        assert_eq!(choice.empty_queries, 0);
        let long = vec![7; 1 << 16];
        let query = Query { kind: QueryKind::Range, range: KeyRange::prefix(&long), weight: 1.0 };
        choose(&keys, &request(&[query; 300]));
    }
}

/// Keys of these lengths at random.
fn long_keys(count: u64, length: usize) -> Arc<KeySet> {
    let key = |number: u64| -> Vec<u8> {
        (0..length.div_ceil(8) as u64)
            .flat_map(|word| crate::mix64(number, word).to_be_bytes())
            .take(length)
            .collect()
    };
    let mut keys: Vec<Vec<u8>> = (0..count).map(key).collect();
    keys.sort_unstable();
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(key).expect("sorted"));
    Arc::new(set)
}

/// Ranges, prefixes and points: half of them anywhere, and half next to a key. Bounds have at most 256 bytes, as in the sample of a store.
fn bounds_among(keys: &KeySet, count: u64) -> Vec<(QueryKind, Vec<u8>, Vec<u8>)> {
    let bound = |number: u64| {
        let random = crate::mix64(number, 77);
        let key = keys.get((random % keys.len() as u64) as usize).expect("keys").to_vec();
        let mut lower: Vec<u8> = key.into_iter().take(256).collect();
        let place =
            if number.is_multiple_of(2) { lower.len() - 1 } else { (number % lower.len() as u64) as usize };
        if let Some(byte) = lower.get_mut(place) {
            *byte = byte.wrapping_add(1 + (random >> 60) as u8);
        }
        let mut upper = lower.clone();
        if let Some(byte) = upper.last_mut() {
            *byte = byte.saturating_add((random >> 50) as u8 & 31);
        }
        let kinds = [QueryKind::Range, QueryKind::Prefix, QueryKind::Point];
        (kinds.into_iter().cycle().nth((number / 2 % 3) as usize).expect("one of three"), lower, upper)
    };
    (0..count).map(bound).collect()
}

/// Writing a key and its value takes about a microsecond, and a step about a nanosecond. No clock is read: the steps are counted where they are
/// taken. Symptom: a choice for 40 keys of 64 KiB took two seconds, because it priced all of their 524,280 prefix lengths.
#[test]
fn a_choice_takes_at_most_a_tenth_of_the_time_in_which_its_table_is_written() {
    let sets = [
        long_keys(40, 65_535),
        long_keys(3_000, 600),
        key_set(1_000),
        key_set(200_000),
        long_keys(60_000, 24),
    ];
    for keys in sets {
        let bounds = bounds_among(&keys, 20_000);
        let query = |(kind, lower, upper): &'_ (QueryKind, Vec<u8>, Vec<u8>)| {
            let (lower, upper): (&'static [u8], &'static [u8]) = (lower.clone().leak(), upper.clone().leak());
            let range = match kind {
                QueryKind::Point => KeyRange::point(lower),
                QueryKind::Prefix => KeyRange::prefix(lower),
                _ => KeyRange::closed(lower, upper),
            };
            Query { kind: *kind, range, weight: 1.0 }
        };
        let queries: Vec<Query<'_>> = bounds.iter().map(query).collect();
        for sample in [&[][..], &queries] {
            for (effort, per_key, least) in
                [(Effort::Write, 100, 6_000_000), (Effort::Background, 1_000, 60_000_000)]
            {
                let limit = (keys.len() * per_key).max(least);
                let (steps, choice) = steps::of(|| choose(&keys, &Request { effort, ..request(sample) }));
                let what = format!("{} keys, {} queries, {effort:?}", keys.len(), sample.len());
                assert!(steps <= limit, "{what}: {steps} steps of {limit}: {choice:?}");
                assert!(steps > keys.len(), "{what}: {steps} steps are not all that it takes");
            }
        }
    }
}

/// A design that takes too long leaves its steps to the others.
#[test]
fn designs_beyond_the_limit_are_left_out_and_the_choice_says_so() {
    let work = Work::for_keys(1_000_000, Effort::Write);
    assert!(work.take(1_000_000) && !work.was_cut());
    assert!(!work.take(100_000_000) && work.was_cut());
    assert!(work.take(99_000_000) && !work.take(1));
}

#[test]
fn a_choice_says_whether_it_left_out_designs() {
    let keys = key_set(5_000);
    let bounds: Vec<[u8; 8]> =
        (0..5_000_u64).map(|number| crate::mix64(number + 9_000, 1).to_be_bytes()).collect();
    let point =
        |key: &'static [u8; 8]| Query { kind: QueryKind::Point, range: KeyRange::point(key), weight: 1.0 };
    let points: Vec<Query<'_>> = bounds.leak().iter().map(point).collect();
    let was_cut = |effort| choose(&keys, &Request { effort, ..request(&points) }).was_cut;
    assert!(!was_cut(Effort::Background), "all designs");
    assert!(was_cut(Effort::Write), "not those that need a long search");
}

#[test]
fn a_choice_pauses_between_the_designs_and_can_be_stopped() {
    let keys = key_set(20_000);
    let bounds: Vec<[u8; 8]> =
        (0..500_u64).map(|number| crate::mix64(number + 90_000, 1).to_be_bytes()).collect();
    let range = |lower| Query { kind: QueryKind::Range, range: KeyRange::prefix(lower), weight: 1.0 };
    let queries: Vec<Query<'_>> = bounds.iter().map(|lower| range(lower)).collect();
    let pauses_with_break_at = |last: u32| {
        let count = Cell::new(0);
        let pause = || {
            count.set(count.get() + 1);
            if count.get() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let choice = choose(&keys, &Request { pause: Pause::with(&pause), ..request(&queries) });
        (count.get(), choice)
    };
    let (count, paused) = pauses_with_break_at(u32::MAX);
    assert!(count > 20, "{count} pauses");
    assert_eq!(paused, choose(&keys, &request(&queries)));
    let (count, stopped) = pauses_with_break_at(5);
    assert!(count == 5 && stopped.was_cut, "{count} pauses");
}
