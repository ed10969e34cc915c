//! Tables are opened once, and the caches keep to their limits.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;

use tamis_vfs::{Access, Folder, MemVfs, OperationKind, RecordVfs, Vfs};

use super::*;
use crate::{
    key::{Kind, SEQUENCE_MAX},
    options::{Compression, TableFilter},
    table::{
        environment::ReadCost,
        filter_plan::FilterPlan,
        properties::TableOrigin,
        reader::TableReader,
        writer::{TableOptions, TableWriter},
    },
    version::handle::{ObsoleteFiles, Table},
};

/// Tables and their folder.
fn tables(vfs: &dyn Vfs, count: u64) -> (Folder, Vec<Arc<Table>>) {
    vfs.create_dir_all(Path::new("/db")).unwrap();
    let folder = Folder::open(vfs, Path::new("/db")).unwrap();
    let obsolete_files = Arc::new(ObsoleteFiles::default());
    let tables = (1..=count)
        .map(|number| {
            let options = TableOptions {
                block_bytes: 4096,
                compression: Compression::None,
                filters: FilterPlan::given(vec![TableFilter::bits(10.0)]),
                filter_seed: 1,
                origin: TableOrigin::default(),
                is_direct: false,
                listener: None,
            };
            let mut writer = TableWriter::create(&folder, number, options).unwrap();
            writer.add(format!("key{number}").as_bytes(), 1, Kind::Put, &[7; 4_000]).unwrap();
            Table::new(writer.finish().unwrap(), None, &obsolete_files)
        })
        .collect();
    (folder, tables)
}

#[test]
fn a_table_is_opened_once() {
    let recorder = Arc::new(RecordVfs::new(Arc::new(MemVfs::new())));
    let (folder, tables) = tables(&*recorder, 10);
    let options = Options::default().table_access(Access::Buffered);
    let cache = TableCache::new(&folder, &options, &Arc::default());
    recorder.reset();
    for _ in 0..3 {
        for table in &tables {
            let reader = cache.reader(table).unwrap();
            let key = table.smallest_key();
            assert!(reader.get(key, SEQUENCE_MAX, &mut ReadCost::default()).unwrap().is_some());
        }
    }
    assert_eq!(recorder.tally(OperationKind::Open).count, 10);
}

#[test]
fn cache_bytes_and_cache_pinned_percent_limit_the_caches() {
    let (folder, tables) = tables(&MemVfs::new(), 40);
    let kept = |cache_bytes, cache_pinned_percent| {
        let options = Options::default()
            .table_access(Access::Buffered)
            .cache_bytes(cache_bytes)
            .cache_pinned_percent(cache_pinned_percent);
        let cache = TableCache::new(&folder, &options, &Arc::default());
        let readers: Vec<_> = tables
            .iter()
            .map(|table| {
                let reader = TableReader::open(&cache.environment, table.number(), None).unwrap();
                let found = reader.get(table.smallest_key(), SEQUENCE_MAX, &mut ReadCost::default());
                assert!(found.unwrap().is_some());
                reader
            })
            .collect();
        let (blocks, pinned) = (cache.block_bytes(), cache.pinned_bytes());
        drop(readers);
        assert_eq!(cache.pinned_bytes(), 0, "a closed table uses no memory");
        (blocks, pinned)
    };
    let (blocks, pinned) = kept(1 << 20, 20);
    assert!(blocks > 40 * 4_000 && pinned > 40 * 128, "all fits: {blocks} {pinned}");
    let (blocks, pinned) = kept(50_000, 4);
    assert!((20_000..=48_000).contains(&blocks) && (1..=2000).contains(&pinned), "{blocks} {pinned}");
    assert_eq!(kept(1 << 20, 0).1, 0);
    // Blocks of 50,000 bytes are more than a share of 40 % would hold; they use what filters and indexes leave.
    let (blocks, pinned) = kept(50_000, 60);
    assert!(blocks > 30_000 && pinned > 5_000 && blocks + pinned <= 50_000, "{blocks} {pinned}");
}
