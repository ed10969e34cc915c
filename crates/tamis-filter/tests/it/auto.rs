//! The automatic choice: shifts of the workload, hysteresis, determinism, and inputs without information.

mod workloads;

use std::sync::Arc;

use tamis_filter::auto::{
    Choice, Effort, Part, Pause, Prices, ProbeTime, Query, QueryKind, Request, Scored, Workload, choose,
};
use tamis_filter::{KeyRange, KeySet};
use workloads::OwnedQuery;

const KEY_COUNT: usize = 20_000;
const SAMPLE_COUNT: usize = 4000;
const BITS_PER_KEY_MAX: f64 = 16.0;

fn request<'a>(queries: &'a [Query<'a>]) -> Request<'a> {
    Request {
        workload: Workload { queries },
        prices: Prices::default(),
        bits_per_key_max: BITS_PER_KEY_MAX,
        overlapping_tables: 1,
        current: None,
        effort: Effort::Write,
        seed: 5,
        pause: Pause::default(),
    }
}

fn chosen(keys: &Arc<KeySet>, sample: &[OwnedQuery]) -> Choice {
    let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
    choose(keys, &request(&queries))
}

/// The expected cost of given filters.
fn expected_cost(keys: &Arc<KeySet>, request: &Request<'_>, parts: &[Part]) -> Scored {
    choose(keys, &Request { current: Some(parts), ..*request }).current
}

fn families(choice: &Choice) -> Vec<&'static str> {
    choice.chosen.parts.iter().map(|part| part.spec.family().name()).collect()
}

#[test]
fn a_shift_of_the_workload_changes_the_family_and_noise_does_not() {
    let all = workloads::all(KEY_COUNT);
    let of = |name: &str| all.iter().find(|workload| workload.name == name).unwrap();
    let (points, ranges) = (of("correlated, points"), of("uniform, ranges of 2^20"));
    let first = chosen(&points.keys, &points.queries(SAMPLE_COUNT, 1));
    let second = chosen(&points.keys, &ranges.queries(SAMPLE_COUNT, 1));
    assert_ne!(families(&first), families(&second));

    // Filters that were chosen for another sample of the same distribution are kept.
    for seed in 3..6 {
        let sample = ranges.queries(SAMPLE_COUNT, seed);
        let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
        let with_current =
            |parts| choose(&ranges.keys, &Request { current: Some(parts), ..request(&queries) }).chosen.parts;
        assert_eq!(with_current(&second.chosen.parts), second.chosen.parts);
        // Those for points let all ranges pass.
        assert_ne!(with_current(&first.chosen.parts), first.chosen.parts);
        let cost = |parts: &[Part]| expected_cost(&ranges.keys, &request(&queries), parts).cost_ns;
        assert!(cost(&first.chosen.parts) > 2.0 * cost(&second.chosen.parts));
    }
}

#[test]
fn equal_inputs_give_equal_choices() {
    for workload in workloads::all(3000) {
        let sample = workload.queries(1000, 1);
        assert_eq!(chosen(&workload.keys, &sample), chosen(&workload.keys, &sample), "{}", workload.name);
        assert_eq!(chosen(&workload.keys, &[]), chosen(&workload.keys, &[]), "{}", workload.name);
    }
}

#[test]
fn the_cost_of_given_filters_is_that_of_the_choice() {
    for workload in workloads::all(5000) {
        let sample = workload.queries(1000, 1);
        let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
        let choice = choose(&workload.keys, &request(&queries));
        for scored in std::iter::once(&choice.chosen).chain(&choice.runners_up) {
            let again = expected_cost(&workload.keys, &request(&queries), &scored.parts);
            let apart = (again.cost_ns - scored.cost_ns).abs();
            assert!(apart <= 0.05 * scored.cost_ns, "{}: {again:?}, {scored:?}", workload.name);
        }
    }
}

/// Reads of memory are cheap, so the cheapest filters have many false positives. In ten tables these add up.
#[test]
fn queries_that_ask_many_tables_get_filters_with_fewer_false_positives() {
    let all = workloads::all(KEY_COUNT);
    let of = |name: &str| all.iter().find(|workload| workload.name == name).unwrap();
    let prices = Prices { read_ns: 300.0, ..Prices::default() };
    for name in ["uniform, ranges of 2^20", "correlated, ranges of 32"] {
        let workload = of(name);
        let sample = workload.queries(SAMPLE_COUNT, 1);
        let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
        let with = |overlapping_tables: u32| Request { prices, overlapping_tables, ..request(&queries) };
        let rate = |scored: &Scored| scored.false_positive_rates.range.unwrap();
        let (one, ten) = (choose(&workload.keys, &with(1)), choose(&workload.keys, &with(10)));
        assert!(10.0 * rate(&one.chosen) > 0.02, "{name}: {one:?}");
        assert!(10.0 * rate(&ten.chosen) <= 0.02, "{name}: {ten:?}");
        assert!(ten.runners_up[0].cost_ns < ten.chosen.cost_ns, "the cheapest filters are shown: {ten:?}");
        assert!(!one.is_for_targets && ten.is_for_targets, "{name}");
        // Those of one table do not stay although they are cheaper.
        let current = Some(one.chosen.parts.as_slice());
        let again = choose(&workload.keys, &Request { current, ..with(10) });
        assert_eq!(again.chosen.parts, ten.chosen.parts, "{name}");
        // Those that were chosen for ten tables stay for the same reason.
        let current = Some(ten.chosen.parts.as_slice());
        let again = choose(&workload.keys, &Request { current, ..with(10) });
        assert!(again.chosen.parts == ten.chosen.parts && again.is_for_targets, "{name}");
        // A target that no filter reaches changes nothing.
        let many = choose(&workload.keys, &with(u32::MAX));
        assert!(many.chosen.cost_ns <= 1.1 * one.chosen.cost_ns, "{name}: {many:?}");
        assert!(!many.is_for_targets, "{name}");
    }
}

/// Keys as a table of integers or names has them.
fn key_set(keys: impl IntoIterator<Item = Vec<u8>>) -> Arc<KeySet> {
    let sorted: std::collections::BTreeSet<Vec<u8>> = keys.into_iter().collect();
    let mut set = KeySet::new();
    sorted.iter().for_each(|key| set.push(key).unwrap());
    Arc::new(set)
}

/// A read of a mapped block, and one of a device.
const READS_NS: [f64; 2] = [2_000.0, 60_000.0];

#[test]
fn dense_integers_get_an_exact_filter_without_a_sample() {
    let keys = key_set((0..10_000_u64).map(|number| (7 * number).to_be_bytes().to_vec()));
    for read_ns in READS_NS {
        let prices = Prices { read_ns, ..Prices::default() };
        let choice = choose(&keys, &Request { prices, ..request(&[]) });
        let rates = choice.chosen.false_positive_rates;
        assert_eq!((rates.point, rates.range), (Some(0.0), Some(0.0)), "{choice:?}");
    }
}

#[test]
fn without_a_sample_points_cost_hardly_more_than_with_a_bloom_filter() {
    let random = |number: u64| tamis_workload::mix64(number);
    let integers = key_set((0..10_000).map(|number| random(number).to_be_bytes().to_vec()));
    let names =
        key_set((0..10_000).map(|number| format!("{}.example.org", random(number) % 1_000_000).into_bytes()));
    let pairs = key_set(
        (0..10_000)
            .map(|number| [(random(number) % 50).to_be_bytes(), (number * 1_000).to_be_bytes()].concat()),
    );
    for keys in [integers, names, pairs] {
        for read_ns in READS_NS {
            let prices = Prices { read_ns, ..Prices::default() };
            let choice = choose(&keys, &Request { prices, ..request(&[]) });
            let rates = choice.chosen.false_positive_rates;
            assert!(rates.point.unwrap() < 0.015, "{choice:?}");
            // The filter that answers points is a Bloom filter, or the read is far slower.
            let family = choice.chosen.parts[0].spec.family();
            assert!(ProbeTime::of(family).point_ns <= 10.0 || read_ns > 10_000.0, "{choice:?}");
            assert!(rates.range.unwrap() < 0.9, "ranges have a filter, too: {choice:?}");
        }
    }
}

#[test]
fn a_small_sample_is_weighed_against_the_assumed_workload() {
    let workload = &workloads::all(KEY_COUNT)[3];
    let all = workload.queries(SAMPLE_COUNT, 2);
    let later: Vec<Query<'_>> = all.iter().map(OwnedQuery::query).collect();
    // Without a sample, mapped tables get a Bloom filter, and a range filter in the rest.
    let prices = Prices { read_ns: READS_NS[0], ..Prices::default() };
    let rates = |count: usize| {
        let sample = workload.queries(count, 1);
        let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
        let choice = choose(&workload.keys, &Request { prices, ..request(&queries) });
        assert_eq!(choice.empty_queries, count);
        let cost = expected_cost(&workload.keys, &request(&later), &choice.chosen.parts);
        (cost.false_positive_rates.range.unwrap(), choice)
    };
    let (without, _) = rates(0);
    let (with_few, choice) = rates(40);
    assert!(with_few < 0.1 && with_few < without / 3.0, "{with_few} instead of {without}: {choice:?}");
    // One query says little: points keep a filter.
    let (_, choice) = rates(1);
    let points: Vec<Query<'_>> = later
        .iter()
        .map(|query| Query {
            kind: QueryKind::Point,
            range: KeyRange::point(query.range.lower_bytes()),
            weight: 1.0,
        })
        .collect();
    let scored = expected_cost(&workload.keys, &request(&points), &choice.chosen.parts);
    assert!(scored.false_positive_rates.point.unwrap() < 0.02, "{choice:?}");
}

#[test]
fn open_seeks_get_a_family_that_names_candidates() {
    let workload = &workloads::all(KEY_COUNT)[1];
    let sample = workload.queries(SAMPLE_COUNT, 1);
    let queries: Vec<Query<'_>> =
        sample.iter().map(|query| Query { kind: QueryKind::SeekForward, ..query.query() }).collect();
    let choice = choose(&workload.keys, &request(&queries));
    assert!(choice.chosen.parts.iter().any(|part| part.spec.family().names_candidates(false)), "{choice:?}");
    assert!(choice.chosen.false_positive_rates.seek.unwrap() < 0.1, "{choice:?}");
}

#[test]
fn samples_and_keys_without_information_give_a_choice() {
    let workload = &workloads::all(2000)[1];
    let held: Vec<Vec<u8>> = workload.keys.iter().map(<[u8]>::to_vec).collect();
    let hits: Vec<Query<'_>> = held
        .iter()
        .map(|key| Query { kind: QueryKind::Point, range: KeyRange::point(key), weight: 1.0 })
        .collect();
    assert_eq!(choose(&workload.keys, &request(&hits)).empty_queries, 0);

    let sample = workload.queries(1, 1);
    let repeated = choose(&workload.keys, &request(&[sample[0].query(); 500]));
    assert_eq!(repeated.empty_queries, 500);

    // A budget below that of any filter that helps, and invalid weights and budgets.
    let sample = workload.queries(500, 1);
    let queries: Vec<Query<'_>> = sample.iter().map(OwnedQuery::query).collect();
    for bits_per_key_max in [0.0, 0.001, f64::NAN, -1.0] {
        let choice = choose(&workload.keys, &Request { bits_per_key_max, ..request(&queries) });
        assert!(choice.chosen.parts.is_empty(), "{bits_per_key_max}: {choice:?}");
    }
    for weight in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let queries: Vec<Query<'_>> = queries.iter().map(|query| Query { weight, ..*query }).collect();
        assert_eq!(choose(&workload.keys, &request(&queries)).empty_queries, 0);
    }

    // Bounds of 64 KiB, and tables of few keys.
    let long: Vec<Vec<u8>> =
        (0..200_u8).map(|byte| [held[byte as usize].as_slice(), &[byte; 1 << 16]].concat()).collect();
    let queries: Vec<Query<'_>> = long
        .iter()
        .map(|bound| Query { kind: QueryKind::Prefix, range: KeyRange::prefix(bound), weight: 1.0 })
        .collect();
    assert!(choose(&workload.keys, &request(&queries)).empty_queries >= 199);
    for count in 0..3 {
        let mut keys = KeySet::new();
        held.iter().take(count).for_each(|key| keys.push(key).unwrap());
        choose(&Arc::new(keys), &request(&queries));
    }
    let mut keys = KeySet::new();
    long.iter().for_each(|key| keys.push(key).unwrap());
    choose(&Arc::new(keys), &request(&queries));
}
