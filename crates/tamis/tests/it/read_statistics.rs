//! Reads are counted by the level of the tables and by the kind of the query.

use std::sync::Arc;

use tamis::{Access, Db, Filters, KeyspaceOptions, LevelReads, ReadStatistics, Runtime, TableFilter};
use tamis_vfs::MemVfs;

use crate::support::{FOLDER, inline_options, open_in_memory};

const KEY_COUNT: u32 = 4_000;

fn key(number: u32) -> [u8; 4] {
    // Gaps of 16, so that ranges between two keys exist.
    (number << 4).to_be_bytes()
}

/// A store with one run in a deep level, and one in L0.
fn filled(access: Access) -> Db {
    let filters = Filters::each(["blocked-bloom@12".parse().unwrap(), "surf-real:bits=4".parse().unwrap()]);
    let options =
        inline_options().table_access(access).default_keyspace(KeyspaceOptions::default().filters(filters));
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    for parity in [0, 1] {
        for number in (parity..KEY_COUNT).step_by(2) {
            db.put(key(number), [7; 60]).unwrap();
        }
        db.flush().unwrap();
        if parity == 0 {
            db.compact_range(&db.default_keyspace(), ..=[255_u8; 4]).unwrap();
        }
    }
    db
}

/// The reads of a level by kind, since `before`.
fn since(db: &Db, before: &[LevelReads], level: usize) -> [ReadStatistics; 4] {
    let kinds = |levels: &[LevelReads]| {
        let level = levels.get(level).copied().unwrap_or_default();
        [level.points, level.ranges, level.prefixes, level.seeks]
    };
    let (before, after) = (kinds(before), kinds(&db.statistics().reads));
    std::array::from_fn(|kind| {
        let mut reads = after[kind];
        reads.checked -= before[kind].checked;
        reads.rejected -= before[kind].rejected;
        reads.true_positives -= before[kind].true_positives;
        reads.false_positives -= before[kind].false_positives;
        reads.blocks_read -= before[kind].blocks_read;
        reads.cache_hits -= before[kind].cache_hits;
        reads
    })
}

#[test]
fn each_level_and_kind_of_query_has_counters() {
    for access in [Access::Mapped, Access::Buffered] {
        let db = filled(access);
        let levels = &db.statistics().keyspaces[0].levels;
        let deep = levels.iter().rposition(|level| level.table_count > 0).unwrap();
        assert!(deep > 0 && levels[0].table_count == 1);
        let all = |before: &[LevelReads]| [0, deep].map(|level| since(&db, before, level));

        // Keys of the deep level: the filters of L0 reject them.
        let before = db.statistics().reads;
        for number in (2..102).step_by(2) {
            assert!(db.get(key(number)).unwrap().is_some());
        }
        let [[top, ..], [below, others @ ..]] = all(&before);
        assert_eq!((top.checked, top.true_positives, below.checked, below.true_positives), (50, 0, 50, 50));
        assert_eq!(top.rejected + top.false_positives, 50);
        assert_eq!(
            (top.blocks(), below.blocks()),
            (top.false_positives, 50),
            "a block for each admitted key"
        );
        assert_eq!(others, [ReadStatistics::default(); 3]);

        // Ranges and prefixes between two keys.
        let before = db.statistics().reads;
        for number in 500..550 {
            let [.., last] = key(number);
            let lower = [&key(number)[..3], &[last + 5]].concat();
            let upper = [&key(number)[..3], &[last + 9]].concat();
            assert_eq!(db.range(lower.clone()..=upper).count(), 0);
            assert_eq!(db.prefix(&lower).count(), 0);
        }
        for [points, ranges, prefixes, seeks] in all(&before) {
            assert_eq!((points, seeks), Default::default());
            for reads in [ranges, prefixes] {
                assert_eq!((reads.checked, reads.true_positives), (50, 0));
                assert_eq!(
                    (reads.rejected + reads.false_positives, reads.blocks() >= reads.false_positives),
                    (50, true)
                );
            }
        }

        // Open scans from keys of the deep level: the filter of L0 names a later key, so that its table is not read.
        let before = db.statistics().reads;
        for number in (1_002..1_102).step_by(2) {
            assert!(db.range(key(number)..).next().is_some());
        }
        let [[points, ranges, prefixes, top], [.., below]] = all(&before);
        assert_eq!([points, ranges, prefixes], [ReadStatistics::default(); 3]);
        assert_eq!((top.checked, below.checked, below.true_positives), (50, 50, 50));
        assert!(
            top.false_positives <= 10 && top.true_positives == 0 && top.blocks() == top.false_positives,
            "{top:?}"
        );
        assert_eq!(below.blocks(), 50);
    }
}

/// Each kind of query alone measures how long a read of a table takes.
#[test]
fn reads_of_each_level_are_measured_by_the_clock() {
    type Query = fn(&Db, u32) -> usize;
    let queries: [Query; 3] = [
        |db, number| usize::from(db.get(key(number)).unwrap().is_some()),
        |db, number| db.range(key(number)..key(number + 1)).count(),
        |db, number| db.range(key(number)..).take(1).count(),
    ];
    for query in queries {
        let options = KeyspaceOptions::default().filters(Filters::each([TableFilter::bits(10.0)]));
        let options = inline_options().default_keyspace(options);
        let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, Runtime::system()).unwrap();
        for number in 0..KEY_COUNT {
            db.put(key(number), [7; 60]).unwrap();
        }
        db.flush().unwrap();
        let measured = || db.statistics().reads.first().map_or(0, |level| level.read_nanoseconds);
        assert_eq!(measured(), 0);
        for number in 1..201 {
            assert_eq!(query(&db, number), 1);
        }
        assert!((10..1_000_000_000).contains(&measured()), "{}", measured());
    }
    let db = filled(Access::Mapped);
    (2..202).for_each(|number| assert!(db.get(key(number)).unwrap().is_some()));
    assert!(db.statistics().reads.iter().all(|level| level.read_nanoseconds == 0), "this clock is stopped");
}

/// The totals are the sums of all levels, kinds, and other reads.
#[test]
fn blocks_of_levels_are_part_of_the_totals() {
    let db = filled(Access::Mapped);
    let totals = |db: &Db| (db.statistics().blocks_read, db.statistics().cache_hits);
    let (before, levels_before) = (totals(&db), db.statistics().reads);
    for number in 0..KEY_COUNT {
        assert!(db.get(key(number)).unwrap().is_some());
    }
    assert_eq!(db.range(..).count(), KEY_COUNT as usize);
    let after = totals(&db);
    let (mut read, mut hits) = (0, 0);
    for level in 0..db.statistics().reads.len() {
        for reads in since(&db, &levels_before, level) {
            read += reads.blocks_read;
            hits += reads.cache_hits;
        }
    }
    assert!(read > 0 && hits > 0);
    assert_eq!((after.0 - before.0, after.1 - before.1), (read, hits));
}

/// A program that exports the statistics every second must not pay for each table.
#[test]
fn statistics_do_not_grow_with_the_number_of_tables() {
    let keyspace = KeyspaceOptions::default().table_bytes(64 << 10).level0_runs(64);
    let options = inline_options().default_keyspace(keyspace);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let mut lengths = Vec::new();
    let mut table_count = 0;
    for round in 0..12 {
        for number in KEY_COUNT * round..KEY_COUNT * (round + 1) {
            db.put(key(number), [7; 60]).unwrap();
        }
        db.flush().unwrap();
        (0..KEY_COUNT).for_each(|number| drop(db.get(key(number)).unwrap()));
        let statistics = db.statistics();
        table_count = statistics.keyspaces[0].levels.iter().map(|level| level.table_count).sum();
        lengths.push(format!("{statistics:?}").len());
        // Rows are returned if they are asked for.
        let tables = db.table_filters(&db.default_keyspace()).unwrap();
        assert_eq!(tables.len(), table_count);
        assert!(tables.iter().any(|table| table.points.checked > 0 && !table.designs.is_empty()));
    }
    let (first, last) = (lengths[0], lengths[lengths.len() - 1]);
    assert!(table_count > 50 && last < first + first / 4, "{lengths:?} bytes, {table_count} tables");
}

#[test]
fn filters_of_tables_are_those_of_a_keyspace_of_this_store() {
    let db = filled(Access::Mapped);
    let other = filled(Access::Mapped);
    assert!(db.table_filters(&other.default_keyspace()).is_err());
    let keyspace = db.create_keyspace("dropped", KeyspaceOptions::default()).unwrap();
    db.drop_keyspace("dropped").unwrap();
    assert!(db.table_filters(&keyspace).is_err());
}

/// `cache_bytes` bounds blocks, indexes, filters and the samples of all keyspaces together.
#[test]
fn sampled_queries_are_within_the_memory_budget() {
    const BUDGET: u64 = 1 << 20;
    let options = inline_options().table_access(Access::Buffered).cache_bytes(BUDGET);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    for name in ["a", "b", "c", "d"] {
        let keyspace = db.create_keyspace(name, KeyspaceOptions::default()).unwrap();
        (0..KEY_COUNT).for_each(|number| keyspace.put(key(number), [7; 200]).unwrap());
    }
    db.flush().unwrap();
    let mut sample_bytes_max = 0;
    for (round, name) in ["a", "b", "c", "d"].into_iter().cycle().take(8).enumerate() {
        let keyspace = db.keyspace(name).unwrap();
        for number in 0..KEY_COUNT {
            let mut upper = [number as u8; 256];
            upper[..4].copy_from_slice(&key(number));
            assert!(keyspace.range(&key(number)[..]..&upper[..]).next().is_some());
            keyspace.get(key(number)).unwrap();
            if number % 64 == 0 {
                let statistics = db.statistics();
                let (blocks, pinned) = (statistics.cache_bytes, statistics.cache_pinned_bytes);
                let samples = statistics.cache_sample_bytes;
                sample_bytes_max = sample_bytes_max.max(samples);
                let all = blocks + pinned + samples;
                assert!(all <= BUDGET, "{round}: {blocks} + {pinned} + {samples} bytes");
                assert!(samples <= BUDGET / 4, "{round}: {samples} bytes of sampled queries");
            }
        }
        assert!(
            db.statistics().keyspaces.iter().any(|found| found.name == name && found.sample.ranges.kept > 50)
        );
    }
    assert!(sample_bytes_max > BUDGET / 8, "{sample_bytes_max} bytes of sampled queries");
}
