//! Filters: invalid bytes give an error or any result without a panic, and a built filter never rejects one of its keys.

use std::ops::Bound;

use arbitrary::{Arbitrary, Unstructured};
use tamis_filter::{
    AnyFilter, Budget, Candidate, Digester, Direction, Family, Filter, FilterSpec, KeyRange, Probe,
    RangeProbe, Samples,
    envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES},
};

use crate::keys;

/// The first part of the input; the rest are keys.
#[derive(Debug, Arbitrary)]
struct Setup {
    kind: u8,
    family: u8,
    seed: u64,
    bits_per_key: u8,
    key_count: u64,
    parameters: [u8; PARAMETER_BYTES],
    /// Positions and masks of changed payload bytes.
    flips: [(u16, u8); 3],
}

/// See the documentation of this module.
pub fn filter(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(setup) = Setup::arbitrary(&mut source) else { return };
    let family = family_of(setup.family);
    let rest = source.take_rest();
    let keys = keys(rest);
    match setup.kind % 4 {
        // The input as an encoded filter.
        0 => ask(rest, setup.seed, &keys),
        // The input as a payload in an envelope with valid checksums.
        1 => {
            let mut bytes = [&[0; ENVELOPE_BYTES], rest].concat();
            Envelope::new(family, setup.seed, setup.key_count, setup.parameters).seal(&mut bytes);
            ask(&bytes, setup.seed, &keys);
        }
        _ => built(family, setup.seed, setup.bits_per_key, keys, &setup.flips),
    }
}

fn family_of(number: u8) -> Family {
    Family::ALL[usize::from(number) % Family::ALL.len()]
}

fn built(family: Family, seed: u64, bits_per_key: u8, queries: Vec<Vec<u8>>, flips: &[(u16, u8)]) {
    // Every third string is not a key, so that some samples are empty.
    let mut keys: Vec<Vec<u8>> =
        queries.iter().enumerate().filter(|(index, _)| index % 3 != 2).map(|(_, key)| key.clone()).collect();
    keys.sort();
    let samples: Vec<KeyRange<'_>> = queries
        .iter()
        .map(|key| KeyRange::point(key))
        .chain(queries.windows(2).map(|pair| KeyRange::closed(&pair[0], &pair[1])))
        .collect();
    // A family without default parameters fails here.
    let Ok(mut builder) = FilterSpec::new(family).builder(seed) else { return };
    for key in &keys {
        builder.add(key).expect("keys are in order");
    }
    // Small filters of Grafite have symbols only with a large budget.
    let bits_per_key = if bits_per_key < 192 { 1.0 + f64::from(bits_per_key % 32) } else { 1000.0 };
    let budget = Budget::bits_per_key(bits_per_key).expect("1 to 1,000 bits");
    let Ok(mut bytes) = builder.finish(budget, Samples { queries: &samples }) else { return };
    check_no_false_negatives(&bytes, seed, &keys);
    ask(&bytes, seed, &queries);
    let envelope = Envelope::parse(&bytes, bytes.len() as u64).expect("a built filter has an envelope");
    let payload_bytes = bytes.len() - ENVELOPE_BYTES;
    for (offset, mask) in flips.iter().filter(|_| payload_bytes > 0) {
        bytes[ENVELOPE_BYTES + usize::from(*offset) % payload_bytes] ^= mask;
    }
    envelope.seal(&mut bytes);
    ask(&bytes, seed, &queries);
}

fn check_no_false_negatives(bytes: &[u8], seed: u64, keys: &[Vec<u8>]) {
    let opened = AnyFilter::open(bytes).expect("a built filter opens");
    opened.verify().expect("a built filter has valid checksums");
    let digester = Digester::new(seed);
    for key in keys {
        assert!(opened.may_contain(&Probe::new(key, &digester)), "false negative: {key:?}");
        for (lower, upper) in [(key.as_slice(), key.as_slice()), (b"", key), (key, &[0xFF; 300])] {
            let range = KeyRange::new(Bound::Included(lower), Bound::Included(upper));
            if !range.contains(key) {
                continue;
            }
            let probe = RangeProbe::new(range, &digester);
            assert!(opened.may_contain_range(&probe), "false negative of a range: {key:?}");
            for direction in [Direction::Forward, Direction::Backward] {
                assert_ne!(
                    opened.candidate(&probe, direction),
                    Candidate::Absent,
                    "false negative of a range: {key:?}"
                );
            }
        }
    }
}

/// Opens and queries a filter; checks only that nothing panics.
fn ask(bytes: &[u8], seed: u64, queries: &[Vec<u8>]) {
    let Ok(opened) = AnyFilter::open(bytes) else { return };
    let _ = opened.verify();
    let digester = Digester::new(seed);
    for pair in queries.windows(2) {
        let [lower, upper] = [pair[0].as_slice(), pair[1].as_slice()];
        opened.may_contain(&Probe::new(lower, &digester));
        let probe = RangeProbe::new(KeyRange::new(Bound::Included(lower), Bound::Excluded(upper)), &digester);
        opened.may_contain_range(&probe);
        opened.candidate(&probe, Direction::Forward);
        let above = KeyRange::new(Bound::Excluded(lower), Bound::Unbounded);
        opened.candidate(&RangeProbe::new(above, &digester), Direction::Forward);
        let below = KeyRange::new(Bound::Unbounded, Bound::Included(upper));
        opened.candidate(&RangeProbe::new(below, &digester), Direction::Backward);
    }
}
