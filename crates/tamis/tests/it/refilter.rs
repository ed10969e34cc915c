//! Rebuilt filters of existing tables: the same answers, other files, and damage after which `verify` continues.

use std::path::{Path, PathBuf};

use tamis::{Db, Filters, Keyspace, Options, TableFilter, VerifyReport};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, filter_designs, inline_options, open_in_memory, small_keyspace};

fn key(number: u32) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// The even numbers, every tenth of them deleted in a later run.
fn fill(db: &Db) -> Keyspace {
    let filters = Filters::bits(10.0);
    let options = small_keyspace().level0_runs(8).filters(filters);
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
fn rebuilt_filters_answer_as_before() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = fill(&db);
    let table_count: usize = db.statistics().keyspaces[1].levels.iter().map(|level| level.table_count).sum();
    for text in ["blocked-bloom@16", "surf@20 blocked-bloom@4", "", "blocked-bloom@10"] {
        let filters: Vec<TableFilter> = text.split(' ').filter_map(|filter| filter.parse().ok()).collect();
        db.rebuild_filters(&keyspace, &filters).unwrap();
        check(&keyspace);
        // The replaced filter file is deleted.
        let expected = if filters.is_empty() { 0 } else { table_count };
        assert_eq!(filter_files(&vfs), expected, "{text}");
        let designs = filter_designs(&db, 1);
        assert_eq!(designs.len(), table_count * filters.len().max(1), "{designs:?}");
        let count = |part| designs.iter().filter(|filter| filter.contains(part)).count();
        assert_eq!(count("blocked-bloom: "), table_count, "{designs:?}");
        assert_eq!(count(" bytes"), designs.len(), "{designs:?}");
    }
    drop(keyspace);
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    check(&db.keyspace("k").unwrap());
    let rejected: u64 = db.statistics().reads.iter().map(|level| level.points.rejected).sum();
    assert!(rejected > 1_000, "the rebuilt filters are used after a reopen: {rejected}");
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn filters_that_can_not_be_built_are_refused_and_change_nothing() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = fill(&db);
    for bits in [-1.0, f32::NAN, 1_000.0] {
        let error = db.rebuild_filters(&keyspace, &[TableFilter::bits(bits)]).unwrap_err();
        assert!(error.to_string().contains("at most 64"), "{bits}: {error}");
    }
    let error = db.rebuild_filters(&keyspace, &["surf@1".parse().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("least"), "{error}");
    check(&keyspace);
}

/// A closed store on disk, and its largest table.
fn store_on_disk(options: impl Fn() -> Options) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open_with(folder.path(), options()).unwrap();
    drop(fill(&db));
    db.close().unwrap();
    let tables = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "table"));
    let table = tables.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    (folder, table)
}

fn offsets_in(table: &Path, report: &VerifyReport) -> Vec<u64> {
    assert!(report.faults.iter().all(|fault| fault.file == table), "{:?}", report.faults);
    report.faults.iter().map(|fault| fault.offset.unwrap()).collect()
}

#[test]
fn verify_continues_after_a_fault_and_names_each() {
    let options = || inline_options().table_access(tamis_vfs::Access::Buffered);
    let (folder, table) = store_on_disk(options);
    let mut bytes = std::fs::read(&table).unwrap();
    for block in [1_usize, 4, 5] {
        bytes[block * 4096 + 700] ^= 1;
    }
    std::fs::write(&table, bytes).unwrap();
    let db = Db::open_with(folder.path(), options()).unwrap();
    assert_eq!(offsets_in(&table, &db.verify().unwrap()), [4096, 4 * 4096, 5 * 4096]);
}

/// A table with a damaged index, footer or properties section can't be opened; all other faults are still reported.
#[test]
fn verify_continues_in_a_table_that_cannot_be_opened() {
    let options = || inline_options().table_access(tamis_vfs::Access::Buffered);
    let (folder, table) = store_on_disk(options);
    let whole = std::fs::read(&table).unwrap();
    let footer = whole.len() - 64;
    let number = |offset: usize| u64::from_le_bytes(*whole[offset..].first_chunk().unwrap());
    let directory = number(footer + 16) as usize;
    let section = |kind: u8| {
        let mut records = (directory + 64..footer).step_by(24);
        number(records.find(|record| whole[*record] == kind).unwrap() + 8)
    };
    let (index, filter, properties) = (section(1), section(3), section(4));
    for parts in [[4096, index, filter], [4096, filter, properties], [4096, filter, footer as u64]] {
        let mut bytes = whole.clone();
        parts.iter().for_each(|part| bytes[*part as usize + 20] ^= 1);
        std::fs::write(&table, bytes).unwrap();
        let db = Db::open_with(folder.path(), options()).unwrap();
        assert_eq!(offsets_in(&table, &db.verify().unwrap()), parts);
        db.close().unwrap();
        let report = Db::verify_folder(folder.path()).unwrap();
        assert_eq!(offsets_in(&table, &report), parts);
        // Without a manifest, too.
        let current = folder.path().join("CURRENT");
        let named = std::fs::read(&current).unwrap();
        std::fs::write(&current, "").unwrap();
        let report = Db::verify_folder(folder.path()).unwrap();
        let found: Vec<_> = report.faults.iter().filter(|fault| fault.file == table).collect();
        assert_eq!(found.iter().filter_map(|fault| fault.offset).collect::<Vec<_>>(), parts);
        std::fs::write(&current, named).unwrap();
    }
}
