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
            obsolete_count: 0,
            obsolete_since: 0,
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

#[test]
fn optional_fields_round_trip_and_truncated_ones_are_refused() {
    let mut with_ranges = sample();
    with_ranges.summary.range_tombstone_count = 3;
    with_ranges.summary.range_tombstone_upper = b"x".to_vec();
    let with_obsolete = |mut properties: TableProperties| {
        (properties.summary.obsolete_count, properties.summary.obsolete_since) = (4, 1 << 30);
        properties
    };
    let mut plain = Vec::new();
    sample().encode(&mut plain);
    for properties in [with_ranges.clone(), with_obsolete(sample()), with_obsolete(with_ranges.clone())] {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        assert_eq!(TableProperties::decode(&mut Decoder::new(&bytes)).as_ref(), Some(&properties));
        let decoded = |cut: usize| TableProperties::decode(&mut Decoder::new(&bytes[..cut]));
        for cut in plain.len() + 1..bytes.len() {
            // The fields of range tombstones alone are valid.
            let is_whole = decoded(cut) == Some(with_ranges.clone());
            assert!(is_whole || decoded(cut).is_none(), "truncated to {cut}");
        }
    }
    for (count, since) in [(0, 9), (11, 9), (4, 5), (4, 1 << 56)] {
        let mut bytes = plain.clone();
        bytes.extend_from_slice(NO_RANGE_TOMBSTONES);
        TableSummary { obsolete_count: count, obsolete_since: since, ..TableSummary::default() }
            .encode_obsolete(&mut bytes);
        let decoded = TableProperties::decode(&mut Decoder::new(&bytes));
        assert_eq!(decoded, None, "{count} obsolete entries of 10 since {since}");
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
