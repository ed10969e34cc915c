//! The model's counts for a query, compared with an enumeration of all strings of the query.

use super::*;

/// Most prefixes of one length that are enumerated.
const COVER_MAX: usize = 1000;

/// The properties of a query, found by enumeration.
struct Found {
    /// The longest common prefix with a key before it, and with one after it; `None` without such a key.
    shared_left: Option<u32>,
    shared_right: Option<u32>,
    is_point: bool,
    /// `covers[n]`: its prefixes of `n` bits, up to the first length that has too many.
    covers: Vec<Vec<u64>>,
}

/// A prefix of a string, as a number.
fn prefix(key: &[u8], bits: u32) -> u64 {
    bit_list(key, bits as usize).iter().fold(0, |number, bit| number << 1 | u64::from(*bit))
}

/// Compares the model's counts with the enumeration. All keys and bounds begin with `offset` equal bits, which lengths do not include.
fn check(query: &EmptyQuery<'_>, found: &Found, (offset, bit_count): (u32, u32), text: &str) {
    let Found { shared_left, shared_right, is_point, covers } = found;
    let [left, right] = [shared_left, shared_right].map(|shared| shared.map_or(0, |bits| bits + offset));
    assert_eq!((query.shared_left, query.shared_right), (left, right), "{text}");
    assert_eq!(query.near(), left.max(right), "{text}");
    let single = covers.iter().take_while(|cover| cover.len() == 1).count() as u32;
    assert_eq!(query.shared_ends, offset + single - 1, "{text}");
    assert_eq!(query.is_point, *is_point, "{text}");
    assert!((0..offset).all(|bits| query.prefix_count(bits) == 1), "{text}");
    for bits in 0..=bit_count {
        let count = query.prefix_count(bits + offset);
        match covers.get(bits as usize) {
            Some(cover) => assert_eq!(count, cover.len() as u64, "{bits} bits of {text}"),
            None => assert!(count > COVER_MAX as u64, "{bits} bits of {text}: {count}"),
        }
    }
    for (bits, cover) in (0..).zip(covers) {
        for (depth, ends) in (0..bits).zip(covers) {
            let [first, .., last] = ends.as_slice() else { continue };
            let below =
                |end: u64| cover.iter().filter(|prefix| **prefix >> (bits - depth) == end).count() as u64;
            let counts = query.bounds.end_counts(depth + offset, bits + offset);
            assert_eq!(counts, (below(*first), below(*last)), "{bits} bits below {depth} of {text}");
        }
    }
}

/// Checks that the counts of a sample are those of its queries one by one; returns how many are used and ignored.
fn check_sample(keys: &KeySet, samples: &[KeyRange<'_>]) -> (usize, usize) {
    let summary = |query: &EmptyQuery<'_>| {
        let counts = (query.prefix_count(9), query.prefix_count(keys.bit_count()));
        (query.shared_left, query.shared_right, query.shared_ends, query.is_point, counts)
    };
    let whole = EmptyQuery::all_of(keys, samples);
    let mut together: Vec<_> = whole.iter().map(summary).collect();
    let alone = |sample: &KeyRange<'_>| EmptyQuery::new(keys, sample).as_ref().map(summary);
    let mut one_by_one: Vec<_> = samples.iter().filter_map(alone).collect();
    together.sort_unstable();
    one_by_one.sort_unstable();
    assert_eq!(together, one_by_one);
    (together.len(), samples.len() - together.len())
}

/// Keys of one to three bytes.
struct Integers {
    byte_count: usize,
    values: BTreeSet<u64>,
}

impl Integers {
    fn bit_count(&self) -> u32 {
        self.byte_count as u32 * 8
    }

    fn bytes(&self, value: u64) -> Vec<u8> {
        value.to_be_bytes()[8 - self.byte_count..].to_vec()
    }

    /// `universe`: all values that can be in the range; `None` if it contains a key, or no value.
    fn found(&self, range: &KeyRange<'_>, universe: std::ops::Range<u64>) -> Option<Found> {
        let is_within = |value: &u64| range.contains(&value.to_be_bytes()[8 - self.byte_count..]);
        let members: Vec<u64> = universe.filter(is_within).collect();
        let (first, last) = (*members.first()?, *members.last()?);
        if members.iter().any(|member| self.values.contains(member)) {
            return None;
        }
        let bit_count = self.bit_count();
        let cover = |bits: u32| {
            let mut cover: Vec<u64> = members.iter().map(|member| member >> (bit_count - bits)).collect();
            cover.dedup();
            cover
        };
        let covers: Vec<Vec<u64>> = (0..=bit_count).map(cover).collect();
        let shared = |key: &u64| {
            let has = |bits: &u32| covers[*bits as usize].binary_search(&(key >> (bit_count - bits))).is_ok();
            (0..=bit_count).rev().find(has).unwrap_or(0)
        };
        Some(Found {
            shared_left: self.values.range(..first).map(shared).max(),
            shared_right: self.values.range(last..).map(shared).max(),
            is_point: members.len() == 1,
            covers,
        })
    }

    /// Two bounds, close or distant, some of another length than the keys. Bounds of three bytes have an equal first byte.
    fn bounds(&self, state: &mut u64, number: usize) -> (Vec<u8>, Vec<u8>) {
        let all = (1 << self.bit_count()) - 1;
        let lower = random(state) & all;
        let distance = random(state) % [2, 40, 1 << 10, all][number % 4];
        let end = if self.byte_count == 3 { lower | 0xffff } else { all };
        let bounds = [lower, (lower + distance).min(end)].map(|value| {
            let mut bound = self.bytes(value);
            match random(state) % 6 {
                0 => drop(bound.pop()),
                1 => bound.push([0, 0x80, 0xff][number % 3]),
                _ => {}
            }
            bound
        });
        bounds.into()
    }
}

/// Checks ranges of integers; all keys and bounds are prefixed with each of `heads`.
fn check_integers(state: &mut u64, integers: &Integers, pair_count: usize, heads: &[&[u8]]) {
    let neighbours = integers.values.iter().zip(integers.values.iter().skip(1));
    // From the last key of a block to the first of the next one.
    let between_blocks = neighbours.skip(511).step_by(512);
    let between_blocks =
        between_blocks.map(|(lower, upper)| (integers.bytes(*lower), integers.bytes(*upper)));
    let pairs: Vec<_> =
        (0..pair_count).map(|number| integers.bounds(state, number)).chain(between_blocks).collect();
    let is_whole = |range: &KeyRange<'_>| {
        range.lower != Bound::Unbounded && range.upper != Upper::Open && !range.lower_bytes().is_empty()
    };
    let universe = |lower: &[u8]| match integers.byte_count {
        3 => prefix(lower, 8) << 16..(prefix(lower, 8) + 1) << 16,
        bytes => 0..1 << (bytes * 8),
    };
    let all: Vec<Vec<Option<Found>>> = pairs
        .iter()
        .map(|(lower, upper)| {
            let found = |range: KeyRange<'_>| {
                let is_small = integers.byte_count < 3 || is_whole(&range);
                is_small.then(|| integers.found(&range, universe(lower))).flatten()
            };
            ranges(lower, upper).into_iter().map(found).collect()
        })
        .collect();
    for head in heads {
        let with_head = |rest: &[u8]| [head, rest].concat();
        let keys = key_set(integers.values.iter().map(|value| with_head(&integers.bytes(*value))));
        assert!(keys.fixed().is_some() || integers.values.is_empty());
        let bounds: Vec<_> =
            pairs.iter().map(|(lower, upper)| (with_head(lower), with_head(upper))).collect();
        let mut sample = Vec::new();
        for ((lower, upper), found) in bounds.iter().zip(&all) {
            for (range, found) in ranges(lower, upper).into_iter().zip(found) {
                // Open ranges continue beyond the head, which is not enumerated.
                if (integers.byte_count == 3 || !head.is_empty()) && !is_whole(&range) {
                    continue;
                }
                let text = format!("{range:?} near {:?}", integers.values);
                let query = EmptyQuery::new(&keys, &range);
                assert_eq!(query.is_some(), found.is_some(), "{text}");
                sample.push(range);
                if let (Some(query), Some(found)) = (&query, found) {
                    check(query, found, (head.len() as u32 * 8, integers.bit_count()), &text);
                }
            }
        }
        let (kept, left_out) = check_sample(&keys, &sample);
        assert!(kept * 10 > sample.len() && left_out * 50 > sample.len(), "{kept} kept, {left_out} left out");
    }
}

#[test]
fn queries_of_integers_are_counted_as_their_members_are() {
    let mut state = 17;
    for (byte_count, key_count, pair_count) in
        [(1, 2, 60), (1, 9, 60), (2, 1, 8), (2, 30, 10), (2, 1400, 12), (3, 12, 16), (3, 300, 16)]
    {
        // Some keys of three bytes are near the bounds: they have one of few first bytes, like the bounds.
        let mask = if byte_count == 3 { 0x03_ffff } else { (1 << (byte_count * 8)) - 1 };
        let values = (0..key_count).map(|_| random(&mut state) & mask).collect();
        let integers = Integers { byte_count, values };
        let heads: &[&[u8]] = match byte_count {
            3 => &[b"", &[0xff; 5], &[0, 0, 0, 0, 1]],
            2 => &[b"", b"headed"],
            _ => &[b""],
        };
        check_integers(&mut state, &integers, pair_count, heads);
    }
}

/// The least string of a range.
fn least(range: &KeyRange<'_>) -> Vec<u8> {
    let mut least = range.lower_bytes().to_vec();
    if matches!(range.lower, Bound::Excluded(_)) {
        least.push(0);
    }
    least
}

/// Whether a range contains a string with a prefix of at most 64 bits: if so, the greater of the least string with the prefix and the least
/// string of the range is one.
pub(super) fn touches(range: &KeyRange<'_>, number: u64, bits: u32) -> bool {
    let mut own = number.checked_shl(64 - bits).unwrap_or(0).to_be_bytes().to_vec();
    while own.last() == Some(&0) {
        own.pop();
    }
    let witness = own.max(least(range));
    range.contains(&witness) && prefix(&witness, bits) == number
}

/// [`touches`] for the prefix of a key.
pub(super) fn touches_key(range: &KeyRange<'_>, key: &[u8], bits: u32) -> bool {
    touches(range, prefix(key, bits), bits)
}

/// `None` if a range of strings contains a key, or no string.
fn found_among_strings(range: &KeyRange<'_>, keys: &KeySet, bit_count: u32) -> Option<Found> {
    let least = least(range);
    if !range.contains(&least) || keys.iter().any(|key| range.contains(key)) {
        return None;
    }
    let mut covers = vec![vec![0]];
    while covers.len() <= bit_count as usize {
        let (bits, last) = (covers.len() as u32, covers.last().cloned().unwrap_or_default());
        let longer = last.iter().flat_map(|number| [2 * number, 2 * number + 1]);
        let cover: Vec<u64> = longer.filter(|number| touches(range, *number, bits)).collect();
        if cover.len() > COVER_MAX {
            break;
        }
        covers.push(cover);
    }
    let shared = |key: &[u8]| (0..=bit_count).rev().find(|bits| touches_key(range, key, *bits)).unwrap_or(0);
    let next = [least.as_slice(), &[0]].concat();
    Some(Found {
        shared_left: keys.iter().filter(|key| *key < least.as_slice()).map(shared).max(),
        shared_right: keys.iter().filter(|key| *key > least.as_slice()).map(shared).max(),
        is_point: !range.contains(&next),
        covers,
    })
}

#[test]
fn queries_of_strings_are_counted_as_their_prefixes_are() {
    let mut state = 23;
    let mut lengths = [0; 2];
    for (round, letters) in
        [&[0, 1][..], &[0, 0xff], &[0, b'a', b'b', 0xff], &[0x7f, 0x80]].iter().enumerate()
    {
        let mut string = |longest: u64| -> Vec<u8> {
            let length = random(&mut state) % (longest + 1);
            (0..length).map(|_| letters[random(&mut state) as usize % letters.len()]).collect()
        };
        // Keys of several lengths are not integers.
        let mut strings: Vec<Vec<u8>> = (0..2 + 3 * round).map(|_| string(4)).collect();
        strings.extend([vec![letters[1]], vec![letters[1]; 3]]);
        let set = key_set(&strings);
        assert!(set.fixed().is_none());
        // Most bounds are close: the second is the first with another last byte, or with more letters.
        let pair = |number| {
            let (lower, other) = (string(5), string(2));
            let mut upper = match number % 4 {
                0 => string(5),
                _ => [lower.as_slice(), &other].concat(),
            };
            if number % 2 == 1
                && let Some(last) = upper.last_mut()
            {
                *last = last.saturating_add(1 + (number / 4 % 3) as u8);
            }
            (lower, upper)
        };
        let pairs: Vec<_> = (0..150).map(pair).collect();
        let sample: Vec<KeyRange<'_>> =
            pairs.iter().flat_map(|(lower, upper)| ranges(lower, upper)).collect();
        for range in &sample {
            let text = format!("{range:?} near {strings:?}");
            let query = EmptyQuery::new(&set, range);
            let found = found_among_strings(range, &set, set.bit_count());
            assert_eq!(query.is_some(), found.is_some(), "{text}");
            if let (Some(query), Some(found)) = (&query, &found) {
                check(query, found, (0, set.bit_count()), &text);
            }
        }
        let (kept, left_out) = check_sample(&set, &sample);
        lengths = [lengths[0] + kept, lengths[1] + left_out];
    }
    assert!(lengths.iter().all(|count| *count > 500), "{lengths:?} kept and left out");
}
