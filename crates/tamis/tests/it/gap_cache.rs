//! Known gaps between keys: a false positive of a filter is not repeated, and no answer changes.

use tamis::{Db, KeyspaceOptions, Options};
use tamis_vfs::{Access, MemVfs};

use crate::support::{Random, filters, inline_options, open_in_memory, small_keyspace};

const KEY_COUNT: u64 = 20_000;
const KEY_DISTANCE: u64 = 1_000;

fn options(row: &str, has_gap_cache: bool) -> Options {
    Options {
        default_keyspace: KeyspaceOptions { filters: filters(row), ..small_keyspace() },
        gap_cache: has_gap_cache,
        cache_bytes: 64 << 20,
        ..inline_options()
    }
}

/// A store of integers that are far apart, settled.
fn open(row: &str, has_gap_cache: bool) -> Db {
    let options = Options { table_access: Access::Buffered, ..options(row, has_gap_cache) };
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    for number in 1..=KEY_COUNT {
        db.put((number * KEY_DISTANCE).to_be_bytes(), [7; 50]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range::<&[u8]>(&db.default_keyspace(), ..).unwrap();
    db
}

/// Blocks that reads used: loads and hits of the cache.
fn used_blocks(db: &Db) -> u64 {
    let statistics = db.statistics();
    statistics.blocks_read + statistics.cache_hits
}

/// A closed range without a key, next to a key.
fn is_empty(db: &Db, position: u64) -> bool {
    let lower = position * KEY_DISTANCE + 1;
    db.range(lower.to_be_bytes()..=(lower + 3).to_be_bytes()).next().is_none()
}

#[test]
fn a_repeated_empty_range_reads_no_block_from_the_second_time_on() {
    // One bit per key: most ranges are false positives.
    let db = open("rosetta@1", true);
    let is_gap_empty = |position: u64| {
        let lower = (position * KEY_DISTANCE + 1).to_be_bytes();
        let upper = ((position + 1) * KEY_DISTANCE - 1).to_be_bytes();
        db.range(lower..=upper).next_back().is_none()
    };
    for position in 1..KEY_COUNT - 1 {
        assert!(is_empty(&db, position) && is_gap_empty(position));
        let before = used_blocks(&db);
        assert!(is_empty(&db, position) && is_gap_empty(position));
        assert_eq!(used_blocks(&db), before, "at {position}");
    }
    let statistics = db.statistics();
    assert!(statistics.gap_hits > KEY_COUNT / 2, "{} gaps used", statistics.gap_hits);
    assert!((1..=2 << 20).contains(&statistics.gap_bytes), "{} bytes", statistics.gap_bytes);
}

#[test]
fn skewed_empty_ranges_next_to_keys_read_at_most_a_fifth_of_the_blocks() {
    let blocks = |has_gap_cache| {
        let db = open("rosetta@1", has_gap_cache);
        let mut random = Random(3);
        let before = used_blocks(&db);
        for _ in 0..50_000 {
            // About a Zipfian distribution: the logarithm of the rank is uniform.
            let exponent = random.below(1 << 20) as f64 / f64::from(1 << 20);
            let rank = 5_000_f64.powf(exponent) as u64;
            assert!(is_empty(&db, 1 + rank * 7_919 % (KEY_COUNT - 2)));
        }
        used_blocks(&db) - before
    };
    let (with, without) = (blocks(true), blocks(false));
    assert!(with * 5 <= without, "{with} blocks instead of {without}");
}

#[test]
fn a_repeated_point_is_a_false_positive_only_a_few_times() {
    let db = open("bloom@1", true);
    let before = used_blocks(&db);
    for _ in 0..20 {
        for position in 1..200 {
            assert_eq!(db.get((position * KEY_DISTANCE + 1).to_be_bytes()).unwrap(), None);
        }
    }
    let used = used_blocks(&db) - before;
    assert!(used < 800, "{used} blocks for 4,000 absent keys");
    assert!(db.statistics().gap_hits > 1_000);
}

#[test]
fn gaps_change_no_answer() {
    for row in ["bloom@1", "rosetta@1", "surf-base", "blocked-bloom@1 proteus@2"] {
        let with = open_in_memory(&MemVfs::new(), options(row, true)).unwrap();
        let without = open_in_memory(&MemVfs::new(), options(row, false)).unwrap();
        let mut random = Random(11);
        let key = |random: &mut Random| format!("{:04}", random.below(3_000)).into_bytes();
        for round in 0..40 {
            for _ in 0..100 {
                let key = key(&mut random);
                for db in [&with, &without] {
                    match round % 3 {
                        0 => db.delete(&key).unwrap(),
                        _ => db.put(&key, format!("{round}")).unwrap(),
                    }
                }
            }
            // Snapshots see keys as absent that a table has in newer versions.
            let snapshots = [with.snapshot(), without.snapshot()];
            for db in [&with, &without] {
                for number in 0..20 {
                    db.put(format!("{:04}", (round * 20 + number) % 3_000), "new").unwrap();
                }
                db.flush().unwrap();
            }
            for _ in 0..300 {
                let (lower, length) = (random.below(3_000), random.below(4));
                let bounds = || format!("{lower:04}")..=format!("{:04}", lower + length);
                let keyspaces = [with.default_keyspace(), without.default_keyspace()];
                let old = [0, 1].map(|index| {
                    let range = snapshots[index].range(&keyspaces[index], bounds());
                    range.collect::<Result<Vec<_>, _>>().unwrap()
                });
                assert_eq!(old[0], old[1], "{row}: {:?} of a snapshot", bounds());
                let range = |db: &Db| db.range(bounds()).rev().collect::<Result<Vec<_>, _>>().unwrap();
                assert_eq!(range(&with), range(&without), "{row}: {:?}", bounds());
                let point = format!("{lower:04}");
                assert_eq!(with.get(&point).unwrap(), without.get(&point).unwrap(), "{row}: {point}");
                let old = [0, 1].map(|index| snapshots[index].get(&keyspaces[index], &point).unwrap());
                assert_eq!(old[0], old[1], "{row}: {point} of a snapshot");
            }
        }
    }
}
