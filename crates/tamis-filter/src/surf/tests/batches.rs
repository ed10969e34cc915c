//! Batches return the answers of single queries, in small filters and in those large enough for interleaved walks.

use super::{SEED, Shape, bounds, builder, encode, hostile_sets, lowers, next, open, uppers};
use crate::surf::reader::INTERLEAVE_MIN_BYTES;
use crate::surf::{SuffixBits, SurfBuilder, SurfFilter};
use crate::{Budget, Digester, Family, Filter, FilterBuilder, KeyRange, RangeProbe, Samples};

const SUFFIXES: [SuffixBits; 4] = [
    SuffixBits { hash: 0, real: 0 },
    SuffixBits { hash: 9, real: 0 },
    SuffixBits { hash: 0, real: 7 },
    SuffixBits { hash: 5, real: 20 },
];

/// Every third answer is `false` before the query, and stays so.
fn before(count: usize) -> Vec<bool> {
    (0..count).map(|number| number % 3 != 1).collect()
}

fn check_keys<D: AsRef<[u8]>>(filter: &SurfFilter<D>, digester: &Digester, strings: &[Vec<u8>]) {
    for count in [0, 1, 63, 64, 65, 200, strings.len()] {
        let keys: Vec<&[u8]> = strings.iter().take(count).map(Vec::as_slice).collect();
        let mut by_keys = before(keys.len());
        let mut interleaved = by_keys.clone();
        let single = keys.iter().zip(&by_keys);
        let single: Vec<bool> =
            single.map(|(key, is_asked)| *is_asked && filter.may_contain_key(digester, key)).collect();
        filter.may_contain_keys(digester, &keys, &mut by_keys);
        filter.may_contain_keys_interleaved(digester, &keys, &mut interleaved);
        assert_eq!((&by_keys, &interleaved), (&single, &single));
    }
}

fn check_ranges<D: AsRef<[u8]>>(filter: &SurfFilter<D>, digester: &Digester, ranges: &[KeyRange<'_>]) {
    for count in [0, 1, 63, 64, 65, ranges.len()] {
        let ranges = &ranges[..count.min(ranges.len())];
        let mut answers = before(ranges.len());
        let expected = ranges.iter().zip(&answers).map(|(range, is_asked)| {
            let answer = filter.may_contain_range(&RangeProbe::new(*range, digester));
            assert_eq!(filter.may_contain_key_in(digester, *range), answer, "{range:?}");
            *is_asked && answer
        });
        let expected: Vec<bool> = expected.collect();
        let mut interleaved = answers.clone();
        filter.may_contain_ranges(digester, ranges, &mut answers);
        filter.may_contain_ranges_interleaved(digester, ranges, &mut interleaved);
        assert_eq!((&answers, &interleaved), (&expected, &expected));
    }
}

fn ranges_of(strings: &[Vec<u8>]) -> Vec<KeyRange<'_>> {
    let mut ranges = Vec::new();
    for (lower, upper) in strings.iter().zip(strings.iter().cycle().skip(5)) {
        ranges.extend([KeyRange::point(lower), KeyRange::prefix(lower)]);
        for lower in lowers(lower) {
            ranges.extend(uppers(upper).map(|upper| KeyRange { lower, upper }));
        }
    }
    ranges
}

#[test]
fn batches_on_small_filters_equal_single_queries() {
    let mut state = 81;
    for (number, keys) in hostile_sets().into_iter().enumerate() {
        for shape in [Shape::Best, Shape::Dense, Shape::Sparse, Shape::Capped(2)] {
            let filter = open(encode(&keys, SUFFIXES[number % 4], shape));
            let mut strings = bounds(&keys, if keys[0].len() > 1000 { 5 } else { 150 }, &mut state);
            strings.extend(keys.iter().take(150).cloned());
            for digester in [Digester::new(SEED), Digester::new(SEED + 1)] {
                check_keys(&filter, &digester, &strings);
                check_ranges(&filter, &digester, &ranges_of(&strings[..strings.len().min(40)]));
            }
        }
    }
}

/// Integers, and their first bytes as prefixes of some of them.
#[test]
fn batches_on_a_large_filter_equal_single_queries() {
    let mut state = 91;
    let mut integers: Vec<u64> = (0..450_000).map(|_| next(&mut state)).collect();
    integers.sort_unstable();
    integers.dedup();
    let mut builder = SurfBuilder::new(Family::SurfMixed, Some(SuffixBits { hash: 30, real: 34 }), SEED);
    let mut before = [0; 2];
    for (number, integer) in integers.iter().enumerate() {
        let bytes = integer.to_be_bytes();
        let half: [u8; 2] = [bytes[0], bytes[1]];
        if half != before && number % 2 == 0 {
            builder.add(&half).unwrap();
        }
        before = half;
        builder.add(&bytes).unwrap();
    }
    let filter = open(builder.finish(Budget::BY_PARAMETERS, Samples::NONE).unwrap());
    assert!(filter.encoded_bytes() >= INTERLEAVE_MIN_BYTES as u64, "{} bytes", filter.encoded_bytes());
    let mut strings = Vec::new();
    for integer in integers.iter().step_by(101) {
        let near = integer ^ 1 << (next(&mut state) % 48);
        strings.extend([*integer, near].map(|integer| integer.to_be_bytes().to_vec()));
        strings.push(integer.to_be_bytes()[..(next(&mut state) % 9) as usize].to_vec());
    }
    let digester = Digester::new(SEED);
    check_keys(&filter, &digester, &strings);
    check_ranges(&filter, &digester, &ranges_of(&strings[..3000]));
}

/// Answers after the last key became `false` up to the next multiple of 64.
#[test]
fn batches_change_no_answers_beyond_their_keys() {
    let keys = &hostile_sets()[8];
    let digester = Digester::new(SEED);
    let empty = builder(&[], SUFFIXES[1]).finish(Budget::BY_PARAMETERS, Samples::NONE).unwrap();
    for (bytes, has_keys) in [(encode(keys, SUFFIXES[1], Shape::Best), true), (empty, false)] {
        let filter = open(bytes);
        for key_count in [0, 1, 3, 64, 65, 100] {
            for answer_count in [0, 1, 2, 3, 64, 70, 128, 150] {
                let mut interleaved = vec![true; answer_count];
                let mut by_keys = interleaved.clone();
                let asked: Vec<&[u8]> = keys[..key_count].iter().map(Vec::as_slice).collect();
                filter.may_contain_keys_interleaved(&digester, &asked, &mut interleaved);
                filter.may_contain_keys(&digester, &asked, &mut by_keys);
                // Keys are found; answers without a key stay as they were.
                let expected: Vec<bool> =
                    (0..answer_count).map(|number| has_keys || number >= key_count).collect();
                let what = format!("{key_count} keys, {answer_count} answers");
                assert_eq!((&interleaved, &by_keys), (&expected, &expected), "{what}");
            }
        }
    }
}
