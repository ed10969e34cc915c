//! Filters that reject ranges: saved reads of scans, their statistics, and reports of filters that can't be built.

use std::{
    ops::Bound,
    sync::{Arc, Mutex},
};

use tamis::{Db, Event, EventListener, Filters, Keyspace, KeyspaceOptions, Statistics, WriteBatch};
use tamis_vfs::{Access, MemVfs, Vfs};

use crate::support::{
    FILTERS, SplitMix64, filter_designs, filters, filters_of_tables, inline_options, key, open_in_memory,
    open_on, small_keyspace,
};

const RUN_COUNT: u64 = 4;

/// Filters that can reject ranges between two neighbouring keys, and the maximum number of digests per probe.
const RANGE_FILTERS: [(&str, u64); 10] = [
    ("surf-real:bits=16", 0),
    ("surf-mixed:hash=2,real=16", 0),
    ("prefix-bloom:bytes=12@12", 1),
    ("blocked-bloom@4 surf-base prefix-bloom:bytes=12@12", 1),
    ("rosetta@16", 3),
    ("proteus:trie=96,prefix=0@60", 0),
    ("proteus:trie=60,prefix=96@14", 1),
    ("1pbf:prefix=96@12", 1),
    ("1pbf:prefix=96,layout=lines@12", 1),
    ("2pbf:first=60,second=96@16", 2),
];

/// Keys 0, 2, ... 7,998 in runs that all span them.
fn fill(db: &Db, row: &str) -> Keyspace {
    let options = KeyspaceOptions::default().memtable_bytes(64 << 20).level0_runs(64).filters(filters(row));
    let keyspace = db.create_keyspace("k", options).unwrap();
    for run in 0..RUN_COUNT {
        let mut batch = WriteBatch::new();
        for number in (run..4_000).step_by(RUN_COUNT as usize) {
            batch.put(&keyspace, key(2 * number), [7; 100]).unwrap();
        }
        db.write(batch).unwrap();
        db.flush().unwrap();
    }
    keyspace
}

/// Counters of all levels that scans raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    blocks: u64,
    digests: u64,
    checked: u64,
    rejected: u64,
    useful: u64,
    useless: u64,
}

fn counted(db: &Db, work: impl FnOnce()) -> Counted {
    let count = |statistics: &Statistics| {
        let sum = |of: fn(&tamis::LevelReads) -> u64| statistics.reads.iter().map(of).sum::<u64>();
        [
            statistics.blocks_read + statistics.cache_hits,
            statistics.digests,
            sum(|level| level.ranges.checked + level.prefixes.checked),
            sum(|level| level.ranges.rejected + level.prefixes.rejected),
            sum(|level| level.ranges.true_positives + level.prefixes.true_positives),
            sum(|level| level.ranges.false_positives + level.prefixes.false_positives),
        ]
    };
    let before = count(&db.statistics());
    work();
    let after = count(&db.statistics());
    let [blocks, digests, checked, rejected, useful, useless] =
        std::array::from_fn(|index| after[index] - before[index]);
    Counted { blocks, digests, checked, rejected, useful, useless }
}

fn walk(keyspace: &Keyspace, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>, style: usize) -> usize {
    let mut scan = keyspace.range((lower, upper));
    let mut step = |turn: usize| match style {
        0 => scan.next(),
        1 => scan.next_back(),
        _ if turn.is_multiple_of(2) => scan.next(),
        _ => scan.next_back(),
    };
    (0..).take_while(|turn| step(*turn).transpose().unwrap().is_some()).count()
}

#[test]
fn an_empty_range_that_every_filter_rejects_reads_no_block_and_shares_its_digests() {
    for access in [Access::Buffered, Access::Mapped] {
        for (row, digests_max) in RANGE_FILTERS {
            let db = open_in_memory(&MemVfs::new(), inline_options().table_access(access)).unwrap();
            let keyspace = fill(&db, row);
            let (mut passed, mut rejected) = (0, 0);
            for number in (101..7_900).step_by(98) {
                let upper = [key(number).as_slice(), b"~"].concat();
                for style in 0..3 {
                    let bounds = (Bound::Included(key(number)), Bound::Included(upper.clone()));
                    let cost = counted(&db, || assert_eq!(walk(&keyspace, bounds.0, bounds.1, style), 0));
                    assert_eq!(cost.checked, RUN_COUNT, "{row} {cost:?}");
                    assert!(cost.digests <= digests_max, "{row}: {cost:?}");
                    assert_eq!(
                        (cost.useful, cost.useless),
                        (0, cost.checked - cost.rejected),
                        "{row}: {cost:?}"
                    );
                    if cost.rejected == RUN_COUNT {
                        assert_eq!(cost.blocks, 0, "{row}: {cost:?}");
                    }
                    passed += cost.useless;
                    rejected += cost.rejected;
                }
                let cost = counted(&db, || assert!(keyspace.prefix(key(number)).next().is_none()));
                assert_eq!(cost.checked, RUN_COUNT, "{row}: {cost:?}");
                rejected += cost.rejected;
            }
            assert!(passed < rejected / 20, "{row}: {passed} passed, {rejected} rejected");
        }
    }
}

#[test]
fn ranges_that_contain_a_key_are_true_positives() {
    for (row, _) in RANGE_FILTERS {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let keyspace = fill(&db, row);
        for number in (100..7_900).step_by(98) {
            for style in 0..3 {
                let bounds = (Bound::Excluded(key(number - 1)), Bound::Excluded(key(number + 1)));
                let cost = counted(&db, || assert_eq!(walk(&keyspace, bounds.0, bounds.1, style), 1));
                assert_eq!((cost.checked, cost.useful), (RUN_COUNT, 1), "{row}: {cost:?}");
                assert_eq!(cost.checked, cost.rejected + cost.useful + cost.useless, "{row}: {cost:?}");
            }
        }
    }
}

/// A store of one table with the given keys, each with a value.
fn one_table(row: &str, keys: impl Iterator<Item = u64>) -> (Db, Keyspace) {
    let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
    let options =
        KeyspaceOptions::default().memtable_bytes(64 << 20).table_bytes(64 << 20).filters(filters(row));
    let keyspace = db.create_keyspace("k", options).unwrap();
    let mut batch = WriteBatch::new();
    keys.for_each(|key| batch.put(&keyspace, key.to_be_bytes(), [7; 20]).unwrap());
    db.write(batch).unwrap();
    db.flush().unwrap();
    (db, keyspace)
}

/// A seek within the range that finds no key says nothing about the keys before it. Otherwise filters that are right count as wrong, and
/// the store replaces them.
#[test]
fn a_seek_within_the_range_that_finds_nothing_is_no_false_positive() {
    // The filter knows the upper five bytes of each key.
    let key = |number: u64| (number << 24) | 0x80_0000;
    let (db, keyspace) = one_table("prefix-bloom:bytes=5@16", (0..1_000).map(key));
    for number in 1..500 {
        let (key, is_backward) = (key(number), number % 2 == 0);
        let mut scan = None;
        let mut seek = |distance: u64| {
            let bounds = (key - 100).to_be_bytes()..=(key + 100).to_be_bytes();
            let scan = scan.get_or_insert_with(|| keyspace.range(bounds));
            if is_backward {
                scan.seek_for_prev((key - distance).to_be_bytes()).unwrap();
                scan.move_prev().unwrap()
            } else {
                scan.seek((key + distance).to_be_bytes()).unwrap();
                scan.move_next().unwrap()
            }
        };
        let undecided = counted(&db, || assert!(!seek(10)));
        assert_eq!((undecided.checked, undecided.useful, undecided.useless), (1, 0, 0), "{number}");
        let decided = counted(&db, || assert!(seek(0)));
        assert_eq!((decided.useful, decided.useless), (1, 0), "{number}");
    }
    let tables = filters_of_tables(&db, 1);
    assert_eq!(tables.iter().map(|table| table.ranges.false_positives).sum::<u64>(), 0);
}

/// A scan begins at the candidate that a filter names instead of the end of its range. If there is no key of the range from there on, the
/// filter was wrong. Otherwise the store never replaces filters that name candidates.
#[test]
fn a_candidate_without_a_key_of_the_range_is_a_false_positive() {
    // SuRF knows the upper five bytes of each key: they tell it from its neighbours.
    let key = |number: u64| (number << 25) | 0x80_0000;
    let (db, keyspace) = one_table("surf-base", (0..1_000).map(key));
    // A scan of one run begins at the end of the range. The merge with a memtable begins at the candidate.
    [0, u64::MAX].into_iter().for_each(|key| keyspace.put(key.to_be_bytes(), "in the memtable").unwrap());
    for number in 1..500 {
        let (before, after) = ((2 * number - 1) << 24, (2 * number + 1) << 24);
        for (style, bounds) in [(0, before..=key(number) - 1), (1, key(number) + 1..=after)] {
            let [lower, upper] = [bounds.start(), bounds.end()].map(|bound| bound.to_be_bytes().to_vec());
            let cost = counted(&db, || {
                assert_eq!(walk(&keyspace, Bound::Included(lower), Bound::Included(upper), style), 0);
            });
            assert_eq!((cost.checked, cost.rejected, cost.useless), (1, 0, 1), "{number} {cost:?}");
        }
    }
    let tables = filters_of_tables(&db, 1);
    assert_eq!(tables.iter().map(|table| table.ranges.false_positives).sum::<u64>(), 2 * 499);
}

#[test]
fn filters_are_not_probed_where_they_cannot_reject() {
    for row in FILTERS {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let keyspace = fill(&db, row);
        let cost = counted(&db, || {
            // Ends of tables within the range, no bounds.
            assert_eq!(walk(&keyspace, Bound::Unbounded, Bound::Unbounded, 0), 4_000);
            assert_eq!(walk(&keyspace, Bound::Included(key(0)), Bound::Included(key(6)), 0), 4);
            assert_eq!(walk(&keyspace, Bound::Included(key(7_992)), Bound::Unbounded, 1), 4);
        });
        assert_eq!((cost.checked, cost.digests), (0, 0), "{row}: {cost:?}");
        // A range of one key is a point to all families.
        let cost = counted(&db, || {
            assert_eq!(walk(&keyspace, Bound::Included(key(101)), Bound::Included(key(101)), 0), 0);
        });
        assert_eq!(cost.checked, RUN_COUNT, "{row}: {cost:?}");
        assert!(cost.digests <= 2, "{row}: {cost:?}");
    }
}

#[test]
fn a_table_that_a_filter_rejects_revives_no_deleted_entry() {
    for (row, _) in RANGE_FILTERS {
        let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let keyspace = fill(&db, row);
        for number in (1_000..2_000).step_by(2) {
            keyspace.delete(key(number)).unwrap();
        }
        keyspace.delete(key(0)).unwrap();
        keyspace.delete(key(7_998)).unwrap();
        db.flush().unwrap();
        for number in (1_000..2_000).step_by(26) {
            for style in 0..3 {
                let bounds = (Bound::Excluded(key(number - 1)), Bound::Excluded(key(number + 5)));
                assert_eq!(walk(&keyspace, bounds.0, bounds.1, style), 0, "{row} {number}");
            }
        }
        assert!(db.verify().unwrap().is_sound());
    }
}

#[derive(Debug, Default)]
struct Refusals(Mutex<Vec<String>>);

impl EventListener for Refusals {
    fn on_event(&self, event: &Event) {
        if let Event::FilterBuildFailed { file, reason } = event {
            self.0.lock().unwrap().push(format!("{}: {reason}", file.display()));
        }
    }
}

#[test]
fn a_filter_that_cannot_be_built_is_reported_and_left_out() {
    let refusals = Arc::new(Refusals::default());
    let options = inline_options().listener(Arc::<Refusals>::clone(&refusals));
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let keyspace = fill(&db, "blocked-bloom@10 surf@2");
    let reported = std::mem::take(&mut *refusals.0.lock().unwrap());
    assert_eq!(reported.len() as u64, RUN_COUNT, "{reported:?}");
    assert!(
        reported.iter().all(|text| text.contains(".table: surf@2: ") && text.contains("least")),
        "{reported:?}"
    );
    let cost = counted(&db, || {
        assert_eq!(walk(&keyspace, Bound::Included(key(101)), Bound::Included(key(103)), 0), 1)
    });
    assert_eq!(cost.checked, 0, "ranges do not probe the point filter");
    assert!(filter_designs(&db, 1).iter().all(|design| design.contains("blocked-bloom")));
}

#[test]
fn filters_of_a_keyspace_are_kept_over_a_reopen() {
    let vfs = MemVfs::new();
    let deeper = vec!["elastic@12".parse().unwrap(), "surf@16.5".parse().unwrap()];
    let wanted = Filters::per_level([Vec::new(), vec!["surf-real:bits=8".parse().unwrap()], deeper]);
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let options = small_keyspace().filters(wanted.clone());
    let keyspace = db.create_keyspace("k", options).unwrap();
    for number in 0..4_000 {
        keyspace.put(key(number), [7; 100]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    drop(keyspace);
    db.close().unwrap();
    let shared: Arc<dyn Vfs> = Arc::new(vfs);
    let db = open_on(shared, inline_options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.options().filters, wanted);
    assert_eq!(walk(&keyspace, Bound::Included(key(10)), Bound::Included(key(3_000)), 0), 2_991);
    let designs = filter_designs(&db, 1);
    let count = |family: &str| designs.iter().filter(|design| design.starts_with(family)).count();
    assert!(count("elastic: ") > 0 && count("surf") > 0, "the deepest level has its own: {designs:?}");
}

/// Ranges and points of deleted keys, and of snapshots that see keys as absent which a table has in newer versions.
#[test]
fn filters_change_no_answer_of_a_snapshot() {
    let open = |filters: Filters| {
        let default_keyspace = small_keyspace().filters(filters);
        open_in_memory(&MemVfs::new(), inline_options().default_keyspace(default_keyspace))
    };
    for row in ["blocked-bloom@1", "rosetta@1", "surf-base", "blocked-bloom@1 proteus@2"] {
        let with = open(filters(row)).unwrap();
        let without = open(Filters::none()).unwrap();
        let mut random = SplitMix64::new(11);
        let key = |random: &mut SplitMix64| format!("{:04}", random.below(3_000)).into_bytes();
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
