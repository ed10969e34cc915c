//! The store chooses the filters of its tables from the queries that it samples, and replaces those that no longer suit them.

use std::{sync::Arc, time::Duration};

use tamis::{
    Db, Error, EventListener, Filters, Keyspace, KeyspaceOptions, Options, Runtime, Views, WriteBatch,
};
use tamis_vfs::MemVfs;
use tamis_workload::SplitMix64;

use crate::support::{
    EventLog, FOLDER, filter_designs,
    filter_store::{
        KEY_COUNT, absent_points, assert_suits_close_ranges, blocks, choose_for_uniform_ranges, close_ranges,
        design, filled_on, filled_with, filled_with_clock, key, open_with_filters, run_background_jobs,
        uniform_ranges,
    },
    open_in_memory, table_filters,
};

/// A store of random numbers in one table, whose filters may have 16 bits per key.
fn filled(vfs: &MemVfs) -> (Db, Keyspace) {
    let db = open_in_memory(vfs, Options::default().workers(0)).unwrap();
    let options = KeyspaceOptions::default().filters(Filters::auto(16.0));
    let keyspace = db.create_keyspace("k", options).unwrap();
    let mut batch = WriteBatch::new();
    for number in 0..KEY_COUNT {
        batch.put(&keyspace, key(number), b"value").unwrap();
    }
    db.write(batch).unwrap();
    db.flush().unwrap();
    (db, keyspace)
}

#[test]
fn a_shift_of_the_queries_changes_the_filters() {
    let vfs = MemVfs::new();
    let (db, keyspace) = filled(&vfs);
    absent_points(&keyspace, 0..2_000);
    db.check_filters(&keyspace).unwrap();
    let read = blocks(&db, || absent_points(&keyspace, 0..2_000));
    let of_points = design(&db);
    assert!(read < 40, "{read} blocks for 2,000 absent keys: {of_points}");

    // More than the sample keeps.
    close_ranges(&keyspace, 200_000);
    let replaced = db.check_filters(&keyspace).unwrap();
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    let of_ranges = design(&db);
    assert!(replaced == 1 && of_points != of_ranges, "{of_points}, then {of_ranges}");
    assert!(read < 100, "{read} blocks for 2,000 ranges without a key: {of_ranges}");
    assert_eq!(db.check_filters(&keyspace).unwrap(), 0, "the filters suit the queries");
    assert!(db.verify().unwrap().is_sound());
}

/// Far more queries of the first kind are sampled than of the second when the background reads the counters. After a tenth of the
/// queries the filters suit the new ones as well as if they had been built for them.
#[test]
fn a_shift_of_the_queries_is_over_after_a_tenth_of_them() {
    let (db, keyspace, clock) = filled_with_clock();
    choose_for_uniform_ranges(&db, &keyspace, &clock);
    let of_uniform = design(&db);
    let replaced = || db.statistics().filters_replaced;
    let before = replaced();
    for _ in 0..10 {
        close_ranges(&keyspace, 1_000);
        run_background_jobs(&db, &clock);
    }
    assert!(replaced() > before, "{of_uniform}, then {}", design(&db));
    assert_suits_close_ranges(&db, &keyspace);
}

#[test]
fn tables_with_filters_for_points_get_range_filters_once_ranges_have_paid() {
    let (db, keyspace, clock) = filled_with_clock();
    absent_points(&keyspace, 0..5_000);
    db.check_filters(&keyspace).unwrap();
    let of_points = design(&db);
    let read = blocks(&db, || uniform_ranges(&keyspace, 1_000, 5));
    assert!(read > 900, "{read} blocks for 1,000 ranges, {of_points}");

    uniform_ranges(&keyspace, 5_000, 6);
    run_background_jobs(&db, &clock);
    let read = blocks(&db, || uniform_ranges(&keyspace, 2_000, 7));
    let of_ranges = design(&db);
    assert!(read <= 40, "{read} blocks for 2,000 ranges: {of_points}, then {of_ranges}");
    assert_eq!(db.statistics().filters_replaced, 2);
}

/// A store without a sample has filters for points and short ranges. Once prefixes have read as many blocks for nothing as a check takes time,
/// it has others: the reads and the check take at most twice the time of the best plan.
#[test]
fn the_empty_prefixes_of_a_new_store_choose_filters_for_prefixes() {
    let (db, keyspace, clock) = filled_with_clock();
    let mut random = SplitMix64::new(11);
    let mut prefixes = |count: u64| {
        for _ in 0..count {
            let prefix = random.next_u64().to_be_bytes();
            assert!(keyspace.prefix(&prefix[..4]).count() <= 1);
        }
    };
    let before = design(&db);
    let first = blocks(&db, || {
        while db.statistics().filters_replaced == 0 {
            prefixes(1_000);
            run_background_jobs(&db, &clock);
        }
    });
    let rest = blocks(&db, || prefixes(10_000));
    let what = format!("{first} blocks, then {rest}: {before}, then {}", design(&db));
    assert!(first <= PRICE_IN_BLOCKS + 2_000, "{what}");
    assert!(rest <= 10_000 / 50, "{what}");
}

/// A table with fewer sampled queries than a full sample has got filters for them.
#[test]
fn a_few_sampled_queries_choose_the_filters_of_a_small_store() {
    let (db, keyspace, _clock) =
        filled_with(KeyspaceOptions::default().memtable_bytes(128 << 10).table_bytes(128 << 10));
    close_ranges(&keyspace, 400);
    let before = blocks(&db, || close_ranges(&keyspace, 1_000));
    // Some tens of queries for each table.
    db.check_filters(&keyspace).unwrap();
    let after = blocks(&db, || close_ranges(&keyspace, 1_000));
    assert!(after <= 40, "{after} blocks for 1,000 ranges without a key, {before} before: {}", design(&db));
}

#[test]
fn open_seeks_without_effect_make_filters_that_were_chosen_without_them_due() {
    let without_views = KeyspaceOptions::default().views(Views::Off);
    let (db, keyspace, clock) = filled_with(without_views);
    absent_points(&keyspace, 0..5_000);
    // Another run over the same range.
    for number in 2 * KEY_COUNT..3 * KEY_COUNT {
        keyspace.put(key(number), [7; 60]).unwrap();
    }
    db.flush().unwrap();
    absent_points(&keyspace, 0..5_000);
    db.check_filters(&keyspace).unwrap();
    run_background_jobs(&db, &clock);
    let seek = |count: u64| {
        for number in 0..count {
            assert!(keyspace.range(key(number / 2)..).next().is_some());
        }
        run_background_jobs(&db, &clock);
        db.statistics().filters_checked
    };
    let checked = db.statistics().filters_checked;
    assert_eq!(seek(500), checked, "too few seeks");
    let after = seek(12_000);
    assert!(after > checked, "each table was read by six thousand seeks that another one answered");
    assert_eq!(seek(12_000), after, "the check has priced seeks");
}

#[test]
fn filters_that_were_chosen_without_a_sample_are_replaced_in_the_background() {
    let log = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
    let options = Options::default().workers(1).listener(listener);
    let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, Runtime::system()).unwrap();
    let keyspace = db.default_keyspace();
    for number in 0..KEY_COUNT {
        db.put(key(number), b"value").unwrap();
    }
    db.flush().unwrap();
    close_ranges(&keyspace, 5_000);
    let is_replaced = (0..15_000).any(|_| {
        close_ranges(&keyspace, 2_000);
        log.wait_until(Duration::from_millis(20), || db.statistics().filters_replaced > 0)
    });
    assert!(is_replaced, "no other filters");
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read < 200, "{read} blocks for 2,000 ranges without a key");
}

#[test]
fn the_chosen_filters_are_stored_in_the_table_and_shown() {
    let vfs = MemVfs::new();
    let (db, keyspace) = filled(&vfs);
    close_ranges(&keyspace, 2_000);
    db.check_filters(&keyspace).unwrap();
    close_ranges(&keyspace, 10);
    let before = design(&db);
    assert!(!before.is_empty());
    drop(keyspace);
    db.close().unwrap();
    let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
    let of_levels = |db: &Db| {
        let found = db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == "k");
        found.unwrap().filters
    };
    assert!(of_levels(&db).is_empty(), "no table is open");
    db.open_tables(&db.keyspace("k").unwrap()).unwrap();
    assert_eq!(design(&db), before);
    let [filters] = &of_levels(&db)[..] else { panic!("one table") };
    assert_eq!((filters.table_count, filters.entry_count), (1, KEY_COUNT));
    assert!(!filters.filters.is_empty() && filters.bytes > 0 && before.starts_with(&filters.filters[..6]));
}

#[test]
fn samples_of_hits_of_one_query_and_of_long_bounds_give_filters_and_right_answers() {
    for sample in 0..3 {
        let vfs = MemVfs::new();
        let (db, keyspace) = filled(&vfs);
        for number in 0..2_000 {
            match sample {
                0 => assert!(keyspace.get(key(number)).unwrap().is_some()),
                1 => assert_eq!(keyspace.range([1_u8; 8]..=[1; 8]).count(), 0),
                _ => assert_eq!(keyspace.range(vec![7; 60_000]..=vec![7; 64_000]).count(), 0),
            }
        }
        db.check_filters(&keyspace).unwrap();
        for number in 0..KEY_COUNT {
            assert!(keyspace.get(key(number)).unwrap().is_some(), "{sample}: {number}");
        }
        assert_eq!(keyspace.range(..).count() as u64, KEY_COUNT);
    }
}

/// Answers every kind of query for the numbers that a store has, and their neighbours.
fn check_answers(db: &Db, keyspace: &Keyspace, count: u64) {
    for number in 0..count.min(500) {
        let stored = u64::from_be_bytes(key(number));
        assert!(keyspace.get(key(number)).unwrap().is_some());
        assert_eq!(keyspace.range(key(number)..=key(number)).count(), 1);
        assert_eq!(keyspace.prefix(&key(number)[..7]).count(), 1);
        assert_eq!(keyspace.range(key(number)..).next().unwrap().unwrap().0.as_ref(), key(number));
        let next = stored.saturating_add(1).to_be_bytes();
        assert_eq!(keyspace.range(next..=stored.saturating_add(3).to_be_bytes()).count(), 0);
    }
    assert_eq!(keyspace.range(..).count() as u64, count);
    assert!(db.verify().unwrap().is_sound());
}

/// Filters take no more than the budget, except for the bytes of their headers.
#[test]
fn budgets_below_any_filter_and_tiny_tables_give_right_answers_within_the_budget() {
    let per_key = [(0.01, 3_000), (0.5, 3_000), (1.5, 3_000), (16.0, 1), (16.0, 2), (0.01, 1), (64.0, 1)];
    let per_key =
        per_key.map(|(bits, count)| (Filters::auto(bits), f64::from(bits) / 8.0 * count as f64, count));
    let in_all = [(1, 3_000), (500, 3_000), (1, 1), (u64::MAX, 1)];
    let in_all = in_all.map(|(bytes, count)| (Filters::auto_bytes(bytes), bytes as f64, count));
    for (filters, budget, count) in per_key.into_iter().chain(in_all) {
        let vfs = MemVfs::new();
        let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
        let options = KeyspaceOptions::default().filters(filters);
        let keyspace = db.create_keyspace("k", options).unwrap();
        for number in 0..count {
            keyspace.put(key(number), b"value").unwrap();
        }
        db.flush().unwrap();
        let check = |db: &Db, keyspace: &Keyspace| {
            check_answers(db, keyspace, count);
            db.open_tables(keyspace).unwrap();
            let statistics = db.statistics();
            let found = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap();
            let bytes: u64 = found.filters.iter().map(|filters| filters.bytes).sum();
            let designs = filter_designs(db, 1);
            let what = format!("{bytes} bytes of {budget} for {count} keys: {designs:?}");
            assert!(bytes as f64 <= budget + HEADER_BYTES * designs.len() as f64, "{what}");
            assert_eq!((statistics.corrupt_filters, statistics.jobs_failed), (0, 0), "{what}");
        };
        check(&db, &keyspace);
        absent_points(&keyspace, 0..2_000);
        close_ranges(&keyspace, 0);
        db.check_filters(&keyspace).unwrap();
        check(&db, &keyspace);
        drop(keyspace);
        db.close().unwrap();
        let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
        check(&db, &db.keyspace("k").unwrap());
    }
}

/// A check of the keys of this store is expected to take as long as so many reads of a mapped block.
const PRICE_IN_BLOCKS: u64 = KEY_COUNT / 4;

/// The bytes that a filter may have beyond its budget (128, `docs/format/filter.md`), and those before its place in the file.
const HEADER_BYTES: f64 = 192.0;

/// Almost all queries find a key, and no filter can save their reads.
#[test]
fn a_check_removes_filters_that_are_not_worth_their_memory() {
    let vfs = MemVfs::new();
    let (db, keyspace) = filled(&vfs);
    let mut sorted: Vec<[u8; 8]> = (0..KEY_COUNT).map(key).collect();
    sorted.sort_unstable();
    let mut random = SplitMix64::new(3);
    for _ in 0..40_000 {
        let found = sorted[random.below(KEY_COUNT) as usize];
        assert_eq!(keyspace.range(found..=found).count(), 1);
    }
    // As many queries without a key as a choice needs.
    for number in 0..150_u64 {
        let prefix = key(KEY_COUNT + number);
        assert_eq!(keyspace.prefix(&prefix[..7]).count(), 0);
    }
    let before = design(&db);
    assert!(!before.is_empty());
    assert_eq!(db.check_filters(&keyspace).unwrap(), 1);
    check_answers(&db, &keyspace, KEY_COUNT);
    let of_keyspace = |db: &Db| {
        let found = db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == "k").unwrap();
        (filter_designs(db, 1).len(), found.filters.iter().map(|filters| filters.bytes).sum::<u64>())
    };
    assert_eq!(of_keyspace(&db), (0, 0), "{before}");
    assert_eq!(db.check_filters(&keyspace).unwrap(), 0, "none are needed now either");
    // Also after an open.
    drop(keyspace);
    db.close().unwrap();
    let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    check_answers(&db, &keyspace, KEY_COUNT);
    assert_eq!(of_keyspace(&db), (0, 0));
    // Other queries bring filters back.
    close_ranges(&keyspace, 100_000);
    assert_eq!(db.check_filters(&keyspace).unwrap(), 1);
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read < 200, "{read} blocks for 2,000 ranges without a key: {}", design(&db));
    assert_eq!(db.statistics().corrupt_filters, 0);
}

#[test]
fn a_budget_in_bytes_is_kept_and_stored_with_the_keyspace() {
    const BYTES: u64 = 20_000;
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
    let refused = KeyspaceOptions::default().filters(Filters::auto_bytes(0));
    let error = db.create_keyspace("refused", refused).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { what: "filters", .. }), "{error:?}");
    let options = KeyspaceOptions::default().filters(Filters::auto_bytes(BYTES));
    let keyspace = db.create_keyspace("k", options).unwrap();
    let flush = |db: &Db, keyspace: &Keyspace, numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| keyspace.put(key(number), b"value").unwrap());
        db.flush().unwrap();
    };
    let bytes = |db: &Db, keyspace: &Keyspace| -> u64 {
        db.open_tables(keyspace).unwrap();
        let found = db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == "k").unwrap();
        found.filters.iter().map(|filters| filters.bytes).sum()
    };
    flush(&db, &keyspace, 0..10_000);
    let of_first = bytes(&db, &keyspace);
    assert!((12_000..=BYTES + 500).contains(&of_first), "{of_first}");
    drop(keyspace);
    db.close().unwrap();
    let db = open_in_memory(&vfs, Options::default().workers(0)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(bytes(&db, &keyspace), of_first);
    // Three times the keys: a third of the bits for each, once the first table is written again.
    flush(&db, &keyspace, 10_000..30_000);
    db.compact_range(&keyspace, ..).unwrap();
    let of_all = bytes(&db, &keyspace);
    assert!(of_all <= BYTES + 500, "{of_all} bytes");
    check_answers(&db, &keyspace, 30_000);
}

/// Background checks wait for the clock; all else does not depend on it.
#[test]
fn a_stopped_clock_delays_only_background_checks() {
    let (db, keyspace, _clock) = filled_with_clock();
    let before = db.statistics().filters_checked;
    for round in 0..20 {
        close_ranges(&keyspace, 5_000);
        db.put(key(1_000_000 + round), "unrelated").unwrap();
        db.flush().unwrap();
    }
    assert!(db.statistics().filters_checked <= before + 1, "one check at the time of the first read");
    assert_eq!(db.check_filters(&keyspace).unwrap(), 1);
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read < 100, "{read} blocks for 2,000 ranges without a key");
    check_answers(&db, &keyspace, KEY_COUNT);
}

/// Disabled and enabled again at opens, and replaced by filters that hardly reject anything.
#[test]
fn filters_that_are_disabled_later_change_no_answer() {
    let vfs = MemVfs::new();
    let (db, keyspace, clock) = filled_on(&vfs, KeyspaceOptions::default());
    let before = blocks(&db, || close_ranges(&keyspace, 5_000));
    let mut open = Some((db, keyspace, clock));
    for filters in [Filters::none(), Filters::default(), Filters::none(), Filters::default()] {
        let (db, keyspace, _) = open.take().unwrap();
        drop(keyspace);
        db.close().unwrap();
        let (db, keyspace, clock) = open_with_filters(&vfs, filters.clone());
        for is_rewritten in [false, true] {
            if is_rewritten {
                keyspace.delete(key(KEY_COUNT)).unwrap();
                db.compact_range(&keyspace, ..).unwrap();
                check_answers(&db, &keyspace, KEY_COUNT);
                assert_eq!(design(&db).is_empty(), filters == Filters::none(), "{}", design(&db));
            }
            close_ranges(&keyspace, 5_000);
            absent_points(&keyspace, 0..2_000);
            run_background_jobs(&db, &clock);
            check_answers(&db, &keyspace, KEY_COUNT);
        }
        open = Some((db, keyspace, clock));
    }
    let (db, keyspace, clock) = open.take().unwrap();
    for row in ["blocked-bloom@0.1", "surf-base", "blocked-bloom@0.1"] {
        db.rebuild_filters(&keyspace, &table_filters(row)).unwrap();
        close_ranges(&keyspace, 5_000);
        absent_points(&keyspace, 0..2_000);
        run_background_jobs(&db, &clock);
        check_answers(&db, &keyspace, KEY_COUNT);
    }
    db.check_filters(&keyspace).unwrap();
    assert!(db.statistics().filters_replaced > 0, "filters without effect are replaced: {}", design(&db));
    let after = blocks(&db, || close_ranges(&keyspace, 5_000));
    assert!(after <= before.max(250), "{after} blocks, {before} with the first filters: {}", design(&db));
    // The filters with which the tables were written.
    db.rebuild_filters(&keyspace, &[]).unwrap();
    check_answers(&db, &keyspace, KEY_COUNT);
}

#[test]
fn a_store_that_reopens_without_filters_in_memory_or_samples_gives_the_same_answers() {
    let vfs = MemVfs::new();
    let (db, keyspace) = filled(&vfs);
    close_ranges(&keyspace, 2_000);
    db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@0.1")).unwrap();
    drop(keyspace);
    db.close().unwrap();
    for (cache_pinned_percent, sample_queries) in [(0, true), (20, false), (0, false), (20, true)] {
        let options = Options::default()
            .workers(0)
            .cache_pinned_percent(cache_pinned_percent)
            .sample_queries(sample_queries);
        let db = open_in_memory(&vfs, options).unwrap();
        // The keyspace keeps its options.
        let other = KeyspaceOptions::default().filters(Filters::none());
        let refused = db.get_or_create_keyspace("k", other);
        assert!(matches!(refused, Err(Error::KeyspaceOption { option: "filters", .. })), "{refused:?}");
        let keyspace = db.get_or_create_keyspace("k", KeyspaceOptions::default()).unwrap();
        close_ranges(&keyspace, 2_000);
        let replaced = db.check_filters(&keyspace).unwrap();
        println!(
            "pinned {cache_pinned_percent} %, sample {sample_queries}: {replaced} replaced, {}",
            design(&db)
        );
        check_answers(&db, &keyspace, KEY_COUNT);
        let others = if sample_queries { Vec::new() } else { table_filters("surf@18") };
        db.rebuild_filters(&keyspace, &others).unwrap();
        check_answers(&db, &keyspace, KEY_COUNT);
        drop(keyspace);
        db.close().unwrap();
    }
}
