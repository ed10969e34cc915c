//! Range answers and candidates of every family compared with an ordered set: generated keys, parameters, budgets,
//! samples and bounds; and every range of a small universe.

use std::ops::Bound;

use tamis_filter::trie::{TrieIndex, TrieIndexBuilder};
use tamis_filter::{
    AnyFilter, Budget, Digester, Family, Filter, FilterSpec, KeyRange, RangeProbe, Samples, Upper,
};

use crate::hostile_keys::check_range;
use crate::sets::{SEED, next};

/// Rounds of generated keys, each with one filter per family.
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 120 };

/// A pseudo-random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        next(&mut self.0) % end
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    fn length(&mut self, most: usize) -> usize {
        self.below(most as u64 + 1) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.one_of(&[0, 1, b'm', 0x7f, 0x80, 0xfe, 0xff])).collect()
    }

    fn number(&mut self, first: u64, last: u64) -> String {
        (first + self.below(last - first + 1)).to_string()
    }
}

/// Sorted distinct keys with a common beginning, all of one length in every second set.
fn generate_keys(random: &mut Random) -> Vec<Vec<u8>> {
    let length = random.one_of(&[None, None, None, Some(1), Some(3), Some(8), Some(9), Some(10), Some(16)]);
    let front_length = random.length(length.unwrap_or(30) - 1);
    let front = random.bytes(front_length);
    let most = random.one_of(&[1, 3, 12, 60, 300]);
    let mut keys: Vec<Vec<u8>> = (0..1 + random.below(most))
        .map(|_| {
            let mut key = front.clone();
            if random.below(6) == 0 {
                key.truncate(random.length(front.len()));
            }
            let end = length.unwrap_or_else(|| key.len() + random.length(12));
            let rest = random.bytes(end - key.len());
            key.extend(rest);
            key
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Keys, their neighbours, prefixes and extensions.
fn generate_bound(random: &mut Random, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut bound = keys[random.below(keys.len() as u64) as usize].clone();
    for _ in 0..random.below(3) {
        match random.below(4) {
            0 => bound.truncate(random.length(bound.len())),
            1 => {
                let length = random.length(3);
                bound.extend(random.bytes(length));
            }
            2 => {
                let step = random.one_of(&[1, 2, 0x80, 0xff]);
                bound.last_mut().into_iter().for_each(|last| *last = last.wrapping_add(step));
            }
            _ => {
                let length = random.length(12);
                bound = random.bytes(length);
            }
        }
    }
    bound
}

fn generate_range<'a>(random: &mut Random, bounds: &'a [Vec<u8>]) -> KeyRange<'a> {
    let mut one = || &bounds[random.below(bounds.len() as u64) as usize];
    let (lower, upper) = (one(), one());
    let (low, high) =
        if random.below(8) == 0 { (lower, upper) } else { (lower.min(upper), lower.max(upper)) };
    let lower = random.one_of(&[Bound::Included(&low[..]), Bound::Excluded(low), Bound::Unbounded]);
    let upper =
        random.one_of(&[Upper::Included(&high[..]), Upper::Excluded(high), Upper::Prefix(high), Upper::Open]);
    match random.below(4) {
        0 => KeyRange::prefix(low),
        _ => KeyRange { lower, upper },
    }
}

/// A family, with or without parameters that determine parts of its design.
fn generate_spec(random: &mut Random, family: Family) -> FilterSpec {
    let mut spec = FilterSpec::new(family);
    if random.below(3) == 0 {
        return spec;
    }
    let mut with = |name: &str, value: String| {
        spec = std::mem::replace(&mut spec, FilterSpec::new(family)).with(name, &value)
    };
    match family {
        Family::SurfHash | Family::SurfReal => with("bits", random.number(0, 64)),
        Family::SurfMixed => {
            with("hash", random.number(0, 32));
            with("real", random.number(0, 32));
        }
        Family::Prefix => match random.below(4) {
            0 => with("bytes", random.number(1, 20)),
            kind => {
                let lengths = ["1+2", "2+5+9", "1+3+7+8+16+20+30+31"];
                let separators = ["0x00", "m", "0x01+m+0xff", "0x7f+0x80+0xfe"];
                if kind != 1 {
                    with("bytes", random.one_of(&lengths).to_owned());
                }
                if kind != 2 {
                    with("separator", random.one_of(&separators).to_owned());
                }
                with("points", random.one_of(&["yes", "no"]).to_owned());
            }
        },
        Family::Rosetta => {
            with("probe-cost", random.one_of(&["0", "10", "1e6"]).to_owned());
            with("probe-cap", random.one_of(&["1", "20", "2048", "65536"]).to_owned());
            with("read-cost", random.one_of(&["10", "50000", "1e9"]).to_owned());
        }
        Family::Proteus => {
            let trie = random.below(130);
            with("trie", trie.to_string());
            if random.below(2) == 0 {
                with("prefix", random.number(trie + 1, trie + 70));
            }
        }
        Family::OnePrefixBloom => with("prefix", random.number(1, 200)),
        Family::TwoPrefixBloom => {
            let first = 1 + random.below(120);
            with("first", first.to_string());
            with("second", random.number(first + 1, first + 70));
        }
        _ => {}
    }
    if matches!(family, Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom) {
        with("layout", random.one_of(&["spread", "lines"]).to_owned());
        with("probe-cap", random.one_of(&["2", "20", "4096"]).to_owned());
    }
    spec
}

/// A filter of a family; with the family's minimum budget if the generated one is smaller.
fn generate_filter(
    random: &mut Random,
    family: Family,
    keys: &[Vec<u8>],
    samples: Samples<'_>,
) -> (String, AnyFilter<Vec<u8>>) {
    let spec = generate_spec(random, family);
    let mut builder = spec.builder(SEED).unwrap();
    keys.iter().for_each(|key| builder.add(key).unwrap());
    let bits_per_key = random.one_of(&[0.5, 4.0, 14.0, 64.0, 120.0, 400.0, 1024.0]);
    let all = [bits_per_key, Budget::BITS_PER_KEY_MAX];
    let mut built = all.into_iter().filter_map(|bits| {
        let bytes = builder.finish(Budget::bits_per_key(bits).unwrap(), samples).ok()?;
        Some((format!("{spec} with {bits} bits"), AnyFilter::open(bytes).unwrap()))
    });
    built.next().unwrap()
}

#[test]
fn answers_and_candidates_of_every_family_agree_with_an_ordered_set() {
    let digesters = [Digester::new(SEED), Digester::new(SEED + 1)];
    for round in 0..ROUNDS {
        let random = &mut Random(round << 32);
        let keys = generate_keys(random);
        let bounds: Vec<Vec<u8>> = (0..30).map(|_| generate_bound(random, &keys)).collect();
        let sampled = random.one_of(&[0, 5, 100]);
        let samples: Vec<KeyRange<'_>> = (0..sampled).map(|_| generate_range(random, &bounds)).collect();
        let mut filters = Vec::new();
        for family in Family::ALL {
            filters.push(generate_filter(random, family, &keys, Samples { queries: &samples }));
        }
        for _ in 0..40 {
            let range = generate_range(random, &bounds);
            // Filters that are queried with the same probe share its digests.
            let shared = RangeProbe::new(range, &digesters[0]);
            for (spec, filter) in &filters {
                let what = format!("round {round}: {spec} of {keys:x?}");
                digesters.iter().for_each(|digester| check_range(filter, digester, &keys, range, &what));
                let alone = filter.may_contain_range(&RangeProbe::new(range, &digesters[0]));
                assert_eq!(filter.may_contain_range(&shared), alone, "{what} {range:x?}");
            }
        }
    }
}

#[test]
fn an_index_finds_the_neighbours_of_generated_bounds() {
    for round in 0..ROUNDS {
        let random = &mut Random(round << 32);
        let keys = generate_keys(random);
        let mut builder = TrieIndexBuilder::new(1);
        keys.iter().for_each(|key| builder.add(key, &[1]).unwrap());
        let index = TrieIndex::open(builder.finish().unwrap()).unwrap();
        let mut cursor = index.cursor();
        for _ in 0..40 {
            let bound = generate_bound(random, &keys);
            let place = keys.partition_point(|key| *key < bound);
            cursor.seek(&bound);
            assert_eq!(cursor.key(), keys.get(place).map(Vec::as_slice), "{bound:x?} of {keys:x?}");
            if place < keys.len() {
                cursor.previous();
                let before = place.checked_sub(1).map(|before| keys[before].as_slice());
                assert_eq!(cursor.key(), before, "before {bound:x?} of {keys:x?}");
            }
        }
    }
}

/// All strings of up to two of three bytes, after a front.
fn universe(front: &[u8]) -> Vec<Vec<u8>> {
    let bytes = [0, 0x80, 0xff];
    let pairs = bytes.iter().flat_map(|first| bytes.iter().map(|second| vec![*first, *second]));
    let ends = std::iter::once(vec![]).chain(bytes.iter().map(|byte| vec![*byte])).chain(pairs);
    let mut strings: Vec<Vec<u8>> = ends.map(|end| [front, &end].concat()).collect();
    strings.sort();
    strings
}

fn all_ranges<'a>(bounds: &'a [Vec<u8>]) -> Vec<KeyRange<'a>> {
    let lowers = bounds.iter().flat_map(|lower| [Bound::Included(&lower[..]), Bound::Excluded(lower)]);
    let lowers: Vec<Bound<&[u8]>> = lowers.chain([Bound::Unbounded]).collect();
    let uppers = bounds
        .iter()
        .flat_map(|upper| [Upper::Included(&upper[..]), Upper::Excluded(upper), Upper::Prefix(upper)]);
    let uppers: Vec<Upper<'_>> = uppers.chain([Upper::Open]).collect();
    let range = |lower, upper: &Upper<'a>| KeyRange { lower, upper: *upper };
    lowers.iter().flat_map(|lower| uppers.iter().map(|upper| range(*lower, upper))).collect()
}

#[test]
fn every_family_answers_every_range_of_a_small_universe_correctly() {
    let digester = Digester::new(SEED);
    let fronts = [&b""[..], b"a longer common front"];
    // Miri runs the generated filters.
    for front in fronts.into_iter().filter(|_| !cfg!(miri)) {
        let strings = universe(front);
        let ranges = all_ranges(&strings);
        let mut random = Random(front.len() as u64);
        for (first, second) in strings
            .iter()
            .enumerate()
            .flat_map(|(index, first)| strings.iter().skip(index).map(move |second| (first, second)))
        {
            let mut keys = vec![first.clone(), second.clone()];
            keys.dedup();
            for family in Family::ALL {
                let (spec, filter) = generate_filter(&mut random, family, &keys, Samples::NONE);
                let what = format!("{spec} of {keys:x?}");
                for range in &ranges {
                    check_range(&filter, &digester, &keys, *range, &what);
                }
            }
        }
    }
}
