//! Builds that use the counters of earlier filters, compared with builds that use samples.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use tamis_workload::{KeySet, QuerySet, RangeMax, TextSet, empty_prefixes, empty_text_ranges};

use crate::rosetta::tests::{build, builder, open, queries, rate, rate_of};
use crate::rosetta::{Prices, RosettaBuilder, RosettaFilter, SHARED_BUCKETS, Strategy, Usage};
use crate::{Budget, FilterBuilder, KeyRange, Samples};

/// Rates of a filter without a sample and of its successors, each built from the counters of all before.
fn rates_of_builds(set: QuerySet, build_count: usize) -> (Vec<f64>, f64) {
    let keys = KeySet::Uniform.generate(20_000, 1);
    let (sample, asked) = (queries(set, &keys, 2000, 2), queries(set, &keys, 20_000, 3));
    let mut filter = build(&keys, Strategy::LeastCost, Prices::default(), 12.0, &[]);
    let mut rates = vec![rate(&filter, &asked)];
    let mut usage = Usage::default();
    for _ in 0..build_count {
        usage.merge(&filter.usage());
        let mut builder = builder(&keys, Strategy::LeastCost, Prices::default());
        builder.set_usage(usage.clone());
        filter = open(builder.finish(Budget::bits_per_key(12.0).unwrap(), Samples::NONE).unwrap());
        rates.push(rate(&filter, &asked));
    }
    let sampled = build(&keys, Strategy::LeastCost, Prices::default(), 12.0, &sample);
    (rates, rate(&sampled, &asked))
}

#[test]
fn a_build_from_counters_recovers_most_of_the_gain_of_a_sample() {
    let all = [
        QuerySet::Uniform(RangeMax::Point),
        QuerySet::Uniform(RangeMax::R32),
        QuerySet::Uniform(RangeMax::R1024),
        QuerySet::Uniform(RangeMax::R1m),
        QuerySet::Correlated(RangeMax::Point),
        QuerySet::Correlated(RangeMax::R32),
        QuerySet::Correlated(RangeMax::R1024),
        QuerySet::Correlated(RangeMax::R1m),
        QuerySet::Split,
    ];
    for set in all {
        let (rates, sampled) = rates_of_builds(set, 3);
        let (first, last) = (*rates.first().unwrap(), *rates.last().unwrap());
        println!("{set}: {rates:?}, from a sample {sampled}");
        // If many ranges pass, counters contain less information than a sample, but enough for most of the gain.
        assert!(last <= f64::max(1.5 * sampled, first / 5.0), "{set}: {rates:?} {sampled}");
    }
}

/// A filter of texts, built from a sample or from the counters of another filter.
fn of_texts(keys: &[Vec<u8>], samples: Samples<'_>, usage: Option<Usage>) -> RosettaFilter<Vec<u8>> {
    let mut builder = RosettaBuilder::new(Strategy::LeastCost, Prices::default(), 3);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    if let Some(usage) = usage {
        builder.set_usage(usage);
    }
    open(builder.finish(Budget::bits_per_key(14.0).unwrap(), samples).unwrap())
}

#[test]
fn a_build_from_counters_of_byte_strings_is_close_to_one_from_a_sample() {
    for set in TextSet::ALL {
        let (keys, others) = set.generate_split(20_000, 24_000, 1);
        let close = empty_text_ranges(&keys, &others);
        let close: Vec<KeyRange<'_>> =
            close.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
        let prefixes = empty_prefixes(&keys, &others, 12);
        let prefixes: Vec<KeyRange<'_>> = prefixes.iter().map(|prefix| KeyRange::prefix(prefix)).collect();
        for (what, asked) in [("close", close), ("prefixes", prefixes)] {
            let sample: Vec<KeyRange<'_>> = asked.iter().step_by(8).copied().collect();
            let sampled = rate_of(&of_texts(&keys, Samples { queries: &sample }, None), &asked);
            let mut filter = of_texts(&keys, Samples::NONE, None);
            let mut rates = vec![rate_of(&filter, &asked)];
            let mut usage = Usage::default();
            for _ in 0..3 {
                usage.merge(&filter.usage());
                filter = of_texts(&keys, Samples::NONE, Some(usage.clone()));
                rates.push(rate_of(&filter, &asked));
            }
            println!("{set} {what}, {}: {rates:?}, from a sample {sampled}", asked.len());
            let last = *rates.last().unwrap();
            assert!(last <= 1.5 * sampled + 0.002, "{set} {what}: {rates:?} {sampled}");
        }
    }
}

#[test]
fn ranges_of_byte_strings_are_counted_by_the_bytes_that_their_bounds_share() {
    let keys: Vec<Vec<u8>> =
        (0..1000_u32).map(|number| format!("com.example/{number:05}").into_bytes()).collect();
    let filter = of_texts(&keys, Samples::NONE, None);
    let ranges = [
        KeyRange::closed(b"com.example/00001x", b"com.example/00001z"),
        KeyRange::prefix(b"com.example/x"),
        KeyRange::closed(b"com.", b"com.a"),
        KeyRange::closed(b"a", b"b"),
    ];
    rate_of(&filter, &ranges);
    let usage = filter.usage();
    let mut shared = vec![0; SHARED_BUCKETS];
    (shared[17 - 8], shared[13 - 8]) = (1, 1);
    assert_eq!(usage.shared_bytes, shared);
    assert_eq!(usage.spans, [0, 1, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!((usage.sizes[0], usage.sizes.iter().sum::<u64>()), (2, 4));
    let integers = build(&[1, 2, 3], Strategy::LeastCost, Prices::default(), 12.0, &[]);
    assert!(integers.usage().shared_bytes.is_empty());
}
