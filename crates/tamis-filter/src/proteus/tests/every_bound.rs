//! All bounds of small universes, with every design of every family in both layouts.
//!
//! The correct answer follows from the prefixes: a range that contains a prefix of a key, of the longest length in the filter, always passes;
//! a set rejects all other ranges, and a Bloom filter almost all.

use super::neighbours::touches_key;
use super::*;
use crate::proteus::SetForm;

/// Every design for keys of `bits` bits; for strings, also with Bloom filters of whole keys.
fn designs(bits: u32, has_strings: bool) -> Vec<(Family, Design)> {
    let mut designs = Vec::new();
    for layout in BloomLayout::ALL {
        for depth in 0..=bits {
            let set = match depth {
                0 => Stage::None,
                _ => Stage::Set { depth, form: SetForm::Trie },
            };
            if layout == BloomLayout::Spread && depth > 0 {
                designs.push((Family::Proteus, Design { first: set, prefix: 0, layout }));
            }
            for prefix in (depth + 1..=bits).chain(has_strings.then_some(WHOLE_KEYS)) {
                designs.push((Family::Proteus, Design { first: set, prefix, layout }));
                if depth == 0 {
                    designs.push((Family::OnePrefixBloom, Design { first: set, prefix, layout }));
                } else if prefix != WHOLE_KEYS {
                    let first = Stage::Bloom { depth, share: 0.5 };
                    designs.push((Family::TwoPrefixBloom, Design { first, prefix, layout }));
                }
            }
        }
    }
    designs
}

/// The filter of a design. Checks that it has all parts.
fn with_parts(family: Family, design: &Design, keys: &KeySet, prices: Prices) -> AnyFilter<Vec<u8>> {
    let filter = built_by(ProteusBuilder::new(family, prices, SEED).with_design(design), keys, 1000.0, &[]);
    let parts = parts_of(&filter);
    assert_eq!(
        (parts.first.depth(), parts.prefix),
        (design.first.depth(), design.prefix),
        "{family} {design}"
    );
    assert_eq!(filter.family(), family);
    filter
}

#[test]
fn every_design_answers_every_range_of_one_byte() {
    let mut state = 41;
    let mut scattered: BTreeSet<u8> = (0..10).map(|_| random(&mut state) as u8).collect();
    scattered.extend([0, 255]);
    let designs = designs(8, false);
    assert_eq!(designs.len(), 8 + 2 * (36 + 8 + 28));
    for keys in [scattered, BTreeSet::from([127, 128])] {
        let set = key_set(keys.iter().map(|key| [*key]));
        // `below[n]`: keys less than n.
        let below: Vec<usize> =
            (0..=256_usize).map(|end| keys.iter().filter(|key| usize::from(**key) < end).count()).collect();
        for (family, design) in &designs {
            let filter = with_parts(*family, design, &set, Prices::DEFAULT);
            let rest = 0xff_u8.checked_shr(design.first.depth().max(design.prefix)).unwrap_or(0);
            let (mut asked, mut denied, mut untouched) = (0, 0, 0);
            for lower in 0..=255_u8 {
                for upper in lower..=255 {
                    let touches = below[usize::from(upper | rest) + 1] > below[usize::from(lower & !rest)];
                    let range = KeyRange::closed(std::slice::from_ref(&lower), std::slice::from_ref(&upper));
                    let answer = has_range(&filter, range);
                    assert!(answer || !touches, "{family} {design}: {lower}..={upper} of {keys:?}");
                    asked += 1;
                    denied += u32::from(!answer);
                    untouched += u32::from(!touches);
                }
            }
            assert_eq!(asked, 32_896);
            assert!(denied <= untouched && denied * 50 >= untouched * 49, "{family} {design}: {denied}");
            assert!(design.prefix != 0 || denied == untouched, "{design}: sets are exact: {denied}");
        }
    }
}

/// All strings of up to two of these letters.
fn strings() -> Vec<Vec<u8>> {
    let letters = [0_u8, 1, 0x80, 0xff];
    let pairs = letters.iter().flat_map(|first| letters.map(|second| vec![*first, second]));
    std::iter::once(Vec::new()).chain(letters.map(|letter| vec![letter])).chain(pairs).collect()
}

/// All ranges of all kinds between two strings of a list, each once.
fn all_ranges(strings: &[Vec<u8>]) -> Vec<KeyRange<'_>> {
    let lower = |string| [Bound::Included(string), Bound::Excluded(string)];
    let upper = |string| [Upper::Included(string), Upper::Excluded(string), Upper::Prefix(string)];
    let strings = || strings.iter().map(Vec::as_slice);
    let uppers: Vec<_> = strings().flat_map(upper).chain([Upper::Open]).collect();
    let lowers = strings().flat_map(lower).chain([Bound::Unbounded]);
    lowers.flat_map(|lower| uppers.iter().map(move |upper| KeyRange { lower, upper: *upper })).collect()
}

#[test]
fn every_design_answers_every_range_of_short_strings() {
    let mut state = 43;
    let strings = strings();
    let ranges = all_ranges(&strings);
    assert_eq!((strings.len(), ranges.len()), (21, 43 * 64));
    let prices = Prices { probe_cap: 128, ..Prices::DEFAULT };
    let designs = designs(16, true);
    for round in 0..2 {
        // Some of these strings differ in trailing zeros only.
        let mut keys: Vec<Vec<u8>> = vec![vec![0x80], vec![0x80, 0]];
        keys.extend(strings.iter().filter(|_| random(&mut state) % 4 < round + 1).cloned());
        let set = key_set(&keys);
        let model = Model::new(&set, Samples { queries: &ranges });
        let holds: Vec<bool> = ranges.iter().map(|range| set.has_key_in(range)).collect();
        let empty = |range: &KeyRange<'_>| range.is_empty();
        let left_out = ranges.iter().zip(&holds).filter(|(range, holds)| **holds || empty(range)).count();
        assert_eq!(model.queries.len(), ranges.len() - left_out);
        let touches: Vec<Vec<bool>> = (0..=16)
            .map(|bits| {
                let is_touched = |range| keys.iter().any(|key| touches_key(range, key, bits));
                ranges.iter().map(is_touched).collect()
            })
            .collect();
        for (family, design) in &designs {
            let filter = with_parts(*family, design, &set, prices);
            let longest = if design.prefix == WHOLE_KEYS { 0 } else { design.prefix };
            let touches = &touches[longest.max(design.first.depth()) as usize];
            let mut positives = 0;
            for ((range, holds), touches) in ranges.iter().zip(&holds).zip(touches) {
                let answer = has_range(&filter, *range);
                assert!(answer || !holds, "{family} {design}: {range:?} of {keys:?}");
                assert!(!answer || !empty(range), "{family} {design}: {range:?} holds no string");
                // A Bloom filter of whole keys rejects points that have all other bits in common with a key.
                let may_deny = design.prefix == WHOLE_KEYS && range.as_point().is_some();
                let is_touched = *touches && !empty(range);
                assert!(answer || !is_touched || may_deny, "{family} {design}: {range:?} of {keys:?}");
                assert!(design.prefix != 0 || answer == is_touched, "{design}: {range:?} of {keys:?}");
                positives += u32::from(answer && !holds);
            }
            let prediction = model.predict(*family, design, bits_per_key(1000.0), &prices).expect("budget");
            let predicted = prediction.map(|prediction| prediction.fpr).expect("fits");
            let measured = f64::from(positives) / (ranges.len() - left_out) as f64;
            assert!(
                (measured - predicted).abs() < 0.02,
                "{family} {design}: measured {measured}, predicted {predicted} near {keys:?}"
            );
        }
    }
}
