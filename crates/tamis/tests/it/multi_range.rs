//! Several ranges at once return the same entries as each range alone, at one point in time.

use std::{collections::BTreeMap, ops::Bound};

use tamis::{Db, Filters, KeyspaceOptions, Options, Scan};
use tamis_vfs::MemVfs;
use tamis_workload::SplitMix64;

use crate::support::open_in_memory;

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
    let default_keyspace = KeyspaceOptions {
        filters: Filters::each(["surf@20".parse().unwrap()]),
        level0_runs: 16,
        ..KeyspaceOptions::default()
    };
    let db = open_in_memory(&MemVfs::new(), Options { workers: 0, default_keyspace, ..Options::default() })
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
