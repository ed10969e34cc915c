//! Key sets that have broken filters before, and their filters.

use tamis_filter::{Budget, BuildError, Family, FilterSpec, Samples};

/// Seed of all filters in these tests.
pub(crate) const SEED: u64 = 77;

/// Every family with a suitable budget, and with some parameters that differ from the defaults.
pub(crate) fn specs() -> Vec<FilterSpec> {
    Family::ALL
        .into_iter()
        .map(FilterSpec::new)
        .chain([
            FilterSpec::new(Family::BlockedBloom).with("probes", "13"),
            FilterSpec::new(Family::Prefix).with("bytes", "1"),
            FilterSpec::new(Family::Prefix).with("bytes", "2"),
            FilterSpec::new(Family::Prefix).with("bytes", "8"),
            FilterSpec::new(Family::Prefix).with("bytes", "13"),
            FilterSpec::new(Family::Prefix).with("bytes", "1+3+9"),
            FilterSpec::new(Family::Prefix).with("separator", "a+0xff").with("points", "yes"),
            FilterSpec::new(Family::Prefix).with("separator", "0x00").with("bytes", "2+4"),
            FilterSpec::new(Family::Elastic).with("units", "8"),
            FilterSpec::new(Family::SurfHash).with("bits", "4"),
            FilterSpec::new(Family::SurfHash).with("bits", "64"),
            FilterSpec::new(Family::SurfReal).with("bits", "5"),
            FilterSpec::new(Family::SurfReal).with("bits", "8"),
            FilterSpec::new(Family::SurfReal).with("bits", "16"),
            FilterSpec::new(Family::SurfReal).with("bits", "64"),
            FilterSpec::new(Family::SurfMixed).with("hash", "3").with("real", "13"),
            FilterSpec::new(Family::Rosetta).with("probe-cap", "20"),
            FilterSpec::new(Family::Rosetta).with("read-cost", "100"),
            FilterSpec::new(Family::Proteus).with("trie", "5"),
            FilterSpec::new(Family::Proteus).with("trie", "13").with("prefix", "20"),
            FilterSpec::new(Family::Proteus).with("trie", "64"),
            FilterSpec::new(Family::OnePrefixBloom).with("prefix", "13").with("layout", "lines"),
            FilterSpec::new(Family::OnePrefixBloom).with("prefix", "70").with("probe-cap", "20"),
            FilterSpec::new(Family::TwoPrefixBloom).with("first", "9").with("second", "66"),
        ])
        .collect()
}

/// Sorted sets of keys, with a name.
pub(crate) fn key_sets() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let strings = |keys: &[&[u8]]| keys.iter().map(|key| key.to_vec()).collect::<Vec<_>>();
    let mut sets = vec![
        ("no keys", vec![]),
        ("the empty key", strings(&[b""])),
        ("one key", strings(&[b"key"])),
        ("one long key", vec![vec![b'x'; 65_535]]),
        ("prefixes of others", strings(&[b"", b"a", b"ab", b"abc", b"abcd", b"abd", b"b"])),
        ("repeated keys", strings(&[b"a", b"a", b"b", b"b", b"b", b"c"])),
        ("the greatest integer", vec![u64::MAX.to_be_bytes().to_vec()]),
        ("dictionary trap", strings(&[b"d", b"dac", b"dbd", b"dca", b"dec"])),
    ];
    sets.push(("runs of zeros", (0..70).map(|length| vec![0; length]).collect()));
    sets.push(("runs of ones", (0..70).map(|length| vec![0xff; length]).collect()));
    sets.push((
        "top of the integers",
        (0..300).rev().map(|back| (u64::MAX - back).to_be_bytes().to_vec()).collect(),
    ));
    let mut state = 5;
    let mut scattered: Vec<Vec<u8>> = (0..2000).map(|_| next(&mut state).to_be_bytes().to_vec()).collect();
    scattered.sort();
    sets.push(("scattered integers", scattered));
    let mut digits: Vec<Vec<u8>> =
        (0..2000).map(|_| format!("{:016x}", next(&mut state)).into_bytes()).collect();
    digits.sort();
    sets.push(("hexadecimal digits", digits));
    let mut names: Vec<Vec<u8>> = (0..2000)
        .map(|_| {
            let letters = (0..next(&mut state) % 14).map(|_| b'a' + (next(&mut state) % 26) as u8);
            b"at/x-".iter().copied().chain(letters).collect()
        })
        .collect();
    names.sort();
    sets.push(("names of different lengths", names));
    let mut words: Vec<Vec<u8>> = (0..2000)
        .map(|_| {
            let length = next(&mut state) % 6;
            (0..length).map(|_| [0, 1, b'a', 254, 255][(next(&mut state) % 5) as usize]).collect()
        })
        .collect();
    words.sort();
    sets.push(("short words of hostile bytes", words));
    sets
}

/// SplitMix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The encoded filter of a set, or `None` if the family's minimum size exceeds the budget.
pub(crate) fn try_build(spec: &FilterSpec, keys: &[Vec<u8>], bits_per_key: f64) -> Option<Vec<u8>> {
    match build(spec, keys, bits_per_key) {
        Ok(bytes) => Some(bytes),
        Err(BuildError::BudgetTooSmall { given, least_bits_per_key, .. }) => {
            assert!(given < least_bits_per_key);
            build(spec, keys, least_bits_per_key * 1.000_001).unwrap();
            None
        }
        Err(error) => panic!("{spec:?}: {error}"),
    }
}

/// The encoded filter of a set.
pub(crate) fn build(spec: &FilterSpec, keys: &[Vec<u8>], bits_per_key: f64) -> Result<Vec<u8>, BuildError> {
    let mut builder = spec.builder(SEED)?;
    for key in keys {
        builder.add(key)?;
    }
    builder.finish(Budget::bits_per_key(bits_per_key)?, Samples::NONE)
}
