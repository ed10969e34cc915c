use super::*;

fn point(key: &str) -> FilterTarget {
    FilterTarget::Point(Bytes::copy_from_slice(key.as_bytes()))
}

fn range(lower: Bound<&str>, upper: Bound<&str>) -> FilterTarget {
    let owned = |bound: Bound<&str>| bound.map(|key| Bytes::copy_from_slice(key.as_bytes()));
    FilterTarget::Range { lower: owned(lower), upper: owned(upper) }
}

fn filled() -> QuerySample {
    let sample = QuerySample::new();
    sample.record(&point("apple"));
    sample.record(&FilterTarget::Prefix(Bytes::from_static(b"pe")));
    sample.record(&range(Bound::Excluded("a"), Bound::Included("b")));
    sample.record(&range(Bound::Included(""), Bound::Excluded("\u{7f}")));
    sample
}

#[test]
fn a_sample_is_read_as_written() {
    let (sample, copy) = (filled(), QuerySample::new());
    assert_eq!(copy.add_encoded(&sample.encode()).expect("it is undamaged"), 4);
    assert_eq!(copy.queries().0, sample.queries().0);
}

#[test]
fn damaged_samples_are_errors_and_change_nothing() {
    let bytes = filled().encode();
    let sample = QuerySample::new();
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged.iter_mut().skip(index).take(1).for_each(|byte| *byte ^= 0x41);
        assert!(sample.add_encoded(&damaged).is_err(), "byte {index}");
        assert!(sample.add_encoded(bytes.get(..index).unwrap_or_default()).is_err(), "{index} bytes");
    }
    assert!(sample.is_empty());
}

#[test]
fn a_full_sample_replaces_old_queries_and_takes_few() {
    let sample = QuerySample::new();
    for number in 0..100_000 {
        sample.record(&point(&number.to_string()));
    }
    assert_eq!(sample.len(), QUERIES_MAX);
    assert_eq!(sample.seen(), 100_000);
    let first = SampledQuery::new(&point("0")).expect("it is short");
    assert!(!sample.queries().0.iter().any(|query| **query == first), "the oldest query is replaced");
    let from_the_beginning =
        sample.queries().0.iter().filter(|query| query.range().lower_bytes().len() < 5).count();
    assert!(from_the_beginning < QUERIES_MAX / 2, "{from_the_beginning} of the first 10,000");
}

#[test]
fn queries_that_no_filter_can_reject_are_not_taken() {
    let sample = QuerySample::new();
    sample.record(&range(Bound::Included("a"), Bound::Unbounded));
    sample.record(&range(Bound::Unbounded, Bound::Excluded("b")));
    sample.record(&point(&"x".repeat(KEY_BYTES_MAX + 1)));
    assert!(sample.is_empty());
}

#[test]
fn a_range_that_is_a_prefix_is_sampled_as_a_prefix() {
    let sample = QuerySample::new();
    sample.record(&range(Bound::Included("pe"), Bound::Excluded("pf")));
    sample.record(&range(Bound::Included("pe1"), Bound::Excluded("pf")));
    let queries = sample.queries().0;
    let kinds: Vec<QueryKind> = queries.iter().map(|query| query.kind()).collect();
    assert_eq!(kinds, [QueryKind::Prefix, QueryKind::Range]);
    let ranges: Vec<KeyRange<'_>> = queries.iter().map(|query| query.range()).collect();
    let rest = KeyRange { lower: Bound::Included(b"pe1"), upper: Upper::Prefix(b"pe") };
    assert_eq!(ranges, [KeyRange::prefix(b"pe"), rest]);
}
