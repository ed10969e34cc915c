//! Tables compared with a sorted list of the same entries: read by key, by number, in both directions, in all access modes.
//! Damage is an error or has no effect on the result.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{path::Path, sync::Arc};
use tamis_workload::SplitMix64;

use tamis_filter::{Budget, Digester, Family, FilterSpec, Probe, Samples};
use tamis_vfs::{Access, Folder, MemVfs, Vfs};

use super::{
    cursor::TableCursor,
    environment::{ReadCost, TableEnvironment},
    filter_block::BuiltFilters,
    filter_file::{FilterOwner, write_filter_file},
    filter_plan::FilterPlan,
    open_files::OpenFiles,
    properties::TableOrigin,
    reader::TableReader,
    writer::{TableOptions, TableWriter},
};
use crate::{
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    cursor::Cursor,
    error::{Error, Result},
    key::{BoundKind, Kind, SEQUENCE_MAX, Sequence, compare_entries},
    observe::metrics::Metrics,
    options::{Compression, TableFilter},
};

mod damage;
mod golden;
mod model;
mod read_ahead;

pub(super) type Entry = (Vec<u8>, Sequence, Kind, Vec<u8>);

pub(super) const ACCESSES: [Access; 3] = [Access::Mapped, Access::Buffered, Access::Direct];
pub(super) const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(3)];

pub(super) fn options(compression: Compression, block_bytes: u32) -> TableOptions {
    TableOptions {
        block_bytes,
        compression,
        filters: FilterPlan::given(vec![TableFilter::bits(10.0)]),
        filter_seed: 9,
        origin: TableOrigin {
            keyspace_name: "test".to_owned(),
            merge_operator: String::new(),
            replaced: vec![1, 2],
            ..TableOrigin::default()
        },
        is_direct: false,
        listener: None,
    }
}

pub(super) fn built(filter: &[u8]) -> BuiltFilters {
    BuiltFilters { filters: vec![filter.to_vec()], ..BuiltFilters::default() }
}

pub(super) fn environment(vfs: &Arc<dyn Vfs>, access: Access) -> Arc<TableEnvironment> {
    environment_with(vfs, access, 1 << 20)
}

pub(super) fn environment_with(
    vfs: &Arc<dyn Vfs>,
    access: Access,
    pinned_bytes: u64,
) -> Arc<TableEnvironment> {
    Arc::new(TableEnvironment {
        folder: folder_in(&**vfs),
        access,
        open_files: OpenFiles::new(&**vfs),
        cache: Arc::new(BlockCache::new(4 << 20)),
        pinned_cache: PinnedCache::new(pinned_bytes, &Arc::default(), &Arc::default(), None),
        metrics: Arc::new(Metrics::default()),
        listener: None,
    })
}

pub(super) fn folder_in(vfs: &dyn Vfs) -> Folder {
    Folder::open(vfs, Path::new("/db")).unwrap()
}

pub(super) fn memory() -> Arc<dyn Vfs> {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    Arc::new(vfs)
}

pub(super) fn write(vfs: &Arc<dyn Vfs>, number: u64, options: TableOptions, entries: &[Entry]) {
    let (is_compressed, block_bytes) =
        (options.compression != Compression::None, u64::from(options.block_bytes));
    let mut writer = TableWriter::create(&folder_in(&**vfs), number, options).unwrap();
    for (key, sequence, kind, value) in entries {
        writer.add(key, *sequence, *kind, value).unwrap();
    }
    let estimated = writer.estimated_bytes();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.entry_count, entries.len() as u64);
    if is_compressed {
        return;
    }
    let slack = 16_384 + 2 * block_bytes + summary.file_bytes / 10;
    assert!(summary.file_bytes.abs_diff(estimated) < slack, "{estimated} {}", summary.file_bytes);
}

pub(super) fn read_all(table: &Arc<TableReader>) -> Result<Vec<Entry>> {
    let mut cursor = table.cursor();
    cursor.seek_first()?;
    let mut entries = Vec::new();
    while cursor.is_valid() {
        entries.push(at(&cursor).unwrap());
        cursor.next()?;
    }
    Ok(entries)
}

pub(super) fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|left, right| compare_entries((&left.0, left.1), (&right.0, right.1)));
    entries.dedup_by(|left, right| left.0 == right.0 && left.1 == right.1);
    entries
}

/// Keys that break search trees: prefixes of each other, runs of 0x00 and 0xFF, common prefixes, long keys.
pub(super) fn hostile_key(random: &mut SplitMix64) -> Vec<u8> {
    let letters: &[u8] = [b"\x00\xFF".as_slice(), b"a", b"ab", b"\x00a\xFF"][random.index(4)];
    let mut key = match random.index(4) {
        0 => b"shared-beginning-of-many-keys/".to_vec(),
        1 => vec![0xFF; random.index(6)],
        _ => Vec::new(),
    };
    let length = if random.index(200) == 0 { 65_535 - key.len() } else { 1 + random.index(9) };
    key.extend((0..length).map(|_| letters[random.index(letters.len())]));
    key
}

pub(super) fn hostile_entries(random: &mut SplitMix64, count: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for _ in 0..count {
        let key = hostile_key(random);
        let versions = if random.index(50) == 0 { 300 } else { 1 + random.index(3) };
        for _ in 0..versions {
            let sequence = random.next_u64() >> [8, 40, 60][random.index(3)];
            let (kind, length) = match random.index(100) {
                0..20 => (Kind::Tombstone, 0),
                20 => (Kind::Put, 70_000),
                21..24 => (Kind::Put, 4000 + random.index(200)),
                _ => (Kind::Put, random.index(60)),
            };
            let fill = random.next_u64() as u8;
            entries.push((key.clone(), sequence, kind, vec![fill; length]));
        }
    }
    sorted(entries)
}

/// The current entry of a cursor.
pub(super) fn at(cursor: &TableCursor) -> Option<Entry> {
    cursor.is_valid().then(|| {
        assert_eq!(cursor.value(), &*cursor.value_slice());
        (cursor.key().to_vec(), cursor.sequence(), cursor.kind(), cursor.value().to_vec())
    })
}

/// Versions of a key that fill a block and continue in the next one, tombstones, and long stretches without either.
fn stretches(random: &mut SplitMix64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for number in 0..4_000_u64 {
        let versions = if random.index(300) == 0 { 1 + random.index(150) as u64 } else { 1 };
        for version in 0..versions {
            let kind = if random.index(400) == 0 { Kind::Tombstone } else { Kind::Put };
            let value = if kind == Kind::Put { vec![number as u8; 40] } else { Vec::new() };
            let sequence = number * 1_000 % 1_000_003 * 200 + version;
            entries.push((format!("key{number:05}").into_bytes(), sequence, kind, value));
        }
    }
    sorted(entries)
}

/// A scan checks no version of an entry that a cursor says is the only one.
#[test]
fn an_only_version_is_a_visible_put_whose_neighbors_have_other_keys() {
    let mut random = SplitMix64::new(31);
    for compression in COMPRESSIONS {
        let (vfs, entries) = (memory(), stretches(&mut random));
        write(&vfs, 1, options(compression, 4096), &entries);
        let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
        assert!(table.verify().is_empty());
        let mut counts = Vec::new();
        for snapshot in [SEQUENCE_MAX, 100_000_000, 0] {
            let mut cursor = table.cursor();
            cursor.seek_first().unwrap();
            let mut only_count = 0;
            for (place, entry) in entries.iter().enumerate() {
                let (key, sequence, kind, _) = entry;
                assert_eq!(at(&cursor).as_ref(), Some(entry));
                let before = place.checked_sub(1).map(|before| &entries[before].0);
                let after = entries.get(place + 1).map(|after| &after.0);
                if cursor.is_only_version(snapshot) {
                    only_count += 1;
                    assert!(*sequence <= snapshot && *kind == Kind::Put, "{entry:?} at {snapshot}");
                    assert!(before != Some(key) && after != Some(key), "{entry:?}");
                }
                cursor.next().unwrap();
            }
            counts.push(only_count);
        }
        assert!(
            counts[0] > entries.len() / 8 && counts[0] > counts[1] && counts[1] > counts[2],
            "{counts:?}"
        );
        assert_eq!(counts[2], 0);
    }
}

#[test]
fn entries_out_of_order_and_empty_tables_are_refused() {
    let vfs = memory();
    let mut writer = TableWriter::create(&folder_in(&*vfs), 1, options(Compression::None, 4096)).unwrap();
    writer.add(b"b", 5, Kind::Put, b"").unwrap();
    assert!(matches!(writer.add(b"a", 9, Kind::Put, b""), Err(Error::InvalidArgument { .. })));
    assert!(writer.add(b"b", 5, Kind::Put, b"").is_err() && writer.add(b"b", 6, Kind::Put, b"").is_err());
    assert!(matches!(writer.add(b"", 1, Kind::Put, b""), Err(Error::KeyEmpty)));
    writer.add(b"b", 4, Kind::Tombstone, b"").unwrap();
    writer.abandon().unwrap();
    let empty = TableWriter::create(&folder_in(&*vfs), 1, options(Compression::None, 4096)).unwrap();
    assert!(empty.finish().is_err());
}

#[test]
fn a_table_under_another_number_is_refused() {
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &[(b"k".to_vec(), 1, Kind::Put, b"v".to_vec())]);
    vfs.rename(Path::new("/db/000001.table"), Path::new("/db/000002.table")).unwrap();
    let environment = environment(&vfs, Access::Mapped);
    assert!(matches!(TableReader::open(&environment, 2, None), Err(Error::Corruption(_))));
    assert!(matches!(TableReader::open(&environment, 1, None), Err(Error::MissingFile { .. })));
}

#[test]
fn a_table_of_few_entries_takes_one_page() {
    let vfs = memory();
    let entries: Vec<Entry> =
        (0..16_u64).map(|n| (format!("key{n:08}").into_bytes(), n + 1, Kind::Put, vec![7; 100])).collect();
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    assert_eq!(vfs.read(Path::new("/db/000001.table")).unwrap().len(), 4096);
    for access in ACCESSES {
        let environment = environment(&vfs, access);
        let table = TableReader::open(&environment, 1, None).unwrap();
        assert_eq!(read_all(&table).unwrap(), entries);
        assert!(table.verify().is_empty());
        let mut cost = ReadCost::default();
        table.get(b"key00000007", SEQUENCE_MAX, &mut cost).unwrap().unwrap();
        assert_eq!(cost.blocks_read + cost.cache_hits, 1, "{access:?}");
    }
}

#[test]
fn an_uncompressed_block_is_one_aligned_read_and_is_verified_once() {
    let vfs = memory();
    let entries: Vec<Entry> =
        (0..2000_u64).map(|n| (format!("key{n:08}").into_bytes(), n + 1, Kind::Put, vec![7; 100])).collect();
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    for access in ACCESSES {
        let environment = environment(&vfs, access);
        let table = TableReader::open(&environment, 1, None).unwrap();
        let mut cost = ReadCost::default();
        table.get(b"key00001000", SEQUENCE_MAX, &mut cost).unwrap().unwrap();
        assert_eq!(cost, ReadCost { blocks_read: 1, bytes_read: 4096, cache_hits: 0 }, "{access:?}");
        table.get(b"key00001000", SEQUENCE_MAX, &mut cost).unwrap().unwrap();
        assert_eq!(cost, ReadCost { blocks_read: 1, bytes_read: 4096, cache_hits: 1 }, "{access:?}");
        assert!(table.get(b"key00001000x", SEQUENCE_MAX, &mut cost).unwrap().is_none());
        assert_eq!((cost.blocks_read, cost.cache_hits), (1, 2));
        assert!(table.properties().summary.block_count < 67, "{:?}", table.properties().summary);
        drop(table);
    }
}

#[test]
fn the_filter_rejects_absent_keys_and_never_a_present_key() {
    let vfs = memory();
    let entries: Vec<Entry> = (0..3000_u64)
        .map(|n| {
            let kind = if n % 2 == 0 { Kind::Put } else { Kind::Tombstone };
            (format!("key{n:08}").into_bytes(), n + 1, kind, Vec::new())
        })
        .collect();
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    let digester = Digester::new(9);
    for access in ACCESSES {
        let table = TableReader::open(&environment(&vfs, access), 1, None).unwrap();
        assert!(table.has_filter());
        assert!(entries.iter().all(|entry| table.may_contain(&Probe::new(&entry.0, &digester))));
        let passed = (0..3000).filter(|n| {
            let key = format!("absent{n}").into_bytes();
            table.may_contain(&Probe::new(&key, &digester))
        });
        assert!(passed.count() < 90);
    }
}

#[test]
fn results_are_the_same_without_room_for_index_and_filter() {
    let vfs = memory();
    let entries = hostile_entries(&mut SplitMix64::new(12), 200);
    write(&vfs, 1, options(Compression::Lz4, 4096), &entries);
    let digester = Digester::new(9);
    for access in [Access::Buffered, Access::Direct] {
        let environment = environment_with(&vfs, access, 0);
        let table = TableReader::open(&environment, 1, None).unwrap();
        assert_eq!(environment.pinned_cache.used_bytes(), 0);
        for entry in &entries {
            assert!(table.may_contain(&Probe::new(&entry.0, &digester)));
            let found = table.get(&entry.0, entry.1, &mut ReadCost::default()).unwrap().unwrap();
            assert_eq!((found.sequence, &*found.value), (entry.1, entry.3.as_slice()));
        }
    }
}

#[test]
fn a_filter_file_replaces_the_filter_and_a_foreign_or_damaged_one_is_ignored() {
    let vfs = memory();
    let entries = vec![(b"key".to_vec(), 1, Kind::Put, b"value".to_vec())];
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    let digester = Digester::new(9);
    let mut builder = FilterSpec::new(Family::BlockedBloom).builder(9).unwrap();
    builder.add(b"other").unwrap();
    let filter = builder.finish(Budget::bits_per_key(10.0).unwrap(), Samples::NONE).unwrap();
    let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
    let owner = FilterOwner::of(table.properties());
    let owners = [
        owner,
        FilterOwner { table_number: 2, ..owner },
        FilterOwner { table_checksum: owner.table_checksum + 1, ..owner },
    ];
    for (number, owner) in (5..).zip(owners) {
        write_filter_file(&folder_in(&*vfs), number, owner, &built(&filter)).unwrap();
    }
    for access in ACCESSES {
        let environment = environment(&vfs, access);
        let may_contain = |file| {
            let table = TableReader::open(&environment, 1, file).unwrap();
            [b"key".as_slice(), b"other"].map(|key| table.may_contain(&Probe::new(key, &digester)))
        };
        assert_eq!(may_contain(None), [true, false]);
        assert_eq!(may_contain(Some(5)), [false, true], "the filter of the file is used");
        assert_eq!(may_contain(Some(6)), [true, false], "the filter of another table is not used");
        assert_eq!(may_contain(Some(7)), [true, false], "nor is that of another table with the same number");
        assert_eq!(may_contain(Some(8)), [true, false], "a missing filter is ignored");
        assert_eq!(environment.metrics.corrupt_filters.get(), 3);
    }
}

#[test]
fn a_prefetch_of_a_filter_counts_no_access() {
    let vfs = memory();
    let entry = |number: u64| (number.to_be_bytes().to_vec(), 1, Kind::Put, Vec::new());
    let entries: Vec<_> = (0..2_000).map(entry).collect();
    (1..=2).for_each(|number| write(&vfs, number, options(Compression::None, 4096), &entries));
    let roomy = environment(&vfs, Access::Buffered);
    let _one = TableReader::open(&roomy, 1, None).unwrap();
    // Room for two of everything, except for a part of a filter.
    let environment = environment_with(&vfs, Access::Buffered, 2 * roomy.pinned_cache.used_bytes() - 1_000);
    let [first, second] = [1, 2].map(|number| TableReader::open(&environment, number, None).unwrap());
    let in_memory = || [&first, &second].map(|table| table.filter_designs().len());
    assert_eq!(in_memory(), [1, 0]);
    let (digester, key) = (Digester::new(9), [7; 8]);
    (0..10_000).for_each(|_| first.prefetch(&Probe::new(&key, &digester)));
    (0..64).for_each(|_| {
        second.may_contain(&Probe::new(&key, &digester));
    });
    assert_eq!(in_memory(), [0, 1], "a filter that is used evicts one that is not");
}
