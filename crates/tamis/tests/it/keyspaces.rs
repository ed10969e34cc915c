//! Keyspaces that are created, dropped and created again: their content after each step, and their cost for other keyspaces.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use tamis::{Compression, Db, Durability, Error, Filters, Keyspace, KeyspaceOptions, Statistics, WriteBatch};
use tamis_vfs::{MemVfs, OperationKind, RecordVfs, Vfs};

use crate::support::{FOLDER, SplitMix64, inline_options, open_in_memory, open_on, small_keyspace};

fn open(vfs: &MemVfs) -> Db {
    open_in_memory(vfs, inline_options()).unwrap()
}

fn count(vfs: &MemVfs, suffix: &str) -> usize {
    vfs.list(Path::new(FOLDER)).unwrap().iter().filter(|file| file.name.ends_with(suffix)).count()
}

fn log_bytes(vfs: &MemVfs) -> u64 {
    let files = vfs.list(Path::new(FOLDER)).unwrap();
    files.iter().filter(|file| file.name.ends_with(".log")).map(|file| file.length).sum()
}

fn fill(keyspace: &Keyspace, count: u32, length: usize) {
    for index in 0..count {
        keyspace.put(index.to_be_bytes(), vec![index as u8; length]).unwrap();
    }
}

fn is_dropped<T>(result: tamis::Result<T>) -> bool {
    matches!(result, Err(Error::KeyspaceDropped))
}

#[test]
fn handles_of_a_dropped_keyspace_fail_and_its_open_scans_continue() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    db.put("kept", "1").unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    fill(&keyspace, 3_000, 100);
    let snapshot = db.snapshot();
    let mut begun = keyspace.range(..);
    assert!(begun.move_next().unwrap());
    let table_count = count(&vfs, ".table");
    assert!(table_count > 2);
    db.drop_keyspace("k").unwrap();

    let mut batch = WriteBatch::new();
    batch.put(&db.default_keyspace(), "half", "1").unwrap();
    batch.put(&keyspace, "half", "2").unwrap();
    assert!(is_dropped(db.write(batch)));
    assert!(db.get("half").unwrap().is_none(), "half a batch was written");
    assert!(is_dropped(keyspace.put("a", "b")) && is_dropped(keyspace.delete("a")));
    assert!(is_dropped(keyspace.get("a")) && is_dropped(keyspace.multi_get(["a"])));
    assert!(is_dropped(keyspace.first()) && is_dropped(keyspace.range(..).next().unwrap()));
    assert!(is_dropped(snapshot.get(&keyspace, "a")));
    assert!(is_dropped(snapshot.prefix(&keyspace, "a").next_back().unwrap()));
    assert!(is_dropped(db.compact_range(&keyspace, ..)));
    assert!(matches!(db.keyspace("k"), Err(Error::KeyspaceNotFound { .. })));
    assert!(matches!(db.drop_keyspace("k"), Err(Error::KeyspaceNotFound { .. })));
    assert_eq!(db.keyspace_names(), ["default"]);

    // Its files live as long as the scan that reads them.
    assert_eq!(begun.by_ref().count(), 2_999);
    assert_eq!(count(&vfs, ".table"), table_count);
    drop((begun, keyspace, snapshot));
    db.put("more", "1").unwrap();
    assert_eq!(count(&vfs, ".table"), 0, "the files of a dropped keyspace are deleted");
    assert_eq!(db.get("kept").unwrap().unwrap(), b"1");
}

#[test]
fn writes_to_a_dropped_keyspace_never_reach_a_new_one_with_its_name() {
    let vfs = MemVfs::new();
    let mut db = open(&vfs);
    for turn in 0..6 {
        let old = db.create_keyspace("k", small_keyspace()).unwrap();
        old.put("key", "old").unwrap();
        let mut batch = WriteBatch::new();
        batch.put(&old, "key", "late").unwrap();
        db.drop_keyspace("k").unwrap();
        let new = db.create_keyspace("k", small_keyspace()).unwrap();
        assert!(is_dropped(db.write(batch.clone())) && is_dropped(old.put("key", "late")));
        assert!(new.first().unwrap().is_none());
        new.put("key", "new").unwrap();
        assert!(is_dropped(db.write(batch)) && is_dropped(old.get("key")));
        assert_eq!(new.get("key").unwrap().unwrap(), b"new");
        drop(old);
        if turn % 2 == 0 {
            db = open_again(&vfs, &db);
        }
        let new = db.keyspace("k").unwrap();
        assert_eq!(new.get("key").unwrap().unwrap(), b"new");
        assert_eq!(new.range(..).count(), 1);
        db.drop_keyspace("k").unwrap();
    }
}

#[test]
fn a_keyspace_with_a_reused_name_is_empty_after_any_end_of_the_process() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = SplitMix64::new(seed);
        let mut vfs = MemVfs::new();
        let mut db = open(&vfs);
        // The contents of the keyspace of each name.
        let mut models: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for step in 0..400 {
            let name = format!("k{}", random.below(3));
            match random.below(40) {
                0..2 => match models.remove(&name) {
                    Some(_) => db.drop_keyspace(&name).unwrap(),
                    None => {
                        assert!(
                            db.create_keyspace(&name, small_keyspace()).unwrap().first().unwrap().is_none()
                        );
                        models.insert(name, BTreeMap::new());
                    }
                },
                2 => db.flush().unwrap(),
                3 => {
                    db.close().unwrap();
                    db = open(&vfs);
                }
                4 => {
                    // Power failure: synced writes survive, and so do all keyspaces.
                    db.persist(Durability::Synced).unwrap();
                    let after = vfs.crash_clone(seed + step);
                    drop(db);
                    vfs = after;
                    db = open(&vfs);
                }
                _ => {
                    if let Some(model) = models.get_mut(&name) {
                        let (key, value) = (random.below(50), random.next_u64());
                        let keyspace = db.keyspace(&name).unwrap();
                        keyspace.put(key.to_be_bytes(), value.to_be_bytes().repeat(100)).unwrap();
                        model.insert(key, value);
                    }
                }
            }
            if step % 20 == 0 {
                let names: Vec<_> = models.keys().map(String::as_str).collect();
                assert_eq!(&db.keyspace_names()[1..], names);
                for (name, model) in &models {
                    let found: BTreeMap<u64, u64> = entries(&db.keyspace(name).unwrap());
                    assert_eq!(&found, model, "{name}");
                }
            }
        }
    }
}

fn entries(keyspace: &Keyspace) -> BTreeMap<u64, u64> {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().unwrap());
    keyspace
        .range(..)
        .map(|entry| entry.unwrap())
        .map(|(key, value)| (number(&key), number(&value)))
        .collect()
}

#[test]
fn created_and_dropped_keyspaces_are_durable_when_the_call_returns() {
    for seed in 0..20 {
        let vfs = MemVfs::new();
        let db = open(&vfs);
        db.create_keyspace("made", small_keyspace()).unwrap();
        db.create_keyspace("dropped", small_keyspace()).unwrap().put("key", "value").unwrap();
        db.drop_keyspace("dropped").unwrap();
        let db = open(&vfs.crash_clone(seed));
        assert_eq!(db.keyspace_names(), ["default", "made"], "seed {seed}");
    }
}

#[test]
fn options_stay_with_their_keyspace() {
    let vfs = MemVfs::new();
    let options = KeyspaceOptions::default()
        .layout(tamis::Layout::tiered())
        .memtable_bytes(1 << 20)
        .block_bytes(8192)
        .table_bytes(3 << 20)
        .compression(vec![Compression::None, Compression::Lz4, Compression::Zstd(7)])
        .filters(Filters::per_level([vec![tamis::TableFilter::bits(12.5)], Vec::new()]))
        .views(tamis::Views::On)
        .size_ratio(7)
        .level0_runs(3);
    let db = open(&vfs);
    assert_eq!(db.create_keyspace("k", options.clone()).unwrap().options(), options);
    for _ in 0..3 {
        let db = open_again(&vfs, &db);
        assert_eq!(db.keyspace("k").unwrap().options(), options);
        // Opening an existing keyspace with other options does not change its options.
        let found = db.get_or_create_keyspace("k", KeyspaceOptions::default()).unwrap();
        assert_eq!(found.options(), options);
        assert_eq!(db.default_keyspace().options(), KeyspaceOptions::default());
    }
}

/// Closes the store and opens it again.
fn open_again(vfs: &MemVfs, db: &Db) -> Db {
    db.clone().close().unwrap();
    open(vfs)
}

#[test]
fn a_batch_over_keyspaces_is_whole_after_any_crash() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = SplitMix64::new(seed);
        let vfs = MemVfs::new();
        let db = open(&vfs);
        let keyspaces: Vec<_> =
            (0..4).map(|index| db.create_keyspace(&format!("k{index}"), small_keyspace()).unwrap()).collect();
        let mut synced = 0;
        let step_count = 20 + random.below(200);
        for step in 1..=step_count {
            let mut batch = WriteBatch::new();
            for keyspace in &keyspaces {
                // Of very different sizes, so that the keyspaces are flushed at different times.
                let length = 8 + random.below(if keyspace.name() == "k1" { 3_000 } else { 20 }) as usize;
                let mut value = step.to_be_bytes().to_vec();
                value.resize(length, 0);
                batch.put(keyspace, "last", value).unwrap();
            }
            let is_synced = random.below(10) == 0;
            let durability = if is_synced { Durability::Synced } else { Durability::Buffered };
            db.write_with(batch, durability).unwrap();
            synced = if is_synced { step } else { synced };
            if random.below(40) == 0 {
                db.flush().unwrap();
                synced = step;
            }
        }
        let db = open(&vfs.crash_clone(seed));
        let last = |index: u32| {
            let value = db.keyspace(&format!("k{index}")).unwrap().get("last").unwrap();
            value.map_or(0, |value| u64::from_be_bytes(value[..8].try_into().unwrap()))
        };
        let found: Vec<u64> = (0..4).map(last).collect();
        assert!(found.iter().all(|step| *step == found[0]), "half a batch was found: {found:?}");
        assert!(found[0] >= synced, "{} was synced, {} was found", synced, found[0]);
    }
}

#[test]
fn an_idle_keyspace_keeps_no_log_segment() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options().log_bytes_max(1 << 20)).unwrap();
    let idle = db.create_keyspace("idle", KeyspaceOptions::default()).unwrap();
    let busy = db.create_keyspace("busy", small_keyspace()).unwrap();
    idle.put("only", "entry").unwrap();
    for round in 0..20 {
        fill(&busy, 2_000, 100);
        let logged = log_bytes(&vfs);
        // The limit, and what one memtable of the busy keyspace adds before the next segment begins.
        assert!(logged < (1 << 20) + (256 << 10), "round {round}: {logged} bytes of log");
        assert_eq!(db.statistics().log_bytes, logged);
    }
    let of = |statistics: &Statistics, name: &str| {
        statistics.keyspaces.iter().find(|keyspace| keyspace.name == name).unwrap().clone()
    };
    assert_eq!(of(&db.statistics(), "idle").levels.len(), 1, "the idle memtable was flushed");
    let db = open_again(&vfs, &db);
    assert!(db.open_report().replayed_entries < 20_000);
    assert_eq!(db.keyspace("idle").unwrap().get("only").unwrap().unwrap(), b"entry");
    assert_eq!(db.keyspace("busy").unwrap().range(..).count(), 2_000);
}

#[test]
fn a_dropped_keyspace_keeps_no_log_segment() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let dropped = db.create_keyspace("dropped", KeyspaceOptions::default()).unwrap();
    let busy = db.create_keyspace("busy", small_keyspace()).unwrap();
    fill(&dropped, 1_000, 100);
    db.drop_keyspace("dropped").unwrap();
    fill(&busy, 4_000, 100);
    db.flush().unwrap();
    assert!(log_bytes(&vfs) < 4_096, "{} bytes of log are left of nothing", log_bytes(&vfs));
    let db = open_again(&vfs, &db);
    assert_eq!(db.open_report().replayed_entries, 0);
    assert_eq!(db.keyspace_names(), ["busy", "default"]);
}

#[test]
fn hundreds_of_keyspaces_keep_their_entries_separate() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let name = |index: u64| format!("tenant/{index:04}");
    for index in 0..300 {
        let keyspace = db.create_keyspace(&name(index), small_keyspace()).unwrap();
        for entry in 0..5 {
            keyspace.put((index * entry).to_be_bytes(), index.to_be_bytes()).unwrap();
        }
        if index == 150 {
            db.flush().unwrap();
        }
    }
    let db = open_again(&vfs, &db);
    let check = |db: &Db, index: u64| {
        let found = db.keyspace(&name(index)).unwrap();
        let keys: Vec<_> = found.range(..).map(|entry| entry.unwrap().0.to_vec()).collect();
        let mut expected: Vec<_> = (0..5).map(|entry| (index * entry).to_be_bytes().to_vec()).collect();
        expected.dedup();
        assert_eq!(keys, expected, "{index}");
    };
    (0..300).for_each(|index| check(&db, index));
    for index in (0..300).step_by(2) {
        db.drop_keyspace(&name(index)).unwrap();
    }
    let db = open_again(&vfs, &db);
    assert_eq!(db.keyspace_names().len(), 151);
    (1..300).step_by(2).for_each(|index| check(&db, index));
    assert!(db.verify().unwrap().is_sound());
    // One table each of the first half, at most.
    db.flush().unwrap();
    assert!(count(&vfs, ".table") <= 150, "{} tables", count(&vfs, ".table"));
}

const MANY: u64 = 1_000;

/// A store with [`MANY`] keyspaces of one entry each, and the names of the keyspaces.
fn open_many(vfs: &RecordVfs) -> (Db, Vec<String>) {
    let vfs: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let db = open_on(vfs, inline_options()).unwrap();
    let names: Vec<String> = (0..MANY).map(|index| format!("tenant/{index:04}")).collect();
    for name in &names {
        db.create_keyspace(name, small_keyspace()).unwrap().put("key", name).unwrap();
    }
    (db, names)
}

#[test]
fn flush_of_1000_keyspaces_costs_few_synced_edits() {
    let memory = MemVfs::new();
    let vfs = RecordVfs::new(Arc::new(memory.clone()));
    let (db, names) = open_many(&vfs);
    vfs.reset();
    db.flush().unwrap();
    assert_eq!(db.statistics().flushes, MANY);
    let (edits, log_syncs) = (
        vfs.tally_of(OperationKind::Sync, ".manifest").count,
        vfs.tally_of(OperationKind::Sync, ".log").count,
    );
    assert!(edits <= 20, "{edits} synced edits");
    assert!(log_syncs <= 40, "{log_syncs} syncs of the log");
    let db = open(&memory.crash_clone(1));
    assert_eq!(db.open_report().replayed_entries, 0);
    for name in &names {
        assert_eq!(db.keyspace(name).unwrap().get("key").unwrap().unwrap(), name.as_bytes());
    }
}

#[test]
fn a_group_of_flushes_leaves_no_half_of_a_batch() {
    for seed in 0..40 {
        let vfs = MemVfs::new();
        let options = inline_options().log_bytes_max(1 << 20).workers(1);
        let db = open_in_memory(&vfs, options).unwrap();
        let keyspaces: Vec<_> =
            (0..8).map(|index| db.create_keyspace(&format!("k{index}"), small_keyspace()).unwrap()).collect();
        let mut random = SplitMix64::new(seed);
        for step in 1..=40_u64 {
            // Each batch fills two keyspaces, so that others are immutable and not flushed yet.
            let mut batch = WriteBatch::new();
            let first = random.below(8) as usize;
            for keyspace in [&keyspaces[first], &keyspaces[(first + 1 + random.below(7) as usize) % 8]] {
                batch.put(keyspace, step.to_be_bytes(), vec![1; 20 << 10]).unwrap();
            }
            db.write(batch).unwrap();
        }
        let db = open_in_memory(&vfs.crash_clone(seed), inline_options()).unwrap();
        let holders = |step: u64| {
            let holds = |index: &usize| {
                db.keyspace(&format!("k{index}")).unwrap().get(step.to_be_bytes()).unwrap().is_some()
            };
            (0..8).filter(holds).count()
        };
        let counts: Vec<usize> = (1..=40).map(holders).collect();
        assert!(counts.iter().all(|count| [0, 2].contains(count)), "seed {seed}: {counts:?}");
    }
}

#[test]
fn drop_of_1000_keyspaces_is_one_synced_edit_and_survives_a_crash() {
    let memory = MemVfs::new();
    let vfs = RecordVfs::new(Arc::new(memory.clone()));
    let (db, names) = open_many(&vfs);
    db.flush().unwrap();
    vfs.reset();
    db.drop_keyspaces(&names).unwrap();
    assert_eq!(vfs.tally_of(OperationKind::Sync, ".manifest").count, 1);
    assert_eq!(db.keyspace_names(), ["default"]);
    assert_eq!(open(&memory.crash_clone(1)).keyspace_names(), ["default"]);
    db.put("key", "value").unwrap();
    assert_eq!(count(&memory, ".table"), 0, "the tables are deleted");
}

#[test]
fn drop_of_several_keyspaces_drops_all_or_none() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    for name in ["a", "b", "c"] {
        db.create_keyspace(name, small_keyspace()).unwrap().put("key", name).unwrap();
    }
    let missing = db.drop_keyspaces(["a", "absent", "b"]);
    assert!(matches!(missing, Err(Error::KeyspaceNotFound { name }) if name == "absent"));
    assert!(matches!(db.drop_keyspaces(["a", "default"]), Err(Error::InvalidArgument { .. })));
    assert_eq!(db.keyspace_names(), ["a", "b", "c", "default"]);
    db.drop_keyspaces::<&str>([]).unwrap();
    db.drop_keyspaces(["c", "a", "c"]).unwrap();
    assert_eq!(db.keyspace_names(), ["b", "default"]);
    assert_eq!(db.keyspace("b").unwrap().get("key").unwrap().unwrap(), b"b");
    let db = open_again(&vfs, &db);
    assert_eq!(db.keyspace_names(), ["b", "default"]);
}

/// The last sequence number was in the log only, as an entry of a dropped keyspace. When its segment was removed, the next open
/// continued with a smaller number.
#[test]
fn sequence_numbers_of_a_dropped_keyspace_are_not_used_again() {
    for is_closed in [true, false] {
        let vfs = MemVfs::new();
        let db = open(&vfs);
        let dropped = db.create_keyspace("dropped", small_keyspace()).unwrap();
        db.put("key", "value").unwrap();
        dropped.put("key", "value").unwrap();
        let before = db.snapshot().sequence();
        drop(dropped);
        db.drop_keyspace("dropped").unwrap();
        db.flush().unwrap();
        if is_closed {
            db.close().unwrap();
        } else {
            drop(db);
        }
        assert!(open(&vfs).snapshot().sequence() >= before);
    }
}
