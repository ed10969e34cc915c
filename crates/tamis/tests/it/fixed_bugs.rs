//! Fixed bugs, each named by the current behaviour.

use std::{
    io::ErrorKind,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tamis::{Access, Db, Durability, Error, Layout, ManualClock, Options, Runtime, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{FOLDER, SplitMix64, inline_options, open_in_memory, small_keyspace};

fn open_on(vfs: &FaultVfs, options: Options) -> Db {
    Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::deterministic(2)).unwrap()
}

fn files_with(vfs: &MemVfs, part: &str) -> Vec<String> {
    let entries = vfs.list(Path::new(FOLDER)).unwrap();
    entries.into_iter().map(|entry| entry.name).filter(|name| name.contains(part)).collect()
}

/// The folder was inspected before the lock was taken: a database that another process created and closed in between was replaced
/// by an empty one.
#[test]
fn a_database_created_while_an_open_waits_for_the_lock_is_kept() {
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let is_done = AtomicBool::new(false);
    let other = memory.clone();
    fault.add_rule(
        Rule::slow(move |_| {
            if !is_done.swap(true, Ordering::SeqCst) {
                let vfs = Arc::new(other.clone());
                let db = Db::open_on(vfs, FOLDER, inline_options(), Runtime::deterministic(1)).unwrap();
                let mut batch = WriteBatch::new();
                batch.put(&db.default_keyspace(), "key", "value").unwrap();
                db.write_with(batch, Durability::Synced).unwrap();
                db.close().unwrap();
            }
        })
        .on(&[OperationKind::Lock]),
    );
    let db = open_on(&fault, inline_options());
    assert_eq!(db.get("key").unwrap().as_deref(), Some(b"value".as_slice()));
}

/// After a failed step a cursor had no position, and a later step panicked or ended the scan silently.
#[test]
fn a_failed_seek_is_an_error_once_and_a_later_seek_succeeds() {
    let fault = FaultVfs::new(Arc::new(MemVfs::new()));
    let options = inline_options().table_access(Access::Buffered).cache_bytes(0);
    let db = open_on(&fault, options);
    for number in 0..2_000_u32 {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    let mut scan = db.range(..);
    assert!(scan.move_next().unwrap());
    let rule = fault.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Read]).forever());
    scan.seek(1_500_u32.to_be_bytes()).unwrap_err();
    assert!(!scan.move_next().unwrap());
    assert!(scan.key().is_empty());
    fault.remove_rule(rule);
    scan.seek(1_500_u32.to_be_bytes()).unwrap();
    assert!(scan.move_next().unwrap());
    assert_eq!(scan.key(), 1_500_u32.to_be_bytes());
}

/// A table that could not be finished left its temporary file, so that a full disk stayed full.
#[test]
fn a_failed_flush_leaves_no_file_behind() {
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let db = open_on(&fault, inline_options());
    for number in 0..3_000_u32 {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    let rule = fault.add_rule(Rule::disk_full(100_000).path(".tmp"));
    for _ in 0..3 {
        db.flush().unwrap_err();
        assert_eq!(files_with(&memory, ".tmp"), [""; 0]);
    }
    fault.remove_rule(rule);
    db.flush().unwrap();
    assert_eq!(files_with(&memory, ".table").len(), 1);
}

/// One file that could not be removed blocked the removal of all later ones until the next open.
#[test]
fn a_failed_file_deletion_is_retried_and_delays_no_other() {
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let db = open_on(&fault, inline_options());
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..6_000_u32 {
        keyspace.put((number * 7_919 % 6_000).to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    fault.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Remove]).path(".obsolete"));
    db.compact_range(&keyspace, ..).unwrap();
    // A log segment that waits to be used again has such a name, too.
    let left = || files_with(&memory, ".table.obsolete");
    assert!(left().len() <= 1, "{:?}", left());
    db.put("another", "write").unwrap();
    db.flush().unwrap();
    assert_eq!(left(), [""; 0]);
}

/// The wait ended while tables that compactions had replaced were still on disk, so that a settled store took up to twice its space.
#[test]
fn a_wait_for_compactions_ends_after_the_deletion_of_replaced_tables() {
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let slow = Rule::slow(|_| (0..2_000).for_each(|_| std::thread::yield_now()));
    let slow = fault.add_rule(slow.on(&[OperationKind::Remove]).path(".table.obsolete").forever());
    let db = open_on(&fault, Options::default().workers(2));
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..6_000_u32 {
        keyspace.put((number * 7_919 % 6_000).to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(fault.hit_count(slow) > 0);
    assert_eq!(files_with(&memory, ".table.obsolete"), [""; 0]);
}

/// The compaction that failed was chosen again and again, and no other keyspace was compacted.
#[test]
fn a_damaged_table_does_not_block_other_keyspaces() {
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let options = inline_options().table_access(Access::Buffered).cache_bytes(0);
    let db = open_on(&fault, options);
    let runs = |name: &str, db: &Db| {
        let statistics = db.statistics();
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == name).unwrap();
        keyspace.levels.first().map_or(0, |level| level.run_count)
    };
    let options = small_keyspace().level0_runs(2);
    let damaged = db.create_keyspace("damaged", options.clone()).unwrap();
    let sound = db.create_keyspace("sound", options).unwrap();
    damaged.put("key", [7; 100]).unwrap();
    db.flush().unwrap();
    let table = files_with(&memory, ".table").remove(0);
    let reads = [OperationKind::Read, OperationKind::Open];
    fault.add_rule(Rule::error(ErrorKind::Other).on(&reads).path(&table).forever());
    for number in 0..12_u32 {
        damaged.put("key", number.to_be_bytes()).unwrap();
        db.flush().unwrap();
    }
    for number in 0..12_u32 {
        sound.put("key", number.to_be_bytes()).unwrap();
        db.flush().unwrap();
        assert!(runs("sound", &db) <= 2, "{} runs", runs("sound", &db));
    }
    assert!(runs("damaged", &db) >= 12, "its own compaction can't be done");
    assert!(db.statistics().jobs_failed > 0);
    db.compact_range(&sound, ..).unwrap();
}

/// As above, within a keyspace: the partition with the damaged table was the most urgent one each time, and no other was compacted.
#[test]
fn a_damaged_table_does_not_block_other_partitions() {
    const PARTITIONS: u32 = 10;
    const TABLES_MAX: u32 = 4;
    let memory = MemVfs::new();
    let fault = FaultVfs::new(Arc::new(memory.clone()));
    let layout = Layout::Partitioned { tables_per_partition: TABLES_MAX };
    let default_keyspace = small_keyspace().layout(layout);
    let (table_access, cache_bytes) = (Access::Buffered, 0);
    let options = inline_options()
        .table_access(table_access)
        .cache_bytes(cache_bytes)
        .default_keyspace(default_keyspace);
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(2) };
    let db = Db::open_on(Arc::new(fault.clone()), FOLDER, options, runtime).unwrap();
    let partitions = || db.statistics().keyspaces[0].partitions.clone();
    let mut random = SplitMix64::new(5);
    while partitions().len() < PARTITIONS as usize {
        for _ in 0..100 {
            let value: Vec<u8> = (0..100).flat_map(|_| random.next_u64().to_be_bytes()).collect();
            db.put(random.next_u64().to_be_bytes(), value).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let lowers: Vec<Vec<u8>> = partitions().into_iter().map(|partition| partition.lower).collect();
    let damaged = lowers[3].clone();
    let keys: Vec<Vec<u8>> = lowers.into_iter().map(|lower| [&*lower, &[0]].concat()).collect();
    let before = files_with(&memory, ".table");
    db.put(&keys[3], "damaged").unwrap();
    db.flush().unwrap();
    let mut new = files_with(&memory, ".table");
    new.retain(|name| !before.contains(name));
    let [table] = &new[..] else { panic!("one new table: {new:?}") };
    let reads = [OperationKind::Read, OperationKind::Open];
    let rule = fault.add_rule(Rule::error(ErrorKind::Other).on(&reads).path(table).forever());

    let runs = |is_sound: bool| -> Vec<usize> {
        let wanted = partitions().into_iter().filter(|partition| (partition.lower != damaged) == is_sound);
        wanted.map(|partition| partition.size.run_count).collect()
    };
    // Each flush has failed compactions tried again at once.
    for round in 0..12_u32 {
        for key in &keys {
            db.put(key, round.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        let runs = runs(true);
        assert!(runs.iter().all(|&runs| runs <= TABLES_MAX as usize), "round {round}: {runs:?}");
    }
    assert!(runs(false)[0] >= 12, "its own compaction can't be done");
    // The damaged partition waits, and is tried again when its time has come.
    let fill_memtable = || {
        for key in &keys {
            db.put(key, [7; 8 << 10]).unwrap();
        }
    };
    let failed = db.statistics().jobs_failed;
    (0..12).for_each(|_| fill_memtable());
    assert_eq!(db.statistics().jobs_failed, failed);
    assert!(runs(true).iter().all(|&runs| runs <= TABLES_MAX as usize), "{:?}", runs(true));
    clock.advance(Duration::from_secs(1));
    fill_memtable();
    assert_eq!(db.statistics().jobs_failed, failed + 1);

    // Writes continue until the damaged partition has the maximum number of runs.
    let write = || keys.iter().try_for_each(|key| db.put(key, "value")).and_then(|()| db.flush());
    let error = (0..1_000).find_map(|_| write().err()).unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(runs(false)[0] >= 16 * TABLES_MAX as usize, "{:?}", runs(false));
    fault.remove_rule(rule);
    write().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(runs(false)[0] <= TABLES_MAX as usize);
}

/// A batch identified its store by an address. A store that was opened after the first one was closed could have the same address, and
/// accepted the batch: a key of the first store appeared in the second.
#[test]
fn a_batch_of_a_closed_store_is_refused_by_every_later_store() {
    let mut batch = WriteBatch::new();
    let first = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
    batch.put(&first.default_keyspace(), "key", "of the first store").unwrap();
    first.close().unwrap();
    for _ in 0..300 {
        let other = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
        let refused = other.write(batch.clone());
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
        assert!(matches!(
            batch.put(&other.default_keyspace(), "key", "b"),
            Err(Error::InvalidArgument { .. })
        ));
        assert_eq!(other.get("key").unwrap(), None);
    }
}
