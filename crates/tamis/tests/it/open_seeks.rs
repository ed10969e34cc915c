//! Seeks into many overlapping tables read the blocks that they return.
//!
//! A table takes part in the merge with its smallest key or the candidate of its filter, and is read when the scan reaches it.

use std::sync::Arc;

use tamis::{Db, Filters, KeyspaceOptions, Options, Runtime, TableFilter, Views};
use tamis_vfs::MemVfs;

use crate::support::{FOLDER, SplitMix64, filter_designs, filters_of_tables};

const TABLE_COUNT: u64 = 10;
const KEYS_PER_TABLE: u64 = 3_000;

/// Ten tables with random keys of 56 bits, in L0.
fn overlapping(filters: Filters) -> (Db, Vec<u64>) {
    overlapping_below(filters, 1 << 56)
}

/// Ten tables with random keys below a limit, in L0.
fn overlapping_below(filters: Filters, limit: u64) -> (Db, Vec<u64>) {
    let vfs = MemVfs::new();
    let options = Options::default()
        .workers(0)
        .default_keyspace(KeyspaceOptions::default().filters(filters).level0_runs(64));
    let db = Db::open_on(Arc::new(vfs), FOLDER, options, Runtime::deterministic(1)).unwrap();
    let mut random = SplitMix64::new(3);
    let mut keys = Vec::new();
    for _ in 0..TABLE_COUNT {
        for _ in 0..KEYS_PER_TABLE {
            let key = random.below(limit);
            keys.push(key);
            db.put(key.to_be_bytes(), [1; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(db.statistics().keyspaces[0].levels[0].table_count as u64, TABLE_COUNT);
    keys.sort_unstable();
    keys.dedup();
    (db, keys)
}

/// Blocks for each of many calls.
fn blocks_per_call(db: &Db, count: u64, mut call: impl FnMut(u64)) -> f64 {
    let mut random = SplitMix64::new(7);
    // The readers are open, and their filters are in memory.
    call(random.next_u64() >> 8);
    let before = db.statistics().blocks_read;
    (0..count).for_each(|_| call(random.next_u64() >> 8));
    (db.statistics().blocks_read - before) as f64 / count as f64
}

#[test]
fn each_table_counts_the_open_seeks_that_its_filters_saved_it() {
    for (filter, is_forward, false_positives_max) in [
        ("surf-real@24", true, 50),
        // A step back reads the next table, too, because it may have an older version of the key.
        ("surf-real@24", false, 500),
        ("blocked-bloom@10", true, u64::MAX),
        ("blocked-bloom@10", false, u64::MAX),
    ] {
        let (db, _) = overlapping(Filters::each([filter.parse().unwrap()]));
        let mut random = SplitMix64::new(7);
        for _ in 0..500 {
            let key = (random.next_u64() >> 8).to_be_bytes();
            let found = if is_forward { db.range(key..).next() } else { db.range(..=key).next_back() };
            assert!(found.is_some());
        }
        let tables = filters_of_tables(&db, 0);
        assert_eq!(tables.len() as u64, TABLE_COUNT);
        let sum = |of: fn(&tamis::FilterAnswers) -> u64| -> u64 {
            tables.iter().map(|table| of(&table.seeks)).sum()
        };
        let (checked, rejected) = (sum(|seeks| seeks.checked), sum(|seeks| seeks.rejected));
        let (true_positives, false_positives) =
            (sum(|seeks| seeks.true_positives), sum(|seeks| seeks.false_positives));
        assert!((4_950..=5_000).contains(&checked), "{checked} of 500 seeks in ten tables");
        assert!((495..=500).contains(&true_positives), "{true_positives}: one table has the key");
        assert_eq!(checked, rejected + true_positives + false_positives);
        assert!(false_positives <= false_positives_max, "{false_positives} false-positive reads, {filter}");
        assert!(false_positives_max < u64::MAX || rejected == 0, "these filters save no read");
    }
}

/// The smallest and the largest key of a table show without a filter that a seek needs nothing of it. Such answers would hide wrong ones.
#[test]
fn seeks_outside_of_a_table_do_not_count_for_its_filters() {
    let options = Options::default()
        .workers(0)
        .default_keyspace(KeyspaceOptions::default().level0_runs(64).views(Views::Off));
    let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, Runtime::deterministic(1)).unwrap();
    let key = |table: u64, number: u64| ((table << 32) | (number << 10)).to_be_bytes();
    for table in 0..2 {
        (0..1_000).for_each(|number| db.put(key(table, number), [1; 50]).unwrap());
        db.flush().unwrap();
    }
    // Both tables stay open in a scan that is kept.
    let mut scan = db.range(..);
    for number in 0..200 {
        for table in 0..2 {
            scan.seek(key(table, number)).unwrap();
            assert!(scan.move_next().unwrap());
            assert_eq!(scan.key(), key(table, number));
            scan.seek_for_prev(key(table, number)).unwrap();
            assert!(scan.move_prev().unwrap());
        }
    }
    let tables = filters_of_tables(&db, 0);
    assert_eq!(tables.len(), 2);
    for table in tables {
        let seeks = table.seeks;
        assert_eq!(
            (seeks.checked, seeks.rejected, seeks.true_positives, seeks.false_positives),
            (400, 0, 400, 0),
            "{table:?}"
        );
    }
}

#[test]
fn open_seeks_read_the_block_that_they_return() {
    let surf: TableFilter = "surf-real@24".parse().unwrap();
    let (db, keys) = overlapping(Filters::each([surf]));
    let forward = blocks_per_call(&db, 500, |from| {
        let found = db.range(from.to_be_bytes()..).next().map(|entry| entry.unwrap().0);
        let expected = keys.get(keys.partition_point(|&key| key < from));
        assert_eq!(found.as_deref(), expected.map(|key| key.to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
    });
    assert!(forward <= 1.1, "{forward}");
    let backward = blocks_per_call(&db, 500, |to| {
        let found = db.range(..to.to_be_bytes()).next_back().map(|entry| entry.unwrap().0);
        let expected = keys[..keys.partition_point(|&key| key < to)].last();
        assert_eq!(found.as_deref(), expected.map(|key| key.to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
    });
    assert!(backward <= 1.3, "{backward}");
    // A scan that is kept and moves in both directions.
    let mut scan = db.range(..);
    let kept = blocks_per_call(&db, 500, |from| {
        scan.seek(from.to_be_bytes()).unwrap();
        let place = keys.partition_point(|&key| key < from);
        if scan.move_next().unwrap() {
            assert_eq!(scan.key(), keys[place].to_be_bytes());
        }
    });
    assert!(kept <= 1.1, "{kept}");
}

/// Blocks for each of many calls, read or found in memory.
fn blocks_touched(db: &Db, seed: u64, count: u64, mut call: impl FnMut(u64, &mut SplitMix64)) -> f64 {
    let touched = || db.statistics().blocks_read + db.statistics().cache_hits;
    let mut random = SplitMix64::new(seed);
    let before = touched();
    (0..count).for_each(|_| call(random.next_u64() >> 8, &mut random));
    (touched() - before) as f64 / count as f64
}

/// Reads the store, whose keys are given, at a place that the number selects.
type Read = fn(&Db, &[u64], u64, &mut SplitMix64);

/// Blocks of a read of each of two kinds, after the filters were chosen for as many of both.
fn blocks_with_chosen_filters((db, keys): &(Db, Vec<u64>), kinds: [Read; 2]) -> ([f64; 2], String) {
    let measure = |seed: u64, count: u64| {
        kinds.map(|kind| blocks_touched(db, seed, count, |drawn, random| kind(db, keys, drawn, random)))
    };
    let before = measure(7, 2_000);
    let replaced = db.check_filters(&db.default_keyspace()).unwrap();
    // So many that a rate of 0.04 is known to 5 %.
    let after = measure(21, 20_000);
    let design = filter_designs(db, 0).into_iter().next();
    (after, format!("{before:?} blocks, then {after:?}; {replaced} replaced, for example {design:?}"))
}

fn seek(db: &Db, keys: &[u64], from: u64, _: &mut SplitMix64) {
    let found = db.range(from.to_be_bytes()..).next().map(|entry| entry.unwrap().0);
    let expected = keys.get(keys.partition_point(|&key| key < from));
    assert_eq!(found.as_deref(), expected.map(|key| key.to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
}

fn short_range(db: &Db, keys: &[u64], lower: u64, upper: u64) {
    let is_there = keys.get(keys.partition_point(|&key| key < lower)).is_some_and(|&key| key <= upper);
    assert_eq!(db.range(lower.to_be_bytes()..=upper.to_be_bytes()).next().is_some(), is_there);
}

fn uniform_range(db: &Db, keys: &[u64], lower: u64, random: &mut SplitMix64) {
    short_range(db, keys, lower, lower + (32 << random.below(16)));
}

fn range_next_to_a_key(db: &Db, keys: &[u64], drawn: u64, random: &mut SplitMix64) {
    let lower = keys[drawn as usize % keys.len()] + 1;
    short_range(db, keys, lower, lower + random.below(32));
}

/// The default options, except for those that keep the tables apart.
#[test]
fn closed_empty_ranges_in_ten_tables_read_almost_no_block() {
    for (name, range) in [("uniform", uniform_range as Read), ("next to a key", range_next_to_a_key)] {
        let ([blocks, _], text) = blocks_with_chosen_filters(&overlapping(Filters::default()), [range; 2]);
        println!("{name}: {text}");
        assert!(blocks <= 0.02, "{name}: {text}");
    }
}

/// Tries name the candidates of seeks. With four bits of each key besides they are less exact for ranges than other filters.
#[test]
fn open_seeks_in_ten_tables_read_one_block_also_next_to_ranges() {
    for (other, ranges_max) in [(seek as Read, 1.1), (uniform_range, 0.04)] {
        let ([seeks, others], text) =
            blocks_with_chosen_filters(&overlapping(Filters::default()), [seek, other]);
        println!("seeks, and others: {text}");
        assert!(seeks <= 1.1 && others <= ranges_max, "{text}");
    }
}

/// Filters for both kinds of ranges at once need at least 18 bits per key (`docs/design/0012-automatic-filters.md`).
#[test]
fn uniform_ranges_and_ranges_next_to_keys_share_the_memory() {
    for (bits, max) in [(16.0, [0.12, 0.4]), (24.0, [0.025, 0.048])] {
        let store = overlapping(Filters::auto(bits));
        let (blocks, text) = blocks_with_chosen_filters(&store, [uniform_range, range_next_to_a_key]);
        println!("both kinds of ranges, {bits} bits: {text}");
        assert!(blocks[0] <= max[0] && blocks[1] <= max[1], "{text}");
    }
}

fn bytes_of(key: Option<&u64>) -> Option<[u8; 8]> {
    key.map(|key| key.to_be_bytes())
}

/// Each range has keys of about ten tables. The merge enters each table at its candidate.
#[test]
fn closed_ranges_and_prefixes_read_the_block_of_their_first_entry() {
    const LIMIT: u64 = 1 << 20;
    for filter in ["surf-real@24", "rosetta@24"] {
        let (db, keys) = overlapping_below(Filters::each([filter.parse().unwrap()]), LIMIT);
        let mut random = SplitMix64::new(5);
        let mut blocks = |is_backward: bool, is_prefix: bool| {
            blocks_per_call(&db, 500, |_| {
                let lower = if is_prefix { random.below(LIMIT) >> 8 << 8 } else { random.below(LIMIT - 600) };
                let end = lower + if is_prefix { 256 } else { 600 };
                let within = &keys[keys.partition_point(|&key| key < lower)..];
                let within = &within[..within.partition_point(|&key| key < end)];
                let mut scan = match is_prefix {
                    true => db.prefix(&lower.to_be_bytes()[..7]),
                    false => db.range(lower.to_be_bytes()..end.to_be_bytes()),
                };
                let (found, expected) = match is_backward {
                    true => (scan.next_back(), within.last()),
                    false => (scan.next(), within.first()),
                };
                let found = found.map(|entry| entry.unwrap().0);
                assert_eq!(found.as_deref(), bytes_of(expected).as_ref().map(<[u8; 8]>::as_slice));
            })
        };
        for is_prefix in [false, true] {
            let (forward, backward) = (blocks(false, is_prefix), blocks(true, is_prefix));
            assert!(forward <= 1.1 && backward <= 1.5, "{filter}: {forward} and {backward}, {is_prefix}");
        }
        // A table that is not reached is neither right nor wrong.
        let tables = filters_of_tables(&db, 0);
        let ranges = || tables.iter().map(|table| &table.ranges);
        let admitted: u64 = ranges().map(|ranges| ranges.checked - ranges.rejected).sum();
        let decided: u64 = ranges().map(|ranges| ranges.true_positives + ranges.false_positives).sum();
        assert!(decided > 0 && decided * 3 < admitted, "{filter}: {decided} of {admitted}");
    }
}

/// The smallest and largest keys of tables are known without filters.
#[test]
fn first_and_last_of_a_keyspace_read_one_block() {
    let (db, keys) = overlapping(Filters::default());
    let first = blocks_per_call(&db, 10, |_| {
        let (key, _) = db.first().unwrap().unwrap();
        assert_eq!(*key, keys[0].to_be_bytes());
    });
    let last = blocks_per_call(&db, 10, |_| {
        let (key, _) = db.last().unwrap().unwrap();
        assert_eq!(*key, keys[keys.len() - 1].to_be_bytes());
    });
    assert!(first <= 1.0 && last <= 2.0, "{first} {last}");
}

/// Moves in both directions around deferred tables, with and without filters that name candidates.
#[test]
fn moves_around_deferred_tables_agree_with_the_keys() {
    for filters in [Filters::each(["surf-real@24".parse().unwrap()]), Filters::default()] {
        let (db, keys) = overlapping(filters);
        let mut random = SplitMix64::new(11);
        let mut scan = db.range(..);
        for _ in 0..300 {
            let target = random.next_u64() >> 8;
            let mut place = keys.partition_point(|&key| key < target) as i64;
            if random.below(2) == 0 {
                scan.seek(target.to_be_bytes()).unwrap();
                if scan.move_next().unwrap() {
                    assert_eq!(scan.key(), keys[place as usize].to_be_bytes());
                } else {
                    continue;
                }
            } else {
                scan.seek_for_prev(target.to_be_bytes()).unwrap();
                place -= i64::from(keys.get(place as usize) != Some(&target));
                // The scan is after the last key at or below the target.
                if scan.move_prev().unwrap() {
                    assert_eq!(scan.key(), keys[place as usize].to_be_bytes());
                } else {
                    continue;
                }
            }
            for _ in 0..random.below(12) {
                let (is_there, next) = match random.below(2) {
                    0 => (scan.move_next().unwrap(), place + 1),
                    _ => (scan.move_prev().unwrap(), place - 1),
                };
                if next < 0 || next >= keys.len() as i64 {
                    assert!(!is_there);
                    break;
                }
                assert!(is_there);
                assert_eq!(scan.key(), keys[next as usize].to_be_bytes());
                place = next;
            }
        }
    }
}
