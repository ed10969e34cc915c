//! Damaged and arbitrary bytes: an error at open, or answers; never a panic, a long loop or a large allocation.

use std::ops::Bound;

use tamis_filter::envelope::{ENVELOPE_BYTES, Envelope};
use tamis_filter::{AnyFilter, DecodeError, Digester, Direction, Filter, KeyRange, Probe, RangeProbe, Upper};

use crate::sets::{SEED, build, key_sets, next, specs, try_build};

/// Calls every method of a filter.
fn exercise(bytes: &[u8]) {
    exercise_with(bytes, &[b"", b"abc", &[0xff; 40]]);
}

fn exercise_with(bytes: &[u8], keys: &[&[u8]]) {
    let Ok(filter) = AnyFilter::open(bytes) else { return };
    let digester = Digester::new(SEED);
    let _ = filter.verify();
    let _ = filter.predicted_fpr();
    let _ = filter.design(&mut String::new());
    for &key in keys {
        let _ = filter.may_contain(&Probe::new(key, &digester));
        let _ = filter.may_contain(&Probe::new(key, &digester));
        filter.prefetch(&Probe::new(key, &digester));
        for range in [KeyRange::prefix(key), KeyRange::point(key), KeyRange::closed(key, b"b"), KeyRange::ALL]
        {
            let probe = RangeProbe::new(range, &digester);
            let _ = filter.may_contain_range(&probe);
            let _ = filter.candidate(&probe, Direction::Forward);
            let _ = filter.candidate(&probe, Direction::Backward);
        }
        let above = KeyRange { lower: Bound::Excluded(key), upper: Upper::Open };
        let _ = filter.candidate(&RangeProbe::new(above, &digester), Direction::Forward);
        let below = KeyRange { lower: Bound::Unbounded, upper: Upper::Prefix(key) };
        let _ = filter.candidate(&RangeProbe::new(below, &digester), Direction::Backward);
    }
}

#[test]
fn flipped_bytes_cause_errors_or_answers() {
    for spec in specs() {
        for (_, keys) in key_sets().iter().filter(|(_, keys)| keys.len() < 100) {
            let Some(bytes) = try_build(&spec, keys, 10.0) else { continue };
            for offset in 0..bytes.len().min(400) {
                for change in [1, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[offset] ^= change;
                    if offset < ENVELOPE_BYTES {
                        assert!(AnyFilter::open(damaged.as_slice()).is_err(), "{spec:?} byte {offset}");
                    }
                    exercise(&damaged);
                }
            }
        }
    }
}

#[test]
fn flipped_symbols_of_grafite_cause_errors_or_answers() {
    let mut state = 3;
    let mut keys: Vec<Vec<u8>> = (0..60_u64)
        .map(|number| {
            format!("{:03}-{:0>2$x}", number * 16, next(&mut state) % 4096, number as usize % 9).into_bytes()
        })
        .collect();
    keys.sort();
    let bytes = build(&"grafite".parse().unwrap(), &keys, 1000.0).unwrap();
    let mut text = String::new();
    AnyFilter::open(bytes.as_slice()).unwrap().design(&mut text).unwrap();
    assert!(text.contains("bytes of 17 values"), "{text}");
    // Keys, beginnings of keys, and bytes that no key has.
    let probed =
        [keys[0].as_slice(), &keys[31], &keys[59], &keys[31][..2], b"16", b"5\xff", b"", &[0xff; 40]];
    for offset in ENVELOPE_BYTES..bytes.len() {
        for change in [1, 2, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[offset] ^= change;
            exercise_with(&damaged, &probed);
        }
    }
    // Other numbers of positions, and flags, in a valid envelope.
    for (offset, values) in [(ENVELOPE_BYTES - 24, 0..=255), (ENVELOPE_BYTES - 23, 0..=63)] {
        for value in values {
            let mut damaged = bytes.clone();
            damaged[offset] = value;
            let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
            envelope.parameters[offset - (ENVELOPE_BYTES - 24)] = value;
            envelope.seal(&mut damaged);
            exercise_with(&damaged, &probed);
        }
    }
}

#[test]
fn opening_reads_the_header_and_verifying_the_rest() {
    for spec in specs() {
        let keys: Vec<Vec<u8>> = (0..2_000_u64).map(|key| (key << 20).to_be_bytes().to_vec()).collect();
        let Some(bytes) = try_build(&spec, &keys, 20.0) else { continue };
        // Some families store what they need at open between their other bytes.
        let opened = [4, 5, 6, 7].iter().filter_map(|eighths| {
            let mut damaged = bytes.clone();
            damaged[ENVELOPE_BYTES + (bytes.len() - ENVELOPE_BYTES) / 8 * eighths] ^= 1;
            AnyFilter::open(damaged).ok()
        });
        let opened: Vec<_> = opened.collect();
        assert!(opened.len() >= 3 && opened.iter().all(|filter| filter.verify().is_err()), "{spec:?}");
    }
}

#[test]
fn cut_filters_are_refused() {
    for spec in specs() {
        let bytes = build(&spec, &[b"a".to_vec(), b"b".to_vec()], 400.0).unwrap();
        for length in 0..bytes.len() {
            assert!(AnyFilter::open(&bytes[..length]).is_err(), "{spec:?} {length}");
        }
    }
}

/// With the current positions of bits they would reject keys.
#[test]
fn prefix_filters_with_former_bit_positions_are_refused() {
    const LAYOUT: usize = ENVELOPE_BYTES + 13;
    for spec in ["1pbf:layout=spread", "2pbf:layout=spread"] {
        let mut bytes = build(&spec.parse().unwrap(), &[b"a".to_vec(), b"b".to_vec()], 400.0).unwrap();
        assert_eq!(bytes[LAYOUT], 3);
        bytes[LAYOUT] = 1;
        Envelope::parse(&bytes, bytes.len() as u64).unwrap().seal(&mut bytes);
        assert_eq!(
            AnyFilter::open(bytes).unwrap_err(),
            DecodeError::Field { field: "layout", got: 1 },
            "{spec}"
        );
    }
}

/// It had another directory.
#[test]
fn a_filter_in_the_former_bitmap_format_is_refused() {
    const FIRST: usize = ENVELOPE_BYTES + 12;
    let keys: Vec<Vec<u8>> = (0..1000_u64).map(|number| number.to_be_bytes().to_vec()).collect();
    let mut bytes = build(&"proteus:trie=60,prefix=0".parse().unwrap(), &keys, 400.0).unwrap();
    assert_eq!(bytes[FIRST], 6);
    bytes[FIRST] = 3;
    Envelope::parse(&bytes, bytes.len() as u64).unwrap().seal(&mut bytes);
    assert_eq!(AnyFilter::open(bytes).unwrap_err(), DecodeError::Field { field: "first", got: 3 });
}

#[test]
fn arbitrary_headers_with_valid_checksums_cause_errors_or_answers() {
    let mut state = 9;
    for spec in specs() {
        for round in 0..3000 {
            let payload_bytes = [0, 1, 63, 64, 128, 1000, 1024][(next(&mut state) % 7) as usize];
            let mut bytes: Vec<u8> =
                (0..ENVELOPE_BYTES + payload_bytes).map(|_| next(&mut state) as u8).collect();
            let mut parameters = [0; 16];
            for parameter in parameters.iter_mut().take((next(&mut state) % 17) as usize) {
                let random = next(&mut state);
                *parameter =
                    if random.is_multiple_of(2) { (random >> 8) as u8 % 18 } else { (random >> 8) as u8 };
            }
            let envelope = Envelope {
                family: spec.family() as u16,
                seed: next(&mut state) % 3 + SEED - 1,
                payload_bytes: 0,
                key_count: if round % 2 == 1 { next(&mut state) } else { next(&mut state) % 100 },
                payload_checksum: 0,
                parameters,
            };
            envelope.seal(&mut bytes);
            exercise(&bytes);
        }
    }
}
