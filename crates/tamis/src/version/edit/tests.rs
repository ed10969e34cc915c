#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{
    merge_operator::MergeOperator,
    options::{Compression, Filters, Layout, Views},
    version::test_support::{place, summary},
};

fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: 1 << 20,
        block_bytes: 8192,
        table_bytes: 1 << 21,
        compression: vec![Compression::None, Compression::Lz4, Compression::Zstd(3)],
        filters: Filters::per_level([
            vec![crate::TableFilter::bits(10.0)],
            vec![crate::TableFilter::bits(6.5)],
            Vec::new(),
        ]),
        views: Views::Auto,
        size_ratio: 4,
        level0_runs: 2,
        layout: Layout::Tiered { runs_per_level: 3, space_amplification_percent: 200 },
        merge: Some(MergeOperator::append(b",")),
        expire_after: None,
        key_codec: "uint64".to_owned(),
    }
}

fn decode(bytes: &[u8]) -> Result<VersionEdit, BadEdit> {
    VersionEdit::decode(bytes)
}

/// One change of every kind.
pub(crate) fn every_change() -> Vec<Change> {
    vec![
        Change::SetDatabase { id: 1 << 60, seed: 17 },
        Change::CreateKeyspace { keyspace: 1, name: "events".to_owned(), options: options() },
        Change::SetOptions { keyspace: 1, options: KeyspaceOptions::default().filters(Filters::bits(10.0)) },
        Change::AddPartition { keyspace: 1, partition: 1, lower: Vec::new(), flushed_sequence: 0 },
        Change::AddPartition { keyspace: 1, partition: 2, lower: b"m".to_vec(), flushed_sequence: 9 },
        Change::RemovePartition { keyspace: 1, partition: 2 },
        Change::AddTable {
            place: place(0, 300),
            summary: summary(7, ("a", "c"), 4096, (3, 300)),
            filter_file: Some(8),
            is_ingested: false,
        },
        Change::AddTable {
            place: place(0, 301),
            summary: summary(11, ("d", "f"), 8192, (301, 301)),
            filter_file: None,
            is_ingested: true,
        },
        Change::AddTable {
            place: place(0, 302),
            summary: TableSummary {
                range_tombstone_count: 2,
                range_tombstone_upper: b"x".to_vec(),
                ..summary(12, ("d", "f"), 8192, (302, 310))
            },
            filter_file: None,
            is_ingested: false,
        },
        Change::AddTable {
            place: place(0, 303),
            summary: TableSummary {
                obsolete_count: 1,
                obsolete_since: 312,
                expiring_count: 1,
                expires_at: [1, 2, 2, 1_700_000_000_000, 1_700_000_000_001],
                ..summary(13, ("g", "i"), 8192, (311, 320))
            },
            filter_file: None,
            is_ingested: false,
        },
        Change::SetTableFilter { place: place(0, 300), number: 7, filter_file: Some(9) },
        Change::SetTableFilter { place: place(0, 300), number: 7, filter_file: None },
        Change::RemoveTable { place: place(0, 300), number: 7 },
        Change::SetView { keyspace: 1, partition: 1, view: Some((13, vec![1, 4])) },
        Change::SetView { keyspace: 1, partition: 1, view: None },
        Change::SetFlushedSequence { keyspace: 1, partition: 1, sequence: 300 },
        Change::AdvanceCounters(Counters {
            next_file_number: 14,
            next_keyspace_id: 2,
            next_partition_id: 3,
            next_run_id: 9,
            last_sequence: 300,
            oldest_log: 5,
            greatest_time: 1_700_000_000_000,
        }),
        Change::SetRunId { place: place(0, 301), id: 8 },
        Change::DropKeyspace { keyspace: 1 },
    ]
}

#[test]
fn every_edit_round_trips() {
    for change in every_change() {
        let edit = VersionEdit { changes: vec![change] };
        assert_eq!(decode(&edit.encode()).unwrap(), edit);
    }
    let edit = VersionEdit { changes: every_change() };
    assert_eq!(decode(&edit.encode()).unwrap(), edit);
    assert_eq!(decode(&[]).unwrap(), VersionEdit::default());
}

#[test]
fn a_truncated_edit_is_refused_or_a_shorter_list() {
    let edit = VersionEdit { changes: every_change() };
    let bytes = edit.encode();
    let mut whole = 0;
    for length in 0..bytes.len() {
        if let Ok(shorter) = decode(bytes.get(..length).unwrap()) {
            assert_eq!(Some(shorter.changes.as_slice()), edit.changes.get(..whole));
            whole += 1;
        }
    }
    assert_eq!(whole, edit.changes.len(), "only truncations between changes are accepted");
}

#[test]
fn hostile_bytes_never_panic() {
    let bytes = VersionEdit { changes: every_change() }.encode();
    for position in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut hostile = bytes.clone();
            *hostile.get_mut(position).unwrap() = value;
            let _ = decode(&hostile);
        }
    }
}

#[test]
fn unknown_changes_are_ignored_only_if_their_flags_allow_it() {
    let known = VersionEdit { changes: vec![Change::DropKeyspace { keyspace: 4 }] };
    for (tag, body) in [(99, &b"later"[..]), (15, &[1, 1, 12])] {
        let mut bytes = Vec::new();
        put_tagged(&mut bytes, tag, IGNORABLE, body);
        bytes.extend(known.encode());
        assert_eq!(decode(&bytes).unwrap(), known);
        let mut bytes = known.encode();
        put_tagged(&mut bytes, tag, 0, body);
        let unknown = decode(&bytes).unwrap_err();
        assert_eq!(unknown, BadEdit::Unknown { what: "change", kind: tag.to_string() });
    }
    // The same for options.
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
            let list_at = if tag == Tag::SetOptions as u64 { 1 } else { 5 };
            let mut longer = body.get(..list_at).unwrap().to_vec();
            let mut old = Decoder::new(body.get(list_at..).unwrap());
            let mut all = old.take_bytes().unwrap().to_vec();
            all.extend(list);
            put_bytes(&mut longer, &all);
            let mut bytes = Vec::new();
            put_tagged(&mut bytes, tag, flags, &longer);
            let unknown = BadEdit::Unknown { what: "option", kind: "77".to_owned() };
            assert_eq!(decode(&bytes), if is_known { Ok(edit.clone()) } else { Err(unknown) });
        }
    }
}

/// Another version may have other families and parameters. The length of each name stays.
#[test]
fn unknown_filters_are_not_damage() {
    let filters = Filters::per_level([Vec::new(), vec!["surf-hash:bits=4".parse().unwrap()]]);
    let options = KeyspaceOptions::default().filters(filters);
    let bytes = VersionEdit { changes: vec![Change::SetOptions { keyspace: 4, options }] }.encode();
    let known = b"surf-hash:bits=4";
    let place = bytes.windows(known.len()).position(|window| window == known).unwrap();
    for other in ["surf-gone:bits=4", "surf-hash:gone=4"] {
        let mut changed = bytes.clone();
        changed.get_mut(place..place + known.len()).unwrap().copy_from_slice(other.as_bytes());
        let unknown = decode(&changed).unwrap_err();
        assert_eq!(unknown, BadEdit::Unknown { what: "filter", kind: other.to_owned() });
        let error = unknown.at(Path::new("/db/000001.manifest"), 32).to_string();
        assert!(error.contains(other) && error.contains("another version of Tamis wrote it"), "{error}");
        assert!(!error.contains("repair"), "{error}");
    }
}

#[test]
fn options_outside_their_bounds_are_refused() {
    for bad in [
        options().size_ratio(1),
        options().layout(Layout::Tiered { runs_per_level: 65, space_amplification_percent: 200 }),
        options().filters(Filters::bits(f32::NAN)),
        options().compression(vec![Compression::Zstd(77)]),
    ] {
        let edit = VersionEdit { changes: vec![Change::SetOptions { keyspace: 1, options: bad }] };
        assert!(decode(&edit.encode()).is_err());
    }
}

#[test]
fn filters_of_every_kind_round_trip() {
    let named = |filter: &str| vec![filter.parse().unwrap()];
    for filters in [
        Filters::none(),
        Filters::bits(0.1),
        Filters::per_level([named("surf@12"), Vec::new(), named("rosetta@20")]),
        Filters::auto(7.5),
        Filters::auto_bytes(3 << 30),
    ] {
        let options = options().filters(filters);
        let edit = VersionEdit { changes: vec![Change::SetOptions { keyspace: 1, options }] };
        assert_eq!(decode(&edit.encode()).unwrap(), edit);
    }
}

/// A flushed table of one entry was taken for an ingested one, so that `CURRENT` was written for its edit.
#[test]
fn only_edits_with_unique_information_must_be_covered() {
    let table = |number, is_ingested| Change::AddTable {
        place: place(0, 9),
        summary: summary(number, ("a", "c"), 100, (9, 9)),
        filter_file: None,
        is_ingested,
    };
    let removed = Change::RemoveTable { place: place(0, 9), number: 5 };
    let must_be_covered = |changes: &[Change]| VersionEdit { changes: changes.to_vec() }.must_be_covered();
    assert!(!must_be_covered(&[table(5, false)]));
    assert!(must_be_covered(&[table(5, true)]));
    assert!(!must_be_covered(&[removed.clone(), table(5, true)]), "a moved table");
    assert!(must_be_covered(&[removed.clone(), table(5, true), table(6, true)]));
    assert!(!must_be_covered(std::slice::from_ref(&removed)));
    for change in every_change() {
        let expected = matches!(
            change,
            Change::CreateKeyspace { .. }
                | Change::SetOptions { .. }
                | Change::DropKeyspace { .. }
                | Change::AddTable { is_ingested: true, .. }
        );
        assert_eq!(must_be_covered(&[removed.clone(), change.clone()]), expected, "{change:?}");
    }
}
