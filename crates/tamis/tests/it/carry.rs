//! Entries that a flush of the partitioned layout carries into the next memtable, instead of writing tables for them.

use std::sync::Arc;

use tamis::{Db, Durability, KeyspaceChange, KeyspaceOptions, Layout, Options, Runtime, Statistics};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};
use tamis_workload::{SplitMix64, ZipfianComposite};

use crate::support::{FOLDER, Model, Random, check_entries, inline_options, open_in_memory, small_keyspace};

pub(crate) const LAYOUT: Layout = Layout::Partitioned { tables_per_partition: 4, tables_after_split: 2 };
/// Keys below this number get most writes.
pub(crate) const HOT_COUNT: u64 = 40;
pub(crate) const KEY_COUNT: u64 = 400;

pub(crate) fn options() -> Options {
    Options { default_keyspace: KeyspaceOptions { layout: LAYOUT, ..small_keyspace() }, ..inline_options() }
}

fn put(db: &Db, model: &mut Model, number: u64, value: Vec<u8>) {
    let key = number.to_be_bytes().to_vec();
    db.put(&key, &value).unwrap();
    model.insert(key, value);
}

/// A store with some partitions, of which most have nearly as many tables as they may have.
pub(crate) fn prepare(vfs: &MemVfs) -> (Db, Model) {
    let db = open_in_memory(vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), Random(3));
    for _ in 0..3 * KEY_COUNT {
        put(&db, &mut model, random.below(KEY_COUNT), vec![1; 3_000]);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    (db, model)
}

/// Overwrites hot keys, and changes a few cold keys a little.
fn write(db: &Db, model: &mut Model, random: &mut Random, count: u64) {
    for round in 0..count {
        if round % 7 > 0 {
            put(db, model, random.below(HOT_COUNT), vec![round as u8; 3_000]);
            continue;
        }
        let number = HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT);
        if random.below(3) == 0 {
            let key = number.to_be_bytes().to_vec();
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            put(db, model, number, round.to_be_bytes().to_vec());
        }
    }
}

#[test]
fn few_entries_of_expensive_partitions_stay_in_memory_until_a_later_flush() {
    let vfs = MemVfs::new();
    let (db, mut model) = prepare(&vfs);
    let mut random = Random(4);
    let before = db.statistics();
    let mut snapshots = Vec::new();
    for _ in 0..6 {
        write(&db, &mut model, &mut random, 60);
        check_entries(&db, &model);
        snapshots.push((db.snapshot(), model.clone()));
        for (snapshot, model) in &snapshots {
            let keyspace = db.default_keyspace();
            let found: Model = snapshot
                .range::<&[u8]>(&keyspace, ..)
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            assert!(found == *model, "a snapshot has {} entries, not {}", found.len(), model.len());
            for key in 0..KEY_COUNT {
                let key = key.to_be_bytes();
                let found = snapshot.get(&keyspace, key).unwrap();
                assert_eq!(found.as_deref(), model.get(&key[..]).map(Vec::as_slice));
            }
        }
    }
    let statistics = db.statistics();
    let flushes = statistics.flushes - before.flushes;
    let carried = statistics.partitions_carried - before.partitions_carried;
    assert!(carried >= flushes && flushes > 5, "{carried} partitions carried by {flushes} flushes");
    let bytes = statistics.carried_bytes - before.carried_bytes;
    let flushed = statistics.flush_bytes_written - before.flush_bytes_written;
    assert!(bytes > 0 && bytes * 100 < flushed * 15, "{bytes} bytes carried, {flushed} flushed");
    assert!(statistics.carried_entries > before.carried_entries);
    // A process that ends has them in the log; one that calls `flush` has them in tables.
    drop(snapshots);
    db.close().unwrap();
    let db = open_in_memory(&vfs, options()).unwrap();
    check_entries(&db, &model);
    db.flush().unwrap();
    check_entries(&db, &model);
    db.close().unwrap();
    let db = open_in_memory(&vfs, options()).unwrap();
    assert_eq!(db.open_report().replayed_entries, 0);
    check_entries(&db, &model);
}

/// The bytes that flushes and compactions write, with and without carried entries: only the layout's own flushes carry.
#[test]
fn carried_entries_save_more_bytes_than_they_take() {
    let written = |flush_each: bool| {
        let vfs = MemVfs::new();
        let (db, mut model) = prepare(&vfs);
        let before = db.statistics();
        let mut random = Random(4);
        for _ in 0..40 {
            write(&db, &mut model, &mut random, 21);
            if flush_each {
                db.flush().unwrap();
            }
        }
        check_entries(&db, &model);
        let after = db.statistics();
        let all = |s: &Statistics| s.log_bytes_written + s.flush_bytes_written + s.compaction_bytes_written;
        (all(&after) - all(&before), after.partitions_carried - before.partitions_carried)
    };
    let ((carrying, count), (flushing, none)) = (written(false), written(true));
    assert!(count > 0 && none == 0);
    assert!(carrying * 10 < flushing * 9, "{carrying} bytes written, {flushing} by whole flushes");
}

/// A change of the layout, an ingest, a checkpoint and a killed process find carried entries in memory or in the log.
#[test]
fn carried_entries_survive_changes_of_the_layout_ingests_and_checkpoints() {
    for layout in [Layout::Leveled, Layout::tiered()] {
        let vfs = MemVfs::new();
        let (db, mut model) = prepare(&vfs);
        let mut random = Random(5);
        while db.statistics().partitions_carried == 0 {
            write(&db, &mut model, &mut random, 7);
        }
        db.checkpoint("/copy").unwrap();
        let copied = model.clone();
        let mut table = db.default_keyspace().table_writer("/table").unwrap();
        for number in (0..KEY_COUNT).step_by(3) {
            let key = number.to_be_bytes();
            table.put(key, b"ingested").unwrap();
            model.insert(key.to_vec(), b"ingested".to_vec());
        }
        table.finish().unwrap();
        // A copy of the process that is killed here.
        let killed = vfs.crash_clone(0);
        db.ingest(&db.default_keyspace(), ["/table"]).unwrap();
        check_entries(&db, &model);
        let carried = db.statistics().partitions_carried;
        while db.statistics().partitions_carried == carried {
            write(&db, &mut model, &mut random, 7);
        }
        db.close().unwrap();
        let change_keyspaces = vec![("default".to_owned(), KeyspaceChange::Layout(layout))];
        let changed = Options { change_keyspaces, ..inline_options() };
        let db = open_in_memory(&vfs, changed.clone()).unwrap();
        check_entries(&db, &model);
        db.wait_for_compactions().unwrap();
        let statistics = db.statistics();
        assert_eq!(statistics.jobs_failed, 0);
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "default").unwrap();
        assert_eq!(keyspace.partition_count, 1, "{layout}");
        check_entries(&db, &model);
        db.close().unwrap();
        let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let copy = Db::open_on(files, "/copy", changed.clone(), Runtime::deterministic(7)).unwrap();
        copy.wait_for_compactions().unwrap();
        check_entries(&copy, &copied);
        let killed = open_in_memory(&killed, changed).unwrap();
        killed.wait_for_compactions().unwrap();
        assert!(killed.verify().unwrap().is_sound());
    }
}

/// The log refuses the record of the carried entries, but the disk has it: the flush is tried again without it.
#[test]
fn a_refused_record_of_carried_entries_is_not_replayed() {
    let memory = MemVfs::new();
    let (db, mut model) = prepare(&memory);
    db.close().unwrap();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = Db::open_on(Arc::new(faults.clone()), FOLDER, options(), Runtime::deterministic(7)).unwrap();
    let mut random = Random(4);
    let mut refused = 0;
    for round in 0..40_u64 {
        let rule = Rule::error_after(std::io::ErrorKind::Other).on(&[OperationKind::Append]).path(".log");
        let rule = faults.add_rule(rule.nth(round % 30));
        let cut =
            faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&[OperationKind::Truncate]).forever());
        for number in 0..30 {
            let (number, value) = match number % 7 {
                0 => (HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT), vec![round as u8; 10]),
                _ => (random.below(HOT_COUNT), vec![round as u8; 3_000]),
            };
            let key = number.to_be_bytes();
            match db.put(key, &value) {
                Ok(()) => drop(model.insert(key.to_vec(), value)),
                Err(_) => refused += 1,
            }
        }
        faults.remove_rule(rule);
        faults.remove_rule(cut);
        db.persist(Durability::Synced).unwrap();
        let crashed = open_in_memory(&memory.crash_clone(round), options()).unwrap();
        check_entries(&crashed, &model);
        crashed.flush().unwrap();
        check_entries(&crashed, &model);
    }
    // Refused records of carried entries fail flushes, not writes.
    let statistics = db.statistics();
    assert!(refused > 0 && statistics.jobs_failed > 0, "{refused}, {statistics:?}");
    assert!(statistics.partitions_carried > 0);
    check_entries(&db, &model);
}

/// Bytes that a store writes for each byte of updates whose keys share Zipfian prefixes (figure 17 of the REMIX paper).
fn composite_amplification(layout: Layout) -> f64 {
    const COUNT: u64 = 40_000;
    let keyspace = KeyspaceOptions {
        layout,
        memtable_bytes: 512 << 10,
        table_bytes: 64 << 10,
        ..KeyspaceOptions::default()
    };
    let options = Options { default_keyspace: keyspace, log_bytes_max: 8 << 20, ..inline_options() };
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let put = |number: u64, round: u64| {
        let mut value = [0; 100];
        value[..8].copy_from_slice(&tamis_workload::mix64(number ^ round << 32).to_be_bytes());
        db.put(tamis_workload::operations::hex_digits(number), value).unwrap();
    };
    let mut random = SplitMix64::new(3);
    for number in 0..COUNT {
        put(random.below(COUNT), number);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let all = |statistics: &Statistics| {
        statistics.log_bytes_written + statistics.flush_bytes_written + statistics.compaction_bytes_written
    };
    let before = db.statistics();
    let prefixes = ZipfianComposite::new(COUNT / 16);
    for round in 0..COUNT {
        let drawn = prefixes.draw(&mut random);
        put((drawn >> 16) * 16 + drawn % 16, COUNT + round);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let after = db.statistics();
    let user_bytes = after.user_bytes_written - before.user_bytes_written;
    (all(&after) - all(&before)) as f64 / user_bytes as f64
}

#[test]
fn skewed_updates_write_less_than_in_the_leveled_layout() {
    let leveled = composite_amplification(Layout::Leveled);
    let partitioned = composite_amplification(Layout::partitioned());
    println!("leveled {leveled:.2}, partitioned {partitioned:.2}");
    assert!(partitioned < 0.75 * leveled, "{partitioned:.2} {leveled:.2}");
}

#[test]
fn a_key_with_many_versions_takes_one_partition() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, options()).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..100_000_u64 {
        db.put(b"key", round.to_be_bytes()).unwrap();
        if round % 20_000 == 0 {
            snapshots.push((round, db.snapshot()));
        }
    }
    for (round, snapshot) in &snapshots {
        let found = snapshot.get(&db.default_keyspace(), b"key").unwrap();
        assert_eq!(found.as_deref(), Some(&round.to_be_bytes()[..]));
    }
    drop(snapshots);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let statistics = db.statistics();
    let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "default").unwrap();
    assert_eq!(keyspace.partition_count, 1);
    let table_count: usize = keyspace.levels.iter().map(|level| level.table_count).sum();
    assert!(table_count <= 4, "{table_count}");
    check_entries(&db, &Model::from([(b"key".to_vec(), 99_999_u64.to_be_bytes().to_vec())]));
}
