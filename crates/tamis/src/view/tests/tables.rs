//! A view over real tables compared with the merge cursor over them.

use super::{model::with_segments, *};
use crate::{
    cursor::merge::MergeCursor,
    options::Compression,
    table::{
        cursor::TableCursor,
        filter_plan::FilterPlan,
        properties::TableOrigin,
        reader::TableReader,
        writer::{TableOptions, TableWriter},
    },
    view::run::TableRun,
};

pub(super) fn write_table(vfs: &Arc<dyn Vfs>, number: u64, compression: Compression, entries: &[Entry]) {
    let options = TableOptions {
        block_bytes: 4096,
        compression,
        filters: FilterPlan::given(Vec::new()),
        filter_seed: 9,
        origin: TableOrigin::default(),
        is_direct: false,
        listener: None,
    };
    let mut writer =
        TableWriter::create(&Folder::open(&**vfs, Path::new("/db")).unwrap(), number, options).unwrap();
    for (key, sequence, kind, value) in entries {
        writer.add(key, *sequence, *kind, value).unwrap();
    }
    writer.finish().unwrap();
}

/// The runs, each in one to three tables, and their environment.
fn table_runs(
    compression: Compression,
    access: Access,
    runs: &[MemoryRun],
) -> (Vec<Vec<Arc<TableReader>>>, Arc<TableEnvironment>) {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    let environment = Arc::new(environment(Arc::clone(&vfs), access));
    let mut number = 0;
    let mut tables = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let parts = run.entries.chunks(run.entries.len().div_ceil(1 + place % 3));
        let open = |entries: &[Entry]| {
            number += 1;
            write_table(&vfs, number, compression, entries);
            TableReader::open(&environment, number, None).unwrap()
        };
        tables.push(parts.map(open).collect());
    }
    (tables, environment)
}

fn merge(runs: &[Vec<Arc<TableReader>>]) -> MergeCursor<TableCursor> {
    MergeCursor::new(runs.iter().flatten().map(TableReader::cursor).collect())
}

#[test]
fn a_view_over_tables_returns_what_a_merge_returns() {
    let mut random = SplitMix64::new(12);
    for (compression, access) in [(Compression::None, Access::Mapped), (Compression::Lz4, Access::Buffered)] {
        let distinct: Vec<_> = (0..9_000).map(|n: u64| (n * 31 % 20_011).to_be_bytes().to_vec()).collect();
        let keys = (0..12_000).map(|_| distinct[random.index(distinct.len())].clone()).collect::<Vec<_>>();
        let runs = distribute(&mut random, 8, keys.into_iter());
        let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
        let (tables, _) = table_runs(compression, access, &runs);
        let named: Vec<_> = (1..).zip(tables.iter().cloned().map(TableRun::new)).collect();
        let mut bytes = Vec::new();
        build_view(with_segments(32), &named, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
        let view = open(&bytes).unwrap();
        let runs: Arc<[TableRun]> = named.into_iter().map(|(_, run)| run).collect();
        compare(&mut ViewCursor::new(&view, &runs).unwrap(), &mut merge(&tables), &mut random);
    }
}

fn compare(
    view: &mut ViewCursor<Arc<[TableRun]>>,
    merge: &mut MergeCursor<TableCursor>,
    random: &mut SplitMix64,
) {
    view.seek_first().unwrap();
    merge.seek_first().unwrap();
    while merge.is_valid() {
        assert_eq!(at(view), at(merge));
        view.next().unwrap();
        merge.next().unwrap();
    }
    assert!(!view.is_valid());
    for _ in 0..2_000 {
        let key = (random.next_u64() % 20_020).to_be_bytes();
        if random.index(2) == 0 {
            let sequence = [SEQUENCE_MAX, random.next_u64() % 12_000][random.index(2)];
            view.seek(&key, sequence).unwrap();
            merge.seek(&key, sequence).unwrap();
        } else {
            let kind = BoundKind::BOTH[random.index(2)];
            view.seek_for_prev(&key, kind).unwrap();
            merge.seek_for_prev(&key, kind).unwrap();
        }
        for _ in 0..random.index(6) {
            assert_eq!(at(view), at(merge));
            if !merge.is_valid() {
                break;
            }
            if random.index(2) == 0 {
                view.next().unwrap();
                merge.next().unwrap();
            } else {
                view.prev().unwrap();
                merge.prev().unwrap();
            }
        }
    }
}

#[test]
fn a_seek_in_eight_overlapping_runs_reads_about_one_block() {
    let mut random = SplitMix64::new(13);
    let runs = distribute(&mut random, 8, even_keys(&mut SplitMix64::new(14), 16_000).into_iter());
    let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
    let (tables, environment) = table_runs(Compression::None, Access::Buffered, &runs);
    let named: Vec<_> = (1..).zip(tables.into_iter().map(TableRun::new)).collect();
    let mut bytes = Vec::new();
    build_view(options(), &named, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    let runs: Arc<[TableRun]> = named.into_iter().map(|(_, run)| run).collect();
    let view = open(&bytes).unwrap();
    let used = || environment.metrics.blocks_used();
    let before = used();
    for _ in 0..300 {
        let mut cursor = ViewCursor::new(&view, &runs).unwrap();
        cursor.seek(&even_keys(&mut random, 1).remove(0), SEQUENCE_MAX).unwrap();
    }
    let blocks = used() - before;
    assert!((300..=330).contains(&blocks), "{blocks} blocks for 300 seeks");
}
