//! Filters that are rebuilt beside their tables: the same answers, other files, and damage that `verify` goes past.

use tamis::{Db, Keyspace, KeyspaceOptions, Options, TableFilter};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory, small_keyspace};

fn key(number: u32) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// Even numbers are there, every tenth of them deleted again in a later run.
fn fill(db: &Db, key_column: bool) -> Keyspace {
    let options = KeyspaceOptions { key_column, level0_runs: 8, ..small_keyspace() };
    let keyspace = db.create_keyspace("k", options).unwrap();
    for number in (0..4_000).step_by(2) {
        keyspace.put(key(number), [7; 60]).unwrap();
    }
    db.flush().unwrap();
    for number in (0..4_000).step_by(20) {
        keyspace.delete(key(number)).unwrap();
    }
    db.flush().unwrap();
    keyspace
}

fn check(keyspace: &Keyspace) {
    for number in 0..4_000 {
        let is_there = number % 2 == 0 && number % 20 != 0;
        assert_eq!(keyspace.get(key(number)).unwrap().is_some(), is_there, "{number}");
    }
}

fn filter_files(vfs: &MemVfs) -> usize {
    vfs.list(FOLDER.as_ref()).unwrap().iter().filter(|entry| entry.name.ends_with(".filter")).count()
}

#[test]
fn rebuilt_filters_answer_as_before_with_and_without_a_key_column() {
    for key_column in [false, true] {
        let vfs = MemVfs::new();
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        let keyspace = fill(&db, key_column);
        let table_count: usize =
            db.statistics().keyspaces[1].levels.iter().map(|level| level.table_count).sum();
        for text in ["cache-local@16", "surf@20 cache-local@4", "", "cache-local@10"] {
            let filters: Vec<TableFilter> =
                text.split(' ').filter_map(|filter| filter.parse().ok()).collect();
            db.rebuild_filters(&keyspace, &filters).unwrap();
            check(&keyspace);
            // A file that later filters replaced goes away.
            let expected = if filters.is_empty() { 0 } else { table_count };
            assert_eq!(filter_files(&vfs), expected, "{text}");
            let designs = &db.statistics().keyspaces[1].filter_designs;
            assert_eq!(designs.len(), table_count * filters.len().max(1), "{designs:?}");
            let count = |part| designs.iter().filter(|filter| filter.design.contains(part)).count();
            assert_eq!(count("cache-local: "), table_count, "{designs:?}");
            assert_eq!(count(" bytes"), designs.len(), "{designs:?}");
        }
        drop(keyspace);
        db.close().unwrap();
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        check(&db.keyspace("k").unwrap());
        let denied: u64 = db.statistics().filters.iter().map(|level| level.denied).sum();
        assert!(denied > 1_000, "the rebuilt filters are in force after a reopen: {denied}");
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn filters_that_can_not_be_built_are_refused_and_change_nothing() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = fill(&db, false);
    for bits in [-1.0, f32::NAN, 1_000.0] {
        let error = db.rebuild_filters(&keyspace, &[TableFilter::bits(bits)]).unwrap_err();
        assert!(error.to_string().contains("0 to 64"), "{bits}: {error}");
    }
    let error = db.rebuild_filters(&keyspace, &["surf@1".parse().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("least"), "{error}");
    check(&keyspace);
}

#[test]
fn verify_goes_on_after_a_fault_and_names_each() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options { table_access: tamis_vfs::Access::Buffered, ..inline_options() };
    let db = Db::open_with(folder.path(), options()).unwrap();
    drop(fill(&db, true));
    db.close().unwrap();
    let mut tables: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "table"))
        .collect();
    tables.sort();
    let table = tables.iter().max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(table).unwrap();
    for block in [1_usize, 4, 5] {
        bytes[block * 4096 + 700] ^= 1;
    }
    std::fs::write(table, bytes).unwrap();
    let db = Db::open_with(folder.path(), options()).unwrap();
    let report = db.verify().unwrap();
    let offsets: Vec<_> = report.faults.iter().map(|fault| (fault.file == *table, fault.offset)).collect();
    assert_eq!(offsets, [(true, Some(4096)), (true, Some(4 * 4096)), (true, Some(5 * 4096))]);
}
