//! A store that is only read becomes one run automatically, once its reads have lost as much time as the merge takes.

use std::sync::Arc;

use tamis::{Db, KeyspaceOptions, Layout, Options, PaidJob, ReadLoss, Runtime, Views};
use tamis_vfs::MemVfs;
use tamis_workload::SplitMix64;

use crate::support::{FOLDER, sweep_stride};

const KEY_COUNT: u64 = 20_000;
const RUN_COUNT: u64 = 3;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

/// Overlapping runs, none of which the layout merges.
fn store(layout: Layout, views: Views) -> Db {
    let keyspace = KeyspaceOptions::default().layout(layout).views(views).level0_runs(16);
    let options = Options::default().workers(0).default_keyspace(keyspace);
    let vfs = Arc::new(MemVfs::new());
    let db = Db::open_on(vfs, FOLDER, options, Runtime::deterministic(1)).unwrap();
    for run in 0..RUN_COUNT {
        for number in (run..KEY_COUNT).step_by(RUN_COUNT as usize) {
            db.put(key(number), value(number)).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_compactions().unwrap();
    db
}

fn run_count(db: &Db) -> usize {
    db.statistics().keyspaces.iter().flat_map(|keyspace| &keyspace.levels).map(|level| level.run_count).sum()
}

fn losses(db: &Db) -> Vec<ReadLoss> {
    let losses = db.read_losses(&db.default_keyspace()).unwrap();
    losses.into_iter().filter(|loss| loss.table.is_none()).collect()
}

/// Seeks to keys of all runs, and reads what it finds.
fn seek(db: &Db, count: u64) {
    let mut random = SplitMix64::new(count);
    for _ in 0..count {
        let from = random.below(KEY_COUNT);
        let (found, stored) = db.range(key(from)..).next().unwrap().unwrap();
        assert_eq!((found.as_ref(), stored.as_ref()), (&key(from)[..], &value(from)[..]));
    }
}

/// Seeks until the store has merged its runs, or `count` times.
fn seek_until_merged(db: &Db, count: u64) -> u64 {
    let mut done = 0;
    while db.statistics().read_triggered_compactions == 0 && done < count {
        seek(db, 500);
        done += 500;
        db.wait_for_compactions().unwrap();
    }
    done
}

#[test]
fn a_store_that_is_only_read_becomes_one_run() {
    for layout in [Layout::Leveled, Layout::tiered(), Layout::partitioned()] {
        let db = store(layout, Views::Off);
        assert!(run_count(&db) > 1, "{layout:?}");
        seek(&db, 500);
        let [loss] = losses(&db).try_into().unwrap();
        assert!(loss.job == PaidJob::MergeRuns && loss.lost < loss.price, "{layout:?}: {loss:?}");
        let seeks = seek_until_merged(&db, 400_000);
        assert!(seeks > 500, "{layout:?}: the first seeks do not pay for a merge");
        assert!(losses(&db).is_empty(), "{layout:?}: the loss is paid");
        assert_eq!(run_count(&db), 1, "{layout:?}");
        let written = db.statistics().compaction_bytes_written;
        seek(&db, 50_000);
        db.wait_for_compactions().unwrap();
        assert_eq!(
            db.statistics().compaction_bytes_written,
            written,
            "{layout:?}: one run has nothing to gain"
        );
        let numbers = db.range(..).map(|entry| entry.unwrap().0.to_vec());
        assert!(numbers.eq((0..KEY_COUNT).map(|number| key(number).to_vec())), "{layout:?}");
    }
}

/// A view comes first, because it is cheaper, and the merge when reads through the view have paid for it.
#[test]
fn a_view_comes_before_the_merge() {
    let db = store(Layout::Leveled, Views::Auto);
    let mut views_built = 0;
    for _ in 0..1_000 {
        seek(&db, 500);
        db.wait_for_compactions().unwrap();
        let statistics = db.statistics();
        views_built = views_built.max(statistics.views_built);
        if statistics.read_triggered_compactions > 0 {
            break;
        }
        assert!(run_count(&db) == RUN_COUNT as usize);
    }
    assert_eq!((views_built, run_count(&db)), (1, 1));
}

#[test]
fn a_store_without_reads_of_ranges_makes_no_merge() {
    let db = store(Layout::Leveled, Views::Auto);
    for number in 0..100_000_u64 {
        db.get(key(number % (2 * KEY_COUNT))).unwrap();
    }
    db.wait_for_compactions().unwrap();
    assert_eq!((run_count(&db), db.statistics().read_triggered_compactions), (RUN_COUNT as usize, 0));
}

/// Each flush adds a run: a merge helps for a short time only, and its price doubles.
#[test]
fn merges_that_do_not_help_become_rare() {
    let db = store(Layout::Leveled, Views::Off);
    let mut merges = Vec::new();
    let mut random = SplitMix64::new(3);
    let half = 200 / (1 + sweep_stride() as usize);
    for _ in 0..2 * half {
        for _ in 0..50 {
            let number = random.below(KEY_COUNT);
            db.put(key(number), value(number)).unwrap();
        }
        db.flush().unwrap();
        seek(&db, 500);
        db.wait_for_compactions().unwrap();
        merges.push(db.statistics().read_triggered_compactions);
    }
    let (first, second) = (merges[half - 1], merges[2 * half - 1] - merges[half - 1]);
    assert!(first >= 1 && second <= first, "{first} merges, then {second}");
}

/// Scans pass deleted entries of the memtable, which a merge of tables would not drop.
#[test]
fn a_store_without_tables_merges_nothing() {
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, Runtime::deterministic(1)).unwrap();
    (0..2_000).for_each(|number| db.put(key(number), value(number)).unwrap());
    (0..1_999).for_each(|number| db.delete(key(number)).unwrap());
    for _ in 0..100 {
        assert_eq!(db.iter().count(), 1);
        db.wait_for_compactions().unwrap();
    }
    assert_eq!(db.statistics().read_triggered_compactions, 0);
}
