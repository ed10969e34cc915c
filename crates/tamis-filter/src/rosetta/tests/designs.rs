//! Answers of generated designs, compared with an ordered set: levels at any depths, keys of any length, all kinds of bounds.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;

use super::super::keys::key_bytes;
use super::super::layout::BitLayout;
use super::super::model::Share;
use super::super::{Prices, RosettaBuilder, RosettaFilter};
use super::{SEED, check_bytes, open};
use crate::{
    Budget, Candidate, Digester, Direction, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples,
    Upper,
};

const ROUNDS: u64 = if cfg!(miri) { 3 } else { 600 };

/// Largest budget.
const BITS_PER_KEY: f64 = 1000.0;

/// A pseudo-random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 += 1;
        (crate::mix64(self.0, 0x7e57) % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.one_of(&[0, 1, b'm', 0x7f, 0x80, 0xfe, 0xff])).collect()
    }
}

/// Keys with a common beginning, all of one length if given.
fn generate_keys(random: &mut Random, length: Option<usize>) -> BTreeSet<Vec<u8>> {
    let longest = length.unwrap_or(20);
    let front_length = random.below(longest);
    let front = random.bytes(front_length);
    (0..1 + random.below(12))
        .map(|_| {
            let mut key = front.clone();
            // A few keys leave the common beginning early.
            if random.below(4) == 0 {
                key.truncate(random.below(key.len() + 1));
            }
            let end = length.unwrap_or(key.len() + random.below(longest + 1 - key.len()));
            let rest = random.bytes(end - key.len());
            key.extend(rest);
            key
        })
        .collect()
}

/// Levels at any depths that the format allows, some of them adjacent.
fn generate_levels(random: &mut Random, key_bytes: usize) -> Vec<Share> {
    let deepest = if key_bytes == 0 { 160 } else { key_bytes as u32 * 8 - 1 };
    let level = |depth: u32, is_full, layout| Share { depth, is_full, layout, bits: 4096.0 };
    let mut depths = BTreeSet::new();
    let mut depth = 1 + random.below(deepest as usize) as u32;
    for _ in 0..1 + random.below(8) {
        depths.insert(if depth > 64 { depth / 8 * 8 } else { depth });
        depth = match random.below(3) {
            0 => 1 + random.below(deepest as usize) as u32,
            1 => (depth + 8).min(deepest),
            _ => (depth + 1 + random.below(4) as u32).min(deepest),
        };
    }
    let mut layout = || random.one_of(&[BitLayout::Standard, BitLayout::Blocked]);
    let mut levels: Vec<Share> = depths.into_iter().map(|depth| level(depth, false, layout())).collect();
    let full_depth = if key_bytes == 0 { u32::MAX } else { key_bytes as u32 * 8 };
    let full = level(full_depth, true, layout());
    match random.below(4) {
        0 => levels = vec![full],
        1 => {}
        _ => levels.push(full),
    }
    levels
}

/// Bounds at keys, next to them, at their prefixes and extensions.
fn generate_bound(random: &mut Random, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut bound = keys[random.below(keys.len())].clone();
    for _ in 0..random.below(3) {
        match random.below(4) {
            0 => bound.truncate(random.below(bound.len() + 1)),
            1 => {
                let length = 1 + random.below(3);
                bound.extend(random.bytes(length));
            }
            2 => {
                let step = random.one_of(&[1, 0xff, 2, 0x80]);
                bound.last_mut().into_iter().for_each(|last| *last = last.wrapping_add(step));
            }
            _ => {
                let length = random.below(12);
                bound = random.bytes(length);
            }
        }
    }
    bound
}

fn generate_range<'a>(random: &mut Random, bounds: &'a [Vec<u8>]) -> KeyRange<'a> {
    let (lower, upper) = (&bounds[random.below(bounds.len())], &bounds[random.below(bounds.len())]);
    let (low, high) =
        if random.below(8) == 0 { (lower, upper) } else { (lower.min(upper), lower.max(upper)) };
    match random.below(4) {
        0 => KeyRange::prefix(low),
        _ => KeyRange {
            lower: random.one_of(&[Bound::Included(&low[..]), Bound::Excluded(low), Bound::Unbounded]),
            upper: random.one_of(&[
                Upper::Included(&high[..]),
                Upper::Excluded(high),
                Upper::Prefix(high),
                Upper::Open,
            ]),
        },
    }
}

/// The context that failed assertions print.
struct Question<'a> {
    filter: &'a RosettaFilter<Vec<u8>>,
    keys: &'a [Vec<u8>],
    range: KeyRange<'a>,
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, target: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(target, "{:x?} of {:x?} in ", self.range, self.keys)?;
        self.filter.design(target)
    }
}

fn check_range(filter: &RosettaFilter<Vec<u8>>, digester: &Digester, keys: &[Vec<u8>], range: KeyRange<'_>) {
    let mut inside = keys.iter().filter(|key| range.contains(key));
    let first = inside.next();
    let last = inside.next_back().or(first);
    let what = &Question { filter, keys, range };
    let answer = filter.may_contain_range(&RangeProbe::new(range, digester));
    assert!(answer || first.is_none(), "a range with a key is rejected: {what}");
    for (direction, key) in [(Direction::Forward, first), (Direction::Backward, last)] {
        let candidate = filter.candidate(&RangeProbe::new(range, digester), direction);
        if let Some(key) = key {
            check_bytes(&candidate, key, direction, what);
        } else {
            assert!(answer || candidate == Candidate::Absent, "{candidate:?} of a rejected range: {what}");
        }
    }
}

#[test]
fn answers_and_candidates_of_generated_designs_agree_with_an_ordered_set() {
    let digesters = [Digester::new(SEED), Digester::new(SEED + 1)];
    for round in 0..ROUNDS {
        let random = &mut Random(round << 32);
        let length = random.one_of(&[
            None,
            None,
            Some(1),
            Some(3),
            Some(7),
            Some(8),
            Some(9),
            Some(10),
            Some(12),
            Some(16),
        ]);
        let keys: Vec<Vec<u8>> = generate_keys(random, length).into_iter().collect();
        let probe_cap = random.one_of(&[1, 3, 20, 2048, 1 << 16]);
        let mut builder = RosettaBuilder::new(Prices { probe_cap, ..Prices::default() }, SEED);
        keys.iter().for_each(|key| builder.add(key).unwrap());
        let key_bytes = key_bytes(&builder.keys) as usize;
        builder.set_plan(BITS_PER_KEY, generate_levels(random, key_bytes));
        let budget = Budget::bits_per_key(BITS_PER_KEY).unwrap();
        let filter = open(builder.finish(budget, Samples::NONE).unwrap());
        for key in &keys {
            assert!(filter.may_contain(&Probe::new(key, &digesters[0])), "{key:x?}");
        }
        let bounds: Vec<Vec<u8>> = (0..20).map(|_| generate_bound(random, &keys)).collect();
        for digester in &digesters {
            check_range(&filter, digester, &keys, KeyRange::ALL);
            for _ in 0..60 {
                check_range(&filter, digester, &keys, generate_range(random, &bounds));
            }
        }
    }
}

#[test]
fn the_backward_candidate_of_all_keys_is_not_below_a_key_of_ten_bytes() {
    let mut builder = RosettaBuilder::new(Prices::default(), SEED);
    builder.add(b"zzzzzzzzzz").unwrap();
    builder
        .set_plan(100.0, vec![Share { depth: 80, is_full: true, layout: BitLayout::Standard, bits: 100.0 }]);
    let filter = open(builder.finish(Budget::bits_per_key(100.0).unwrap(), Samples::NONE).unwrap());
    let digester = Digester::new(SEED);
    let candidate = filter.candidate(&RangeProbe::new(KeyRange::ALL, &digester), Direction::Backward);
    // A level of 80 bits has no window for bounds that differ in the first byte.
    assert_eq!(candidate, Candidate::Unknown);
}

#[test]
fn a_prefix_of_seven_bytes_is_not_rejected_by_levels_below_its_end() {
    let prices = Prices { probe_cap: 1 << 16, ..Prices::default() };
    let mut builder = RosettaBuilder::new(prices, SEED);
    (1..5_u8).for_each(|number| builder.add(&[b"prefix:", &[number * 50; 9][..]].concat()).unwrap());
    let level = |depth, is_full| Share { depth, is_full, layout: BitLayout::Standard, bits: 300.0 };
    let prefixes = (5..16).map(|bytes| level(bytes * 8, false));
    builder.set_plan(1000.0, prefixes.chain([level(128, true)]).collect());
    let filter = open(builder.finish(Budget::bits_per_key(1000.0).unwrap(), Samples::NONE).unwrap());
    let digester = Digester::new(SEED);
    assert!(filter.may_contain_range(&RangeProbe::new(KeyRange::prefix(b"prefix:"), &digester)));
    assert!(!filter.may_contain_range(&RangeProbe::new(KeyRange::prefix(b"prefiy:"), &digester)));
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

fn all_ranges(bounds: &[Vec<u8>]) -> Vec<KeyRange<'_>> {
    let lowers = bounds.iter().flat_map(|lower| [Bound::Included(&lower[..]), Bound::Excluded(lower)]);
    let lowers: Vec<Bound<&[u8]>> = lowers.chain([Bound::Unbounded]).collect();
    let uppers = bounds
        .iter()
        .flat_map(|upper| [Upper::Included(&upper[..]), Upper::Excluded(upper), Upper::Prefix(upper)]);
    let uppers: Vec<Upper<'_>> = uppers.chain([Upper::Open]).collect();
    lowers
        .iter()
        .flat_map(|lower| uppers.iter().map(|upper| KeyRange { lower: *lower, upper: *upper }))
        .collect()
}

#[test]
fn every_range_of_a_small_universe_gets_the_right_answer() {
    let digester = Digester::new(SEED);
    let fronts = [&b""[..], b"frontal", b"a longer front"];
    // Miri runs the generated designs.
    for front in fronts.into_iter().filter(|_| !cfg!(miri)) {
        let strings = universe(front);
        let ranges = all_ranges(&strings);
        let top = front.len() as u32 * 8;
        let designs = [vec![16], vec![8, 16], vec![1, 8, 9], vec![2, 16, 24], vec![8, 24], vec![]];
        for (first, second) in
            (0..strings.len()).flat_map(|first| (first..strings.len()).map(move |it| (first, it)))
        {
            let mut keys = vec![strings[first].clone(), strings[second].clone()];
            keys.dedup();
            for depths in &designs {
                let mut builder = RosettaBuilder::new(Prices::default(), SEED);
                keys.iter().for_each(|key| builder.add(key).unwrap());
                let key_bits = key_bytes(&builder.keys) * 8;
                let depths: BTreeSet<u32> = depths
                    .iter()
                    .map(|depth| if top + depth > 64 { (top + depth) / 8 * 8 } else { top + depth })
                    .filter(|depth| key_bits == 0 || *depth < key_bits)
                    .collect();
                let level =
                    |depth, is_full| Share { depth, is_full, layout: BitLayout::Standard, bits: 300.0 };
                let mut levels: Vec<Share> = depths.iter().map(|depth| level(*depth, false)).collect();
                levels.push(level(if key_bits == 0 { u32::MAX } else { key_bits }, true));
                builder.set_plan(BITS_PER_KEY, levels);
                let budget = Budget::bits_per_key(BITS_PER_KEY).unwrap();
                let filter = open(builder.finish(budget, Samples::NONE).unwrap());
                ranges.iter().for_each(|range| check_range(&filter, &digester, &keys, *range));
            }
        }
    }
}
