#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{
    options::{Compression, Filters},
    version::test_support::{place, summary},
};

fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: 1 << 20,
        block_bytes: 8192,
        table_bytes: 1 << 21,
        compression: vec![Compression::None, Compression::Lz4, Compression::Zstd(3)],
        filters: Filters::bits_per_level([10.0, 6.5, 0.0]),
        key_column: true,
        size_ratio: 4,
        level0_runs: 2,
    }
}

/// One change of every kind.
pub(crate) fn every_change() -> Vec<Change> {
    vec![
        Change::SetDatabase { id: 1 << 60, seed: 17 },
        Change::CreateKeyspace { keyspace: 1, name: "events".to_owned(), options: options() },
        Change::SetOptions { keyspace: 1, options: KeyspaceOptions::default() },
        Change::AddPartition { keyspace: 1, partition: 1, lower: Vec::new(), flushed_sequence: 0 },
        Change::AddPartition { keyspace: 1, partition: 2, lower: b"m".to_vec(), flushed_sequence: 9 },
        Change::RemovePartition { keyspace: 1, partition: 2 },
        Change::AddTable {
            place: place(0, 300),
            summary: summary(7, ("a", "c"), 4096, (3, 300)),
            filter_file: Some(8),
        },
        Change::SetTableFilter { place: place(0, 300), number: 7, filter_file: Some(9) },
        Change::SetTableFilter { place: place(0, 300), number: 7, filter_file: None },
        Change::RemoveTable { place: place(0, 300), number: 7 },
        Change::SetPartitionFilter { keyspace: 1, partition: 1, filter_file: Some(12) },
        Change::SetView { keyspace: 1, partition: 1, view: Some((13, vec![(0, 300), (6, 0)])) },
        Change::SetView { keyspace: 1, partition: 1, view: None },
        Change::SetFlushedSequence { keyspace: 1, partition: 1, sequence: 300 },
        Change::AdvanceCounters(Counters {
            next_file_number: 14,
            next_keyspace_id: 2,
            next_partition_id: 3,
            last_sequence: 300,
            oldest_log: 5,
        }),
        Change::DropKeyspace { keyspace: 1 },
    ]
}

#[test]
fn every_edit_round_trips() {
    for change in every_change() {
        let edit = VersionEdit { changes: vec![change] };
        assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    }
    let edit = VersionEdit { changes: every_change() };
    assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    assert_eq!(VersionEdit::decode(&[]).unwrap(), VersionEdit::default());
}

#[test]
fn a_cut_edit_is_refused_or_a_shorter_list() {
    let edit = VersionEdit { changes: every_change() };
    let bytes = edit.encode();
    let mut whole = 0;
    for length in 0..bytes.len() {
        if let Ok(shorter) = VersionEdit::decode(bytes.get(..length).unwrap()) {
            assert_eq!(Some(shorter.changes.as_slice()), edit.changes.get(..whole));
            whole += 1;
        }
    }
    assert_eq!(whole, edit.changes.len(), "only cuts between changes are accepted");
}

#[test]
fn hostile_bytes_never_panic() {
    let bytes = VersionEdit { changes: every_change() }.encode();
    for position in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut hostile = bytes.clone();
            *hostile.get_mut(position).unwrap() = value;
            let _ = VersionEdit::decode(&hostile);
        }
    }
}

#[test]
fn unknown_changes_are_passed_over_only_where_they_say_so() {
    let known = VersionEdit { changes: vec![Change::DropKeyspace { keyspace: 4 }] };
    let mut bytes = Vec::new();
    put_tagged(&mut bytes, 99, IGNORABLE, b"later");
    bytes.extend(known.encode());
    assert_eq!(VersionEdit::decode(&bytes).unwrap(), known);
    let mut bytes = known.encode();
    put_tagged(&mut bytes, 99, 0, b"later");
    let unknown = VersionEdit::decode(&bytes).unwrap_err();
    assert_eq!(unknown, BadEdit::Unknown { what: "change", kind: 99 });
    // An option likewise.
    let options = KeyspaceOptions::default();
    let made = Change::CreateKeyspace { keyspace: 4, name: "new".to_owned(), options: options.clone() };
    for change in [made, Change::SetOptions { keyspace: 4, options }] {
        let edit = VersionEdit { changes: vec![change] };
        let bytes = edit.encode();
        let mut source = Decoder::new(&bytes);
        let (tag, flags, body) = take_tagged(&mut source).unwrap();
        for (is_needed, is_known) in [(0, false), (IGNORABLE, true)] {
            let mut list = Vec::new();
            put_tagged(&mut list, 77, is_needed, b"later");
            let list_at = if tag == SET_OPTIONS { 1 } else { 5 };
            let mut longer = body.get(..list_at).unwrap().to_vec();
            let mut old = Decoder::new(body.get(list_at..).unwrap());
            let mut all = old.take_bytes().unwrap().to_vec();
            all.extend(list);
            put_bytes(&mut longer, &all);
            let mut bytes = Vec::new();
            put_tagged(&mut bytes, tag, flags, &longer);
            let expected =
                if is_known { Ok(edit.clone()) } else { Err(BadEdit::Unknown { what: "option", kind: 77 }) };
            assert_eq!(VersionEdit::decode(&bytes), expected);
        }
    }
}

#[test]
fn options_outside_their_bounds_are_refused() {
    for bad in [
        KeyspaceOptions { size_ratio: 1, ..options() },
        KeyspaceOptions { filters: Filters::bits(f32::NAN), ..options() },
        KeyspaceOptions { compression: vec![Compression::Zstd(77)], ..options() },
    ] {
        let edit = VersionEdit { changes: vec![Change::SetOptions { keyspace: 1, options: bad }] };
        assert!(VersionEdit::decode(&edit.encode()).is_err());
    }
}
