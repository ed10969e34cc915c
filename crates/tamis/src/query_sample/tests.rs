#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

fn record(sample: &QuerySample, kind: QueryKind, range: KeyRange<'_>) {
    sample.record(kind, &range, 1, QueryOutcome::default());
}

#[test]
fn first_reads_are_all_sampled_and_later_ones_evenly() {
    assert!(
        (0..1 << ALL_SAMPLED_BITS)
            .all(|number| Sampling::of(number) == Sampling { weight: 1, tally_weight: 1 })
    );
    for first in [10_000_u64, 1 << 20, 1 << 40] {
        let length = 1 << 16;
        let sums = (first..first + length).map(Sampling::of).fold((0, 0), |(sampled, tallied), sampling| {
            (sampled + u64::from(sampling.weight), tallied + u64::from(sampling.tally_weight))
        });
        for sum in [sums.0, sums.1] {
            assert!(sum.abs_diff(length) <= length / 20, "{sum} of {length} from {first}");
        }
    }
    assert_eq!(interval_at(u64::MAX), INTERVAL_MAX);
}

#[test]
fn sampling_follows_no_period_of_the_workload() {
    for period in [2_u64, 3, 64, 127, 128, 1000] {
        let numbers =
            (1 << 20..(1 << 20) + 128 * period * 40).filter(|number| Sampling::of(*number).weight > 0);
        let share = numbers.clone().filter(|number| number % period == 0).count() as f64
            / numbers.count() as f64
            * period as f64;
        assert!((0.5..1.5).contains(&share), "every {period}th: {share}");
    }
}

#[test]
fn bounds_are_returned_as_given() {
    let ranges = [
        KeyRange::ALL,
        KeyRange::point(b"k"),
        KeyRange::prefix(b"pre"),
        KeyRange::prefix(b""),
        KeyRange::closed(b"a", b"c"),
        KeyRange { lower: Bound::Excluded(b"a"), upper: Upper::Excluded(b"a\0") },
        KeyRange { lower: Bound::Unbounded, upper: Upper::Excluded(b"zz") },
        KeyRange { lower: Bound::Included(b""), upper: Upper::Open },
    ];
    for range in ranges {
        let query = SampledQuery::new(QueryKind::Range, &range, 1, QueryOutcome::default()).unwrap();
        assert_eq!(query.range(), range);
    }
}

/// The queries that reach keys between two keys.
fn within(sample: &QuerySample, smallest: &[u8], largest: &[u8]) -> Vec<SampledQuery> {
    sample.snapshot().into_iter().filter(|query| query.reaches(smallest, largest)).collect()
}

#[test]
fn only_queries_in_reach_of_the_table_are_returned() {
    let sample = QuerySample::default();
    record(&sample, QueryKind::Point, KeyRange::point(b"a"));
    record(&sample, QueryKind::Point, KeyRange::point(b"m"));
    record(&sample, QueryKind::Range, KeyRange::closed(b"a", b"l"));
    record(&sample, QueryKind::Range, KeyRange::closed(b"n", b"z"));
    record(&sample, QueryKind::Prefix, KeyRange::prefix(b"mo"));
    record(&sample, QueryKind::SeekForward, KeyRange { lower: Bound::Included(b"z"), upper: Upper::Open });
    let kinds = |queries: Vec<SampledQuery>| queries.iter().map(|query| query.kind).collect::<Vec<_>>();
    assert_eq!(kinds(within(&sample, b"l", b"mz")), [QueryKind::Point, QueryKind::Range, QueryKind::Prefix]);
    assert_eq!(kinds(within(&sample, b"zz", b"zzz")), [QueryKind::SeekForward]);
    assert_eq!(sample.snapshot().len(), 6);
}

#[test]
fn oldest_queries_are_replaced() {
    let sample = QuerySample::default();
    for number in 0..QUERIES_MAX as u64 + 10 {
        record(&sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
    }
    let kept = sample.snapshot();
    assert_eq!(kept.len(), QUERIES_MAX);
    assert_eq!(kept.first().unwrap().range(), KeyRange::point(&10_u64.to_be_bytes()));
    assert_eq!(sample.seen(QueryKind::Point), QUERIES_MAX as u64 + 10);
    assert_eq!(sample.kept().map(|kind| kind.count), [QUERIES_MAX as u64, 0, 0, 0, 0]);
}

#[test]
fn a_refill_replaces_the_queries_before_it_and_samples_all_reads() {
    let sample = QuerySample::default();
    let point = |number: u64| record(&sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
    (0..500).for_each(point);
    let sampled = (1_000_000..).map(Sampling::of).find(|of| of.weight > 0).unwrap();
    let weights = |sample: &QuerySample| [Sampling::default(), sampled].map(|of| sample.weight(of));
    assert_eq!(weights(&sample), [0, 128]);

    sample.begin_refill(100);
    assert_eq!(weights(&sample), [8, 8], "all reads");
    (1_000..1_099).for_each(point);
    assert!(sample.is_refilling() && sample.snapshot().len() == 599);
    point(1_099);
    assert_eq!(weights(&sample), [0, 128]);
    assert!(sample.refills() == 1 && sample.is_fresh(10) && !sample.is_fresh(0));
    let kept = sample.snapshot();
    assert_eq!(kept.len(), 100);
    assert_eq!(kept.first().unwrap().range(), KeyRange::point(&1_000_u64.to_be_bytes()));
}

#[test]
fn queries_with_long_bounds_are_counted_and_left_out() {
    let sample = QuerySample::default();
    let long = vec![7; 65_535];
    record(&sample, QueryKind::Point, KeyRange::point(&long));
    record(&sample, QueryKind::Range, KeyRange::closed(b"a", &long));
    record(&sample, QueryKind::Prefix, KeyRange::prefix(&long));
    record(&sample, QueryKind::Point, KeyRange::point(&[7; BOUND_BYTES_MAX]));
    assert_eq!(sample.snapshot().len(), 1);
    assert_eq!((sample.too_long(), sample.seen(QueryKind::Point)), (3, 2));
}
