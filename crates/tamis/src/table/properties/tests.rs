//! Properties round-trip, and truncated bytes are refused.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::*;

fn sample() -> TableProperties {
    TableProperties {
        origin: TableOrigin {
            database_id: u64::MAX,
            keyspace_id: 7,
            keyspace_name: "events".to_owned(),
            merge_operator: "append:2c".to_owned(),
            partition_lower: Vec::new(),
            partition_upper: b"m".to_vec(),
            level: 3,
            run_age: 900,
            replaced: vec![1, 128, 70_000],
        },
        summary: TableSummary {
            range_tombstone_count: 0,
            range_tombstone_upper: Vec::new(),
            obsolete_count: 0,
            obsolete_since: 0,
            expiring_count: 3,
            expires_at: [70_000, 70_000, 80_000, 80_001, 1 << 41],
            number: 42,
            file_bytes: 0,
            checksum: 0,
            entry_count: 10,
            tombstone_count: 2,
            block_count: 1,
            key_bytes: 100,
            value_bytes: 1 << 40,
            smallest_sequence: 5,
            largest_sequence: 1 << 55,
            smallest_key: b"a".to_vec(),
            largest_key: b"b\xFF".to_vec(),
        },
    }
}

#[test]
fn properties_round_trip_and_truncated_bytes_are_refused() {
    let mut bytes = Vec::new();
    sample().encode(&mut bytes);
    assert_eq!(TableProperties::decode(&mut Decoder::new(&bytes)), Some(sample()));
    for cut in 0..bytes.len() {
        assert_eq!(TableProperties::decode(&mut Decoder::new(&bytes[..cut])), None, "truncated to {cut}");
    }
}

/// The sample with obsolete entries, and with range tombstones.
fn with(obsolete: (u64, Sequence), tombstones: (u64, &[u8])) -> TableProperties {
    let mut properties = sample();
    (properties.summary.obsolete_count, properties.summary.obsolete_since) = obsolete;
    properties.summary.range_tombstone_count = tombstones.0;
    properties.summary.range_tombstone_upper = tombstones.1.to_vec();
    properties
}

#[test]
fn range_tombstones_and_obsolete_entries_round_trip_and_impossible_ones_are_refused() {
    let possible = [with((4, 1 << 30), (0, b"")), with((0, 0), (3, b"x")), with((10, 6), (1, b""))];
    let impossible = [
        with((0, 9), (0, b"")),
        with((11, 9), (0, b"")),
        with((4, 5), (0, b"")),
        with((4, 1 << 56), (0, b"")),
        with((0, 0), (0, b"x")),
        with((0, 0), (3, b"a")),
    ];
    let is_possible = |properties: &TableProperties| {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        TableProperties::decode(&mut Decoder::new(&bytes)).as_ref() == Some(properties)
    };
    assert!(possible.iter().all(is_possible));
    for properties in impossible {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        assert_eq!(TableProperties::decode(&mut Decoder::new(&bytes)), None, "{:?}", properties.summary);
    }
}

#[test]
fn an_impossible_summary_is_refused() {
    let summary = sample().summary;
    assert!(summary.covers(b"a") && summary.covers(b"b\xFF") && !summary.covers(b"b\xFF\x00"));
    let mut bytes = Vec::new();
    TableSummary { tombstone_count: 11, ..summary }.encode(&mut bytes);
    assert!(TableSummary::decode(&mut Decoder::new(&bytes)).is_none());
}
