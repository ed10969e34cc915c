//! Statistics show the owners of obsolete files and versions: snapshots, scans, and handles of dropped keyspaces.

use std::{sync::Arc, time::Duration};

use tamis::{Db, ManualClock, Runtime};
use tamis_vfs::MemVfs;

use crate::support::{FOLDER, inline_options, small_keyspace};

fn open() -> (Db, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
    (Db::open_on(Arc::new(MemVfs::new()), FOLDER, inline_options(), runtime).unwrap(), clock)
}

#[test]
fn snapshots_are_counted_with_the_age_of_the_oldest() {
    let (db, clock) = open();
    assert_eq!((db.statistics().snapshots, db.statistics().oldest_snapshot), (0, Duration::ZERO));
    let first = db.snapshot();
    clock.advance(Duration::from_secs(5));
    db.put("key", "value").unwrap();
    let second = db.snapshot();
    clock.advance(Duration::from_secs(2));
    assert_eq!((db.statistics().snapshots, db.statistics().oldest_snapshot), (2, Duration::from_secs(7)));
    drop(first);
    assert_eq!((db.statistics().snapshots, db.statistics().oldest_snapshot), (1, Duration::from_secs(2)));
    drop(second);
    assert_eq!((db.statistics().snapshots, db.statistics().oldest_snapshot), (0, Duration::ZERO));
}

#[test]
fn a_scan_that_holds_obsolete_tables_shows_their_bytes_and_age() {
    let (db, clock) = open();
    let fill = || {
        (0..500_u32).for_each(|number| db.put(number.to_be_bytes(), [1; 100]).unwrap());
        db.flush().unwrap();
    };
    fill();
    let mut scan = db.range(..);
    scan.next().unwrap().unwrap();
    let before = db.statistics();
    assert_eq!((before.open_scans, before.held_bytes, before.oldest_replaced_state), (1, 0, Duration::ZERO));
    fill();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    clock.advance(Duration::from_secs(9));
    let statistics = db.statistics();
    assert_eq!(statistics.open_scans, 1);
    assert!(statistics.held_bytes >= 50_000, "{} bytes", statistics.held_bytes);
    assert!(statistics.oldest_replaced_state >= Duration::from_secs(9));
    assert_eq!(scan.count(), 499);
    let after = db.statistics();
    assert_eq!((after.open_scans, after.held_bytes, after.oldest_replaced_state), (0, 0, Duration::ZERO));
}

/// A handle of a dropped keyspace kept 74 MB on disk, and nothing showed it.
#[test]
fn a_handle_of_a_dropped_keyspace_shows_the_bytes_that_it_holds() {
    let (db, _) = open();
    let keyspace = db.create_keyspace("dropped", small_keyspace()).unwrap();
    (0..500_u32).for_each(|number| keyspace.put(number.to_be_bytes(), [1; 100]).unwrap());
    db.flush().unwrap();
    assert!(db.statistics().dropped_keyspaces.is_empty());
    db.drop_keyspace("dropped").unwrap();
    let statistics = db.statistics();
    let [dropped] = &*statistics.dropped_keyspaces else { panic!("{statistics:?}") };
    assert_eq!(dropped.name, "dropped");
    assert!(dropped.bytes >= 50_000 && statistics.held_bytes == dropped.bytes, "{dropped:?}");
    drop(keyspace);
    let statistics = db.statistics();
    assert!(statistics.dropped_keyspaces.is_empty() && statistics.held_bytes == 0, "{statistics:?}");
}
