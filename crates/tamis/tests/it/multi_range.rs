//! Several ranges at once return the same entries as each range alone, at one point in time.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use tamis::{Compression, Db, Filters, KeyspaceOptions, Options, Scan, Views};
use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};
use tamis_workload::SplitMix64;

use crate::support::{filters, inline_options, open_in_memory, open_on};

type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn entries(scan: Scan) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn bound(random: &mut SplitMix64) -> Bound<Vec<u8>> {
    let key = random.below(4_000).to_be_bytes().to_vec();
    match random.below(10) {
        0 => Bound::Unbounded,
        1..=5 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// Three runs and a memtable over even numbers, with some deleted.
fn filled() -> (Db, BTreeMap<Vec<u8>, Vec<u8>>) {
    let default_keyspace =
        KeyspaceOptions::default().filters(Filters::each(["surf@20".parse().unwrap()])).level0_runs(16);
    let db = open_in_memory(&MemVfs::new(), Options::default().workers(0).default_keyspace(default_keyspace))
        .unwrap();
    let mut model = BTreeMap::new();
    let mut random = SplitMix64::new(5);
    for run in 0..4_u64 {
        for _ in 0..400 {
            let key = (2 * random.below(1_900)).to_be_bytes().to_vec();
            if random.below(5) == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                db.put(&key, run.to_be_bytes()).unwrap();
                model.insert(key, run.to_be_bytes().to_vec());
            }
        }
        if run < 3 {
            db.flush().unwrap();
        }
    }
    (db, model)
}

#[test]
fn several_ranges_return_what_each_returns_alone() {
    let (db, model) = filled();
    let mut random = SplitMix64::new(9);
    for _ in 0..50 {
        let ranges: Vec<Range> =
            (0..random.below(20)).map(|_| (bound(&mut random), bound(&mut random))).collect();
        let scans = db.multi_range(ranges.clone());
        assert_eq!(scans.len(), ranges.len());
        for (scan, range) in scans.into_iter().zip(ranges) {
            let is_within = |key: &[u8]| {
                let above = match &range.0 {
                    Bound::Unbounded => true,
                    Bound::Included(lower) => key >= lower.as_slice(),
                    Bound::Excluded(lower) => key > lower.as_slice(),
                };
                let below = match &range.1 {
                    Bound::Unbounded => true,
                    Bound::Included(upper) => key <= upper.as_slice(),
                    Bound::Excluded(upper) => key < upper.as_slice(),
                };
                above && below
            };
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| is_within(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(entries(scan), expected, "{range:?}");
            let mut backward = entries_backward(db.multi_range([range]).remove(0));
            backward.reverse();
            assert_eq!(backward, expected);
        }
    }
}

fn entries_backward(scan: Scan) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan.rev().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

#[test]
fn all_ranges_see_the_same_point_in_time_and_empty_ones_read_no_block() {
    let (db, model) = filled();
    let snapshot = db.snapshot();
    let all = || [(Bound::<Vec<u8>>::Unbounded, Bound::Unbounded)];
    let scans = db.multi_range(all());
    db.put(0_u64.to_be_bytes(), b"later").unwrap();
    let of_snapshot = snapshot.multi_range(&db.default_keyspace(), all());
    for scan in scans.into_iter().chain(of_snapshot) {
        assert_eq!(entries(scan).len(), model.len());
    }
    // Odd numbers are absent.
    let odd: Vec<_> =
        (50..1_800_u64).map(|number| (2 * number + 1).to_be_bytes()).map(|key| key..=key).collect();
    for key in odd.iter().take(3) {
        assert_eq!(db.range(key.clone()).count(), 0);
    }
    let touched = || db.statistics().blocks_read + db.statistics().cache_hits;
    let before = touched();
    for scan in db.multi_range(odd) {
        assert_eq!(scan.count(), 0);
    }
    let read = touched() - before;
    assert!(read < 200, "{read} blocks for 1,750 empty ranges");
}

const KEY_COUNT: u64 = 4_000;
const KEY_DISTANCE: u64 = 10;

/// One settled table whose blocks have about 35 entries, opened again: nothing is cached.
fn settled(vfs: Arc<dyn Vfs>, access: Access, cache_bytes: u64, compression: Compression) -> Db {
    let default_keyspace =
        KeyspaceOptions::default().filters(filters("surf-real@20")).compression(vec![compression]);
    let open = || {
        let options = Options::default()
            .workers(0)
            .table_access(access)
            .cache_bytes(cache_bytes)
            .default_keyspace(default_keyspace.clone());
        open_on(Arc::clone(&vfs), options).unwrap()
    };
    let db = open();
    let mut random = SplitMix64::new(3);
    for number in 0..KEY_COUNT {
        // Values that can't be compressed.
        let value: Vec<u8> = (0..100).map(|_| random.below(256) as u8).collect();
        db.put((number * KEY_DISTANCE).to_be_bytes(), value).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let db = open();
    // The table is open.
    assert_eq!(db.range(1_u64.to_be_bytes()..2_u64.to_be_bytes()).count(), 0);
    db
}

/// A hundred short ranges in about ten adjacent blocks, with two keys each.
fn short_ranges() -> Vec<std::ops::Range<[u8; 8]>> {
    let range = |number: u64| {
        let first = (1_000 + 3 * number) * KEY_DISTANCE;
        first.to_be_bytes()..(first + 2 * KEY_DISTANCE).to_be_bytes()
    };
    (0..100).map(range).collect()
}

/// The lengths of the reads of blocks. Without a cache the index, which is behind them, is read again, too.
fn block_reads(record: &RecordVfs) -> Vec<u64> {
    let reads = record.operations().into_iter().filter(|operation| operation.kind == OperationKind::Read);
    reads.filter(|read| read.offset < KEY_COUNT * 100).map(|read| read.length_bytes).collect()
}

fn count_all(scans: Vec<Scan>) {
    for scan in scans {
        assert_eq!(scan.map(Result::unwrap).count(), 2);
    }
}

#[test]
fn ranges_in_the_same_blocks_read_each_block_once() {
    for (access, compression) in [
        (Access::Buffered, Compression::None),
        (Access::Direct, Compression::None),
        (Access::Direct, Compression::Lz4),
    ] {
        let record = RecordVfs::new(Arc::new(MemVfs::new()));
        let db = settled(Arc::new(record.clone()), access, 8 << 20, compression);
        let cost = || {
            record.reset();
            count_all(db.multi_range(short_ranges()));
            block_reads(&record).len()
        };
        let (first, again) = (cost(), cost());
        assert!((1..=12).contains(&first), "{first} reads");
        assert_eq!(again, 0, "the blocks are cached");
    }
}

#[test]
fn nothing_is_read_before_the_first_step() {
    let record = RecordVfs::new(Arc::new(MemVfs::new()));
    let db = settled(Arc::new(record.clone()), Access::Direct, 0, Compression::None);
    record.reset();
    let far = [10_u64, 10_000, 20_000].map(|first| first.to_be_bytes()..(first + 15).to_be_bytes());
    let whole = std::iter::once(0_u64.to_be_bytes()..(KEY_COUNT * KEY_DISTANCE).to_be_bytes());
    let scans = db.multi_range(far.into_iter().chain(whole));
    assert_eq!(block_reads(&record).len(), 0, "nothing is read before the first step");
    for mut scan in scans {
        assert!(scan.move_next().unwrap());
    }
    assert_eq!(block_reads(&record), [4_096; 4]);
}

/// Two runs with every second key each, and a view of both.
fn viewed(vfs: Arc<dyn Vfs>) -> Db {
    let default_keyspace = KeyspaceOptions::default()
        .filters(Filters::none())
        .views(Views::On)
        .level0_runs(64)
        .memtable_bytes(64 << 20)
        .compression(vec![Compression::None]);
    let options = inline_options()
        .table_access(Access::Direct)
        // A view may have a quarter of the cache; the blocks that flushes leave there are evicted by those of the second run.
        .cache_bytes(96 << 10)
        .default_keyspace(default_keyspace);
    let db = open_on(vfs, options).unwrap();
    for run in 0..2 {
        for number in (run..KEY_COUNT).step_by(2) {
            db.put((number * KEY_DISTANCE).to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(db.statistics().keyspaces[0].views.open_count, 1);
    db
}

#[test]
fn ranges_that_a_view_serves_return_what_each_returns_alone() {
    let db = viewed(Arc::new(MemVfs::new()));
    let mut random = SplitMix64::new(13);
    for _ in 0..30 {
        let first = random.below(KEY_COUNT * KEY_DISTANCE);
        let ranges: Vec<Range> = (0..20)
            .map(|_| {
                let lower = first + random.below(300);
                let upper = lower + random.below(60);
                (Bound::Included(lower.to_be_bytes().to_vec()), Bound::Excluded(upper.to_be_bytes().to_vec()))
            })
            .collect();
        let together: Vec<_> = db.multi_range(ranges.clone()).into_iter().map(entries).collect();
        let alone: Vec<_> = ranges.into_iter().map(|range| entries(db.range(range))).collect();
        assert_eq!(together, alone);
    }
}
