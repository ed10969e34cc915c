#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::store::memory_budget::MemoryBudget;

fn record(sample: &QuerySample, kind: QueryKind, range: KeyRange<'_>) {
    sample.record(kind, &range, 1, QueryOutcome::default());
}

/// Copies of the kept queries.
fn snapshot(sample: &QuerySample) -> Vec<SampledQuery> {
    sample.shared().iter().cloned().collect()
}

#[test]
fn sampled_reads_represent_all_others() {
    for bits in 0..=INTERVAL_BITS_MAX {
        let length = 1 << 16;
        let reads = (1 << 20..(1 << 20) + length).map(|number| Sampling::of(number, bits));
        let sums = reads.fold((0, 0), |(sampled, tallied), sampling| {
            (sampled + u64::from(sampling.weight), tallied + u64::from(sampling.tally_weight))
        });
        for sum in [sums.0, sums.1] {
            assert!(sum.abs_diff(length) <= length / 20, "{sum} of {length} with {bits} bits");
        }
    }
}

#[test]
fn sampling_follows_no_period_of_the_workload() {
    for period in [2_u64, 3, 64, 127, 128, 1000] {
        let is_sampled = |number: &u64| Sampling::of(*number, INTERVAL_BITS_MAX).weight > 0;
        let numbers = (1 << 20..(1 << 20) + 128 * period * 40).filter(is_sampled);
        let share = numbers.clone().filter(|number| number % period == 0).count() as f64
            / numbers.count() as f64
            * period as f64;
        assert!((0.5..1.5).contains(&share), "every {period}th: {share}");
    }
}

/// Reads of a kind as the store samples them.
fn read(sample: &QuerySample, kind: QueryKind, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let weight = sample.sampling(kind, number).weight;
        if weight > 0 {
            let key = number.to_be_bytes();
            sample.record(kind, &KeyRange::point(&key), weight, QueryOutcome::default());
        }
    }
}

#[test]
fn first_reads_of_each_kind_are_all_sampled_and_later_ones_less_and_less() {
    let sample = QuerySample::default();
    read(&sample, QueryKind::Point, 0..ALL_SAMPLED);
    assert_eq!(snapshot(&sample).len() as u64, ALL_SAMPLED);
    read(&sample, QueryKind::Point, ALL_SAMPLED..1_000_000);
    assert_eq!(sample.interval(QueryKind::Point), 128);
    assert!(sample.seen(QueryKind::Point).abs_diff(1_000_000) < 20_000, "{}", sample.seen(QueryKind::Point));
    assert_eq!(sample.interval(QueryKind::Range), 1, "no read of this kind");
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
    snapshot(sample).into_iter().filter(|query| query.reaches(smallest, largest)).collect()
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
    assert_eq!(snapshot(&sample).len(), 6);
}

#[test]
fn oldest_queries_are_replaced() {
    let sample = QuerySample::default();
    for number in 0..QUERIES_MAX as u64 + 10 {
        record(&sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
    }
    let kept = snapshot(&sample);
    assert_eq!(kept.len(), QUERIES_MAX);
    assert_eq!(kept.first().unwrap().range(), KeyRange::point(&10_u64.to_be_bytes()));
    assert_eq!(sample.seen(QueryKind::Point), QUERIES_MAX as u64 + 10);
    assert_eq!(sample.kept().map(|kind| kind.count), [QUERIES_MAX as u64, 0, 0, 0, 0]);
}

#[test]
fn a_sample_that_begins_again_replaces_its_queries_and_samples_all_reads() {
    let sample = QuerySample::default();
    read(&sample, QueryKind::Point, 0..1_000_000);
    sample.restart(3_000);
    assert_eq!(sample.interval(QueryKind::Point), 1);
    let before = snapshot(&sample).len();
    read(&sample, QueryKind::Point, 1_000_000..1_002_999);
    assert!(sample.restarts() == 0 && snapshot(&sample).len() == (before + 2_999).min(QUERIES_MAX));
    read(&sample, QueryKind::Point, 1_002_999..1_003_000);
    assert_eq!(sample.restarts(), 1);
    let kept = snapshot(&sample);
    assert_eq!(kept.len(), 3_000);
    assert_eq!(kept.first().unwrap().range(), KeyRange::point(&1_000_000_u64.to_be_bytes()));
    read(&sample, QueryKind::Point, 1_003_000..2_000_000);
    assert_eq!(sample.interval(QueryKind::Point), 128, "as after the first beginning");
}

#[test]
fn queries_with_long_bounds_are_counted_and_left_out() {
    let sample = QuerySample::default();
    let long = vec![7; 65_535];
    record(&sample, QueryKind::Point, KeyRange::point(&long));
    record(&sample, QueryKind::Range, KeyRange::closed(b"a", &long));
    record(&sample, QueryKind::Prefix, KeyRange::prefix(&long));
    record(&sample, QueryKind::Point, KeyRange::point(&[7; SAMPLED_BOUND_BYTES_MAX]));
    assert_eq!(snapshot(&sample).len(), 1);
    assert_eq!((sample.too_long(), sample.seen(QueryKind::Point)), (3, 2));
}

/// Until the sample has begun again, no filters are checked.
#[test]
fn a_sample_begins_again_also_if_bounds_are_too_long() {
    let sample = QuerySample::default();
    let long = vec![7; SAMPLED_BOUND_BYTES_MAX + 1];
    let point = |number: u64| record(&sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
    let long_point = |_| record(&sample, QueryKind::Point, KeyRange::point(&long));
    (0..10).for_each(point);
    sample.restart(5);
    (0..3).for_each(long_point);
    (100..102).for_each(point);
    assert_eq!(sample.restarts(), 1);
    let kept: Vec<_> = snapshot(&sample);
    let kept: Vec<_> = kept.iter().map(SampledQuery::range).collect();
    assert_eq!(kept, [100_u64, 101].map(u64::to_be_bytes).each_ref().map(|key| KeyRange::point(key)));
    sample.restart(3);
    (0..3).for_each(long_point);
    assert_eq!(sample.restarts(), 2);
    assert!(snapshot(&sample).is_empty(), "the queries before are dropped");
}

#[test]
fn stored_queries_are_older_than_those_since_and_give_way_to_them() {
    let older = QuerySample::default();
    let point = |sample: &QuerySample, number: u64| {
        record(sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
    };
    (0..3).for_each(|number| point(&older, number));
    let numbers = |since: u64| {
        let sample = QuerySample::default();
        (3..3 + since).for_each(|number| point(&sample, number));
        sample.restore(older.stored(1));
        assert_eq!(sample.seen(QueryKind::Point), 3 + since);
        let lower = |query: SampledQuery| query.range().lower_bytes().try_into().map(u64::from_be_bytes);
        snapshot(&sample).into_iter().map(|query| lower(query).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(2), [0, 1, 2, 3, 4]);
    let full = numbers(QUERIES_MAX as u64 - 2);
    assert_eq!((full.len(), full.first_chunk()), (QUERIES_MAX, Some(&[1, 2, 3])));
    assert_eq!(numbers(QUERIES_MAX as u64).first(), Some(&3));
}

#[test]
fn queries_that_end_at_a_key_of_the_table_reach_it() {
    let sample = QuerySample::default();
    let reaches = |range: KeyRange<'_>| {
        let query = SampledQuery::new(QueryKind::Range, &range, 1, QueryOutcome::default()).unwrap();
        query.reaches(b"c", b"e")
    };
    let excluded = |lower, upper| KeyRange { lower: Bound::Excluded(lower), upper: Upper::Excluded(upper) };
    for key in [b"c", b"d", b"e"] {
        assert!(reaches(KeyRange::point(key)) && reaches(KeyRange::prefix(key)));
    }
    assert!(reaches(KeyRange::closed(b"a", b"c")) && reaches(KeyRange::closed(b"e", b"f")));
    assert!(!reaches(KeyRange::closed(b"a", b"b")) && !reaches(KeyRange::closed(b"e\0", b"f")));
    assert!(!reaches(excluded(b"a", b"c")) && !reaches(excluded(b"e", b"f")));
    assert!(reaches(excluded(b"a", b"c\0")) && reaches(excluded(b"d", b"f")));
    record(&sample, QueryKind::Range, KeyRange::closed(b"a", b"c"));
    assert_eq!(within(&sample, b"c", b"c").len(), 1, "a table of one key");
}

/// The numbers that [`point`] recorded.
fn numbers(queries: &SharedQueries) -> Vec<u64> {
    let number = |query: &SampledQuery| query.range().lower_bytes().try_into().map(u64::from_be_bytes);
    queries.iter().map(|query| number(query).unwrap()).collect()
}

fn point(sample: &QuerySample, number: u64) {
    record(sample, QueryKind::Point, KeyRange::point(&number.to_be_bytes()));
}

#[test]
fn jobs_share_the_queries_which_stay_as_they_were_when_the_job_began() {
    let sample = QuerySample::default();
    (0..30_000).for_each(|number| point(&sample, number));
    let (first, second) = (sample.shared(), sample.shared());
    let same = first.iter().zip(second.iter()).filter(|(left, right)| std::ptr::eq(*left, *right)).count();
    assert_eq!(same, QUERIES_MAX, "no query is copied");
    (30_000..60_000).for_each(|number| point(&sample, number));
    assert_eq!(numbers(&first), (10_000..30_000).collect::<Vec<_>>());
    assert_eq!((first.len(), first.is_empty()), (QUERIES_MAX, false));
    assert_eq!(numbers(&sample.shared()), (40_000..60_000).collect::<Vec<_>>());
}

#[test]
fn samples_of_all_keyspaces_share_a_quarter_of_the_budget() {
    let budget = Arc::new(MemoryBudget::new(1 << 20, 600 << 10, |_| ()));
    let memory = SampleMemory::new(&budget);
    let samples: Vec<_> = (0..8).map(|_| QuerySample::new(&memory, true)).collect();
    let counts = || samples.iter().map(|sample| sample.shared().len()).collect::<Vec<_>>();
    for (round, sample) in samples.iter().enumerate() {
        (0..20_000).for_each(|number| point(sample, number));
        let used = budget.sample_bytes();
        assert!((1 << 17..=1 << 18).contains(&used), "{used} bytes after round {round}");
        assert_eq!(numbers(&sample.shared()).last(), Some(&19_999), "the newest are kept: {:?}", counts());
    }
    let (least, most) = (counts().into_iter().min().unwrap(), counts().into_iter().max().unwrap());
    assert!(least > 100 && most < 1_500, "no keyspace keeps others from a sample: {:?}", counts());
    drop(samples);
    assert_eq!(budget.sample_bytes(), 0);
}

#[test]
fn queries_of_a_job_count_until_it_ends() {
    let budget = Arc::new(MemoryBudget::new(1 << 20, 600 << 10, |_| ()));
    let sample = QuerySample::new(&SampleMemory::new(&budget), true);
    (0..20_000).for_each(|number| point(&sample, number));
    let job = sample.shared();
    let (of_job, full) = (numbers(&job), budget.sample_bytes());
    (20_000..40_000).for_each(|number| point(&sample, number));
    assert!(numbers(&job) == of_job && budget.sample_bytes() <= 1 << 18 && full > 1 << 17);
    drop(job);
    (40_000..60_000).for_each(|number| point(&sample, number));
    assert_eq!(numbers(&sample.shared()).last(), Some(&59_999));
}

#[test]
fn blocks_get_what_pinned_values_and_samples_leave() {
    let blocks = Arc::new(AtomicU64::new(1 << 20));
    let resized = Arc::clone(&blocks);
    let budget =
        Arc::new(MemoryBudget::new(1 << 20, 600 << 10, move |bytes| resized.store(bytes, Ordering::Relaxed)));
    let sample = QuerySample::new(&SampleMemory::new(&budget), true);
    budget.add_pinned(600 << 10);
    budget.adapt_blocks();
    for number in 0..5_000 {
        point(&sample, number);
        let all = budget.pinned_bytes() + budget.sample_bytes() + blocks.load(Ordering::Relaxed);
        assert!(all <= 1 << 20 && all > (1 << 20) - (1 << 15), "{all} bytes after {number} queries");
    }
    drop(sample);
    assert!(blocks.load(Ordering::Relaxed) > 400 << 10);
}

/// Its beginning ends, so that filters are checked again.
#[test]
fn without_memory_there_is_no_sample() {
    let budget = Arc::new(MemoryBudget::new(0, 0, |_| ()));
    let sample = QuerySample::new(&SampleMemory::new(&budget), true);
    sample.restart(10);
    (0..10).for_each(|number| point(&sample, number));
    assert!(sample.shared().is_empty() && sample.restarts() == 1);
}

/// Reads are still counted, so that few of them are measured.
#[test]
fn a_sample_that_keeps_no_queries_has_intervals() {
    let sample = QuerySample::new(&Arc::default(), false);
    read(&sample, QueryKind::Point, 0..1_000_000);
    assert_eq!((snapshot(&sample).len(), sample.interval(QueryKind::Point)), (0, 128));
    sample.restart(10);
    assert_eq!(sample.interval(QueryKind::Point), 128);
}
