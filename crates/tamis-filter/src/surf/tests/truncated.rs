//! The prefixes that the trie stores, computed key by key, and the answers that follow from them: SuRF-base gives
//! exactly these.

use std::collections::HashMap;
use std::ops::Bound;

use super::{
    SEED, Shape, all_ranges, bounds, encode, greatest_candidate, hostile_sets, least_candidate, lowers, open,
    sorted, universe, uppers,
};
use crate::surf::{SuffixBits, SurfFilter};
use crate::trie::Layout;
use crate::{Candidate, Digester, Filter, KeyRange, RangeProbe, Upper, envelope};

const BASE: SuffixBits = SuffixBits { hash: 0, real: 0 };

/// The stored prefix of a key, or of all keys with the same first bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Prefix {
    pub(super) bytes: Vec<u8>,
    /// It represents all keys that begin with it; otherwise only the key of these bytes, which is a prefix of others.
    is_leaf: bool,
}

/// The prefix of each sorted key up to the first byte that it shares with no other, and at most `height` bytes.
pub(super) fn prefixes(keys: &[Vec<u8>], height: usize) -> Vec<Prefix> {
    let shared = tamis_bits::common_prefix_length;
    let mut prefixes: Vec<Prefix> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let before = index.checked_sub(1).map_or(0, |before| shared(&keys[before], key));
        let after = keys.get(index + 1).map_or(0, |after| shared(after, key));
        let depth = 1 + before.max(after);
        if depth <= height {
            let bytes = key[..depth.min(key.len())].to_vec();
            prefixes.push(Prefix { bytes, is_leaf: depth <= key.len() });
        } else if prefixes.last().is_none_or(|last| last.bytes != key[..height]) {
            prefixes.push(Prefix { bytes: key[..height].to_vec(), is_leaf: true });
        }
    }
    prefixes
}

impl Prefix {
    /// Whether a byte string that it represents can be in a range: then the prefix itself or the least string of the
    /// range is.
    fn may_be_in(&self, range: &KeyRange<'_>) -> bool {
        let lower = range.lower_bytes().to_vec();
        let least = [self.bytes.clone(), [&lower[..], b"\0"].concat(), lower];
        let own = least.iter().take(if self.is_leaf { 3 } else { 1 });
        own.filter(|string| string.starts_with(&self.bytes)).any(|string| range.contains(string))
    }

    /// Whether a bound begins with it, so that keys that it represents can be on either side.
    fn is_passed(&self, bound: &[u8]) -> bool {
        self.is_leaf && bound.starts_with(&self.bytes)
    }
}

/// The nearest prefix that can meet a lower bound, or the bound if it begins with the prefix.
fn least(prefixes: &[Prefix], lower: Bound<&[u8]>) -> Candidate {
    let (bound, is_excluded) = match lower {
        Bound::Unbounded => (&b""[..], false),
        Bound::Included(bound) => (bound, false),
        Bound::Excluded(bound) => (bound, true),
    };
    let meets = |prefix: &&Prefix| {
        let is_above = if is_excluded { &prefix.bytes[..] > bound } else { &prefix.bytes[..] >= bound };
        is_above || prefix.is_passed(bound)
    };
    let nearest = prefixes.iter().find(meets);
    nearest.map_or(Candidate::Absent, |prefix| Candidate::Bytes(prefix.bytes.clone().max(bound.to_vec())))
}

/// The same for an upper bound.
fn greatest(prefixes: &[Prefix], upper: Upper<'_>) -> Candidate {
    // All strings that begin with a prefix are greater than it, so the prefix decides the side.
    let below = KeyRange { lower: Bound::Unbounded, upper };
    let nearest = prefixes.iter().rfind(|prefix| below.contains(&prefix.bytes));
    nearest.map_or(Candidate::Absent, |prefix| {
        let bound = below.upper_bytes().filter(|bound| prefix.is_passed(bound));
        Candidate::Bytes(bound.unwrap_or(&prefix.bytes).to_vec())
    })
}

fn height(bytes: &[u8], suffix: SuffixBits) -> usize {
    Layout::read(envelope::payload(bytes), suffix.width() > 0).unwrap().counts.height as usize
}

/// The filter of a set, and the prefixes that its trie stores.
fn built(keys: &[Vec<u8>], suffix: SuffixBits, shape: Shape) -> (SurfFilter<Vec<u8>>, Vec<Prefix>) {
    let bytes = encode(keys, suffix, shape);
    let prefixes = prefixes(keys, height(&bytes, suffix));
    (open(bytes), prefixes)
}

fn has_range(filter: &SurfFilter<Vec<u8>>, range: KeyRange<'_>) -> bool {
    filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)))
}

/// The strings selected by the bits of a set.
fn chosen(strings: &[Vec<u8>], set: u32) -> Vec<Vec<u8>> {
    let strings = strings.iter().enumerate();
    strings.filter(|(index, _)| set >> index & 1 == 1).map(|(_, string)| string.clone()).collect()
}

/// All ranges of every `set_step`-th set of strings of a universe.
fn check_precision(strings: &[Vec<u8>], set_step: usize) {
    let ranges: Vec<KeyRange<'_>> = all_ranges(strings).into_iter().map(|(range, _)| range).collect();
    // For each prefix the ranges that it can be in, one bit each.
    let mut words: HashMap<(Vec<u8>, bool), Vec<u64>> = HashMap::new();
    let words_of = |prefix: &Prefix| {
        let word = |ranges: &[KeyRange<'_>]| {
            ranges.iter().rev().fold(0, |word, range| word << 1 | u64::from(prefix.may_be_in(range)))
        };
        ranges.chunks(64).map(word).collect::<Vec<u64>>()
    };
    // Without the empty key alone: after a root without labels, ranges are not distinguished.
    for set in (2..1_u32 << strings.len()).step_by(set_step) {
        let keys = chosen(strings, set);
        let turn = crate::mix64(u64::from(set), 5) as usize;
        let shape = [Shape::Best, Shape::Sparse, Shape::Dense, Shape::Capped(1 + turn % 2)][turn / 2 % 4];
        let (filter, prefixes) = built(&keys, BASE, shape);
        let mut expected = vec![0_u64; ranges.len().div_ceil(64)];
        for prefix in prefixes {
            let key = (prefix.bytes.clone(), prefix.is_leaf);
            let words = words.entry(key).or_insert_with(|| words_of(&prefix));
            expected.iter_mut().zip(words).for_each(|(all, own)| *all |= *own);
        }
        for (index, range) in ranges.iter().enumerate() {
            let expected = expected[index / 64] >> (index % 64) & 1 == 1;
            assert_eq!(has_range(&filter, *range), expected, "{keys:?} {range:?} {shape:?}");
        }
    }
}

#[test]
fn base_accepts_exactly_the_ranges_of_truncated_keys() {
    check_precision(&universe(&[0x00, 0x61, 0xff], 2), 1);
    check_precision(&universe(&[0x00, 0xff], 3), 5);
}

#[test]
fn base_accepts_exactly_the_ranges_of_many_truncated_keys() {
    let mut state = 51;
    for keys in hostile_sets().into_iter().filter(|keys| keys.len() > 1) {
        for shape in [Shape::Best, Shape::Sparse, Shape::Dense, Shape::Capped(2), Shape::Capped(4)] {
            let (filter, prefixes) = built(&keys, BASE, shape);
            let bounds = bounds(&keys, 25, &mut state);
            for (lower, upper) in bounds.iter().zip(bounds.iter().rev()) {
                for lower in lowers(lower) {
                    for range in uppers(upper).map(|upper| KeyRange { lower, upper }) {
                        let expected = prefixes.iter().any(|prefix| prefix.may_be_in(&range));
                        assert_eq!(has_range(&filter, range), expected, "{range:?} {shape:?}");
                    }
                }
            }
        }
    }
}

fn check_candidates(filter: &SurfFilter<Vec<u8>>, prefixes: &[Prefix], bounds: &[Vec<u8>]) {
    for bound in bounds {
        for lower in lowers(bound) {
            assert_eq!(least_candidate(filter, lower), least(prefixes, lower), "{lower:?} {prefixes:?}");
        }
        for upper in uppers(bound) {
            assert_eq!(
                greatest_candidate(filter, upper),
                greatest(prefixes, upper),
                "{upper:?} {prefixes:?}"
            );
        }
    }
}

#[test]
fn candidates_of_base_are_the_nearest_truncated_keys() {
    let strings = universe(&[0x00, 0x61, 0xff], 2);
    let longer = universe(&[0x00, 0x61, 0xff], 3);
    for set in (1..1_u32 << strings.len()).step_by(3) {
        let keys = chosen(&strings, set);
        let shape = [Shape::Best, Shape::Sparse, Shape::Dense, Shape::Capped(1)][set as usize / 3 % 4];
        let (filter, prefixes) = built(&keys, BASE, shape);
        check_candidates(&filter, &prefixes, &longer);
    }
    let mut state = 61;
    for keys in hostile_sets() {
        for shape in [Shape::Best, Shape::Sparse, Shape::Capped(1), Shape::Capped(3)] {
            let (filter, prefixes) = built(&keys, BASE, shape);
            check_candidates(&filter, &prefixes, &bounds(&keys, 60, &mut state));
        }
    }
}

#[test]
fn candidates_are_absent_outside_of_the_stored_keys() {
    let absent = [Candidate::Absent, Candidate::Absent];
    let ends = |filter: &SurfFilter<Vec<u8>>, lower, upper| {
        [least_candidate(filter, lower), greatest_candidate(filter, upper)]
    };
    let builder = super::builder(&[], BASE);
    let empty = open(
        builder.finish_with(crate::Budget::BY_PARAMETERS, crate::Samples::NONE, |_, _, _| None).unwrap(),
    );
    assert_eq!(ends(&empty, Bound::Unbounded, Upper::Open), absent);
    for suffix in [BASE, SuffixBits { hash: 8, real: 8 }] {
        let keys = sorted(vec![b"m".to_vec(), b"mm".to_vec(), b"p\xff".to_vec()]);
        let filter = open(encode(&keys, suffix, Shape::Best));
        assert_eq!(ends(&filter, Bound::Included(b"q"), Upper::Included(b"l\xff")), absent);
        assert_eq!(ends(&filter, Bound::Excluded(b"\xff"), Upper::Excluded(b"m")), absent);
        assert_eq!(ends(&filter, Bound::Excluded(b"q"), Upper::Prefix(b"l")), absent);
    }
}
