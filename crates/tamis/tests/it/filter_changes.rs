//! Changes of the filters of an existing keyspace, at open.

use std::{cell::Cell, sync::Arc};

use tamis::{Db, Error, Filters, Keyspace, KeyspaceOptions, OpenMode, Options, TableFilter};
use tamis_vfs::{FaultVfs, MemVfs, Operation, RecordVfs, Rule, Vfs};

use crate::support::{
    CHANGING_FILES, Model, SplitMix64, change_options, check_entries,
    filter_store::{
        absent_points, blocks, design, filled_on, key, open_with_filters, run_background_jobs, uniform_ranges,
    },
    filters, inline_options, is_deep, open_in_memory, open_on, small_keyspace, write_at_random,
};

const AUTOMATIC: Filters = Filters::auto(16.0);

/// A closed store of one table with these filters.
fn stored(filters: Filters) -> MemVfs {
    let vfs = MemVfs::new();
    let (db, keyspace, _) = filled_on(&vfs, KeyspaceOptions::default().filters(filters));
    drop(keyspace);
    db.close().unwrap();
    vfs
}

fn filter_bytes(db: &Db, keyspace: &Keyspace) -> u64 {
    db.open_tables(keyspace).unwrap();
    let found = db.statistics().keyspaces.into_iter().find(|found| found.name == keyspace.name()).unwrap();
    found.filters.iter().map(|filters| filters.bytes).sum()
}

/// Merges all tables of the store into one run.
fn rewrite(db: &Db, keyspace: &Keyspace) {
    keyspace.put(key(0), "another").unwrap();
    db.compact_range(keyspace, ..).unwrap();
}

#[test]
fn tables_with_bloom_filters_get_automatic_filters_by_checks() {
    for is_background in [false, true] {
        let vfs = stored(Filters::bits(10.0));
        let (db, keyspace, clock) = open_with_filters(&vfs, AUTOMATIC);
        let read = blocks(&db, || uniform_ranges(&keyspace, 6_000, 5));
        assert!(read > 5_400, "{read} blocks for 6,000 ranges: the table keeps its filter until a check");
        assert!(design(&db).starts_with("blocked-bloom"), "{}", design(&db));
        if is_background {
            run_background_jobs(&db, &clock);
        } else {
            assert_eq!(db.check_filters(&keyspace).unwrap(), 1);
        }
        let read = blocks(&db, || uniform_ranges(&keyspace, 2_000, 7));
        assert!(read <= 4, "{read} blocks for 2,000 empty ranges: {}", design(&db));
        let after = design(&db);
        drop(keyspace);
        db.close().unwrap();
        // An open that names no filters keeps them.
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        assert_eq!(keyspace.options().filters, AUTOMATIC);
        db.open_tables(&keyspace).unwrap();
        assert_eq!(design(&db), after);
    }
}

#[test]
fn tables_without_filters_get_automatic_filters_after_absent_points() {
    let vfs = stored(Filters::none());
    let (db, keyspace, clock) = open_with_filters(&vfs, AUTOMATIC);
    let read = blocks(&db, || absent_points(&keyspace, 0..6_000));
    assert!(read > 5_400, "{read} blocks for 6,000 absent keys: the table has no filter");
    run_background_jobs(&db, &clock);
    let read = blocks(&db, || absent_points(&keyspace, 6_000..8_000));
    assert!(read <= 40, "{read} blocks for 2,000 absent keys: {}", design(&db));
}

/// Reads after which automatic filters are checked.
#[test]
fn filters_are_checked_only_while_they_are_automatic() {
    for after in [Filters::bits(12.0), Filters::none(), AUTOMATIC] {
        let vfs = stored(AUTOMATIC);
        let (db, keyspace, clock) = open_with_filters(&vfs, after.clone());
        let is_automatic = after == AUTOMATIC;
        db.open_tables(&keyspace).unwrap();
        let before = design(&db);
        db.rebuild_filters(&keyspace, &["blocked-bloom@1".parse().unwrap()]).unwrap();
        uniform_ranges(&keyspace, 6_000, 5);
        run_background_jobs(&db, &clock);
        assert_eq!(db.statistics().filters_checked, u64::from(is_automatic), "{after:?}");
        db.rebuild_filters(&keyspace, &[]).unwrap();
        if !is_automatic {
            assert_eq!(db.check_filters(&keyspace).unwrap(), 0);
            // The filters with which the table was written are still probed.
            let read = blocks(&db, || absent_points(&keyspace, 0..2_000));
            assert!(read <= 40, "{read} blocks for 2,000 absent keys");
            assert_eq!(design(&db), before);
        }
        rewrite(&db, &keyspace);
        db.open_tables(&keyspace).unwrap();
        let design = design(&db);
        match &after {
            _ if is_automatic => assert!(!design.is_empty()),
            filters if *filters == Filters::none() => {
                assert_eq!(design, "", "a rewritten table has no filters")
            }
            _ => assert!(design.starts_with("blocked-bloom") && !design.contains('+'), "{design}"),
        }
    }
}

#[test]
fn the_budget_follows_the_change() {
    const BYTES: u64 = 10_000;
    let vfs = stored(AUTOMATIC);
    let (db, keyspace, _) = open_with_filters(&vfs, Filters::auto_bytes(BYTES));
    let before = filter_bytes(&db, &keyspace);
    rewrite(&db, &keyspace);
    let after = filter_bytes(&db, &keyspace);
    assert!(before > 2 * BYTES && after <= BYTES + 500, "{before} bytes, then {after}");
}

fn set_filters(db: &Db, filters: &Filters) -> tamis::Result<()> {
    change_options(db, "default", |options| options.filters(filters.clone()))
}

/// A store whose default keyspace has these filters.
fn options(filters: Filters) -> Options {
    inline_options().default_keyspace(small_keyspace().filters(filters))
}

/// Overwrites, deletes and inserts at random; flushed four times.
fn write(db: &Db, model: &mut Model, random: &mut SplitMix64) {
    write_at_random(db, model, random, (4, 100));
}

/// Compares all entries, and ranges of a few keys, with the model.
fn check(db: &Db, model: &Model) {
    check_entries(db, model);
    for lower in (0..1_500_u64).step_by(7) {
        let (lower, upper) = (lower.to_be_bytes().to_vec(), (lower + 3).to_be_bytes().to_vec());
        let found = db.range(lower.clone()..=upper.clone()).map(|entry| entry.unwrap().0.to_vec());
        assert!(found.eq(model.range(lower..=upper).map(|(key, _)| key.clone())));
    }
}

#[test]
fn reads_agree_with_a_map_while_the_filters_of_a_keyspace_change() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options(Filters::bits(10.0))).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(6));
    write(&db, &mut model, &mut random);
    db.close().unwrap();
    let changes = [
        AUTOMATIC,
        Filters::none(),
        AUTOMATIC,
        filters("surf@18"),
        Filters::none(),
        Filters::auto_bytes(2_000),
        Filters::per_level([vec![TableFilter::bits(10.0)], vec!["elastic@12".parse().unwrap()]]),
        Filters::auto(0.5),
        Filters::per_level([Vec::new(), vec![TableFilter::bits(10.0)]]),
        AUTOMATIC,
    ];
    for filters in changes {
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        set_filters(&db, &filters).unwrap();
        assert_eq!(db.default_keyspace().options().filters, filters);
        check(&db, &model);
        write(&db, &mut model, &mut random);
        check(&db, &model);
        db.wait_for_compactions().unwrap();
        db.check_filters(&db.default_keyspace()).unwrap();
        check(&db, &model);
        db.close().unwrap();
        // An open that names no filters keeps them.
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert_eq!(db.default_keyspace().options().filters, filters);
        check(&db, &model);
        db.close().unwrap();
    }
}

#[test]
fn a_change_of_filters_that_is_impossible_is_refused() {
    let vfs = MemVfs::new();
    open_in_memory(&vfs, options(Filters::bits(10.0))).unwrap().close().unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    for bad in [Filters::auto(0.0), Filters::auto(f32::NAN), Filters::auto_bytes(0), Filters::bits(65.0)] {
        let refused = set_filters(&db, &bad);
        assert!(matches!(refused, Err(Error::InvalidArgument { what: "filters", .. })), "{refused:?}");
    }
    assert_eq!(db.default_keyspace().options().filters, Filters::bits(10.0));
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    let refused = set_filters(&db, &AUTOMATIC);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    assert_eq!(db.default_keyspace().options().filters, Filters::bits(10.0));
}

/// Power fails, or an operation fails, at every change of a file while filters change: no entry is lost, and after a call that succeeded
/// the filters stay changed.
#[test]
fn no_failure_within_a_change_of_filters_loses_the_change_or_entries() {
    for (from, to) in
        [(Filters::bits(10.0), AUTOMATIC), (AUTOMATIC, Filters::none()), (Filters::none(), AUTOMATIC)]
    {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, options(from.clone())).unwrap();
        let (mut model, mut random) = (Model::new(), SplitMix64::new(7));
        write(&db, &mut model, &mut random);
        db.close().unwrap();
        let is_changed = Cell::new(false);
        let change = |vfs: Arc<dyn Vfs>| -> tamis::Result<()> {
            is_changed.set(false);
            let db = open_on(vfs, inline_options())?;
            set_filters(&db, &to)?;
            is_changed.set(true);
            db.check_filters(&db.default_keyspace())?;
            db.put(0_u64.to_be_bytes(), [])?;
            db.compact_range(&db.default_keyspace(), ..)?;
            db.close()
        };
        let record = RecordVfs::new(Arc::new(memory.crash_clone(0)));
        change(Arc::new(record.clone())).unwrap();
        let is_change = |operation: &&Operation| CHANGING_FILES.contains(&operation.kind);
        let count = record.operations().iter().filter(is_change).count() as u64;
        assert!(count > 20, "{count}");
        let mut outcomes = [0, 0];
        for nth in (0..count).step_by(if is_deep() { 1 } else { 3 }) {
            let files = memory.crash_clone(0);
            let faults = FaultVfs::new(Arc::new(files.clone()));
            faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(CHANGING_FILES).nth(nth).forever());
            let _ = change(Arc::new(faults));
            for seed in 0..2 {
                let db = open_in_memory(&files.crash_clone(seed), inline_options()).unwrap();
                let found = db.default_keyspace().options().filters.clone();
                assert!(found == to || found == from && !is_changed.get(), "{found:?} after operation {nth}");
                outcomes[usize::from(found == to)] += 1;
                let written = db.get(0_u64.to_be_bytes()).unwrap().is_some_and(|value| value.is_empty());
                let mut expected = model.clone();
                if written {
                    expected.insert(vec![0; 8], Vec::new());
                }
                check(&db, &expected);
            }
        }
        assert!(outcomes.iter().all(|count| *count > 1), "{outcomes:?}");
    }
}
