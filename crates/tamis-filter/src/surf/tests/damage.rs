//! Several damaged bytes, counts and suffix widths included, in filters whose lengths match: opening fails or queries
//! return answers, but nothing panics.

use std::ops::Bound;

use tamis_bits::{elias_fano, packed};

use super::{
    SEED, Shape, bounds, encode, greatest_candidate, hostile_sets, least_candidate, lowers, next, open,
    sorted, uppers,
};
use crate::envelope::{self, ENVELOPE_BYTES, Envelope};
use crate::surf::{SuffixBits, SurfFilter};
use crate::trie::{Layout, TRAILER_BYTES};
use crate::{Candidate, DecodeError, Digester, Direction, Filter, KeyRange, Probe, RangeProbe, Upper};

/// None, and all kinds.
const SUFFIXES: [SuffixBits; 7] = [
    SuffixBits { hash: 0, real: 0 },
    SuffixBits { hash: 4, real: 0 },
    SuffixBits { hash: 64, real: 0 },
    SuffixBits { hash: 0, real: 5 },
    SuffixBits { hash: 0, real: 64 },
    SuffixBits { hash: 3, real: 13 },
    SuffixBits { hash: 32, real: 32 },
];
/// Maximal growth of a filter to match its counts, in bytes.
const GROWTH_MAX: usize = 1 << 14;

/// Changes some of the counts to similar ones, to small ones, or to large ones.
fn damage_counts(trailer: &mut [u8], state: &mut u64) {
    for _ in 0..1 + next(state) % 3 {
        let field = next(state) as usize % 9;
        let length = if field == 8 { 8 } else { 4 };
        let target = &mut trailer[4 * field..4 * field + length];
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(target);
        let count = u64::from_le_bytes(bytes);
        let random = next(state);
        let count = match random % 8 {
            0 => count.wrapping_add(random >> 8 & 3),
            1 => count.wrapping_sub(random >> 8 & 3),
            2 => count ^ 1 << (random >> 8 & 63),
            3 => random >> 8 & 0xff,
            4 => 0,
            5 => u64::MAX,
            6 => u64::MAX - (random >> 8 & 0xfff),
            _ => random >> (random >> 8 & 63),
        };
        target.copy_from_slice(&count.to_le_bytes()[..length]);
    }
}

/// Changes several bytes at random, or a whole range.
fn damage_bytes(bytes: &mut [u8], state: &mut u64) {
    let length = bytes.len().max(1);
    for _ in 0..1 + next(state) % 3 {
        let (start, random) = (next(state) as usize % length, next(state));
        let count = if random.is_multiple_of(2) { 1 } else { 2 + (random >> 8 & 15) as usize };
        let with = [0, 1, 0x80, 0xff, 0xff, (random >> 24) as u8][(random >> 16) as usize % 6];
        bytes.iter_mut().skip(start).take(count).for_each(|byte| *byte = with);
    }
}

/// The suffix widths of an envelope.
fn widths(envelope: &Envelope) -> SuffixBits {
    let [hash, real, ..] = envelope.parameters;
    SuffixBits { hash: u32::from(hash), real: u32::from(real) }
}

/// Gives a filter the length and the number of keys that its counts require; added bytes are `filling`. `false` if that
/// is impossible.
fn fit(bytes: &mut Vec<u8>, envelope: Envelope, filling: u8) -> bool {
    let mut envelope = envelope;
    let trailer = bytes.split_off(bytes.len() - TRAILER_BYTES);
    bytes.resize(bytes.len() + GROWTH_MAX, filling);
    let room = bytes.len();
    bytes.extend_from_slice(&trailer);
    let width = widths(&envelope).width();
    let Ok(layout) = Layout::read(envelope::payload(bytes), width > 0) else { return false };
    let Some(suffixes) = packed::encoded_bytes(width, layout.counts.leaf_count()) else { return false };
    let end = (ENVELOPE_BYTES + layout.leaves) as u64 + suffixes;
    if end > room as u64 {
        return false;
    }
    bytes.truncate(end as usize);
    bytes.extend_from_slice(&trailer);
    envelope.key_count = layout.counts.key_count();
    envelope.seal(bytes);
    true
}

fn ask(filter: &SurfFilter<&[u8]>, strings: &[Vec<u8>]) {
    let digester = Digester::new(SEED);
    strings.iter().for_each(|key| _ = filter.may_contain(&Probe::new(key, &digester)));
    let mut ranges = vec![KeyRange::ALL];
    for (string, other) in strings.iter().zip(strings.iter().rev()) {
        for lower in lowers(string) {
            ranges.extend(uppers(other).map(|upper| KeyRange { lower, upper }));
        }
        ranges.extend([KeyRange::point(string), KeyRange::prefix(string)]);
        lowers(string).into_iter().for_each(|lower| drop(least_candidate(filter, lower)));
        uppers(string).into_iter().for_each(|upper| drop(greatest_candidate(filter, upper)));
    }
    for range in &ranges {
        let probe = RangeProbe::new(*range, &digester);
        let _ = filter.candidate(&probe, Direction::Forward);
        let _ = filter.candidate(&probe, Direction::Backward);
    }
    let _ = filter.design(&mut String::new());
}

fn check(keys: &[Vec<u8>], bytes: &[u8], rounds: u64, state: &mut u64) -> u64 {
    let mut opened = 0;
    for round in 0..rounds {
        let mut damaged = bytes.to_vec();
        let mut envelope = Envelope::parse(bytes, bytes.len() as u64).unwrap();
        let end = damaged.len() - TRAILER_BYTES;
        if round % 4 != 0 {
            damage_bytes(&mut damaged[ENVELOPE_BYTES..end], state);
        }
        if round % 3 == 0 {
            damage_counts(&mut damaged[end..], state);
        }
        if round % 8 == 5 {
            let hash = (next(state) % 65) as u8;
            envelope.parameters[0] = hash;
            envelope.parameters[1] = (next(state) % (65 - u64::from(hash))) as u8;
        }
        if !fit(&mut damaged, envelope, [0, 0x55, 0xff][round as usize % 3]) {
            continue;
        }
        let envelope = Envelope::parse(&damaged, damaged.len() as u64).unwrap();
        let Ok(filter) = SurfFilter::open(envelope, &damaged[..]) else { continue };
        opened += 1;
        let mut strings = bounds(keys, 2, state);
        strings.push(keys[next(state) as usize % keys.len()].clone());
        ask(&filter, &strings);
    }
    opened
}

#[test]
fn filters_damaged_in_several_places_do_not_panic() {
    let mut state = 101;
    let sets = hostile_sets().into_iter().filter(|keys| keys[0].len() < 1000);
    for (number, keys) in sets.enumerate() {
        for (turn, shape) in [Shape::Best, Shape::Sparse, Shape::Dense].into_iter().enumerate() {
            let suffix = SUFFIXES[(number * 3 + turn) % SUFFIXES.len()];
            let opened = check(&keys, &encode(&keys, suffix, shape), 400, &mut state);
            assert!(opened > 200, "{opened} opened: the others cannot be queried");
        }
    }
}

#[test]
fn capped_filters_damaged_in_several_places_do_not_panic() {
    let mut state = 111;
    let sets = hostile_sets().into_iter().filter(|keys| keys.len() > 30);
    for (number, keys) in sets.enumerate() {
        for height in 1..5 {
            let suffix = SUFFIXES[(number + height) % SUFFIXES.len()];
            let opened = check(&keys, &encode(&keys, suffix, Shape::Capped(height)), 400, &mut state);
            assert!(opened > 200, "{opened} opened: the others cannot be queried");
        }
    }
}

/// All keys of twelve letters a and b: with b overwritten, all leaves are on the path of one bound.
#[test]
fn candidate_searches_in_damaged_filters_are_bounded() {
    let letters = |number: u16| (0..12).rev().map(move |bit| b'a' + (number >> bit & 1) as u8);
    let keys = (0..1 << 12).map(|number| letters(number).chain([0x80]).collect()).collect();
    let mut bytes = encode(&sorted(keys), SuffixBits { hash: 0, real: 8 }, Shape::Sparse);
    let [below, above] = [0, 0xff].map(|last| [&[b'a'; 12][..], &[last]].concat());
    let candidates = |bytes: &[u8]| {
        let filter = open(bytes);
        let least = least_candidate(&filter, Bound::Included(&above));
        (least, greatest_candidate(&filter, Upper::Included(&below)))
    };
    assert_eq!(candidates(&bytes), (Candidate::Bytes(b"aaaaaaaaaaab\x80".to_vec()), Candidate::Absent));
    let counts = Layout::read(envelope::payload(&bytes), true).unwrap().counts;
    let blocks = counts.sparse_label_count.div_ceil(49) as usize;
    for block in bytes[ENVELOPE_BYTES..].chunks_mut(64).take(blocks) {
        block[15..].iter_mut().filter(|label| **label == b'b').for_each(|label| *label = b'a');
    }
    assert_eq!(candidates(&bytes), (Candidate::Unknown, Candidate::Unknown));
}

/// A filter in which all capped leaves except the last have one key, and all together have `key_count`.
fn with_capped_keys(bytes: &[u8], key_count: u64) -> Vec<u8> {
    let payload = envelope::payload(bytes);
    let layout = Layout::read(payload, false).unwrap();
    let counts = layout.counts;
    let leaves = u64::from(counts.capped_leaf_count);
    let old = elias_fano::encoded_bytes(leaves, counts.capped_key_count).unwrap() as usize;
    let mut filter = bytes[..ENVELOPE_BYTES + layout.leaves - old].to_vec();
    elias_fano::encode(&mut filter, leaves, key_count, (1..leaves).chain([key_count]));
    filter.extend_from_slice(&payload[payload.len() - TRAILER_BYTES..payload.len() - 8]);
    filter.extend_from_slice(&key_count.to_le_bytes());
    let others = counts.key_count() - counts.capped_key_count;
    let mut envelope = Envelope::parse(bytes, bytes.len() as u64).unwrap();
    envelope.key_count = others.saturating_add(key_count);
    envelope.seal(&mut filter);
    filter
}

/// Sums of keys exceeded 64 bits.
#[test]
fn capped_leaves_may_have_as_many_keys_as_a_filter_and_no_more() {
    // Keys that end early, and leaves above the last level.
    let words = [&b""[..], b"a", b"ab", b"abcd", b"abce", b"abcf", b"abdx", b"abdy", b"b", b"d1", b"d2"];
    let keys = sorted(words.into_iter().map(<[u8]>::to_vec).collect());
    let bytes = encode(&keys, SUFFIXES[0], Shape::Capped(3));
    let counts = Layout::read(envelope::payload(&bytes), false).unwrap().counts;
    assert!(counts.capped_leaf_count == 2 && counts.prefix_key_count > 1 && counts.leaf_count() > 2);
    let others = counts.key_count() - counts.capped_key_count;
    assert_eq!(open(with_capped_keys(&bytes, counts.capped_key_count)).key_count(), counts.key_count());

    let greatest = with_capped_keys(&bytes, u64::MAX - others);
    let filter = open(&greatest[..]);
    assert_eq!(filter.key_count(), u64::MAX);
    ask(&filter, &keys);
    // The same with more prefix keys than the count: all bits are set, and their number matches.
    let mut marked = greatest.clone();
    let leaves = u64::from(counts.capped_leaf_count);
    let capped_bytes = elias_fano::encoded_bytes(leaves, u64::MAX - others).unwrap() as usize;
    let end = marked.len() - TRAILER_BYTES - capped_bytes;
    marked[end - 32..end - 24].fill(0xff);
    marked[end - 16..end - 8].copy_from_slice(&u64::from(counts.node_count).to_le_bytes());
    ask(&open(&marked[..]), &keys);

    for beyond in [others, 2, 1] {
        let bytes = with_capped_keys(&bytes, u64::MAX - others + beyond);
        let envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
        let refusal = DecodeError::Field { field: "capped_key_count", got: u64::MAX - others + beyond };
        match SurfFilter::open(envelope, &bytes[..]) {
            Ok(filter) => ask(&filter, &keys),
            Err(error) => assert_eq!(error, refusal),
        }
        assert!(SurfFilter::open(envelope, &bytes[..]).is_err());
    }
}
