//! Frozen bytes of tables and of a filter file. `TAMIS_REWRITE=1` rewrites them.

use tamis_vfs::OsVfs;

use super::*;
use crate::range_tombstone::{RangeTombstone, fragment};

/// One aligned table with a filter and a continued key; one of them packed; a filter file.
fn write_all(vfs: &Arc<dyn Vfs>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = (0..40_u64)
        .map(|n| (format!("golden/{n:03}").into_bytes(), 100 + n, Kind::Put, vec![n as u8; 30]))
        .collect();
    entries.extend((0..300).map(|n| (b"golden/many".to_vec(), 500 + n, Kind::Tombstone, Vec::new())));
    entries.push((b"golden/z".to_vec(), 9, Kind::Put, vec![b'z'; 5000]));
    let entries = sorted(entries);
    write(vfs, 1, options(Compression::None, 4096), &entries);
    write(vfs, 2, options(Compression::Lz4, 4096), &entries);
    write_range_tombstones(vfs, 4);
    let table = TableReader::open(&environment(vfs, Access::Mapped), 1, None).unwrap();
    let owner = FilterOwner::of(table.properties());
    let mut builder = FilterSpec::new(Family::BlockedBloom).builder(9).unwrap();
    entries.iter().for_each(|entry| builder.add(&entry.0).unwrap());
    let filter = builder.finish(Budget::bits_per_key(10.0).unwrap(), Samples::NONE).unwrap();
    write_filter_file(&folder_in(&**vfs), 3, owner, &built(&filter)).unwrap();
    entries
}

/// A table with range tombstones, one of which begins below the first entry and one of which has no end.
fn write_range_tombstones(vfs: &Arc<dyn Vfs>, number: u64) {
    let options = options(Compression::None, 4096);
    let mut writer = TableWriter::create(&folder_in(&**vfs), number, options).unwrap();
    let tombstones =
        [("golden/000", "golden/010", 7), ("golden/005", "golden/007", 9), ("golden/900", "", 3)];
    let tombstones = tombstones.map(|(lower, upper, sequence)| RangeTombstone {
        lower: lower.into(),
        upper: upper.into(),
        sequence,
    });
    let fragments = fragment(tombstones, &[]);
    writer.begin_range_tombstones(&fragments.list()[0]).unwrap();
    for n in 2..30_u64 {
        writer.add(format!("golden/{n:03}").as_bytes(), 100 + n, Kind::Put, &[n as u8; 30]).unwrap();
    }
    for fragment in fragments.list() {
        writer.add_range_tombstones(fragment.clone()).unwrap();
    }
    writer.finish().unwrap();
}

fn check_range_tombstones(vfs: &Arc<dyn Vfs>) {
    let environment = environment(vfs, Access::Mapped);
    let table = TableReader::open(&environment, 4, None).unwrap();
    assert!(table.verify().is_empty());
    assert_eq!(read_all(&table).unwrap().len(), 29);
    let fragments = table.range_tombstones().expect("range tombstones");
    let covers = [("golden/000", 7), ("golden/006", 9), ("golden/010", 0), ("golden/900", 3), ("z", 3)];
    for (key, sequence) in covers {
        assert_eq!(fragments.sequence_at(key.as_bytes(), SEQUENCE_MAX), sequence, "{key}");
    }
}

/// The bytes of tables built outside of a store.
#[test]
fn a_table_from_outside_is_written_and_read_as_its_golden_file() {
    let vfs = memory();
    let outside = |vfs: &Arc<dyn Vfs>| {
        let options = TableOptions { origin: TableOrigin::default(), ..options(Compression::None, 4096) };
        let mut writer = TableWriter::create_outside(vfs, Path::new("/db/outside"), options).unwrap();
        for n in 0..100_u64 {
            let kind = if n % 9 == 0 { Kind::Tombstone } else { Kind::Put };
            let value: &[u8] = if n % 9 == 0 { b"" } else { &[n as u8; 60] };
            writer.add(format!("golden/{n:03}").as_bytes(), 0, kind, value).unwrap();
        }
        writer.finish().unwrap();
        vfs.read(Path::new("/db/outside")).unwrap()
    };
    let written = outside(&vfs);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/table_outside");
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        let _ = OsVfs.remove(&path);
        OsVfs.create_dir_all(path.parent().unwrap()).unwrap();
        OsVfs.create(&path).unwrap().append(&written).unwrap();
    }
    let frozen = OsVfs.read(&path).unwrap();
    assert!(written == frozen, "its bytes have changed");
    vfs.create(Path::new("/db/000007.table")).unwrap().append(&frozen).unwrap();
    let environment = environment(&vfs, Access::Mapped);
    assert!(
        TableReader::open(&environment, 7, None).is_err(),
        "without a sequence number it can't be opened"
    );
    let table = TableReader::open_unnamed(&environment, 7, 1_000).unwrap();
    assert!(table.verify().is_empty());
    let get = |sequence| table.get(b"golden/001", sequence, &mut ReadCost::default()).unwrap();
    assert!(get(999).is_none());
    assert_eq!(get(1_000).map(|found| found.sequence), Some(1_000));
    let mut cursor = table.cursor();
    cursor.seek(b"golden/001", 999).unwrap();
    assert_eq!(at(&cursor).unwrap().0, b"golden/002");
    cursor.seek(b"golden/001", SEQUENCE_MAX).unwrap();
    assert_eq!(at(&cursor).unwrap().0, b"golden/001");
}

#[test]
fn tables_and_filter_files_are_written_and_read_as_their_golden_files() {
    let vfs = memory();
    let entries = write_all(&vfs);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let frozen = memory();
    for (name, file) in [
        ("000001.table", "table_aligned"),
        ("000002.table", "table_packed"),
        ("000003.filter", "filter_file"),
        ("000004.table", "table_single_block"),
    ] {
        let path = golden.join(file);
        let written = vfs.read(&Path::new("/db").join(name)).unwrap();
        if std::env::var_os("TAMIS_REWRITE").is_some() {
            let _ = OsVfs.remove(&path);
            OsVfs.create(&path).unwrap().append(&written).unwrap();
        }
        let expected = OsVfs.read(&path).unwrap();
        // The output of LZ4 may change with its crate; its earlier output stays readable.
        assert!(written == expected || file == "table_packed", "the bytes of {name} have changed");
        frozen.create(&Path::new("/db").join(name)).unwrap().append(&expected).unwrap();
    }
    check_range_tombstones(&frozen);
    for (number, file) in [(1, Some(3)), (2, None)] {
        let environment = environment(&frozen, Access::Mapped);
        let table = TableReader::open(&environment, number, file).unwrap();
        assert!(table.verify().is_empty());
        let mut cursor = table.cursor();
        cursor.seek_first().unwrap();
        for entry in &entries {
            assert_eq!(at(&cursor).as_ref(), Some(entry));
            cursor.next().unwrap();
        }
        assert_eq!(environment.metrics.corrupt_filters.get(), 0);
        assert!(!table.may_contain(&Probe::new(b"golden/absent", &Digester::new(9))));
    }
}
