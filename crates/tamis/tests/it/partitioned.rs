//! The partitioned layout in a whole store: flushes by partition, splits, divisions and unions.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tamis::{
    Db, DecisionStatistics, Event, EventListener, KeyspaceStatistics, Layout, Options, PartitionChange,
    PartitionStatistics, Runtime, Scan, Snapshot, Statistics, Views,
};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, RecordVfs, Rule, Vfs};

use crate::support::{
    EventLog, FOLDER, Model, SplitMix64, check_entries, inline_options, is_deep, open_in_memory, open_on,
    put, small_keyspace, sweep_stride,
};

const LAYOUT: Layout = Layout::Partitioned { tables_per_partition: 4 };

fn options() -> Options {
    inline_options().default_keyspace(small_keyspace().layout(LAYOUT))
}

fn of_default(statistics: &Statistics) -> KeyspaceStatistics {
    statistics.keyspaces.iter().find(|keyspace| keyspace.name == "default").unwrap().clone()
}

/// Puts and deletes at random.
fn write(db: &Db, model: &mut Model, random: &mut SplitMix64, keys: std::ops::Range<u64>, count: u64) {
    for round in 0..count {
        let number = keys.start + random.below(keys.end - keys.start);
        if random.below(6) == 0 {
            let key = number.to_be_bytes().to_vec();
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            put(db, model, number, vec![round as u8; random.below(800) as usize]);
        }
    }
}

#[test]
fn random_writes_split_partitions_and_every_entry_stays_readable() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(3));
    for round in 0..12 {
        write(&db, &mut model, &mut random, 0..6_000, 400);
        check_entries(&db, &model);
        for partition in of_default(&db.statistics()).partitions {
            assert!(partition.size.table_count <= 4, "round {round}: {partition:?}");
        }
    }
    let statistics = db.statistics();
    assert!(statistics.partition_decisions.split.count > 0, "{statistics:?}");
    assert!(of_default(&statistics).partition_count > 4);
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    for folder in [FOLDER, "/copy"] {
        let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let db = Db::open_on(files, folder, inline_options(), Runtime::deterministic(7)).unwrap();
        assert_eq!(db.default_keyspace().options().layout, LAYOUT);
        check_entries(&db, &model);
        db.compact_range(&db.default_keyspace(), ..).unwrap();
        for partition in of_default(&db.statistics()).partitions {
            assert!(partition.size.run_count <= 1, "{partition:?}");
            assert_eq!(partition.size.tombstone_count, 0, "{partition:?}");
        }
        check_entries(&db, &model);
        db.close().unwrap();
    }
}

/// Scans cross the bounds of partitions, of which some have no entry, in both directions, with entries in memory and from both ends.
#[test]
fn scans_cross_partitions_in_both_directions() {
    for views in [Views::Off, Views::On] {
        let mut options = options();
        options.default_keyspace = options.default_keyspace.views(views);
        let db = open_in_memory(&MemVfs::new(), options).unwrap();
        let (mut model, mut random) = (Model::new(), SplitMix64::new(12));
        write(&db, &mut model, &mut random, 0..6_000, 4_000);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        assert!(of_default(&db.statistics()).partition_count > 8);
        // Partitions whose keys are all deleted, the tombstones in tables; and newer entries in memory.
        for number in 2_000_u64..3_200 {
            db.delete(number.to_be_bytes()).unwrap();
            model.remove(&number.to_be_bytes()[..]);
        }
        db.flush().unwrap();
        write(&db, &mut model, &mut random, 0..6_000, 60);
        let keyspace = db.default_keyspace();
        let snapshot = db.snapshot();
        let old = model.clone();
        write(&db, &mut model, &mut random, 0..6_000, 60);
        for _ in 0..300 {
            let mut bounds = [random.below(6_200).to_be_bytes(), random.below(6_200).to_be_bytes()];
            bounds.sort_unstable();
            let [lower, upper] = bounds;
            check_moves(&mut db.range(..), model.range::<Vec<u8>, _>(..), &mut random);
            let within = || (Bound::Included(lower.to_vec()), Bound::Excluded(upper.to_vec()));
            check_moves(&mut db.range(lower..upper), model.range(within()), &mut random);
            let mut scan = snapshot.range(&keyspace, lower..upper);
            check_moves(&mut scan, old.range(within()), &mut random);
            let mut ends = db.range(lower..upper);
            let mut expected = model.range(within());
            for _ in 0..60 {
                let is_front = random.below(2) == 0;
                let found = if is_front { ends.next() } else { ends.next_back() };
                let other = if is_front { expected.next() } else { expected.next_back() };
                let found = found.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec()));
                assert_eq!(found, other.map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
}

/// Seeks and steps at random, and compares with the entries of the scan's range.
fn check_moves<'a>(
    scan: &mut Scan,
    expected: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
    random: &mut SplitMix64,
) {
    let expected: Vec<_> = expected.collect();
    let sought = random.below(6_200).to_be_bytes();
    // The entries that the next steps return.
    let mut after = match random.below(4) {
        0 => {
            scan.seek_to_first();
            0
        }
        1 => {
            scan.seek_to_last();
            expected.len()
        }
        2 => {
            scan.seek(sought).unwrap();
            expected.partition_point(|(key, _)| key.as_slice() < &sought[..])
        }
        _ => {
            scan.seek_for_prev(sought).unwrap();
            expected.partition_point(|(key, _)| key.as_slice() <= &sought[..])
        }
    };
    let mut before = after.checked_sub(1);
    let mut is_forward = random.below(2) == 0;
    for _ in 0..40 {
        if random.below(12) == 0 {
            is_forward = !is_forward;
        }
        let is_there = if is_forward { scan.move_next().unwrap() } else { scan.move_prev().unwrap() };
        let position = if is_forward { Some(after) } else { before };
        let entry = position.and_then(|position| expected.get(position));
        let found = is_there.then(|| (scan.key(), scan.value()));
        assert_eq!(found, entry.map(|(key, value)| (key.as_slice(), value.as_slice())));
        let Some(position) = position.filter(|_| is_there) else { break };
        (before, after) = (position.checked_sub(1), position + 1);
    }
}

/// Each entry is written once: by its flush.
#[test]
fn a_load_in_key_order_is_divided_and_never_rewritten() {
    let db = open_in_memory(&MemVfs::new(), options()).unwrap();
    let mut model = Model::new();
    for number in 0..6_000 {
        put(&db, &mut model, number, vec![number as u8; 300]);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let statistics = db.statistics();
    assert!(of_default(&statistics).partition_count > 5, "{statistics:?}");
    assert!(statistics.partition_decisions.divide.count > 0);
    let share = statistics.compaction_bytes_written as f64 / statistics.flush_bytes_written as f64;
    assert!(share < 0.05, "{share} bytes rewritten for each flushed byte");
    check_entries(&db, &model);
}

/// Updates of one part of the key space leave the tables of other partitions as they are, and do not even open them.
#[test]
fn skewed_updates_leave_untouched_partitions_unread() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(4));
    for number in 0..4_000 {
        put(&db, &mut model, number, vec![1; 300]);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let cold = |statistics: &Statistics| -> Vec<_> {
        let partitions = of_default(statistics).partitions;
        partitions
            .into_iter()
            .filter(|partition| partition.lower > 1_000_u64.to_be_bytes().to_vec())
            .collect()
    };
    let before = cold(&db.statistics());
    assert!(before.len() > 3);
    let partitions = of_default(&db.statistics()).partitions;
    let table_count = |partitions: &[PartitionStatistics]| -> usize {
        partitions.iter().map(|partition| partition.size.table_count).sum()
    };
    let hot_count = table_count(&partitions) - table_count(&before);
    db.close().unwrap();
    let names: BTreeSet<String> =
        vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name).collect();
    let opened_by = |record: &RecordVfs| -> BTreeSet<String> {
        let operations = record.operations();
        let opened = operations.iter().filter(|operation| operation.kind == OperationKind::Open);
        opened.map(|operation| operation.file_name()).filter(|name| name.ends_with(".table")).collect()
    };
    // A scan of the cold partitions opens their tables.
    let copy = RecordVfs::new(Arc::new(vfs.crash_clone(0)));
    let files: Arc<dyn Vfs> = Arc::new(copy.clone());
    let db = open_on(files, inline_options()).unwrap();
    let first = before.first().unwrap().lower.as_slice();
    assert!(db.range(first..).count() > 1_000);
    let cold_names = opened_by(&copy);
    assert_eq!(cold_names.len(), table_count(&before));
    drop(db);
    let record = RecordVfs::new(Arc::new(vfs));
    let files: Arc<dyn Vfs> = Arc::new(record.clone());
    let db = open_on(files, inline_options()).unwrap();
    for _ in 0..6 {
        write(&db, &mut model, &mut random, 0..500, 300);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let opened = opened_by(&record);
    assert_eq!(opened.intersection(&cold_names).collect::<Vec<_>>(), [""; 0], "cold tables were opened");
    let old: Vec<_> = opened.intersection(&names).collect();
    assert!((1..=hot_count).contains(&old.len()), "{} tables of {hot_count} were opened", old.len());
    assert_eq!(cold(&db.statistics()), before);
    check_entries(&db, &model);
}

#[test]
fn range_deletes_cross_partitions_and_small_partitions_are_united() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(5));
    write(&db, &mut model, &mut random, 0..6_000, 3_000);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let before = of_default(&db.statistics()).partition_count;
    assert!(before > 4, "{before}");
    let (snapshot, keyspace) = (db.snapshot(), db.default_keyspace());
    let old = model.clone();
    let (lower, upper) = (100_u64.to_be_bytes(), 5_900_u64.to_be_bytes());
    db.delete_range(lower..upper).unwrap();
    model.retain(|key, _| key.as_slice() < &lower[..] || key.as_slice() >= &upper[..]);
    check_entries(&db, &model);
    write(&db, &mut model, &mut random, 0..6_000, 100);
    db.flush().unwrap();
    check_entries(&db, &model);
    for (key, value) in &old {
        assert_eq!(snapshot.get(&keyspace, key).unwrap().as_deref(), Some(value.as_slice()));
    }
    assert_eq!(snapshot.range(&keyspace, ..).count(), old.len());
    drop(snapshot);
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.wait_for_compactions().unwrap();
    let statistics = db.statistics();
    assert!(statistics.partition_decisions.unite.count > 0);
    let after = of_default(&statistics).partition_count;
    assert!(after < before, "{after} of {before}");
    check_entries(&db, &model);
    db.close().unwrap();
    check_entries(&open_in_memory(&vfs, inline_options()).unwrap(), &model);
}

/// Programs that build tables need not know the partitions.
#[test]
fn an_ingested_table_may_cross_partitions() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(9));
    write(&db, &mut model, &mut random, 0..6_000, 3_000);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let before = of_default(&db.statistics()).partition_count;
    assert!(before > 4, "{before}");
    let mut table = db.default_keyspace().table_writer("/table").unwrap();
    let (lower, upper) = (2_000_u64.to_be_bytes(), 5_000_u64.to_be_bytes());
    table.delete_range(lower..upper).unwrap();
    model.retain(|key, _| key.as_slice() < &lower[..] || key.as_slice() >= &upper[..]);
    for number in (0..6_000_u64).step_by(7) {
        let key = number.to_be_bytes();
        if number % 5 == 0 {
            table.delete(key).unwrap();
            model.remove(&key[..]);
        } else {
            table.put(key, b"ingested").unwrap();
            model.insert(key.to_vec(), b"ingested".to_vec());
        }
    }
    table.finish().unwrap();
    db.ingest(&db.default_keyspace(), ["/table"]).unwrap();
    check_entries(&db, &model);
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    assert_eq!(db.open_report().foreign_files, [""; 0]);
    check_entries(&db, &model);
}

/// Flushes, jobs that replace partitions, and ingests meet on real threads.
#[test]
fn concurrent_writers_ingests_and_jobs_lose_no_entry() {
    const COUNT: u64 = 3_000;
    let vfs = MemVfs::new();
    let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let options = options().workers(3);
    let db = Db::open_on(files, FOLDER, options, Runtime::system()).unwrap();
    let is_done = AtomicBool::new(false);
    let models: Vec<Model> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    let (mut model, mut random) = (Model::new(), SplitMix64::new(20 + writer));
                    for round in 0..COUNT {
                        let key = (random.below(4_000) * 4 + writer).to_be_bytes().to_vec();
                        if random.below(8) == 0 {
                            db.delete(&key).unwrap();
                            model.remove(&key);
                        } else {
                            let value = vec![round as u8; random.below(600) as usize];
                            db.put(&key, &value).unwrap();
                            model.insert(key, value);
                        }
                    }
                    model
                })
            })
            .collect();
        let ingests = scope.spawn(|| {
            let (mut model, mut round) = (Model::new(), 0_u64);
            while !is_done.load(Ordering::Relaxed) {
                let mut table = db.default_keyspace().table_writer(format!("/table{round}")).unwrap();
                for number in (0..4_000).filter(|number| number % 37 == round % 37) {
                    let (key, value) = ((number * 4 + 3).to_be_bytes(), round.to_be_bytes());
                    table.put(key, value).unwrap();
                    model.insert(key.to_vec(), value.to_vec());
                }
                let file = table.finish().unwrap();
                db.ingest(&db.default_keyspace(), [&file.path]).unwrap();
                round += 1;
            }
            model
        });
        let readers = scope.spawn(|| {
            let keyspace = db.default_keyspace();
            while !is_done.load(Ordering::Relaxed) {
                let snapshot = db.snapshot();
                let entries = |backward: bool| -> Vec<_> {
                    let scan = snapshot.range(&keyspace, ..);
                    if backward {
                        scan.rev().map(Result::unwrap).collect()
                    } else {
                        scan.map(Result::unwrap).collect()
                    }
                };
                let (forward, mut backward) = (entries(false), entries(true));
                backward.reverse();
                assert!(
                    forward == backward,
                    "a snapshot has {} and {} entries",
                    forward.len(),
                    backward.len()
                );
                for (key, value) in forward.iter().step_by(101) {
                    assert_eq!(snapshot.get(&keyspace, key).unwrap().as_ref(), Some(value));
                }
            }
        });
        let mut models: Vec<Model> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        is_done.store(true, Ordering::Relaxed);
        models.push(ingests.join().unwrap());
        readers.join().unwrap();
        models
    });
    let model: Model = models.into_iter().flatten().collect();
    db.wait_for_compactions().unwrap();
    check_entries(&db, &model);
    let statistics = db.statistics();
    assert!(
        statistics.partition_decisions.split.count + statistics.partition_decisions.divide.count > 0,
        "{statistics:?}"
    );
    assert_eq!(statistics.jobs_failed, 0);
    db.close().unwrap();
    check_entries(&open_in_memory(&vfs, inline_options()).unwrap(), &model);
}

/// A store with many partitions, of which each has few entries.
#[test]
fn a_store_of_many_partitions_opens_and_reads_only_the_tables_that_it_needs() {
    let vfs = MemVfs::new();
    let layout = Layout::Partitioned { tables_per_partition: 4 };
    let keyspace = small_keyspace().layout(layout).memtable_bytes(4 << 20);
    let db = open_in_memory(&vfs, inline_options().default_keyspace(keyspace)).unwrap();
    let mut model = Model::new();
    for number in 0..6_000 {
        put(&db, &mut model, number, vec![number as u8; 9_000]);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let partition_count = of_default(&db.statistics()).partition_count;
    assert!(partition_count >= 400, "{partition_count}");
    assert!(of_default(&db.statistics()).partitions.len() == tamis::LISTED_MAX);
    db.close().unwrap();
    let record = RecordVfs::new(Arc::new(vfs));
    let db = open_on(Arc::new(record.clone()), inline_options()).unwrap();
    // The manifest, the log and few others: no table.
    let opened = record.operations().iter().filter(|operation| operation.kind == OperationKind::Open).count();
    assert!(opened < 20, "{opened} files opened");
    assert_eq!(of_default(&db.statistics()).partition_count, partition_count);
    for (key, value) in model.iter().step_by(97) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
}

/// Power fails, or an operation fails, at every change of a file of flushes, merges, splits, divisions and unions.
#[test]
fn no_failure_of_a_job_loses_entries_or_revives_deleted_ones() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(6));
    write(&db, &mut model, &mut random, 0..3_000, 1_200);
    db.close().unwrap();
    let (lower, upper) = (700_u64.to_be_bytes(), 1_600_u64.to_be_bytes());
    let work = |vfs: Arc<dyn Vfs>, model: &mut Model| -> tamis::Result<Statistics> {
        let db = open_on(vfs, inline_options())?;
        let mut random = SplitMix64::new(8);
        for round in 0..1_200_u64 {
            let key = (random.below(3_000) * 2).to_be_bytes();
            let value = vec![round as u8; 400];
            db.put(key, &value)?;
            model.insert(key.to_vec(), value);
        }
        db.delete_range(lower..upper)?;
        model.retain(|key, _| key.as_slice() < &lower[..] || key.as_slice() >= &upper[..]);
        db.flush()?;
        db.wait_for_compactions()?;
        db.compact_range(&db.default_keyspace(), ..)?;
        db.wait_for_compactions()?;
        let statistics = db.statistics();
        db.close()?;
        Ok(statistics)
    };
    let record = RecordVfs::new(Arc::new(memory.crash_clone(0)));
    let statistics = work(Arc::new(record.clone()), &mut model.clone()).unwrap();
    let jobs = [statistics.partition_decisions.split.count, statistics.compactions, statistics.flushes];
    assert!(jobs.iter().all(|count| *count > 0), "{jobs:?}");
    let kinds = [
        OperationKind::Create,
        OperationKind::Append,
        OperationKind::Sync,
        OperationKind::SyncDir,
        OperationKind::Rename,
        OperationKind::Remove,
    ];
    let count = record.operations().iter().filter(|operation| kinds.contains(&operation.kind)).count() as u64;
    assert!(count > 100, "{count}");
    for nth in (0..count).step_by(if is_deep() { 1 } else { 11 * sweep_stride() as usize }) {
        let files = memory.crash_clone(0);
        let faults = FaultVfs::new(Arc::new(files.clone()));
        let rule = Rule::error(std::io::ErrorKind::Other).on(&kinds).nth(nth);
        // Disks fail once, or from then on.
        faults.add_rule(if nth % 2 == 0 { rule.forever() } else { rule });
        let mut written = model.clone();
        let result = work(Arc::new(faults), &mut written);
        for seed in 0..2 {
            // After a failed write it is unknown whether the last entry is there; a synced store has all.
            let files = if seed == 0 { files.crash_clone(seed) } else { files.clone() };
            let db = open_in_memory(&files, inline_options()).unwrap();
            let all: Model = db
                .range(..)
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            if result.is_ok() {
                assert!(all == written, "operation {nth}: {} entries of {}", all.len(), written.len());
            }
            for (key, value) in &all {
                assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()), "operation {nth}");
            }
            // Entries that were durable before are overwritten or deleted, and never lost.
            let is_deleted = |key: &[u8]| key >= &lower[..] && key < &upper[..];
            for key in model.keys().filter(|key| !is_deleted(key)) {
                assert!(all.contains_key(key), "operation {nth}: {key:?} is lost");
            }
            let report = db.verify().unwrap();
            assert!(report.is_sound(), "operation {nth}: {:?}", report.faults);
        }
    }
}

/// Whether the folder has the named tables only.
fn keeps_only_named_tables(db: &Db, files: &MemVfs) -> bool {
    let is_table = |name: &str| name.ends_with(".table") || name.ends_with(".tmp");
    let names = files.list(Path::new(FOLDER)).unwrap();
    let tables = names.iter().filter(|entry| is_table(&entry.name)).count();
    let levels = of_default(&db.statistics()).levels;
    tables == levels.iter().map(|level| level.table_count).sum::<usize>()
}

/// Each sync of a table of a flush fails once, or panics.
#[test]
fn a_failed_sync_of_one_table_of_a_flush_loses_nothing() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(16));
    write(&db, &mut model, &mut random, 0..6_000, 3_000);
    db.flush().unwrap();
    let partition_count = of_default(&db.statistics()).partition_count as u64;
    assert!(partition_count > 6, "{partition_count}");
    db.close().unwrap();
    for nth in (0..partition_count).step_by(if is_deep() { 1 } else { 3 }) {
        for panics in [false, true] {
            let files = memory.crash_clone(0);
            let faults = FaultVfs::new(Arc::new(files.clone()));
            let workers = inline_options().workers(2);
            let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
            let db = open_on(vfs, workers).unwrap();
            let mut model = model.clone();
            for number in (0..6_000_u64).step_by(50) {
                put(&db, &mut model, number, vec![nth as u8; 40]);
            }
            let rule = if panics {
                Rule::slow(|_| panic!("a file system that panics")).times(1)
            } else {
                Rule::error(std::io::ErrorKind::Other)
            };
            let rule = faults.add_rule(rule.on(&[OperationKind::Sync]).path(".tmp").nth(nth + 1));
            let flushed = db.flush();
            assert_eq!(faults.hit_count(rule), 1, "sync {nth}");
            if panics {
                assert!(
                    flushed.is_err() && db.put(b"key", b"value").is_err(),
                    "sync {nth}: writes are refused"
                );
            } else {
                db.flush().unwrap();
                check_entries(&db, &model);
                // Reads make jobs due, too, and each ends after its inputs are deleted.
                db.wait_for_compactions().unwrap();
                assert!(keeps_only_named_tables(&db, &files), "sync {nth}: the flush left tables");
            }
            drop(db);
            let db = open_in_memory(&files, inline_options()).unwrap();
            check_entries(&db, &model);
            let names = files.list(Path::new(FOLDER)).unwrap();
            assert!(names.iter().all(|entry| !entry.name.ends_with(".tmp")), "sync {nth}: {names:?}");
            let report = db.verify().unwrap();
            assert!(report.is_sound(), "sync {nth}: {:?}", report.faults);
        }
    }
}

/// Each decision reports the expected and the actual bytes to the listener and to the statistics.
#[test]
fn decisions_report_expected_and_actual_bytes() {
    let log = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
    let options = options().listener(listener);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(9));
    // Splits and majors, then divisions, retained entries, and unions of partitions whose entries are deleted.
    for _ in 0..800 {
        put(&db, &mut model, random.below(400), vec![1; 3_000]);
    }
    for number in 1_000..1_200 {
        put(&db, &mut model, number, vec![2; 3_000]);
    }
    for round in 0..300 {
        let number = if round % 7 > 0 { random.below(40) } else { 40 + random.below(360) };
        put(&db, &mut model, number, vec![3; if round % 7 > 0 { 3_000 } else { 8 }]);
    }
    for number in 0_u64..1_150 {
        db.delete(number.to_be_bytes()).unwrap();
        model.remove(&number.to_be_bytes()[..]);
    }
    db.flush().unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.wait_for_compactions().unwrap();
    check_entries(&db, &model);

    let statistics = db.statistics();
    let events = log.0.lock();
    let mut counted = BTreeMap::<_, [u64; 3]>::new();
    let mut add = |name, count, bytes_expected: u64, bytes_written: u64| {
        let sums = counted.entry(name).or_default();
        *sums = [sums[0] + count, sums[1] + bytes_expected, sums[2] + bytes_written];
    };
    let mut retained = 0;
    for event in events.iter() {
        match event {
            Event::PartitionsChanged {
                change,
                before,
                after,
                bytes_expected,
                bytes_read,
                bytes_written,
                ..
            } => {
                let name = match change {
                    PartitionChange::Split => "split",
                    PartitionChange::Divide => "divide",
                    _ => "unite",
                };
                add(name, 1, *bytes_expected, *bytes_written);
                // Tables that a flush adds during the job are cut, too; here none is running.
                let is_expected = match change {
                    // Nothing is written if all entries are deleted.
                    PartitionChange::Split => {
                        *before == 1 && bytes_expected == bytes_read && (*bytes_written > 0 || *after == 1)
                    }
                    PartitionChange::Divide => {
                        *before == 1
                            && *after > 1
                            && bytes_expected == bytes_read
                            && *bytes_written <= bytes_expected + 4 * 4_096
                    }
                    PartitionChange::Unite => {
                        *before > 1 && *after == 1 && bytes_expected + bytes_written == 0
                    }
                    other => panic!("{other:?}"),
                };
                assert!(is_expected, "{event:?}");
            }
            Event::Compacted { bytes_expected, bytes_read, bytes_written, .. } => {
                add("major", 1, *bytes_expected, *bytes_written);
                assert!(
                    bytes_expected == bytes_read && *bytes_written <= bytes_expected + 4_096,
                    "{event:?}"
                );
            }
            Event::Flushed { bytes_expected, bytes, .. } => {
                // Of one or more partitions.
                add("minor", 0, *bytes_expected, *bytes);
                assert!(*bytes_expected > 0 && *bytes > 0, "{event:?}");
                // Each partition gets a table, which has at least a page.
                assert!(*bytes <= bytes_expected * 3 / 2 + (512 << 10), "{event:?}");
            }
            Event::EntriesRetained { bytes, bytes_saved_expected, entry_count, partition_count, .. } => {
                retained += entry_count;
                add("abort", *partition_count as u64, 0, 0);
                assert!(bytes_saved_expected >= &(4 * bytes), "{event:?}");
            }
            _ => {}
        }
    }
    assert_eq!(retained, statistics.retained_entries);
    check_decisions(&statistics, &counted);
}

/// Compares the decisions of the statistics with those of the events: count, expected bytes and written bytes.
fn check_decisions(statistics: &Statistics, counted: &BTreeMap<&str, [u64; 3]>) {
    for (name, decisions) in statistics.partition_decisions.named() {
        let DecisionStatistics { count, bytes_expected, bytes_written, .. } = decisions;
        assert!(count > 0, "{name}: {statistics:?}");
        let expected = match name {
            // The event has the bytes of keys and values, and no count of partitions with tables.
            "abort" => [count, 0, 0],
            "minor" => [0, bytes_expected, bytes_written],
            _ => [count, bytes_expected, bytes_written],
        };
        assert_eq!(counted.get(name), Some(&expected), "{name}");
    }
}

/// The estimate of each decision is near to the bytes that it writes, if no entry is overwritten and tables are not tiny.
#[test]
fn the_estimate_of_each_decision_is_near_to_its_outcome() {
    const COUNT: u64 = 40_000;
    const LENGTH: usize = 300;
    let keyspace = options().default_keyspace.memtable_bytes(1 << 20).table_bytes(256 << 10);
    let options = options().default_keyspace(keyspace).log_bytes_max(64 << 20);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let mut random = SplitMix64::new(9);
    let mut put = |number: u64, length: usize| {
        let value: Vec<u8> = std::iter::repeat_with(|| random.next_u64() as u8).take(length).collect();
        db.put(number.to_be_bytes(), value).unwrap();
    };
    // A load at random: minors, majors and splits. The factors have no divisor of the count, so that no key comes twice.
    (0..COUNT).for_each(|index| put(index * 7_919 % COUNT * 1_000, LENGTH));
    // A load in key order, through a range that has few entries: divisions.
    (0..COUNT / 40).for_each(|index| put((COUNT + index * 20) * 1_000 + 1, LENGTH));
    db.flush().unwrap();
    (0..COUNT / 2).for_each(|index| put((COUNT + index) * 1_000, LENGTH));
    // Most new keys are in few partitions, and few are in all others: these are retained.
    for index in 0..COUNT / 2 {
        if index % 100 > 0 { put(index + 1, LENGTH) } else { put(index * 997 % COUNT * 1_000 + 999, LENGTH) }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let before = db.statistics();
    // Unions of partitions whose entries are deleted.
    for number in (0..COUNT).filter(|number| number % 1_000 > 1) {
        db.delete((number * 1_000).to_be_bytes()).unwrap();
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.wait_for_compactions().unwrap();
    let mut decisions = before.partition_decisions;
    decisions.unite = db.statistics().partition_decisions.unite;
    for (name, DecisionStatistics { count, bytes_expected, bytes_written, .. }) in decisions.named() {
        assert!(count > 0, "{name}: {decisions:#?}");
        let difference = bytes_expected.abs_diff(bytes_written);
        assert!(difference * 5 <= bytes_written, "{name}: {decisions:#?}");
        assert_eq!(bytes_expected > 0, name != "unite", "{name}: {decisions:#?}");
    }
    let of_compactions = [decisions.major, decisions.split, decisions.divide].map(|one| one.bytes_written);
    assert_eq!(of_compactions.iter().sum::<u64>(), before.compaction_bytes_written);
    assert_eq!(decisions.minor.bytes_written, before.flush_bytes_written);
    assert!(decisions.abort.bytes_written > before.retained_bytes && before.retained_bytes > 0, "{before:?}");
}

/// No key can divide a partition of one key, and snapshots need all of its versions: jobs end, and every version stays readable.
#[test]
fn a_partition_of_one_key_keeps_the_versions_of_snapshots() {
    const COUNT: u32 = 300;
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let keyspace = db.default_keyspace();
    let mut snapshots = Vec::new();
    for number in 0..COUNT {
        let mut value = number.to_be_bytes().to_vec();
        value.resize(3_000, 7);
        db.put("key", &value).unwrap();
        snapshots.push((db.snapshot(), value));
        if number % 25 == 0 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    for (snapshot, value) in &snapshots {
        assert_eq!(snapshot.get(&keyspace, "key").unwrap().as_deref(), Some(value.as_slice()));
        assert_eq!(snapshot.range(&keyspace, ..).count(), 1);
    }
    let statistics = db.statistics();
    let flushed = statistics.flush_bytes_written;
    assert!(statistics.flushes >= 12 && flushed > u64::from(COUNT) * 3_000, "{statistics:?}");
    // Each job reads all versions, so there are only as many as the limit of tables needs.
    let jobs = statistics.compactions
        + statistics.partition_decisions.split.count
        + statistics.partition_decisions.divide.count;
    assert!(jobs > 0 && jobs <= statistics.flushes, "{jobs} jobs, {} flushes", statistics.flushes);
    assert_eq!(of_default(&statistics).partition_count, 1);
    let (_, newest) = snapshots.pop().unwrap();
    drop(snapshots);
    db.compact_range(&keyspace, ..).unwrap();
    let partition = of_default(&db.statistics()).partitions.remove(0);
    assert_eq!((partition.size.table_count, partition.size.entry_count), (1, 1), "{partition:?}");
    drop(keyspace);
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(newest.as_slice()));
}

/// Versions of one key (with `TAMIS_SWEEPS=1` a million), each of which a snapshot needs: jobs end, and a read searches a few blocks.
#[test]
fn a_partition_of_one_key_takes_many_versions() {
    // The number of flushes does not depend on the share. They are few: each job reads the numbers of all snapshots.
    let count = 1_000_000 / sweep_stride();
    let vfs = MemVfs::new();
    let keyspace = small_keyspace().layout(LAYOUT).memtable_bytes((4 << 20) / sweep_stride());
    let options = inline_options().default_keyspace(keyspace).log_bytes_max((64 << 20) / sweep_stride());
    let db = open_in_memory(&vfs, options).unwrap();
    let keyspace = db.default_keyspace();
    let mut snapshots = Vec::new();
    for number in 0..count {
        db.put("key", number.to_be_bytes()).unwrap();
        snapshots.push((db.snapshot(), number));
    }
    let check = |db: &Db, snapshots: &[(Snapshot, u64)], version_count: u64| {
        db.flush().unwrap();
        db.compact_range(&keyspace, ..).unwrap();
        db.wait_for_compactions().unwrap();
        let partitions = of_default(&db.statistics()).partitions;
        let sizes: Vec<_> = partitions.iter().map(|partition| &partition.size).collect();
        let counts: Vec<_> = sizes.iter().map(|size| (size.table_count, size.entry_count)).collect();
        assert_eq!(counts, [(1, version_count)]);
        check_versions(db, snapshots);
    };
    check_versions(&db, &snapshots);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    check_versions(&db, &snapshots);
    let statistics = db.statistics();
    // One job for several flushes, also if all of its outputs are one table.
    let jobs = statistics.compactions
        + statistics.partition_decisions.split.count
        + statistics.partition_decisions.divide.count;
    assert!(jobs > 1 && 3 * jobs <= statistics.flushes, "{jobs} jobs, {} flushes", statistics.flushes);
    let size = of_default(&statistics).partitions.remove(0).size;
    assert!(size.entry_count == count && (2..=4).contains(&size.run_count), "{size:?}");
    check(&db, &snapshots, count);
    // A merge with newer entries keeps the newest version, and those of the other snapshots.
    snapshots.retain(|(_, number)| number % (count / 10) == 0);
    db.put("key", count.to_be_bytes()).unwrap();
    check(&db, &snapshots, 11);
    let last = snapshots.pop().unwrap();
    drop((last, snapshots));
    check(&db, &[], 1);
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&count.to_be_bytes()[..]));
    assert!(db.verify().unwrap().is_sound());
}

/// Snapshots read their versions of the only key, by gets and by scans in both directions, in a few blocks.
fn check_versions(db: &Db, snapshots: &[(Snapshot, u64)]) {
    let keyspace = db.default_keyspace();
    let before = db.statistics();
    let mut read_count = 0;
    for (snapshot, number) in snapshots.iter().step_by(snapshots.len() / 100 + 1) {
        let value = number.to_be_bytes();
        assert_eq!(snapshot.get(&keyspace, "key").unwrap().as_deref(), Some(&value[..]));
        for is_forward in [true, false] {
            let mut scan = snapshot.range(&keyspace, ..);
            let mut next = || if is_forward { scan.next() } else { scan.next_back() };
            let (key, found) = next().unwrap().unwrap();
            assert!(*key == *b"key" && *found == value && next().is_none());
        }
        read_count += 3;
    }
    let after = db.statistics();
    let requests = |statistics: &Statistics| statistics.blocks_read + statistics.cache_hits;
    let blocks = requests(&after) - requests(&before);
    assert!(blocks <= 8 * read_count, "{blocks} blocks for {read_count} reads");
}
