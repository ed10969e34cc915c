#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use tamis_filter::{
    Family, KeyRange, Upper,
    auto::{ProbeTime, ProbeTimes},
};
use tamis_vfs::Access;

use super::*;
use crate::read_times::StoredReadTime;

const ID: u64 = 0x0102_0304_0506_0708;

fn samples() -> Vec<StoredSample> {
    let outcome = QueryOutcome { denied: 3, there: 1, nothing_there: 300 };
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

fn times() -> StoredTimes {
    let mut probes = ProbeTimes::default();
    probes.set(Family::Rosetta, ProbeTime { point_ns: 12.5, range_ns: 300.0, further_ns: 0.25 });
    let reads = vec![
        StoredReadTime { count: 1_000, nanoseconds: 60_000 },
        StoredReadTime { count: 0, nanoseconds: 0 },
        StoredReadTime { count: 3, nanoseconds: 1_000_000_000 },
    ];
    StoredTimes {
        processor: 0x1122_3344_5566_7788,
        access: Access::Direct,
        probes: Some(probes),
        reads,
        memory_price: Some(31.25),
    }
}

fn file() -> StoredFile {
    StoredFile { times: times(), samples: samples() }
}

fn golden_of(version: u32) -> String {
    format!("{}/tests/golden/v{version}/samples.bin", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn times_of_another_processor_or_kind_of_reads_are_not_used() {
    let times = times();
    assert_eq!(times.clone().valid_for(times.processor, Access::Direct), times);
    let buffered = times.clone().valid_for(times.processor, Access::Buffered);
    assert_eq!((buffered.probes, buffered.reads), (times.probes, Vec::new()));
    for (stored, current) in [(times.processor, 5), (0, 5), (times.processor, 0)] {
        let other = StoredTimes { processor: stored, ..times.clone() }.valid_for(current, Access::Direct);
        assert_eq!((other.probes, other.reads, other.memory_price), (None, Vec::new(), None));
    }
    // Its reads may well be those of this machine, its probes must be exact.
    let unknown = StoredTimes { processor: 0, ..times.clone() }.valid_for(0, Access::Direct);
    assert_eq!((unknown.probes, unknown.reads), (None, times.reads));
}

#[test]
fn bytes_are_frozen_and_return_the_sample() {
    let bytes = encode(ID, &file());
    let golden = golden_of(VERSION);
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        std::fs::write(&golden, &bytes).unwrap();
    }
    assert_eq!(bytes, std::fs::read(golden).unwrap());
    assert_eq!(decode(ID, &bytes), Ok(file()));
    let times_only = StoredTimes { memory_price: None, ..times() };
    let older = std::fs::read(golden_of(WITHOUT_MEMORY_PRICE)).unwrap();
    assert_eq!(decode(ID, &older), Ok(StoredFile { times: times_only, samples: samples() }));
    let older = std::fs::read(golden_of(1)).unwrap();
    assert_eq!(decode(ID, &older), Ok(StoredFile { times: StoredTimes::default(), samples: samples() }));
}

#[test]
fn damaged_foreign_and_unknown_files_are_refused() {
    let bytes = encode(ID, &file());
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << bit;
            assert!(decode(ID, &flipped).is_err(), "bit {bit} of byte {position}");
        }
        assert!(decode(ID, &bytes[..position]).is_err(), "{position} bytes");
    }
    assert!(decode(ID + 1, &bytes).unwrap_err().contains("another store"));
    assert!(decode(ID, b"").is_err());
}

/// Invalid content with a right checksum: errors, no panics and no large allocations.
#[test]
fn invalid_content_with_a_right_checksum_is_refused_or_read() {
    let bytes = encode(ID, &file());
    let covered = bytes.len() - CHECKSUM_BYTES;
    for position in 16..covered {
        for byte in [0, 1, 5, 0x7F, 0x80, 0xFF] {
            let mut changed = bytes[..covered].to_vec();
            changed[position] = byte;
            let sum = checksum(0, &changed);
            put_u64(&mut changed, sum);
            for sample in decode(ID, &changed).into_iter().flat_map(|file| file.samples) {
                sample
                    .queries
                    .iter()
                    .for_each(|query| assert!(!query.range().is_empty() || query.weight > 0));
            }
        }
    }
    let mut counts = bytes[..16].to_vec();
    put_times(&mut counts, &StoredTimes::default());
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
    let bytes =
        encode(ID, &StoredFile { samples: vec![sample(1), sample(2), sample(3)], ..StoredFile::default() });
    assert!(bytes.len() <= FILE_BYTES_MAX, "{} bytes", bytes.len());
    let read = decode(ID, &bytes).unwrap();
    assert!(read.samples.iter().all(|sample| sample.queries.len() > 1_000));
}
