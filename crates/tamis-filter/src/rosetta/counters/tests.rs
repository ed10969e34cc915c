//! Builds that learn from the counters of the filters before them, beside builds that learn from samples.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_workload::{KeySet, QuerySet, RangeMax};

use crate::rosetta::tests::{build, builder, open, queries, rate};
use crate::rosetta::{Prices, Strategy, Usage};
use crate::{Budget, FilterBuilder, Samples};

/// Rates of a filter that knows nothing and of those that are built one after the other from the counters of the one before.
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
fn counters_in_place_of_a_sample_make_up_for_most_of_what_a_filter_did_not_know() {
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
        // Where many ranges pass, the counters tell little: less than a sample, but most of what there is to win.
        assert!(last <= f64::max(1.5 * sampled, first / 5.0), "{set}: {rates:?} {sampled}");
    }
}
