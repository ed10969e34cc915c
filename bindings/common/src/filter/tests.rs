#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use tamis_filter::Family;

use super::*;
use crate::{Code, scan};

fn keys() -> Vec<[u8; 8]> {
    (0..2_000_u64).map(|number| (number << 32).to_be_bytes()).collect()
}

fn range(lower: u64, upper: u64) -> Selection {
    let own = |number: u64| Bound::Included(number.to_be_bytes().to_vec());
    Selection::Range(own(lower), own(upper))
}

#[test]
fn filters_of_every_family_accept_their_keys() {
    for family in Family::ALL {
        let text = match family {
            Family::Prefix => "prefix-bloom:bytes=4@16".to_owned(),
            family => format!("{}@16", family.name()),
        };
        let mut builder = Builder::new(&text, 7).unwrap();
        for key in keys() {
            builder.add(&key).unwrap();
        }
        builder.add_sample(range(5, 10));
        let filter = OpenFilter::new(builder.finish(None).unwrap()).unwrap();
        assert_eq!((filter.family(), filter.key_count()), (family.name(), 2_000));
        let keys = keys();
        let slices: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        assert!(filter.may_contain_many(&slices).into_iter().all(|answer| answer), "{text}");
        assert!(slices.iter().all(|key| filter.may_contain(key)), "{text}");
        let around = range(1 << 32, (1 << 32) + 1);
        assert!(filter.may_contain_ranges(&[key_range(&around)])[0], "{text}");
        assert!(filter.may_contain_range(KeyRange::prefix(&[0, 0, 0])), "{text}");
        assert!(filter.encoded_bytes() > 0 && !filter.design().is_empty());
        filter.verify().unwrap();
    }
}

#[test]
fn range_filters_return_candidates() {
    let mut builder = Builder::new("surf-real:bits=8", 0).unwrap();
    for key in keys() {
        builder.add(&key).unwrap();
    }
    let filter = OpenFilter::new(builder.finish(None).unwrap()).unwrap();
    let whole = key_range(&Selection::ALL);
    assert!(matches!(filter.candidate(whole, scan::Direction::Forward), Candidate::Bytes(_)));
    let empty = range(5, 4);
    assert_eq!(filter.candidate(key_range(&empty), scan::Direction::Backward), Candidate::Absent);
}

#[test]
fn the_automatic_filter_follows_the_sample() {
    let mut numbers: Vec<u64> =
        (1..=2_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    numbers.sort_unstable();
    // A quarter of the numbers between two keys: far too many for the filter that needs no sample.
    let gaps: Vec<Selection> = numbers
        .windows(2)
        .map(|pair| range(pair[0] + (pair[1] - pair[0]) / 4, pair[0] + (pair[1] - pair[0]) / 2))
        .collect();
    let false_positives = |filter: &OpenFilter<Vec<u8>>| {
        gaps.iter().filter(|gap| filter.may_contain_range(key_range(gap))).count()
    };
    let mut builder = Builder::new("auto", 0).unwrap();
    numbers.iter().for_each(|number| builder.add(&number.to_be_bytes()).unwrap());
    let unknown = OpenFilter::new(builder.finish(Some(16.0)).unwrap()).unwrap();
    assert_eq!(unknown.family(), "grafite");
    assert!(false_positives(&unknown) > 1_900, "{}", false_positives(&unknown));
    gaps.iter().step_by(5).for_each(|gap| builder.add_sample(gap.clone()));
    let filter = OpenFilter::new(builder.finish(Some(16.0)).unwrap()).unwrap();
    assert!(false_positives(&filter) <= 40, "{} of 1,999", false_positives(&filter));
    assert!(filter.encoded_bytes() <= 2_000 * 2 + 128);
    assert!(numbers.iter().all(|number| filter.may_contain(&number.to_be_bytes())));
    let failure = builder.finish(None).unwrap_err();
    assert!(failure.code == Code::InvalidArgument && failure.message.contains("auto@16"), "{failure:?}");
}

#[test]
fn invalid_specifications_and_keys_are_rejected() {
    assert_eq!(Builder::new("cuckoo", 0).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(Builder::new("surf-real:bats=8", 0).unwrap_err().code, Code::InvalidArgument);
    let mut builder = Builder::new("rosetta", 0).unwrap();
    builder.add(b"b").unwrap();
    assert_eq!(builder.add(b"a").unwrap_err().code, Code::FilterBuild);
    assert_eq!(builder.key_count(), 1);
    assert_eq!(builder.finish(Some(-1.0)).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(builder.finish(None).unwrap_err().code, Code::InvalidArgument, "no budget was given");
}

#[test]
fn damaged_filters_are_rejected() {
    let mut builder = Builder::new("blocked-bloom", 0).unwrap();
    keys().iter().for_each(|key| builder.add(key).unwrap());
    let mut bytes = builder.finish(Some(20.0)).unwrap();
    assert_eq!(OpenFilter::new(&bytes[..10]).unwrap_err().code, Code::Corruption);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(OpenFilter::new(&bytes).unwrap().verify().unwrap_err().code, Code::Corruption);
}
