//! No query tests more than the cap. In filters whose bits are all clear or all set, the answers show how many tests a query takes.

use std::fmt::Debug;

use super::super::layout::BLOCK_BYTES;
use super::*;
use crate::envelope::ENVELOPE_BYTES;
use crate::proteus::SetForm;

const CAPS: [u32; 8] = [2, 3, 4, 5, 16, 17, 64, 1000];

/// A filter of a design, and the same with all bits of its second Bloom filter clear and those of its first all set or clear.
fn emptied(family: Family, design: &Design, cap: u32, keys: &KeySet, fill: u8) -> [AnyFilter<Vec<u8>>; 2] {
    let prices = Prices { probe_cap: cap, ..Prices::DEFAULT };
    let bytes = encoded_by(ProteusBuilder::new(family, prices, SEED).with_design(design), keys, 40.0, &[]);
    let mut empty = bytes.clone();
    let (block, payload) = empty[ENVELOPE_BYTES..].split_at_mut(BLOCK_BYTES);
    let length = u64::from_le_bytes(*block[16..].first_chunk().expect("a block is longer")) as usize;
    let (second, first) = payload.split_at_mut(length);
    assert!(!second.is_empty(), "{design}");
    second.fill(0);
    if matches!(design.first, Stage::Bloom { .. }) {
        assert!(!first.is_empty(), "{design}");
        first.fill(fill);
    }
    let filters = [bytes, empty].map(|bytes| AnyFilter::open(bytes).expect("whole"));
    let parts = parts_of(&filters[0]);
    assert_eq!((parts.first.depth(), parts.prefix), (design.first.depth(), design.prefix), "{design}");
    filters
}

/// A query, and the number of its tests if none finds a match.
struct Query {
    bounds: (Vec<u8>, Vec<u8>),
    probe_count: u64,
}

/// Checks that without a set bit a query passes if it needs more tests than the cap, and is rejected otherwise, after exactly its number of
/// tests, and that no query of either filter takes more tests than the cap.
fn check(filters: &[AnyFilter<Vec<u8>>; 2], cap: u32, queries: &[Query], text: &impl Debug) {
    let [filter, empty] = filters;
    let digester = Digester::new(SEED);
    let ranges: Vec<KeyRange<'_>> =
        queries.iter().map(|query| KeyRange::closed(&query.bounds.0, &query.bounds.1)).collect();
    let (mut passed, mut denied) = (0, 0);
    for (query, range) in queries.iter().zip(&ranges) {
        let passes = query.probe_count > u64::from(cap);
        let text = format!("{text:?}, cap {cap}: {} probes of {range:?}", query.probe_count);
        let probe = RangeProbe::new(*range, &digester);
        assert_eq!(empty.may_contain_range(&probe), passes, "{text}");
        assert_eq!(empty.may_contain_range(&RangeProbe::new(*range, &digester)), passes, "{text}");
        assert!(probe.probe_count() <= cap, "{text}: {}", probe.probe_count());
        assert!(
            passes || u64::from(probe.probe_count()) == query.probe_count,
            "{text}: {}",
            probe.probe_count()
        );
        let probe = RangeProbe::new(*range, &digester);
        filter.may_contain_range(&probe);
        assert!(probe.probe_count() <= cap, "{text}: {}", probe.probe_count());
        (passed, denied) = (passed + u32::from(passes), denied + u32::from(!passes));
    }
    assert!(passed > 0 && denied > 0, "{text:?}, cap {cap}: {passed} pass, {denied} are rejected");
}

/// Numbers of prefixes per query: near the cap, and others.
fn counts(cap: u32) -> Vec<u64> {
    let cap = u64::from(cap);
    let about = cap.saturating_sub(3).max(1)..cap + 3;
    about.chain([1, 2, cap / 2, 2 * cap, 20_000]).filter(|count| *count > 0).collect()
}

fn scattered_words(state: &mut u64) -> KeySet {
    integers((0..300).map(|_| random(state)))
}

/// A range from one prefix to another; the bits after them are random, and the upper bound is not below the lower.
fn words(state: &mut u64, prefix: u32, first: u64, last: u64) -> (Vec<u8>, Vec<u8>) {
    let rest = u64::MAX.checked_shr(prefix).unwrap_or(0);
    let mut ends = [first, last].map(|number| number << (64 - prefix) | (random(state) & rest));
    ends.sort_unstable();
    let [lower, upper] = ends.map(|end| end.to_be_bytes().to_vec());
    (lower, upper)
}

#[test]
fn a_bloom_filter_of_integers_tests_at_most_the_cap() {
    let mut state = 71;
    let set = scattered_words(&mut state);
    for (layout, prefix) in
        BloomLayout::ALL.into_iter().flat_map(|layout| [20, 47, 64].map(|prefix| (layout, prefix)))
    {
        let design = Design { first: Stage::None, prefix, layout };
        for cap in CAPS {
            let filters = emptied(Family::OnePrefixBloom, &design, cap, &set, 0);
            let query = |count: u64| {
                let first = (random(&mut state) >> (64 - prefix)).min((u64::MAX >> (64 - prefix)) - count);
                Query { bounds: words(&mut state, prefix, first, first + count - 1), probe_count: count }
            };
            let queries: Vec<Query> = counts(cap).into_iter().chain(1..40).map(query).collect();
            check(&filters, cap, &queries, &design);
        }
    }
}

/// The lookup in the set counts as a test. Two of its prefixes are adjacent, and queries are in one or both.
#[test]
fn a_set_and_a_bloom_filter_test_at_most_the_cap() {
    let mut state = 73;
    let adjacent = [0x1234_u64, 0x1235].map(|prefix| prefix << 48 | random(&mut state) >> 16);
    let words_set = integers((0..300).map(|_| random(&mut state)).chain(adjacent));
    let tails = (0..300).map(|_| {
        let (head, length) = (random(&mut state).to_be_bytes(), random(&mut state) as usize % 10);
        [&head[..], &b"tail of it"[..length]].concat()
    });
    let strings = key_set(tails.chain(adjacent.map(|word| [&word.to_be_bytes()[..], b"end"].concat())));
    for (set, layout) in
        BloomLayout::ALL.into_iter().flat_map(|layout| [(&words_set, layout), (&strings, layout)])
    {
        for prefix in [33, 40, 63] {
            let first = Stage::Set { depth: 16, form: SetForm::MarkedEliasFano };
            let design = Design { first, prefix, layout };
            for cap in CAPS {
                let filters = emptied(Family::Proteus, &design, cap, set, 0);
                let border = 0x1235_u64 << (prefix - 16);
                let mut queries = Vec::new();
                for count in counts(cap) {
                    let within = border + random(&mut state) % 1000;
                    for first in [within, border - count, border - count / 2, border - 1] {
                        let bounds = words(&mut state, prefix, first, first + count - 1);
                        queries.push(Query { bounds, probe_count: 1 + count });
                    }
                }
                check(&filters, cap, &queries, &design);
            }
        }
    }
}

/// Strings with equal bits before a position, a number in the sixteen bits up to it, and some more bytes after it.
struct Strings {
    head: Vec<u8>,
    place: u32,
}

impl Strings {
    fn new(state: &mut u64, place: u32) -> Self {
        let head = (0..place.div_ceil(8)).map(|_| random(state) as u8).collect();
        Self { head, place }
    }

    fn at(&self, number: u64, rest: u8) -> Vec<u8> {
        let mut string = self.head.clone();
        string.extend([rest; 5]);
        for (bit, shift) in
            (self.place - 16..).zip((0..16).rev()).chain((self.place..).zip(std::iter::repeat_n(16, 7)))
        {
            // The bits after the position are those of the rest.
            let is_set = if shift < 16 { number >> shift & 1 == 1 } else { rest & 1 == 1 };
            let (byte, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
            string[byte] = if is_set { string[byte] | mask } else { string[byte] & !mask };
        }
        string
    }

    fn range(&self, first: u64, last: u64) -> (Vec<u8>, Vec<u8>) {
        assert!(last < 1 << 16);
        (self.at(first, 0), self.at(last, 0xff))
    }
}

fn scattered_strings(state: &mut u64) -> KeySet {
    let text = |_| (0..1 + random(state) % 30).map(|_| random(state) as u8).collect::<Vec<u8>>();
    key_set((0..300).map(text).collect::<BTreeSet<_>>())
}

#[test]
fn a_bloom_filter_of_strings_tests_at_most_the_cap() {
    let mut state = 79;
    let set = scattered_strings(&mut state);
    for (layout, prefix) in BloomLayout::ALL
        .into_iter()
        .flat_map(|layout| [20, 47, 64, 65, 76, 128, 129, 140].map(|prefix| (layout, prefix)))
    {
        let design = Design { first: Stage::None, prefix, layout };
        let strings = Strings::new(&mut state, prefix);
        for cap in CAPS {
            let filters = emptied(Family::OnePrefixBloom, &design, cap, &set, 0);
            let query = |count: u64| {
                let first = random(&mut state) % 30_000;
                Query { bounds: strings.range(first, first + count - 1), probe_count: count }
            };
            let queries: Vec<Query> = counts(cap).into_iter().chain(1..40).map(query).collect();
            check(&filters, cap, &queries, &design);
        }
    }
}

/// If the first of two Bloom filters passes nothing, only its tests count; if it passes all prefixes, those of both.
#[test]
fn two_bloom_filters_together_test_at_most_the_cap() {
    const BELOW: u32 = 4;
    let mut state = 83;
    let (numbers, texts) = (scattered_words(&mut state), scattered_strings(&mut state));
    let lengths = [(&numbers, 30), (&numbers, 64), (&texts, 30), (&texts, 64), (&texts, 68), (&texts, 133)];
    for (layout, (set, prefix)) in
        BloomLayout::ALL.into_iter().flat_map(|layout| lengths.map(|length| (layout, length)))
    {
        let first = Stage::Bloom { depth: prefix - BELOW, share: 0.4 };
        let design = Design { first, prefix, layout };
        let strings = Strings::new(&mut state, prefix);
        for (cap, fill) in CAPS.into_iter().flat_map(|cap| [(cap, 0), (cap, 0xff)]) {
            let filters = emptied(Family::TwoPrefixBloom, &design, cap, set, fill);
            let query = |count: u64| {
                let first = random(&mut state) % 30_000;
                let last = first + count - 1;
                let bounds = strings.range(first, last);
                let bounds = match std::ptr::eq(set, &numbers) {
                    true => (bounds.0[..8].to_vec(), bounds.1[..8].to_vec()),
                    false => bounds,
                };
                let above = (last >> BELOW) - (first >> BELOW) + 1;
                Query { bounds, probe_count: if fill == 0 { above } else { above + count } }
            };
            let wide = [u64::from(cap) << BELOW, 30_000].map(|count| count.min(30_000));
            let queries: Vec<Query> = counts(cap).into_iter().chain(1..40).chain(wide).map(query).collect();
            check(&filters, cap, &queries, &(design, fill));
        }
    }
}
