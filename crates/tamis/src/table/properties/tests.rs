//! Properties round-trip, and truncated bytes are refused.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::*;

fn sample() -> TableProperties {
    TableProperties {
        origin: TableOrigin {
            database_id: u64::MAX,
            keyspace_id: 7,
            keyspace_name: "events".to_owned(),
            partition_lower: Vec::new(),
            partition_upper: b"m".to_vec(),
            level: 3,
            run_age: 900,
            replaced: vec![1, 128, 70_000],
        },
        summary: TableSummary {
            range_tombstone_count: 0,
            range_tombstone_upper: Vec::new(),
            number: 42,
            file_bytes: 0,
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

#[test]
fn an_impossible_summary_is_refused() {
    let summary = sample().summary;
    assert!(summary.covers(b"a") && summary.covers(b"b\xFF") && !summary.covers(b"b\xFF\x00"));
    let mut bytes = Vec::new();
    TableSummary { tombstone_count: 11, ..summary }.encode(&mut bytes);
    assert!(TableSummary::decode(&mut Decoder::new(&bytes)).is_none());
}
