//! Another program puts a foreign or an older file under the name of a table. The manifest has the length of each table and the checksum
//! of its footer, so that such a file is an error and never a wrong answer.

use std::{path::Path, sync::Arc};

use tamis::{Db, Error, KeyspaceOptions, Runtime, TableWriter};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory};

const KEY_COUNT: u32 = 500;

/// How the entries come into the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Flush,
    Ingest,
}

/// A closed store with one table. Stores of different texts differ only in their values: all ids, numbers and lengths are equal.
fn store(text: &str, by: By) -> MemVfs {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let value = |number: u32| format!("{text} {number}");
    match by {
        By::Flush => {
            (0..KEY_COUNT).for_each(|number| db.put(number.to_be_bytes(), value(number)).unwrap());
            db.flush().unwrap();
        }
        By::Ingest => {
            let shared = Arc::new(vfs.clone());
            let mut table = TableWriter::create_on(shared, "/t", &KeyspaceOptions::default()).unwrap();
            (0..KEY_COUNT).for_each(|number| table.put(number.to_be_bytes(), value(number)).unwrap());
            table.finish().unwrap();
            db.ingest(&db.default_keyspace(), ["/t"]).unwrap();
        }
    }
    db.close().unwrap();
    vfs
}

fn table_name(vfs: &MemVfs) -> String {
    let names = vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name);
    let tables: Vec<_> = names.filter(|name| name.ends_with(".table")).collect();
    assert_eq!(tables.len(), 1);
    tables[0].clone()
}

fn replace(vfs: &MemVfs, name: &str, bytes: &[u8]) {
    let path = Path::new(FOLDER).join(name);
    vfs.remove(&path).unwrap();
    vfs.create(&path).unwrap().append(bytes).unwrap();
}

/// A store with the table of another one, the name of the table, and the bytes of both.
fn exchanged(by: By) -> (MemVfs, String, [Vec<u8>; 2]) {
    let (own, other) = (store("own", by), store("who", by));
    let name = table_name(&own);
    assert_eq!(name, table_name(&other));
    let [ours, theirs] = [&own, &other].map(|vfs| vfs.read(&Path::new(FOLDER).join(&name)).unwrap());
    assert!(ours.len() == theirs.len() && ours != theirs);
    replace(&own, &name, &theirs);
    (own, name, [ours, theirs])
}

/// The checksum at the end of a footer, as errors print it.
fn footer_checksum(table: &[u8]) -> String {
    format!("{:#018x}", u64::from_le_bytes(*table.last_chunk().unwrap()))
}

/// The answers were those of the foreign table.
#[test]
fn a_foreign_table_of_equal_length_is_an_error_with_both_checksums() {
    for by in [By::Flush, By::Ingest] {
        let (vfs, name, [ours, theirs]) = exchanged(by);
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        let Err(Error::Corruption(found)) = db.get(7_u32.to_be_bytes()) else {
            panic!("{by:?}: {:?}", db.get(7_u32.to_be_bytes()));
        };
        assert_eq!(found.file, Path::new(FOLDER).join(&name));
        assert!(found.expected.contains(&footer_checksum(&ours)), "{found:?}");
        assert!(found.got.contains(&footer_checksum(&theirs)), "{found:?}");
        assert!(db.range(..).next().unwrap().is_err());
        let report = db.verify().unwrap();
        let [fault] = &report.faults[..] else { panic!("{report:?}") };
        assert!(fault.what.contains(&footer_checksum(&ours)), "{fault:?}");
        assert!(fault.what.contains(&footer_checksum(&theirs)), "{fault:?}");
        db.close().unwrap();
        let closed = Db::verify_folder_on(Arc::new(vfs.clone()), FOLDER).unwrap();
        assert_eq!(closed.faults, report.faults);
        // The own table again: nothing was lost.
        replace(&vfs, &name, &ours);
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert_eq!(db.get(7_u32.to_be_bytes()).unwrap().as_deref(), Some(b"own 7".as_slice()));
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_foreign_table_of_another_length_is_refused_at_open_with_both_lengths() {
    let (vfs, name, [ours, _]) = exchanged(By::Flush);
    let path = Path::new("/other.table");
    let mut table = TableWriter::create_on(Arc::new(vfs.clone()), path, &KeyspaceOptions::default()).unwrap();
    table.put("key", "value").unwrap();
    let length = table.finish().unwrap().bytes;
    replace(&vfs, &name, &vfs.read(path).unwrap());
    let refused = open_in_memory(&vfs, inline_options());
    let Err(Error::Corruption(found)) = refused else { panic!("{refused:?}") };
    assert_eq!(found.file, Path::new(FOLDER).join(&name));
    assert_eq!(found.expected, format!("{} bytes", ours.len()));
    assert_eq!(found.got, format!("{length} bytes"));
}

#[test]
fn a_repair_moves_a_foreign_table_to_quarantine_and_names_both_checksums() {
    for by in [By::Flush, By::Ingest] {
        let (vfs, name, [ours, theirs]) = exchanged(by);
        let report = Db::repair_on(Arc::new(vfs.clone()), FOLDER, &Runtime::deterministic(9)).unwrap();
        let is_named =
            |text: &str| text.contains(&footer_checksum(&ours)) && text.contains(&footer_checksum(&theirs));
        assert!(report.faults.iter().any(|fault| is_named(&fault.what)), "{report:?}");
        let [lost] = &report.lost_ranges[..] else { panic!("{report:?}") };
        assert!(is_named(&lost.why), "{lost:?}");
        assert_eq!(lost.lower, 0_u32.to_be_bytes());
        assert_eq!(lost.upper.as_deref(), Some((KEY_COUNT - 1).to_be_bytes().as_slice()));
        let quarantine = Path::new(FOLDER).join("quarantine");
        assert_eq!(vfs.read(&quarantine.join(&name)).unwrap(), theirs);
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert_eq!(db.range(..).count(), 0);
        assert!(db.verify().unwrap().is_sound());
    }
}

/// A filter file of another table with the same number rejected keys that the table has.
#[test]
fn a_filter_file_of_a_diverged_copy_is_not_used() {
    let build = |first: u32| {
        let vfs = MemVfs::new();
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        (first..first + KEY_COUNT).for_each(|number| db.put(number.to_be_bytes(), "value").unwrap());
        db.flush().unwrap();
        db.rebuild_filters(&db.default_keyspace(), &[tamis::TableFilter::bits(16.0)]).unwrap();
        db.close().unwrap();
        let names = vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name);
        let name = names.into_iter().find(|name| name.ends_with(".filter")).unwrap();
        (vfs, name)
    };
    let ((own, name), (other, other_name)) = (build(0), build(1_000_000));
    assert_eq!(name, other_name);
    replace(&own, &name, &other.read(&Path::new(FOLDER).join(&name)).unwrap());
    let db = open_in_memory(&own, inline_options().sample_queries(false)).unwrap();
    for number in 0..KEY_COUNT {
        assert!(db.get(number.to_be_bytes()).unwrap().is_some(), "{number}");
    }
    assert_eq!(db.statistics().corrupt_filters, 1);
}
