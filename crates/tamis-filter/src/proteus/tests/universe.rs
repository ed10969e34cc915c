//! Exhaustive tests of small universes: every pair of lengths, every range.

use super::*;

/// Every pair of lengths for keys of one byte, by family.
fn pairs(bits: u32) -> Vec<String> {
    let mut specs = Vec::new();
    for depth in 0..=bits {
        for prefix in std::iter::once(0).chain(depth + 1..=bits) {
            specs.push(format!("proteus:trie={depth},prefix={prefix}"));
            if depth > 0 && prefix > 0 {
                specs.push(format!("2pbf:first={depth},second={prefix}"));
            }
        }
    }
    specs
}

#[test]
fn every_pair_of_lengths_answers_every_range_of_a_small_universe() {
    let mut state = 1;
    for count in [1, 3, 9, 40] {
        // 64 keys in steps of four, and strings between them.
        let keys: BTreeSet<u8> = (0..count).map(|_| random(&mut state) as u8 & 0xfc).collect();
        let set = key_set(keys.iter().map(|key| [*key]));
        for spec in pairs(8) {
            let filter = build(&spec, &set, 300.0, &[]);
            for lower in (0..=255_u8).step_by(4) {
                for upper in (lower..=255).step_by(4).map(|upper| upper + (lower / 4) % 4) {
                    let truth = keys.range(lower..=upper).next().is_some();
                    let range = KeyRange::closed(std::slice::from_ref(&lower), std::slice::from_ref(&upper));
                    let answer = has_range(&filter, range);
                    assert!(answer || !truth, "{spec}: {lower}..={upper} of {keys:?}");
                    if spec == "proteus:trie=8,prefix=0" {
                        assert_eq!(answer, truth, "the set of whole keys is exact: {lower}..={upper}");
                    }
                }
            }
        }
    }
}

/// Sets of every depth of strings of two bytes and three letters have no false positives.
#[test]
fn a_set_is_exact_at_every_depth() {
    let mut state = 7;
    for round in 0..12 {
        let letters = [0, 1, 0x80, 0xff];
        let letter = |state: &mut u64| letters[(random(state) % 4) as usize];
        // With keys of other lengths these are strings, not integers.
        let mut keys: Vec<Vec<u8>> = (0..1 + round * 2)
            .map(|_| vec![letter(&mut state), letter(&mut state), letter(&mut state)])
            .collect();
        keys.push(vec![letter(&mut state); 4]);
        let set = key_set(&keys);
        for depth in 1..=32 {
            let filter = build(&format!("proteus:trie={depth}"), &set, 600.0, &[]);
            let prefix = |key: &[u8]| {
                let word = tamis_bits::key_head(key) >> 32;
                word >> (32 - depth)
            };
            let prefixes: BTreeSet<u64> = keys.iter().map(|key| prefix(key)).collect();
            for _ in 0..300 {
                let mut ends = [0; 2].map(|_| [0; 4].map(|_| letters[(random(&mut state) % 4) as usize]));
                ends.sort_unstable();
                let [lower, upper] = ends;
                let truth = prefixes.range(prefix(&lower)..=prefix(&upper)).next().is_some();
                let answer = has_range(&filter, KeyRange::closed(&lower, &upper));
                assert_eq!(answer, truth, "depth {depth}, {lower:?}..={upper:?} of {keys:?}");
            }
        }
    }
}

#[test]
fn all_kinds_of_bounds_over_strings_with_zeros() {
    let letters = [0_u8, 1, 0xff];
    let mut strings: Vec<Vec<u8>> = vec![vec![]];
    for length in 1..=3_u32 {
        for number in 0..3_usize.pow(length) {
            strings.push((0..length).map(|place| letters[number / 3_usize.pow(place) % 3]).collect());
        }
    }
    let mut state = 3;
    for round in 0..4 {
        let set = key_set(strings.iter().filter(|_| random(&mut state) % 6 <= round));
        for spec in [
            "proteus:trie=13",
            "proteus:trie=24",
            "proteus:trie=9,prefix=15",
            "proteus:trie=5,prefix=24",
            "proteus:prefix=11",
            "1pbf:prefix=24",
            "1pbf",
            "2pbf:first=3,second=17",
            "proteus",
        ] {
            let filter = build(spec, &set, 400.0, &[]);
            for lower in &strings {
                for upper in &strings {
                    ranges(lower, upper).into_iter().for_each(|range| check_range(&filter, &set, range));
                }
            }
        }
    }
}

#[test]
fn bounds_of_integers_may_have_any_length() {
    let mut state = 11;
    for width in [1_usize, 2, 5, 8] {
        let keys = (0..60).map(|_| random(&mut state).to_be_bytes()[..width].to_vec());
        let set = key_set(keys.chain([vec![0; width], vec![0xff; width]]));
        let bits = width as u32 * 8;
        for spec in [
            format!("proteus:trie={bits}"),
            format!("proteus:trie={},prefix={bits}", bits / 2),
            format!("proteus:trie={},prefix={}", bits / 2, bits - 1),
            format!("1pbf:prefix={bits}"),
            format!("1pbf:prefix={}", bits - 3),
            format!("2pbf:first={},second={bits}", bits / 2),
        ] {
            let filter = build(&spec, &set, 100.0, &[]);
            for round in 0..2000_u64 {
                let near = set.get(random(&mut state) as usize % set.len()).expect("there").to_vec();
                let mut ends = [near.clone(), near];
                for end in &mut ends {
                    end.resize((random(&mut state) % 10) as usize, (round % 3 * 127) as u8);
                    if let Some(byte) = end.last_mut() {
                        *byte = byte.wrapping_add((random(&mut state) % 3) as u8);
                    }
                }
                ranges(&ends[0], &ends[1]).into_iter().for_each(|range| {
                    check_range(&filter, &set, range);
                    if spec == format!("proteus:trie={bits}") {
                        let truth = set.has_key_in(&range);
                        assert_eq!(
                            has_range(&filter, range),
                            truth,
                            "{range:?}: sets of whole keys are exact"
                        );
                    }
                });
            }
        }
    }
}
