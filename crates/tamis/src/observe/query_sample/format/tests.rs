#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use tamis_filter::{KeyRange, Upper};

use super::*;

const ID: u64 = 0x0102_0304_0506_0708;

fn samples() -> Vec<StoredSample> {
    let outcome = QueryOutcome { rejected: 3, there: 1, nothing_there: 300 };
    let ranges = [
        (QueryKind::Point, KeyRange::point(b"key")),
        (QueryKind::Range, KeyRange::closed(b"a", b"b")),
        (QueryKind::Prefix, KeyRange::prefix(b"pre")),
        (QueryKind::SeekForward, KeyRange { lower: Bound::Excluded(b"x"), upper: Upper::Open }),
        (QueryKind::SeekBackward, KeyRange { lower: Bound::Unbounded, upper: Upper::Excluded(b"y") }),
    ];
    let queries = ranges.iter().map(|(kind, range)| SampledQuery::new(*kind, range, 128, outcome).unwrap());
    vec![
        StoredSample { keyspace: 1, seen: [1, 2, 3, 4, 1 << 40], too_long: 5, queries: queries.collect() },
        StoredSample { keyspace: 7, ..StoredSample::default() },
    ]
}

#[test]
fn bytes_are_frozen_and_return_the_sample() {
    let bytes = encode(ID, &samples());
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/samples.bin");
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        std::fs::write(golden, &bytes).unwrap();
    }
    assert_eq!(bytes, std::fs::read(golden).unwrap());
    assert_eq!(decode(ID, &bytes), Ok(samples()));
}

#[test]
fn damaged_foreign_and_unknown_files_are_refused() {
    let bytes = encode(ID, &samples());
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << bit;
            assert!(decode(ID, &flipped).is_err(), "bit {bit} of byte {position}");
        }
        assert!(decode(ID, &bytes[..position]).is_err(), "{position} bytes");
    }
    assert!(decode(ID + 1, &bytes).unwrap_err().contains("another store"));
    for version in [VERSION - 1, VERSION + 1] {
        let mut other = bytes.clone();
        other[4..8].copy_from_slice(&version.to_le_bytes());
        assert!(decode(ID, &other).unwrap_err().contains(&format!("its version is {version}")));
    }
    assert!(decode(ID, b"").is_err());
}

/// Invalid content with a right checksum: errors, no panics and no large allocations.
#[test]
fn invalid_content_with_a_right_checksum_is_refused_or_read() {
    let bytes = encode(ID, &samples());
    let covered = bytes.len() - 8;
    for position in 16..covered {
        for byte in [0, 1, 5, 0x7F, 0x80, 0xFF] {
            let mut changed = bytes[..covered].to_vec();
            changed[position] = byte;
            let sum = checksum(0, &changed);
            put_u64(&mut changed, sum);
            for sample in decode(ID, &changed).into_iter().flatten() {
                sample
                    .queries
                    .iter()
                    .for_each(|query| assert!(!query.range().is_empty() || query.weight > 0));
            }
        }
    }
    let mut counts = bytes[..16].to_vec();
    put_varint(&mut counts, u64::MAX >> 1);
    let sum = checksum(0, &counts);
    put_u64(&mut counts, sum);
    assert!(decode(ID, &counts).unwrap_err().contains("invalid"));
}

#[test]
fn files_stay_below_the_limit() {
    let outcome = QueryOutcome::default();
    let long = [7; SAMPLED_BOUND_BYTES_MAX];
    let longer = [8; SAMPLED_BOUND_BYTES_MAX];
    let query = SampledQuery::new(QueryKind::Range, &KeyRange::closed(&long, &longer), 1, outcome).unwrap();
    let sample = |keyspace| StoredSample {
        keyspace,
        queries: std::iter::repeat_n(query.clone(), QUERIES_MAX).collect(),
        ..StoredSample::default()
    };
    let bytes = encode(ID, &[sample(1), sample(2), sample(3)]);
    assert!(bytes.len() <= FILE_BYTES_MAX, "{} bytes", bytes.len());
    let read = decode(ID, &bytes).unwrap();
    assert!(read.iter().all(|sample| sample.queries.len() > 1_000));
}
