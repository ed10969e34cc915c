//! Layouts: the tiered one in a whole store, and changes between layouts.

use std::{path::Path, sync::Arc};

use tamis::{Db, Error, KeyspaceStatistics, Layout, OpenMode, Options, Runtime};
use tamis_vfs::{FaultVfs, MemVfs, Operation, OperationKind, RecordVfs, Rule, Vfs};

use crate::support::{
    FOLDER, Model, SplitMix64, change_options, check_entries, inline_options, is_deep, open_in_memory,
    open_on, small_keyspace, write_at_random,
};

const TIERED: Layout = Layout::Tiered { runs_per_level: 3, space_amplification_percent: 400 };

const PARTITIONED: Layout = Layout::Partitioned { tables_per_partition: 4 };

fn options(layout: Layout) -> Options {
    inline_options().default_keyspace(small_keyspace().layout(layout))
}

fn set_layout(db: &Db, layout: Layout) -> tamis::Result<()> {
    change_options(db, "default", |options| options.layout(layout))
}

/// Overwrites, deletes and inserts at random; flushed eight times.
fn write(db: &Db, model: &mut Model, random: &mut SplitMix64) {
    write_at_random(db, model, random, (8, 60));
}

fn run_counts(db: &Db) -> Vec<usize> {
    let keyspaces = db.statistics().keyspaces;
    let of_default = |keyspace: &&KeyspaceStatistics| keyspace.name == "default";
    let keyspace = keyspaces.iter().find(of_default).unwrap();
    keyspace.levels.iter().map(|level| level.run_count).collect()
}

fn partition_count(db: &Db) -> usize {
    let keyspaces = db.statistics().keyspaces;
    keyspaces.iter().find(|keyspace| keyspace.name == "default").unwrap().partition_count
}

#[test]
fn a_tiered_keyspace_has_several_runs_per_level_and_is_read_and_compacted() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options(TIERED)).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(5));
    let mut run_count_max = 0;
    for _ in 0..6 {
        write(&db, &mut model, &mut random);
        run_count_max = run_counts(&db).iter().skip(1).copied().max().unwrap().max(run_count_max);
        check_entries(&db, &model);
    }
    assert!(run_count_max > 1, "one run in each level, as in a leveled store");
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    assert_eq!(run_counts(&db).iter().sum::<usize>(), 1);
    check_entries(&db, &model);
    // A checkpoint and an open have the same runs and the same layout.
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    for folder in [FOLDER, "/copy"] {
        let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let db = Db::open_on(files, folder, inline_options(), Runtime::deterministic(7)).unwrap();
        assert_eq!(db.default_keyspace().options().layout, TIERED);
        check_entries(&db, &model);
        db.close().unwrap();
    }
}

/// The same writes cost a tiered store fewer bytes.
#[test]
fn a_tiered_keyspace_writes_less() {
    let written = |layout: Layout| {
        let db = open_in_memory(&MemVfs::new(), options(layout)).unwrap();
        let (mut model, mut random) = (Model::new(), SplitMix64::new(9));
        for _ in 0..12 {
            write(&db, &mut model, &mut random);
        }
        check_entries(&db, &model);
        db.statistics().compaction_bytes_written
    };
    let (leveled, tiered) = (written(Layout::Leveled), written(TIERED));
    assert!(tiered * 3 < leveled * 2, "{tiered} bytes instead of {leveled}");
}

#[test]
fn a_changed_layout_stays_and_compactions_convert_the_tables() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options(TIERED)).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(6));
    write(&db, &mut model, &mut random);
    write(&db, &mut model, &mut random);
    db.close().unwrap();
    let layouts = [
        Layout::Leveled,
        TIERED,
        PARTITIONED,
        Layout::Leveled,
        Layout::partitioned(),
        PARTITIONED,
        Layout::tiered(),
        PARTITIONED,
        TIERED,
    ];
    for layout in layouts {
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        set_layout(&db, layout).unwrap();
        assert_eq!(db.default_keyspace().options().layout, layout);
        check_entries(&db, &model);
        write(&db, &mut model, &mut random);
        db.wait_for_compactions().unwrap();
        check_entries(&db, &model);
        if layout == Layout::Leveled {
            assert!(run_counts(&db).iter().skip(1).all(|count| *count < 2), "{:?}", run_counts(&db));
        }
        if layout != PARTITIONED && layout != Layout::partitioned() {
            assert_eq!(partition_count(&db), 1, "{layout}");
        }
        if layout == PARTITIONED {
            assert!(partition_count(&db) > 2, "{layout}");
        }
        db.close().unwrap();
        // An open that names no layout keeps it.
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert_eq!(db.default_keyspace().options().layout, layout);
        db.close().unwrap();
    }
}

#[test]
fn a_change_of_layout_that_is_impossible_is_refused() {
    let vfs = MemVfs::new();
    open_in_memory(&vfs, options(TIERED)).unwrap().close().unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let refused = set_layout(&db, Layout::Tiered { runs_per_level: 1, space_amplification_percent: 300 });
    assert!(matches!(refused, Err(Error::InvalidArgument { what: "runs_per_level", .. })), "{refused:?}");
    let dropped = db.create_keyspace("dropped", small_keyspace()).unwrap();
    db.drop_keyspace("dropped").unwrap();
    let refused = dropped.set_options(small_keyspace().layout(TIERED));
    assert!(matches!(refused, Err(Error::KeyspaceDropped)), "{refused:?}");
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    let refused = set_layout(&db, Layout::Leveled);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    assert_eq!(db.default_keyspace().options().layout, TIERED);
}

/// Without `CURRENT` the layout and all runs are kept; without a manifest all entries are in one run of the default layout.
#[test]
fn a_repair_keeps_the_entries_of_several_runs_per_level() {
    for is_manifest_lost in [false, true] {
        let vfs = MemVfs::new();
        let db = open_in_memory(&vfs, options(TIERED)).unwrap();
        let (mut model, mut random) = (Model::new(), SplitMix64::new(8));
        write(&db, &mut model, &mut random);
        write(&db, &mut model, &mut random);
        let before = run_counts(&db);
        db.close().unwrap();
        let folder = Path::new(FOLDER);
        for entry in vfs.list(folder).unwrap() {
            if entry.name == "CURRENT" || is_manifest_lost && entry.name.ends_with(".manifest") {
                vfs.remove(&folder.join(&entry.name)).unwrap();
            }
        }
        Db::repair_on(Arc::new(vfs.clone()), FOLDER, &Runtime::deterministic(9)).unwrap();
        let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
        check_entries(&db, &model);
        let (layout, runs) = (db.default_keyspace().options().layout, run_counts(&db));
        if is_manifest_lost {
            assert_eq!((layout, runs.iter().sum()), (Layout::Leveled, 1_usize));
        } else {
            assert_eq!((layout, runs), (TIERED, before));
        }
    }
}

/// Power fails, or an operation fails, at every change of a file while layouts change: no entry is lost.
#[test]
fn no_failure_within_a_change_of_layout_loses_entries() {
    for (from, to) in [
        (TIERED, Layout::Leveled),
        (Layout::Leveled, TIERED),
        (Layout::Leveled, PARTITIONED),
        (PARTITIONED, Layout::Leveled),
        (PARTITIONED, TIERED),
        (TIERED, PARTITIONED),
    ] {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, options(from)).unwrap();
        let (mut model, mut random) = (Model::new(), SplitMix64::new(7));
        write(&db, &mut model, &mut random);
        write(&db, &mut model, &mut random);
        db.close().unwrap();
        let change = |vfs: Arc<dyn Vfs>| -> tamis::Result<()> {
            let db = open_on(vfs, inline_options())?;
            set_layout(&db, to)?;
            db.wait_for_compactions()?;
            db.compact_range(&db.default_keyspace(), ..)?;
            db.close()
        };
        let copy = |memory: &MemVfs| memory.crash_clone(0);
        let record = RecordVfs::new(Arc::new(copy(&memory)));
        change(Arc::new(record.clone())).unwrap();
        let kinds = [
            OperationKind::Create,
            OperationKind::Append,
            OperationKind::Sync,
            OperationKind::SyncDir,
            OperationKind::Rename,
            OperationKind::Remove,
        ];
        let is_change = |operation: &&Operation| kinds.contains(&operation.kind);
        let count = record.operations().iter().filter(is_change).count() as u64;
        assert!(count > 20, "{count}");
        for nth in (0..count).step_by(if is_deep() { 1 } else { 3 }) {
            let files = copy(&memory);
            let faults = FaultVfs::new(Arc::new(files.clone()));
            faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&kinds).nth(nth).forever());
            let _ = change(Arc::new(faults));
            for seed in 0..2 {
                check_entries(&open_in_memory(&files.crash_clone(seed), inline_options()).unwrap(), &model);
            }
        }
    }
}
