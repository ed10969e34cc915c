//! Every answer against the keys: all suffix widths, cuts and height caps, all kinds of bounds, all sets of a small
//! universe.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use super::{SuffixBits, SurfBuilder, SurfFilter};
use crate::envelope::{ENVELOPE_BYTES, Envelope};
use crate::trie::{plan_at, plan_within};
use crate::{
    Budget, Candidate, Digester, Direction, Family, Filter, FilterBuilder, KeyRange, Probe, RangeProbe,
    Samples, Upper,
};

mod budgets;
mod damage;
mod long_keys;
mod pairs;
mod sampled;
mod truncated;

const SEED: u64 = 21;

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    crate::mix64(*state, 3)
}

/// The layout of the trie.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Best,
    Sparse,
    Dense,
    /// Capped to this height.
    Capped(usize),
}

fn builder(keys: &[Vec<u8>], suffix: SuffixBits) -> SurfBuilder {
    let mut builder = SurfBuilder::new(Family::Surf, Some(suffix), SEED);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    builder
}

fn encode(keys: &[Vec<u8>], suffix: SuffixBits, shape: Shape) -> Vec<u8> {
    let bytes = builder(keys, suffix).finish_with(
        Budget::BY_PARAMETERS,
        Samples::NONE,
        |levels, bytes_max, has_suffixes| {
            let height = levels.levels().len();
            // The empty key alone has a root without labels, which is sparse.
            let is_lone = keys.len() == 1 && keys[0].is_empty();
            match shape {
                Shape::Best => plan_within(levels, bytes_max, has_suffixes),
                Shape::Dense if !is_lone => plan_at(levels, height, has_suffixes, Some(height)),
                Shape::Sparse | Shape::Dense => plan_at(levels, height, has_suffixes, Some(0)),
                Shape::Capped(cap) => plan_at(levels, cap.min(height), has_suffixes, None),
            }
        },
    );
    bytes.unwrap()
}

fn open<D: AsRef<[u8]>>(bytes: D) -> SurfFilter<D> {
    let envelope = Envelope::parse(bytes.as_ref(), bytes.as_ref().len() as u64).unwrap();
    SurfFilter::open(envelope, bytes).unwrap()
}

fn check_candidate(candidate: &Candidate, truth: Option<&Vec<u8>>, direction: Direction, what: &str) {
    let Some(key) = truth else { return };
    let Candidate::Bytes(bytes) = candidate else { panic!("{what}: {candidate:?} for {key:?}") };
    match direction {
        Direction::Forward => assert!(bytes <= key, "{what}: {bytes:?} for {key:?}"),
        Direction::Backward => {
            assert!(key < bytes || key.starts_with(bytes), "{what}: {bytes:?} for {key:?}")
        }
    }
}

/// Every answer about a range, given the sorted keys.
fn check_range<D: AsRef<[u8]>>(filter: &SurfFilter<D>, keys: &[Vec<u8>], range: KeyRange<'_>) {
    let digester = Digester::new(SEED);
    let probe = RangeProbe::new(range, &digester);
    let inside: Vec<&Vec<u8>> = keys.iter().filter(|key| range.contains(key)).collect();
    let answer = filter.may_contain_range(&probe);
    assert!(answer || inside.is_empty(), "{range:?} rejected, but holds {:?}", inside[0]);
    assert!(!answer || !range.is_empty(), "{range:?} holds no string");
    let what = format!("{range:?}");
    check_candidate(
        &filter.candidate(&probe, Direction::Forward),
        inside.first().copied(),
        Direction::Forward,
        &what,
    );
    check_candidate(
        &filter.candidate(&probe, Direction::Backward),
        inside.last().copied(),
        Direction::Backward,
        &what,
    );
    let above = KeyRange { lower: range.lower, upper: Upper::Open };
    let least = keys.iter().find(|key| above.contains(key));
    check_candidate(&least_candidate(filter, range.lower), least, Direction::Forward, &what);
    let below = KeyRange { lower: Bound::Unbounded, upper: range.upper };
    let greatest = keys.iter().rfind(|key| below.contains(key));
    check_candidate(&greatest_candidate(filter, range.upper), greatest, Direction::Backward, &what);
}

/// The candidate of a range without an upper bound.
fn least_candidate<D: AsRef<[u8]>>(filter: &SurfFilter<D>, lower: Bound<&[u8]>) -> Candidate {
    let digester = Digester::new(SEED);
    let range = KeyRange { lower, upper: Upper::Open };
    filter.candidate(&RangeProbe::new(range, &digester), Direction::Forward)
}

/// The candidate of a range without a lower bound.
fn greatest_candidate<D: AsRef<[u8]>>(filter: &SurfFilter<D>, upper: Upper<'_>) -> Candidate {
    let digester = Digester::new(SEED);
    let range = KeyRange { lower: Bound::Unbounded, upper };
    filter.candidate(&RangeProbe::new(range, &digester), Direction::Backward)
}

fn lowers(bytes: &[u8]) -> [Bound<&[u8]>; 3] {
    [Bound::Included(bytes), Bound::Excluded(bytes), Bound::Unbounded]
}

fn uppers(bytes: &[u8]) -> [Upper<'_>; 4] {
    [Upper::Included(bytes), Upper::Excluded(bytes), Upper::Prefix(bytes), Upper::Open]
}

fn check_points<D: AsRef<[u8]>>(filter: &SurfFilter<D>, keys: &[Vec<u8>], others: &[Vec<u8>]) {
    for digester in [Digester::new(SEED), Digester::new(SEED + 1)] {
        for (index, key) in keys.iter().chain(others).enumerate() {
            let answer = filter.may_contain(&Probe::new(key, &digester));
            assert!(answer || index >= keys.len(), "{key:?} rejected");
        }
    }
}

fn sorted(mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    keys.sort();
    keys.dedup();
    keys
}

fn hostile_sets() -> Vec<Vec<Vec<u8>>> {
    let mut state = 31;
    let mut sets = vec![
        vec![vec![]],
        vec![vec![0xff]],
        vec![u64::MAX.to_be_bytes().to_vec()],
        vec![vec![9; 65_535]],
        vec![vec![], vec![0], vec![0, 0], vec![0xff], vec![0xff, 0], vec![0xff, 0xff]],
        ["d", "dac", "dbd", "dca", "dec"].map(|key| key.as_bytes().to_vec()).to_vec(),
        (0..40).map(|length| vec![0; length]).collect(),
        (0..40).map(|length| vec![0xff; length]).collect(),
        (0..200).map(|_| next(&mut state).to_be_bytes().to_vec()).collect(),
        (0..300_u64).map(|back| (u64::MAX - back * back).to_be_bytes().to_vec()).collect(),
    ];
    for symbols in [2, 3, 5] {
        let mut word = || -> Vec<u8> {
            let length = next(&mut state) % 7;
            (0..length).map(|_| [0, 255, b'a', 1, 254][(next(&mut state) % symbols) as usize]).collect()
        };
        sets.push((0..250).map(|_| word()).collect());
    }
    sets.into_iter().map(sorted).collect()
}

/// Strings similar to the keys of a set.
fn bounds(keys: &[Vec<u8>], count: usize, state: &mut u64) -> Vec<Vec<u8>> {
    let mut bounds = vec![vec![], vec![0], vec![0xff; 9]];
    for round in 0..count {
        let mut bound = keys[(next(state) % keys.len() as u64) as usize].clone();
        let length = bound.len();
        match round % 6 {
            0 => bound.push((next(state) % 256) as u8),
            1 => drop(bound.pop()),
            2 => bound.iter_mut().next_back().into_iter().for_each(|last| *last = last.wrapping_add(1)),
            3 => bound.iter_mut().next_back().into_iter().for_each(|last| *last = last.wrapping_sub(1)),
            4 => bound.truncate((next(state) % (length as u64 + 1)) as usize),
            _ => {}
        }
        bounds.push(bound);
    }
    bounds
}

fn check_everything<D: AsRef<[u8]>>(filter: &SurfFilter<D>, keys: &[Vec<u8>], bounds: &[Vec<u8>]) {
    check_points(filter, keys, bounds);
    for (index, lower) in bounds.iter().enumerate() {
        let upper = &bounds[(index * 7 + 3) % bounds.len()];
        check_range(filter, keys, KeyRange::point(lower));
        check_range(filter, keys, KeyRange::prefix(lower));
        for lower in lowers(lower) {
            uppers(upper).into_iter().for_each(|upper| check_range(filter, keys, KeyRange { lower, upper }));
        }
    }
}

#[test]
fn hostile_keys_have_no_false_negatives_at_any_suffix_width() {
    let mut state = 1;
    for (number, keys) in hostile_sets().into_iter().enumerate() {
        for width in 0..=SuffixBits::MAX {
            let mixed = SuffixBits { hash: width / 3, real: width - width / 3 };
            let suffixes = [SuffixBits { hash: width, real: 0 }, SuffixBits { hash: 0, real: width }, mixed];
            let suffix = suffixes[(width as usize + number) % 3];
            let shape = [Shape::Best, Shape::Sparse, Shape::Dense][(width as usize / 3 + number) % 3];
            // Few bounds for long keys, which are copied.
            let bounds = bounds(&keys, if keys[0].len() > 1000 { 3 } else { 8 }, &mut state);
            check_everything(&open(encode(&keys, suffix, shape)), &keys, &bounds);
        }
    }
}

/// The real bits of short keys are continued by zeros: 16 bits after keys of one or two bytes gave wrong answers.
#[test]
fn real_bits_beyond_the_end_of_keys_have_no_false_negatives() {
    let mut state = 2;
    let keys = sorted(
        (0..120)
            .map(|_| (0..1 + next(&mut state) % 3).map(|_| (next(&mut state) % 4 * 60) as u8).collect())
            .collect(),
    );
    for real in [9, 16, 24, 64] {
        let filter = open(encode(&keys, SuffixBits { hash: 0, real }, Shape::Best));
        let bounds = bounds(&keys, 200, &mut state);
        check_everything(&filter, &keys, &bounds);
    }
}

/// Bounds that end within the stem of all keys or next to it, before a node with all labels.
#[test]
fn bounds_within_a_stem_before_a_full_level_have_no_false_negatives() {
    for stem in [&b""[..], b"a", b"\x00\x01", b"abc", b"abcdefgh", b"abcdefghij"] {
        let keys = (0..=u8::MAX).flat_map(|byte| [7, 200].map(|last| [stem, &[byte, last]].concat()));
        let keys = sorted(keys.collect());
        let mut bounds = vec![vec![], vec![0], vec![255]];
        for length in 0..=stem.len() {
            let (path, rest) = stem.split_at(length);
            let next = rest.first().copied().unwrap_or(9);
            let nexts = [next.wrapping_sub(1), next, next.wrapping_add(1)];
            bounds.extend(nexts.map(|next| [path, &[next]].concat()));
            bounds.extend([path.to_vec(), [path, &[next, 0]].concat(), [path, &[next, 255]].concat()]);
        }
        for shape in [Shape::Dense, Shape::Best] {
            let filter = open(encode(&keys, SuffixBits { hash: 0, real: 4 }, shape));
            check_everything(&filter, &keys, &sorted(bounds.clone()));
            for (lower, upper) in
                bounds.iter().flat_map(|lower| bounds.iter().map(move |upper| (lower, upper)))
            {
                check_range(&filter, &keys, KeyRange::closed(lower, upper));
            }
        }
    }
}

/// All strings of at most `length_max` bytes over some symbols, in order.
fn universe(symbols: &[u8], length_max: usize) -> Vec<Vec<u8>> {
    let mut strings: Vec<Vec<u8>> = vec![vec![]];
    let mut start = 0;
    for _ in 0..length_max {
        let longest = strings[start..].to_vec();
        start = strings.len();
        strings.extend(
            longest.iter().flat_map(|string| symbols.iter().map(|byte| [string, &[*byte][..]].concat())),
        );
    }
    strings.sort();
    strings
}

/// Every range with bounds of the universe, and a mask of the strings in it.
fn all_ranges(strings: &[Vec<u8>]) -> Vec<(KeyRange<'_>, u32)> {
    let mut ranges = Vec::new();
    let lowers = strings.iter().flat_map(|string| lowers(string).into_iter().take(2));
    for lower in lowers.chain([Bound::Unbounded]) {
        let uppers = strings.iter().flat_map(|string| uppers(string).into_iter().take(3));
        for upper in uppers.chain([Upper::Open]) {
            let range = KeyRange { lower, upper };
            let inside = strings.iter().enumerate().filter(|(_, string)| range.contains(string));
            ranges.push((range, inside.fold(0_u32, |mask, (index, _)| mask | 1 << index)));
        }
    }
    ranges
}

/// All sets of strings of a universe: every range is answered correctly. Cut, height and suffix take all combinations from set to set.
fn check_universe(strings: &[Vec<u8>]) {
    let ranges = all_ranges(strings);
    let digester = Digester::new(SEED);
    for set in 1..1_u32 << strings.len() {
        let keys: Vec<Vec<u8>> = strings
            .iter()
            .enumerate()
            .filter(|(index, _)| set >> index & 1 == 1)
            .map(|(_, key)| key.clone())
            .collect();
        let turn = crate::mix64(u64::from(set), 1) as usize;
        let shape = [Shape::Best, Shape::Sparse, Shape::Dense, Shape::Capped(1 + turn % 2)][turn / 2 % 4];
        let suffix = SuffixBits { hash: 0, real: [0, 3, 8, 16][turn / 8 % 4] };
        let filter = open(encode(&keys, suffix, shape));
        for (range, mask) in &ranges {
            let probe = RangeProbe::new(*range, &digester);
            let truth = (mask & set).count_ones();
            let answer = filter.may_contain_range(&probe);
            assert!(answer || truth == 0, "{keys:?} {range:?} {shape:?} {suffix:?}");
            assert!(!answer || !range.is_empty(), "{range:?} holds no string");
        }
        if turn.is_multiple_of(256) {
            check_everything(&filter, &keys, strings);
        }
    }
}

#[test]
fn all_ranges_of_all_sets_of_strings_of_two_symbols_are_answered_correctly() {
    check_universe(&universe(&[0x00, 0xff], 3));
}

#[test]
fn all_ranges_of_all_sets_of_strings_of_three_symbols_are_answered_correctly() {
    check_universe(&universe(&[0x00, 0x61, 0xff], 2));
}

/// Pairs of keys that share a long prefix with each other, but not with other pairs.
fn pairs(count: u64, shared_bytes: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for pair in 0..count {
        let mut key = crate::mix64(pair, 0).to_be_bytes().to_vec();
        key.resize(shared_bytes, (pair % 251) as u8);
        keys.extend([[&key[..], b"a"].concat(), [&key[..], b"b"].concat()]);
    }
    sorted(keys)
}

#[test]
fn long_shared_prefixes_take_at_most_64_bits_per_key() {
    let mut state = 6;
    // The last set has so many labels that levels are dropped while keys are added.
    for (pair_count, shared_bytes) in [(1, 60_000), (3, 500), (300, 300), (3000, 900)] {
        let keys = pairs(pair_count, shared_bytes);
        for suffix in [SuffixBits::default(), SuffixBits { hash: 4, real: 8 }] {
            let builder = builder(&keys, suffix);
            assert!(builder.memory_bytes() < (16 + 32) * 18 * keys.len() + (40 << 20));
            let filter = open(builder.finish(Budget::BY_PARAMETERS, Samples::NONE).unwrap());
            let bits = filter.encoded_bytes() as f64 * 8.0 / keys.len() as f64;
            assert!(filter.encoded_bytes() <= keys.len() as u64 * 8 + 256, "{pair_count}: {bits} bits a key");
            let some: Vec<Vec<u8>> = keys.iter().step_by(keys.len().div_ceil(200)).cloned().collect();
            check_points(&filter, &keys, &some);
            for bound in bounds(&keys, 30, &mut state) {
                let other = &keys[(next(&mut state) % keys.len() as u64) as usize];
                check_range(&filter, &keys, KeyRange::closed(&bound, other));
                check_range(&filter, &keys, KeyRange::closed(other, &bound));
                check_range(&filter, &keys, KeyRange::prefix(&bound));
            }
        }
    }
}

#[test]
fn capped_heights_count_the_keys_below_their_leaves() {
    let mut state = 8;
    for keys in hostile_sets().into_iter().filter(|keys| keys.len() > 3) {
        for height in 1..6 {
            for suffix in [SuffixBits::default(), SuffixBits { hash: 2, real: 6 }] {
                let filter = open(encode(&keys, suffix, Shape::Capped(height)));
                let bounds = bounds(&keys, 20, &mut state);
                check_everything(&filter, &keys, &bounds);
                assert_eq!(filter.key_count(), keys.len() as u64);
            }
        }
    }
}

#[test]
fn a_filter_at_any_address_gives_the_same_answers() {
    let keys = &hostile_sets()[12];
    let bytes = encode(keys, SuffixBits { hash: 3, real: 6 }, Shape::Best);
    let bounds = bounds(keys, 20, &mut 4);
    for shift in 0..9 {
        let mut room = vec![0x55; shift];
        room.extend_from_slice(&bytes);
        check_everything(&open(&room[shift..]), keys, &bounds);
    }
}

#[test]
fn damaged_payloads_do_not_panic() {
    let mut state = 77;
    let digester = Digester::new(SEED);
    for (number, keys) in hostile_sets().into_iter().enumerate().filter(|(number, _)| *number != 3) {
        let shape = [Shape::Best, Shape::Sparse, Shape::Dense, Shape::Capped(2)][number % 4];
        let bytes = encode(&keys, SuffixBits { hash: 1, real: 4 }, shape);
        for round in 0..600 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + next(&mut state) % 4 {
                let mut place = (next(&mut state) as usize) % (bytes.len() - ENVELOPE_BYTES);
                if round % 3 == 0 {
                    // The counts at the end have the most effect.
                    place = bytes.len() - ENVELOPE_BYTES - 1 - place % 40;
                }
                damaged[ENVELOPE_BYTES + place] = (next(&mut state) >> 9) as u8;
            }
            let envelope = Envelope::parse(&damaged, damaged.len() as u64).unwrap();
            let Ok(filter) = SurfFilter::open(envelope, &damaged) else { continue };
            for bound in bounds(&keys, 2, &mut state) {
                let _ = filter.may_contain(&Probe::new(&bound, &digester));
                let _ = least_candidate(&filter, Bound::Excluded(&bound));
                for upper in uppers(&keys[0]).into_iter().chain(uppers(&keys[keys.len() - 1])) {
                    let probe =
                        RangeProbe::new(KeyRange { lower: Bound::Included(&bound), upper }, &digester);
                    let _ = filter.may_contain_range(&probe);
                    let _ = greatest_candidate(&filter, upper);
                }
            }
        }
    }
}

/// Empty queries near keys: points after them, or ranges of a thousand values.
fn near_keys(keys: &[Vec<u8>], is_point: bool, count: usize, seed: u64) -> Vec<[[u8; 8]; 2]> {
    let keys: Vec<u64> =
        keys.iter().map(|key| u64::from_be_bytes(key.as_slice().try_into().unwrap())).collect();
    let mut state = seed;
    let mut queries = Vec::new();
    while queries.len() < count {
        let key = keys[next(&mut state) as usize % keys.len()];
        let lower = key.saturating_add(1 + next(&mut state) % (1 << 44));
        let upper = lower.saturating_add(if is_point { 0 } else { 1000 });
        let place = keys.partition_point(|key| *key < lower);
        if keys.get(place).is_none_or(|key| *key > upper) {
            queries.push([lower, upper].map(u64::to_be_bytes));
        }
    }
    queries
}

fn closed(queries: &[[[u8; 8]; 2]]) -> Vec<KeyRange<'_>> {
    queries.iter().map(|[lower, upper]| KeyRange::closed(lower, upper)).collect()
}

/// The number of ranges that a filter accepts.
fn positives(filter: &SurfFilter<Vec<u8>>, queries: &[KeyRange<'_>]) -> usize {
    let digester = Digester::new(SEED);
    queries.iter().filter(|range| filter.may_contain_range(&RangeProbe::new(**range, &digester))).count()
}

#[test]
fn samples_choose_between_digest_bits_and_key_bits() {
    let mut state = 3;
    let keys = sorted((0..3000).map(|_| next(&mut state).to_be_bytes().to_vec()).collect());
    let mut builder = SurfBuilder::new(Family::Surf, None, SEED);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    for is_point in [true, false] {
        let bounds = near_keys(&keys, is_point, 2000, 40);
        let queries = closed(&bounds);
        let budget = Budget::bits_per_key(20.0).unwrap();
        let filter = open(builder.finish(budget, Samples { queries: &queries }).unwrap());
        let SuffixBits { hash, real } = filter.widths;
        assert!(if is_point { hash > real } else { hash == 0 && real >= 6 }, "{is_point} {hash} {real}");
        let positives = positives(&filter, &queries);
        let predicted = filter.predicted_fpr().unwrap();
        assert!(
            (positives as f64 / 2000.0 - predicted).abs() < 0.01,
            "{positives} of 2000, predicted {predicted}"
        );
    }
}
