//! Batches return their entries with the assigned sequence numbers, and refuse entries that the format can't hold.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use proptest::prelude::*;

use super::*;

fn decoded(payload: &[u8]) -> Result<Vec<BatchEntry<'_>>, BatchDamage> {
    entries(payload).collect()
}

fn entry<'a>(keyspace: u32, sequence: u64, kind: Kind, key: &'a [u8], value: &'a [u8]) -> BatchEntry<'a> {
    BatchEntry { keyspace, sequence, logged_at: sequence, kind, key, value }
}

#[test]
fn entries_of_a_batch_are_read_in_order_with_consecutive_numbers() {
    let mut batch = WriteBatch::new();
    batch.put_in(1, b"a", b"one").unwrap();
    batch.delete_in(u32::MAX, b"b").unwrap();
    batch.put_in(1, b"a", b"").unwrap();
    assert_eq!((batch.len(), batch.sequence_count()), (3, 3));
    let bytes = batch.assign_sequences(7).to_vec();
    let expected = [
        entry(1, 7, Kind::Put, b"a", b"one"),
        entry(u32::MAX, 8, Kind::Tombstone, b"b", b""),
        entry(1, 9, Kind::Put, b"a", b""),
    ];
    assert_eq!(decoded(&bytes).unwrap(), expected);
    assert_eq!(batch.entries().collect::<Vec<_>>(), expected);
}

#[test]
fn retained_entries_keep_their_own_numbers() {
    let mut batch = WriteBatch::retaining();
    let expected = [entry(2, SEQUENCE_MAX, Kind::Put, b"k", b"v"), entry(2, 5, Kind::Tombstone, b"k", b"")];
    for entry in expected {
        batch.retain(entry).unwrap();
    }
    assert_eq!(batch.sequence_count(), 1);
    assert_eq!(decoded(batch.assign_sequences(0)).unwrap(), expected);
    let numbered = expected.map(|entry| BatchEntry { logged_at: 99, ..entry });
    assert_eq!(decoded(batch.assign_sequences(99)).unwrap(), numbered);
}

/// The number of a batch without entries is that of the next batch only.
#[test]
fn a_number_is_of_the_batch_after_it() {
    let (mut numbered, mut retained) = (WriteBatch::new(), WriteBatch::retaining());
    numbered.put_in(1, b"a", b"1").unwrap();
    retained.retain(entry(1, 3, Kind::Put, b"b", b"2")).unwrap();
    let mut payload = retained.assign_sequences(SEQUENCE_MAX).to_vec();
    payload.extend_from_slice(retained.assign_sequences(0));
    payload.extend_from_slice(numbered.assign_sequences(20));
    payload.extend_from_slice(retained.assign_sequences(0));
    let numbers: Vec<_> = decoded(&payload).unwrap().iter().map(|entry| entry.logged_at).collect();
    assert_eq!(numbers, [SEQUENCE_MAX, 3, 20, 3]);
}

#[test]
fn a_record_holds_several_batches() {
    let (mut first, mut second) = (WriteBatch::new(), WriteBatch::retaining());
    first.put_in(1, b"a", b"1").unwrap();
    second.retain(entry(1, 3, Kind::Put, b"b", b"2")).unwrap();
    let mut payload = first.assign_sequences(10).to_vec();
    payload.extend_from_slice(second.assign_sequences(11));
    let keys: Vec<_> = decoded(&payload).unwrap().iter().map(|e| (e.key, e.sequence)).collect();
    assert_eq!(keys, [(&b"a"[..], 10), (b"b", 3)]);
}

#[test]
fn a_cleared_batch_is_like_a_new_one() {
    let mut batch = WriteBatch::new();
    batch.put_in(1, b"a", b"1").unwrap();
    batch.clear();
    assert!(batch.is_empty() && batch.size_bytes() == 0 && batch.assign_sequences(1).is_empty());
    batch.delete_in(1, b"b").unwrap();
    assert_eq!(decoded(batch.assign_sequences(2)).unwrap(), [entry(1, 2, Kind::Tombstone, b"b", b"")]);
}

#[test]
fn an_appended_batch_keeps_its_writes_and_their_order() {
    let mut batch = WriteBatch::new();
    batch.append(&WriteBatch::new()).unwrap();
    assert!(batch.is_empty());
    batch.put_in(1, b"a", b"1").unwrap();
    let mut other = WriteBatch::new();
    other.delete_in(2, b"b").unwrap();
    other.delete_range_in(1, b"c", b"").unwrap();
    batch.append(&other).unwrap();
    batch.append(&other).unwrap();
    assert_eq!((batch.len(), other.len()), (5, 2));
    let writes: Vec<_> = batch.unnumbered().map(|entry| (entry.keyspace, BatchWrite::of(entry))).collect();
    let (put, delete) = (BatchWrite::Put { key: b"a", value: b"1" }, BatchWrite::Delete { key: b"b" });
    let range = BatchWrite::DeleteRange { lower: b"c", upper: None };
    assert_eq!(writes, [(1, put), (2, delete), (1, range), (2, delete), (1, range)]);
    assert_eq!(batch.keyspaces().collect::<Vec<_>>(), [1, 2]);
    other.clear();
    other.claim(7).unwrap();
    other.put_in(1, b"x", b"").unwrap();
    assert!(batch.append(&other).is_err());
    assert_eq!(batch.len(), 5);
    batch.assign_sequences(10);
    let numbers: Vec<u64> = batch.entries().map(|entry| entry.sequence).collect();
    assert_eq!(numbers, [10, 11, 12, 13, 14]);
}

#[test]
fn a_refused_entry_leaves_the_batch_unchanged() {
    let mut batch = WriteBatch::new();
    batch.put_in(1, b"a", b"1").unwrap();
    let before = batch.size_bytes();
    assert!(matches!(batch.put_in(1, b"", b""), Err(Error::KeyEmpty)));
    let long = vec![0; KEY_LENGTH_MAX + 1];
    assert!(matches!(batch.delete_in(1, &long), Err(Error::KeyTooLong { length: 65_536 })));
    let huge = vec![0; VALUE_LENGTH_MAX + 1];
    assert!(matches!(batch.put_in(1, b"k", &huge), Err(Error::ValueTooLong { .. })));
    assert_eq!((batch.size_bytes(), batch.len()), (before, 1));
    batch.put_in(1, &long[1..], &[]).unwrap();
}

#[test]
fn a_batch_that_does_not_fit_a_record_is_refused() {
    let limit = FRAME_PAYLOAD_MAX as usize;
    check_size(limit - 10, 10).unwrap();
    assert!(
        matches!(check_size(limit - 10, 11), Err(Error::BatchTooLarge { length, .. }) if length == 1 << 32)
    );
}

#[test]
fn unknown_kinds_are_reported_with_file_and_offset() {
    let mut batch = WriteBatch::new();
    batch.put_in(1, b"a", b"1").unwrap();
    let mut bytes = batch.assign_sequences(1).to_vec();
    // After count and sequence number, one byte each: 1 << 4 | kind.
    assert_eq!(bytes[..3], [2, 1, 0x11]);
    for kind in [0, 5, 7, 15] {
        bytes[2] = 0x10 | kind;
        let damage = decoded(&bytes).unwrap_err();
        assert_eq!(damage, BatchDamage::UnknownKind(kind));
        assert!(matches!(
            damage.at(Path::new("000001.log"), 64),
            Error::UnknownEntryKind { file, offset: 64, kind: found } if found == kind && file.ends_with("000001.log")
        ));
    }
}

#[test]
fn a_range_tombstone_is_a_lower_and_an_upper_bound() {
    let mut batch = WriteBatch::new();
    batch.delete_range_in(1, b"b", b"k").unwrap();
    batch.delete_range_in(1, b"x", b"").unwrap();
    let bytes = batch.assign_sequences(7).to_vec();
    assert_eq!(bytes, [4, 7, 0x14, 1, b'b', 1, b'k', 0x14, 1, b'x', 0]);
    let entries = decoded(&bytes).unwrap();
    let bounds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.key, entry.value)).collect();
    assert_eq!(
        bounds,
        [(Kind::RangeTombstone, &b"b"[..], &b"k"[..]), (Kind::RangeTombstone, &b"x"[..], &b""[..])]
    );
    for reversed in [b"a", b"b"] {
        let mut damaged = bytes.clone();
        damaged[6] = reversed[0];
        assert!(matches!(decoded(&damaged), Err(BatchDamage::Malformed { .. })), "an empty range");
    }
    let too_long = vec![b'k'; KEY_LENGTH_MAX + 1];
    assert!(WriteBatch::new().delete_range_in(1, b"b", &too_long).is_err());
}

#[test]
fn every_truncation_within_a_batch_is_detected() {
    let mut batch = WriteBatch::new();
    batch.put_in(300, b"key", b"value").unwrap();
    batch.delete_in(1, b"other").unwrap();
    let bytes = batch.assign_sequences(1);
    for length in 1..bytes.len() {
        assert!(decoded(&bytes[..length]).is_err(), "{length}");
    }
    assert_eq!(decoded(&[]).unwrap(), []);
}

#[test]
fn numbers_outside_their_bounds_are_refused() {
    let mut batch = WriteBatch::new();
    batch.put_in(1, b"a", b"1").unwrap();
    batch.put_in(1, b"b", b"1").unwrap();
    assert!(decoded(batch.assign_sequences(0)).is_err());
    assert!(decoded(batch.assign_sequences(SEQUENCE_MAX)).is_err());
    assert!(decoded(batch.assign_sequences(SEQUENCE_MAX - 1)).is_ok());
    let mut bytes = batch.assign_sequences(1).to_vec();
    bytes[0] = 3 << 1;
    assert!(decoded(&bytes).is_err(), "an entry more than there are");
}

#[test]
fn a_batch_of_one_put_takes_eight_bytes_more_than_key_and_value() {
    let mut batch = WriteBatch::new();
    batch.put_in(2, &[7; 16], &[8; 100]).unwrap();
    assert_eq!(batch.assign_sequences(10_000_000).len(), 16 + 100 + 8);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let count = entries(&bytes).count();
        prop_assert!(count <= bytes.len());
    }

    #[test]
    fn a_batch_returns_its_entries(
        writes in proptest::collection::vec(
            (any::<u32>(), proptest::collection::vec(any::<u8>(), 1..40),
             proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300))), 1..20),
        first in 1..1_u64 << 40,
    ) {
        let mut batch = WriteBatch::new();
        for (keyspace, key, value) in &writes {
            match value {
                Some(value) => batch.put_in(*keyspace, key, value).unwrap(),
                None => batch.delete_in(*keyspace, key).unwrap(),
            }
        }
        let bytes = batch.assign_sequences(first).to_vec();
        let found = decoded(&bytes).unwrap();
        prop_assert_eq!(found.len(), writes.len());
        for (index, (entry, (keyspace, key, value))) in found.iter().zip(&writes).enumerate() {
            prop_assert_eq!(entry.sequence, first + index as u64);
            prop_assert_eq!(entry.keyspace, *keyspace);
            prop_assert_eq!(entry.key, &key[..]);
            prop_assert_eq!(entry.value, value.as_deref().unwrap_or_default());
            prop_assert_eq!(entry.kind == Kind::Put, value.is_some());
        }
    }
}
