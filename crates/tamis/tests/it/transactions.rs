//! Transactions: answers compared with a model, conflicts wherever the change is, isolation, exclusive ones, bad input.

use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tamis::{
    ConflictKeys, Db, Durability, Error, Filters, Isolation, Keyspace, Layout, OpenMode, Options,
    Transaction, TransactionOptions, TransactionScan, Views, WriteBatch,
};
use tamis_vfs::MemVfs;
use tamis_workload::history::{History, Level, Step, list_digest};

use crate::support::{
    Cases, Model, SplitMix64, inline_options, is_deep, key, open_in_memory, outside_table, small_keyspace,
};

fn snapshot_isolation() -> TransactionOptions {
    TransactionOptions::default().isolation(Isolation::Snapshot)
}

fn open(vfs: &MemVfs) -> Db {
    open_in_memory(vfs, inline_options()).unwrap()
}

fn is_conflict(result: tamis::Result<()>) -> bool {
    match result {
        Err(Error::Conflict { .. }) => true,
        Ok(()) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Keys that are prefixes of each other.
fn short_key(random: &mut SplitMix64) -> Vec<u8> {
    let symbols = [0x00, b'a', b'b', 0xFF];
    (0..=random.below(4)).map(|_| symbols[random.below(4) as usize]).collect()
}

fn short_bounds(random: &mut SplitMix64) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let mut bound = || match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(short_key(random)),
        _ => Bound::Excluded(short_key(random)),
    };
    (bound(), bound())
}

/// Reads the scan from both ends, or walks it back and forth.
fn check_scan(mut scan: TransactionScan<'_>, mut expected: Vec<(Vec<u8>, Vec<u8>)>, random: &mut SplitMix64) {
    if random.below(2) == 0 {
        while !expected.is_empty() {
            let is_front = random.below(2) == 0;
            let wanted = if is_front { expected.remove(0) } else { expected.pop().unwrap() };
            let found = if is_front { scan.next() } else { scan.next_back() };
            let (key, value) = found.expect("an entry is missing").unwrap();
            assert_eq!((key.to_vec(), value.to_vec()), wanted, "front: {is_front}");
        }
        assert!(scan.next().is_none() && scan.next_back().is_none(), "an entry too many");
        return;
    }
    // The entry that `move_next` returns next.
    let (mut next, mut is_on) = (0, false);
    for _ in 0..20 {
        if random.below(5) == 0 {
            let target = short_key(random);
            scan.seek(&target).unwrap();
            (next, is_on) = (expected.partition_point(|(key, _)| *key < target), false);
        }
        let is_forward = random.below(3) > 0;
        let wanted = match is_forward {
            true => Some(next).filter(|&index| index < expected.len()),
            false => (next + 1).checked_sub(if is_on { 3 } else { 2 }),
        };
        let moved = if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap();
        assert_eq!(moved, wanted.is_some(), "forward: {is_forward}");
        match wanted {
            Some(index) => {
                assert_eq!((scan.key(), scan.value()), (&*expected[index].0, &*expected[index].1));
                (next, is_on) = (index + 1, true);
            }
            None => (next, is_on) = (if is_forward { expected.len() } else { 0 }, false),
        }
    }
}

/// A transaction, and what it should see.
struct Open<'a> {
    transaction: Transaction,
    keyspace: &'a Keyspace,
    model: Model,
    savepoints: Vec<(tamis::Savepoint, Model)>,
}

impl Open<'_> {
    fn step(&mut self, random: &mut SplitMix64) {
        let Self { transaction, keyspace, model, savepoints } = self;
        match random.below(14) {
            0..4 => {
                let (key, value) =
                    (short_key(random), vec![random.next_u64() as u8; random.below(30) as usize]);
                transaction.put(keyspace, &key, &value).unwrap();
                model.insert(key, value);
            }
            4 | 5 => {
                let key = short_key(random);
                transaction.delete(keyspace, &key).unwrap();
                model.remove(&key);
            }
            6 => {
                let bounds = short_bounds(random);
                transaction.delete_range(keyspace, bounds.clone()).unwrap();
                model.retain(|key, _| !bounds.contains(key));
            }
            7 => savepoints.push((transaction.savepoint(), model.clone())),
            8 if !savepoints.is_empty() => {
                savepoints.truncate(1 + random.below(savepoints.len() as u64) as usize);
                let (savepoint, before) = savepoints.last().unwrap();
                transaction.roll_back_to(*savepoint).unwrap();
                model.clone_from(before);
            }
            9 => {
                let keys: Vec<_> = (0..5).map(|_| short_key(random)).collect();
                let found = transaction.multi_get(keyspace, &keys).unwrap();
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found.as_deref(), model.get(key).map(Vec::as_slice));
                }
            }
            10 => {
                let key = short_key(random);
                let found = transaction.get(keyspace, &key).unwrap();
                assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice));
            }
            11 => {
                let prefix = short_key(random);
                let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
                let expected = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
                check_scan(transaction.prefix(keyspace, &prefix), expected, random);
            }
            _ => {
                let bounds = short_bounds(random);
                let expected = model.iter().filter(|(key, _)| bounds.contains(*key));
                let expected = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
                check_scan(transaction.range(keyspace, bounds), expected, random);
            }
        }
    }
}

/// The store between transactions: other writes, flushes, compactions.
fn disturb(db: &Db, keyspace: &Keyspace, model: &mut Model, random: &mut SplitMix64) {
    match random.below(12) {
        0 => db.flush().unwrap(),
        1 => db.compact_range(keyspace, ..).unwrap(),
        2 => {
            let bounds = short_bounds(random);
            keyspace.delete_range(bounds.clone()).unwrap();
            model.retain(|key, _| !bounds.contains(key));
        }
        3..6 => {
            let key = short_key(random);
            keyspace.delete(&key).unwrap();
            model.remove(&key);
        }
        _ => {
            let (key, value) = (short_key(random), vec![random.next_u64() as u8; 9]);
            keyspace.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

#[test]
fn transactions_see_their_snapshot_and_their_own_writes_in_every_layout() {
    let layouts = [Layout::Leveled, Layout::tiered(), Layout::Partitioned { tables_per_partition: 4 }];
    let (mut committed, mut conflicts) = (0, 0);
    for seed in Cases::at_least(24) {
        let mut random = SplitMix64::new(seed);
        let db = open(&MemVfs::new());
        let options = small_keyspace()
            .layout(layouts[seed as usize % 3])
            .filters(if seed % 2 == 0 { Filters::auto(12.0) } else { Filters::none() })
            .views(if seed % 5 == 0 { Views::On } else { Views::Auto });
        let keyspace = db.create_keyspace("k", options).unwrap();
        let mut model = Model::new();
        for _ in 0..12 {
            for _ in 0..random.below(40) {
                disturb(&db, &keyspace, &mut model, &mut random);
            }
            let isolation = if random.below(2) == 0 { Isolation::Snapshot } else { Isolation::Serializable };
            let transaction = db.transaction_with(TransactionOptions::default().isolation(isolation));
            let mut open =
                Open { transaction, keyspace: &keyspace, model: model.clone(), savepoints: Vec::new() };
            let is_disturbed = random.below(2) == 0;
            for _ in 0..random.below(40) {
                open.step(&mut random);
                if is_disturbed && random.below(8) == 0 {
                    disturb(&db, &keyspace, &mut model, &mut random);
                }
            }
            let after = open.model;
            if random.below(5) == 0 {
                drop(open.transaction);
            } else if is_conflict(open.transaction.commit()) {
                assert!(is_disturbed, "a conflict with nothing");
                conflicts += 1;
            } else if !is_disturbed {
                model = after;
                committed += 1;
            } else {
                // The writes are on top of the others; what they are together other tests check.
                model = keyspace
                    .iter()
                    .map(|entry| entry.unwrap())
                    .map(|(k, v)| (k.to_vec(), v.to_vec()))
                    .collect();
            }
            let all = keyspace.iter().map(|entry| entry.unwrap());
            let all: Model = all.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert!(all == model, "seed {seed}");
        }
    }
    assert!(committed > 20 && conflicts > 10, "{committed} commits, {conflicts} conflicts");
}

/// A way to change keys.
type Change = fn(&Db, &Keyspace);

const CHANGES: [(&str, Change); 6] = [
    ("a put", |_, keyspace| keyspace.put(key(5), "other").unwrap()),
    ("a delete", |_, keyspace| keyspace.delete(key(5)).unwrap()),
    ("a range delete", |_, keyspace| keyspace.delete_range(key(4)..key(7)).unwrap()),
    ("a batch", |db, keyspace| {
        let mut batch = WriteBatch::new();
        batch.put(&db.default_keyspace(), "x", "y").unwrap();
        batch.put(keyspace, key(5), "other").unwrap();
        db.write(batch).unwrap();
    }),
    ("an ingest", |db, keyspace| {
        let mut table = keyspace.table_writer(outside_table(1)).unwrap();
        table.put(key(5), "other").unwrap();
        db.ingest(keyspace, [table.finish().unwrap().path]).unwrap();
    }),
    ("a transaction", |db, keyspace| {
        let other = db.transaction();
        other.put(keyspace, key(5), "other").unwrap();
        other.commit().unwrap();
    }),
];

/// Where the change is when the transaction commits.
const PLACES: [(&str, Change); 3] = [
    ("memtable", |_, _| {}),
    ("level 0", |db, _| db.flush().unwrap()),
    ("the deepest level", |db, keyspace| {
        db.flush().unwrap();
        db.compact_range(keyspace, ..).unwrap();
    }),
];

/// A way to read keys, of which one is 5.
type Read = fn(&Transaction, &Keyspace);

const READS: [(&str, Read); 7] = [
    ("get", |transaction, keyspace| drop(transaction.get(keyspace, key(5)).unwrap())),
    ("multi_get", |transaction, keyspace| {
        drop(transaction.multi_get(keyspace, [key(1), key(5)]).unwrap());
    }),
    ("contains", |transaction, keyspace| assert!(transaction.contains(keyspace, key(5)).is_ok())),
    ("range", |transaction, keyspace| {
        assert!(transaction.range(keyspace, key(3)..=key(5)).count() > 0);
    }),
    ("prefix", |transaction, keyspace| drop(transaction.prefix(keyspace, "key/").last())),
    ("a seek", |transaction, keyspace| {
        let mut scan = transaction.iter(keyspace);
        scan.seek(key(5)).unwrap();
        scan.move_next().unwrap();
    }),
    ("a step back", |transaction, keyspace| {
        let mut scan = transaction.iter(keyspace);
        scan.seek_for_prev(key(5)).unwrap();
        scan.move_prev().unwrap();
    }),
];

#[test]
fn a_change_of_what_was_read_is_a_conflict_wherever_it_is() {
    for (change_name, change) in CHANGES {
        for (place_name, place) in PLACES {
            for (read_name, read) in READS {
                for has_key in [true, false] {
                    let what = format!("{change_name}, {read_name}, in {place_name}, key: {has_key}");
                    let db = open(&MemVfs::new());
                    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
                    for number in (0..10).filter(|&number| has_key || number != 5) {
                        keyspace.put(key(number), "value").unwrap();
                    }
                    db.flush().unwrap();
                    let transaction = db.transaction();
                    read(&transaction, &keyspace);
                    transaction.put(&keyspace, key(8), "mine").unwrap();
                    change(&db, &keyspace);
                    place(&db, &keyspace);
                    // A delete of a key that is not there changes nothing, once a compaction has dropped it.
                    let may_be_gone = !has_key && change_name.contains("delete") && place_name != "memtable";
                    let is_refused = is_conflict(transaction.commit());
                    assert!(is_refused || may_be_gone, "no conflict: {what}");
                    if is_refused {
                        let found = keyspace.get(key(8)).unwrap();
                        assert_eq!(found.as_deref(), Some(b"value".as_slice()), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_change_of_other_keys_is_no_conflict() {
    for (place_name, place) in PLACES {
        let db = open(&MemVfs::new());
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let other = db.create_keyspace("other", small_keyspace()).unwrap();
        (0..10).for_each(|number| keyspace.put(key(number), "value").unwrap());
        let between = [&key(1)[..], b"x"].concat();
        let transaction = db.transaction();
        assert_eq!(&*transaction.first(&keyspace).unwrap().unwrap().0, key(0));
        assert_eq!(&*transaction.last(&keyspace).unwrap().unwrap().0, key(9));
        assert_eq!(transaction.range(&keyspace, key(3)..key(5)).count(), 2);
        // A scan that is not read to its end has read what it has passed.
        assert_eq!(&*transaction.range(&keyspace, key(6)..).next().unwrap().unwrap().0, key(6));
        transaction.put(&keyspace, &between, "mine").unwrap();
        transaction.get(&keyspace, &between).unwrap();
        keyspace.put(key(1), "changed").unwrap();
        keyspace.delete(key(5)).unwrap();
        keyspace.delete_range(key(7)..key(9)).unwrap();
        // It was written, and read only as its own write.
        keyspace.put(&between, "changed").unwrap();
        other.put(key(4), "another keyspace").unwrap();
        place(&db, &keyspace);
        assert!(!is_conflict(transaction.commit()), "{place_name}");
        assert_eq!(keyspace.get(&between).unwrap().as_deref(), Some(b"mine".as_slice()));
    }
}

#[test]
fn a_conflict_names_keyspace_and_keys() {
    let db = open(&MemVfs::new());
    let keyspace = db.create_keyspace("people", small_keyspace()).unwrap();
    let (first, second) = (db.transaction(), db.transaction());
    first.get(&keyspace, "ann").unwrap();
    assert_eq!(second.range(&keyspace, "a".."c").count(), 0);
    first.put(&keyspace, "count", "1").unwrap();
    second.put(&keyspace, "count", "1").unwrap();
    keyspace.put("ann", "1").unwrap();
    let error = first.commit().unwrap_err();
    assert!(error.to_string().contains("\"ann\" of keyspace \"people\""), "{error}");
    let Err(Error::Conflict { keyspace: name, keys }) = second.commit() else { panic!("no conflict") };
    assert_eq!((name.as_str(), keys), ("people", ConflictKeys::Key(b"ann".to_vec())));
}

/// Two doctors, of whom one must be on call: each leaves if the other one is there.
fn both_leave(options: TransactionOptions) -> (bool, bool) {
    let db = open(&MemVfs::new());
    let on_call = db.default_keyspace();
    on_call.put("ann", "").unwrap();
    on_call.put("bob", "").unwrap();
    let (ann, bob) = (db.transaction_with(options), db.transaction_with(options));
    assert!(ann.contains(&on_call, "bob").unwrap() && bob.contains(&on_call, "ann").unwrap());
    ann.delete(&on_call, "ann").unwrap();
    bob.delete(&on_call, "bob").unwrap();
    (!is_conflict(ann.commit()), !is_conflict(bob.commit()))
}

#[test]
fn each_isolation_shows_the_anomalies_that_it_may() {
    // Write skew.
    assert_eq!(both_leave(TransactionOptions::default()), (true, false));
    assert_eq!(both_leave(snapshot_isolation()), (true, true));
    for options in [TransactionOptions::default(), snapshot_isolation()] {
        let db = open(&MemVfs::new());
        let keyspace = db.default_keyspace();
        keyspace.put("x", "0").unwrap();
        keyspace.put("y", "0").unwrap();
        // No dirty read, no repeated read with another value, no phantom.
        let (reader, writer) = (db.transaction_with(options), db.transaction_with(options));
        writer.put(&keyspace, "x", "1").unwrap();
        writer.put(&keyspace, "z", "1").unwrap();
        assert_eq!(reader.get(&keyspace, "x").unwrap().as_deref(), Some(b"0".as_slice()));
        writer.commit().unwrap();
        assert_eq!(reader.get(&keyspace, "x").unwrap().as_deref(), Some(b"0".as_slice()));
        assert_eq!(reader.iter(&keyspace).count(), 2);
        reader.commit().expect("it wrote nothing");
        // No lost update.
        let (first, second) = (db.transaction_with(options), db.transaction_with(options));
        for transaction in [&first, &second] {
            assert!(transaction.contains(&keyspace, "x").unwrap());
            transaction.put(&keyspace, "x", "2").unwrap();
        }
        assert_eq!((is_conflict(second.commit()), is_conflict(first.commit())), (false, true));
    }
    // Blind writes of one key: the first committer wins with snapshots; a serializable order has both.
    for (options, refused) in [(TransactionOptions::default(), false), (snapshot_isolation(), true)] {
        let db = open(&MemVfs::new());
        let keyspace = db.default_keyspace();
        let (first, second) = (db.transaction_with(options), db.transaction_with(options));
        first.delete_range(&keyspace, "a".."c").unwrap();
        second.put(&keyspace, "b", "2").unwrap();
        second.commit().unwrap();
        assert_eq!(is_conflict(first.commit()), refused);
    }
}

#[test]
fn a_scan_returns_the_writes_until_it_was_created() {
    let db = open(&MemVfs::new());
    let keyspace = db.default_keyspace();
    (0..6).for_each(|number| keyspace.put(key(number), "old").unwrap());
    let transaction = db.transaction();
    transaction.put(&keyspace, key(1), "new").unwrap();
    let mut seen = Vec::new();
    for entry in transaction.iter(&keyspace) {
        let (found, value) = entry.unwrap();
        // Each entry is written, and a later one added and deleted, while the scan continues.
        transaction.put(&keyspace, &found, "later").unwrap();
        transaction.put(&keyspace, key(100 + seen.len() as u64), "later").unwrap();
        transaction.delete(&keyspace, key(5)).unwrap();
        seen.push((found.to_vec(), value.to_vec()));
    }
    let expected: Vec<_> = (0..6)
        .map(|number| (key(number), if number == 1 { b"new".to_vec() } else { b"old".to_vec() }))
        .collect();
    assert_eq!(seen, expected);
    let after: Vec<_> = transaction.iter(&keyspace).map(|entry| entry.unwrap().0.to_vec()).collect();
    let expected: Vec<_> = (0..5).chain(100..106).map(key).collect();
    assert_eq!(after, expected);
    // Backward, with versions of others between the snapshot and its own.
    for _ in 0..20 {
        keyspace.put(key(1), "other").unwrap();
        keyspace.put(key(200), "other").unwrap();
    }
    let back: Vec<_> = transaction.iter(&keyspace).rev().map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(back, expected.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn the_first_transaction_of_a_store_sees_its_own_writes() {
    let db = open(&MemVfs::new());
    let keyspace = db.default_keyspace();
    let transaction = db.transaction();
    for _ in 0..10 {
        transaction.put(&keyspace, "a", "1").unwrap();
    }
    assert_eq!(transaction.range(&keyspace, "a"..).count(), 1);
    assert_eq!(transaction.prefix(&keyspace, "a").count(), 1);
    assert_eq!(transaction.range(&keyspace, "a"..="a").rev().count(), 1);
    let mut scan = transaction.iter(&keyspace);
    scan.seek("a").unwrap();
    assert!(scan.move_next().unwrap());
}

#[test]
fn a_key_that_was_read_next_to_a_range_is_a_conflict() {
    let db = open(&MemVfs::new());
    let keyspace = db.default_keyspace();
    for options in [TransactionOptions::default(), snapshot_isolation()] {
        let transaction = db.transaction_with(options);
        transaction.get(&keyspace, "b").unwrap();
        transaction.put(&keyspace, "b", "1").unwrap();
        assert_eq!(transaction.range(&keyspace, "a".."b").count(), 0);
        transaction.delete_range(&keyspace, "a".."b").unwrap();
        keyspace.put("b", "2").unwrap();
        assert!(is_conflict(transaction.commit()));
    }
}

/// A conflict is found in memtables and tables, when the commits are too many to be kept.
#[test]
fn a_conflict_is_found_behind_many_commits() {
    for (place_name, place) in PLACES {
        for (read_name, read) in READS {
            let db = open(&MemVfs::new());
            let options = small_keyspace().memtable_bytes(8 << 20);
            let keyspace = db.create_keyspace("k", options).unwrap();
            (0..10).for_each(|number| keyspace.put(key(number), "value").unwrap());
            let (transaction, other) = (db.transaction(), db.transaction());
            read(&transaction, &keyspace);
            other.get(&keyspace, key(9)).unwrap();
            transaction.put(&keyspace, key(8), "mine").unwrap();
            other.put(&keyspace, key(8), "mine").unwrap();
            keyspace.delete_range(key(5)..key(6)).unwrap();
            for number in 1_000..1_300 {
                db.put(key(number), vec![0; 5_000]).unwrap();
            }
            place(&db, &keyspace);
            assert!(is_conflict(transaction.commit()), "{read_name}, in {place_name}");
            assert!(!is_conflict(other.commit()), "{read_name}, in {place_name}");
        }
    }
}

#[test]
fn ranges_that_a_transaction_has_emptied_are_not_empty_for_others() {
    let db = open(&MemVfs::new());
    let queue = db.default_keyspace();
    (0..500).for_each(|number| queue.put(key(number), "job").unwrap());
    let transaction = db.transaction();
    for number in 0..400 {
        transaction.delete(&queue, key(number)).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(&*transaction.first(&queue).unwrap().unwrap().0, key(400));
        assert_eq!(&*db.first().unwrap().unwrap().0, key(0));
    }
    drop(transaction);
    // Ranges that all readers know as empty do not hide what a transaction has put there.
    (0..300).for_each(|number| queue.delete(key(number)).unwrap());
    for _ in 0..3 {
        assert_eq!(&*db.first().unwrap().unwrap().0, key(300));
    }
    let transaction = db.transaction();
    transaction.put(&queue, key(7), "mine").unwrap();
    assert_eq!(&*transaction.first(&queue).unwrap().unwrap().0, key(7));
    assert_eq!(transaction.range(&queue, key(5)..key(9)).count(), 1);
}

#[test]
fn transfers_of_many_threads_keep_the_sum() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().default_keyspace(small_keyspace());
    let db = Db::open_with(folder.path(), options).unwrap();
    let accounts = db.default_keyspace();
    (0..10).for_each(|number| accounts.put(key(number), 1_000_u64.to_be_bytes()).unwrap());
    let attempts = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (db, accounts, attempts) = (&db, &accounts, &attempts);
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread);
                for _ in 0..300 {
                    let (from, to) = (key(random.below(10)), key(random.below(10)));
                    db.transact(|transaction| {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        let balance = |account: &[u8]| -> tamis::Result<u64> {
                            let value = transaction.get(accounts, account)?.expect("an account");
                            Ok(u64::from_be_bytes(value[..].try_into().unwrap()))
                        };
                        let amount = balance(&from)?.min(7);
                        transaction.put(accounts, &from, (balance(&from)? - amount).to_be_bytes())?;
                        transaction.put(accounts, &to, (balance(&to)? + amount).to_be_bytes())?;
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
        let total = |entries: &mut dyn Iterator<Item = u64>| assert_eq!(entries.sum::<u64>(), 10_000);
        for _ in 0..50 {
            let transaction = db.transaction();
            total(
                &mut transaction
                    .iter(&accounts)
                    .map(|entry| u64::from_be_bytes(entry.unwrap().1[..].try_into().unwrap())),
            );
        }
    });
    let sum: u64 =
        accounts.iter().map(|entry| u64::from_be_bytes(entry.unwrap().1[..].try_into().unwrap())).sum();
    assert_eq!(sum, 10_000);
    assert!(attempts.into_inner() < 8 * 300 * 10, "transactions starve");
}

#[test]
fn a_hot_counter_counts_every_increment() {
    let db = open_in_memory(&MemVfs::new(), Options::default()).unwrap();
    let counter = db.default_keyspace();
    let number =
        |value: Option<&[u8]>| value.map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (db, counter) = (&db, &counter);
            scope.spawn(move || {
                for _ in 0..200 {
                    if thread % 2 == 0 {
                        db.transact(|transaction| {
                            let count = number(transaction.get(counter, "hits")?.as_deref());
                            transaction.put(counter, "hits", (count + 1).to_be_bytes())
                        })
                        .unwrap();
                        continue;
                    }
                    while {
                        let before = counter.get("hits").unwrap();
                        let after = (number(before.as_deref()) + 1).to_be_bytes();
                        !counter.compare_and_put("hits", before.as_deref(), Some(&after)).unwrap()
                    } {}
                }
            });
        }
    });
    assert_eq!(number(counter.get("hits").unwrap().as_deref()), 800);
}

#[test]
fn other_writers_wait_for_an_exclusive_transaction_and_readers_do_not() {
    let db = open_in_memory(&MemVfs::new(), Options::default()).unwrap();
    let keyspace = db.default_keyspace();
    keyspace.put("x", "0").unwrap();
    let (began, order) = (Barrier::new(3), parking_lot::Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let transaction = db.exclusive().unwrap();
        let writer = scope.spawn(|| {
            began.wait();
            keyspace.put("x", "1").unwrap();
            order.lock().push("put");
        });
        let other = scope.spawn(|| {
            began.wait();
            let transaction = db.exclusive().unwrap();
            assert!(transaction.contains(&keyspace, "mine").unwrap(), "it began before the first one ended");
            transaction.put(&keyspace, "other", "").unwrap();
            transaction.commit().unwrap();
            order.lock().push("exclusive");
        });
        began.wait();
        for _ in 0..1_000 {
            assert_eq!(db.get("x").unwrap().as_deref(), Some(b"0".as_slice()));
            thread::yield_now();
        }
        let optimistic = db.transaction();
        optimistic.put(&keyspace, "y", "").unwrap();
        assert!(matches!(optimistic.commit(), Err(Error::ExclusiveTransaction)));
        assert!(matches!(db.put("y", ""), Err(Error::ExclusiveTransaction)));
        assert!(matches!(db.exclusive(), Err(Error::ExclusiveTransaction)));
        assert_eq!(transaction.get(&keyspace, "x").unwrap().as_deref(), Some(b"0".as_slice()));
        transaction.put(&keyspace, "mine", "").unwrap();
        order.lock().push("mine");
        // A thread that has used it may not write past it either; one that has not waits.
        thread::scope(|inner| {
            let used = inner.spawn(|| {
                assert!(transaction.contains(&keyspace, "mine").unwrap());
                db.put("y", "")
            });
            assert!(matches!(used.join().unwrap(), Err(Error::ExclusiveTransaction)));
        });
        assert!(matches!(db.put("y", ""), Err(Error::ExclusiveTransaction)));
        transaction.commit().unwrap();
        writer.join().unwrap();
        other.join().unwrap();
    });
    assert_eq!(order.lock()[0], "mine");
    assert_eq!(db.iter().count(), 3);
    // Dropping one lets the others continue, also after a panic, and on another thread.
    let transaction = db.exclusive().unwrap();
    transaction.put(&keyspace, "lost", "").unwrap();
    thread::scope(|scope| drop(scope.spawn(|| drop(transaction)).join()));
    let panicked = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let transaction = db.exclusive().unwrap();
            transaction.put(&keyspace, "lost", "").unwrap();
            panic!("the program's own panic");
        });
        thread.join()
    });
    assert!(panicked.is_err());
    db.put("after", "").unwrap();
    assert!(!db.default_keyspace().contains("lost").unwrap());
}

#[test]
fn bad_input_is_refused_and_loses_nothing() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    let elsewhere = open(&MemVfs::new());
    let transaction = db.transaction();
    transaction.put(&keyspace, "a", "1").unwrap();
    let refused = |result: tamis::Result<()>| match result {
        Err(Error::InvalidArgument { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(transaction.put(&elsewhere.default_keyspace(), "a", "")), "keyspace");
    assert_eq!(refused(transaction.get(&elsewhere.default_keyspace(), "a").map(drop)), "keyspace");
    let foreign = db.transaction().savepoint();
    assert_eq!(refused(transaction.roll_back_to(foreign)), "savepoint");
    let (first, second) = (transaction.savepoint(), transaction.savepoint());
    transaction.roll_back_to(first).unwrap();
    assert_eq!(refused(transaction.roll_back_to(second)), "savepoint");
    assert!(matches!(transaction.put(&keyspace, "", ""), Err(Error::KeyEmpty)));
    assert!(matches!(transaction.get(&keyspace, ""), Err(Error::KeyEmpty)));
    let large = vec![0; 40 << 10];
    transaction.put(&keyspace, "b", &large).unwrap();
    assert!(matches!(transaction.put(&keyspace, "c", &large), Err(Error::BatchTooLarge { .. })));
    assert!(!transaction.contains(&keyspace, "c").unwrap());
    transaction.commit().unwrap();
    assert_eq!(keyspace.iter().count(), 2);
    // The memory of its writes is limited, too: a range delete takes more than its bytes in the log.
    let transaction = db.transaction();
    let refused =
        (0..1_000).find(|&number| transaction.delete_range(&keyspace, key(number)..key(number + 1)).is_err());
    assert!(refused.is_some_and(|count| count > 10));
    // A scan that is refused has read nothing.
    let transaction = db.transaction();
    transaction.put(&keyspace, "d", "").unwrap();
    let elsewhere_too = elsewhere.create_keyspace("k", small_keyspace()).unwrap();
    assert!(transaction.iter(&elsewhere_too).next().unwrap().is_err());
    keyspace.put("e", "").unwrap();
    transaction.commit().unwrap();

    let dropped = db.create_keyspace("dropped", small_keyspace()).unwrap();
    let (writer, reader) = (db.transaction(), db.transaction());
    writer.put(&dropped, "a", "").unwrap();
    reader.get(&dropped, "a").unwrap();
    reader.put(&keyspace, "d", "").unwrap();
    db.drop_keyspace("dropped").unwrap();
    assert!(matches!(writer.get(&dropped, "b"), Err(Error::KeyspaceDropped)));
    assert!(matches!(writer.commit(), Err(Error::KeyspaceDropped)));
    assert!(matches!(reader.commit(), Err(Error::KeyspaceDropped)));

    let (open_one, exclusive) = (db.transaction(), db.exclusive().unwrap());
    open_one.put(&keyspace, "e", "").unwrap();
    exclusive.put(&keyspace, "f", "").unwrap();
    let again = db.clone();
    db.close().unwrap();
    assert!(matches!(open_one.get(&keyspace, "a"), Err(Error::Closed)));
    assert!(matches!(open_one.put(&keyspace, "a", ""), Err(Error::Closed)));
    assert!(matches!(open_one.commit(), Err(Error::Closed)));
    assert!(matches!(exclusive.commit(), Err(Error::Closed)));
    assert!(matches!(again.exclusive(), Err(Error::Closed)));
    drop((again, keyspace, dropped));

    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert!(matches!(db.exclusive(), Err(Error::ReadOnly { .. })));
    let transaction = db.transaction();
    assert_eq!(transaction.iter(&keyspace).count(), 4);
    transaction.put(&keyspace, "g", "").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_commit_misses_no_read_of_a_detached_scan() {
    let db = open(&MemVfs::new());
    let keyspace = db.default_keyspace();
    keyspace.put("a", "").unwrap();
    let transaction = db.transaction();
    let scan = transaction.detached_range(&keyspace, ..);
    transaction.put(&keyspace, "mine", "").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::InvalidArgument { what: "transaction", .. })));
    assert!(!keyspace.contains("mine").unwrap());
    assert_eq!(scan.count(), 1);

    for (is_read, expected) in [(false, false), (true, true)] {
        let transaction = db.transaction();
        let mut scan = transaction.detached_prefix(&keyspace, "a");
        if is_read {
            assert!(scan.move_next().unwrap());
        }
        transaction.put(&keyspace, "mine", "").unwrap();
        keyspace.put("a", "").unwrap();
        drop(scan);
        assert_eq!(is_conflict(transaction.commit()), expected);
    }
}

#[test]
fn attempts_of_a_transaction_end_with_an_exclusive_one() {
    let db = open(&MemVfs::new());
    let keyspace = db.default_keyspace();
    for attempt in 0..9 {
        let transaction = db.transaction_attempt(TransactionOptions::default(), attempt).unwrap();
        transaction.get(&keyspace, "x").unwrap();
        transaction.put(&keyspace, "y", "").unwrap();
        let other = keyspace.put("x", "");
        if attempt == 8 {
            assert!(matches!(other, Err(Error::ExclusiveTransaction)));
        }
        assert_eq!(is_conflict(transaction.commit()), attempt < 8);
    }
}

#[test]
fn transactions_are_there_completely_or_not_at_all_after_a_crash() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    let synced = TransactionOptions::default().durability(Durability::Synced);
    let mut committed = 0_u64;
    for round in 0..60_u64 {
        let transaction = db.transaction_with(synced);
        for slot in 0..10 {
            let before = transaction.get(&keyspace, key(slot)).unwrap();
            assert_eq!(
                before.map(|value| value[..8].to_vec()),
                (round > 0).then(|| round.to_be_bytes().to_vec())
            );
            let value = [&(round + 1).to_be_bytes()[..], &[0; 900]].concat();
            transaction.put(&keyspace, key(slot), value).unwrap();
        }
        transaction.commit().unwrap();
        committed += 1;
        let crashed = open(&vfs.crash_clone(round));
        let keyspace = crashed.keyspace("k").unwrap();
        let rounds: BTreeMap<_, _> = keyspace
            .iter()
            .map(|entry| entry.unwrap())
            .map(|(key, value)| (value[..8].to_vec(), key))
            .collect();
        assert_eq!(rounds.len(), 1, "transactions are mixed");
        assert_eq!(*rounds.keys().next().unwrap(), committed.to_be_bytes());
    }
}

/// Reads and appends of a random transaction; `None` after a conflict.
fn random_transaction(
    (db, lists): (&Db, &Keyspace),
    options: TransactionOptions,
    random: &mut SplitMix64,
    next: &AtomicU64,
) -> Option<Vec<Step>> {
    let registers = db.default_keyspace();
    // Most transactions are of few keys, which change with time.
    let era = next.load(Ordering::Relaxed) / 400;
    let transaction = db.transaction_with(options);
    let mut steps = Vec::new();
    let mut touched = Vec::new();
    for _ in 0..1 + random.below(4) {
        let number = (era * 8 + random.below(12)) as u32;
        if touched.contains(&number) {
            continue;
        }
        touched.push(number);
        let key = number.to_be_bytes();
        let (is_read, is_written) = [(true, false), (true, true), (false, true)][random.below(3) as usize];
        if random.below(3) == 0 {
            let found = transaction.get(&registers, key).unwrap();
            let value = found.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
            steps.push(Step::ReadRegister { key: number, value });
            if is_written {
                let value = 1 + next.fetch_add(1, Ordering::Relaxed);
                transaction.put(&registers, key, value.to_be_bytes()).unwrap();
                steps.push(Step::Set { key: number, value });
            }
            continue;
        }
        // A list is a range of keys: list and position. So appends are inserts, and reads see phantoms if nothing keeps them away.
        if is_read {
            let (mut length, mut elements) = (0, Vec::new());
            for entry in transaction.prefix(lists, key) {
                elements.push(u64::from_be_bytes(entry.unwrap().1[..].try_into().unwrap()));
                length += 1;
            }
            steps.push(Step::ReadList { key: number, length, digest: list_digest(&elements) });
        }
        if is_written {
            let last = transaction.prefix(lists, key).next_back().map(|entry| entry.unwrap().0);
            let position = last.map_or(0, |key| u32::from_be_bytes(key[4..].try_into().unwrap()) + 1);
            let element = 1 + next.fetch_add(1, Ordering::Relaxed);
            let place = [key, position.to_be_bytes()].concat();
            transaction.put(lists, place, element.to_be_bytes()).unwrap();
            steps.push(Step::Append { key: number, element });
        }
    }
    match transaction.commit() {
        Ok(()) => Some(steps),
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The last states of the lists.
fn lists_of(lists: &Keyspace) -> BTreeMap<u32, Vec<u64>> {
    let mut states = BTreeMap::<u32, Vec<u64>>::new();
    for entry in lists.iter() {
        let (key, element) = entry.unwrap();
        let list = u32::from_be_bytes(key[..4].try_into().unwrap());
        states.entry(list).or_default().push(u64::from_be_bytes(element[..].try_into().unwrap()));
    }
    states
}

/// Runs transactions on eight threads, with flushes and compactions, and after each part a crash; returns the committed ones.
fn run_history(options: TransactionOptions, parts: u64, count: u64) -> (History, BTreeMap<u32, Vec<u64>>) {
    let (mut vfs, next, mut history) = (MemVfs::new(), AtomicU64::new(0), History::default());
    for part in 0..parts {
        let db = open_in_memory(&vfs, Options::default().default_keyspace(small_keyspace())).unwrap();
        let lists = db.get_or_create_keyspace("lists", small_keyspace()).unwrap();
        let committed = parking_lot::Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..8 {
                let (db, lists, next, committed) = (&db, &lists, &next, &committed);
                scope.spawn(move || {
                    let mut random = SplitMix64::new(100 * part + number);
                    let mut own = Vec::new();
                    while own.len() < (count / 8) as usize {
                        own.extend(random_transaction((db, lists), options, &mut random, next));
                    }
                    committed.lock().extend(own);
                });
            }
        });
        committed.into_inner().into_iter().for_each(|steps| _ = history.commit(steps));
        db.persist(Durability::Synced).unwrap();
        vfs = vfs.crash_clone(part);
    }
    let db = open_in_memory(&vfs, Options::default()).unwrap();
    let states = lists_of(&db.keyspace("lists").unwrap());
    (history, states)
}

#[test]
fn histories_of_eight_threads_have_no_anomaly() {
    let count = if is_deep() { 125_000 } else { 1_000 };
    let (history, lists) = run_history(TransactionOptions::default(), 4, count);
    history.check(&lists, Level::Serializable).unwrap();
    // Snapshots may show write skew, and nothing worse.
    let (history, lists) = run_history(snapshot_isolation(), 4, count);
    history.check(&lists, Level::Snapshot).unwrap();
}

#[test]
fn histories_of_snapshots_show_write_skew_and_nothing_worse() {
    let db = open_in_memory(&MemVfs::new(), Options::default()).unwrap();
    let lists = db.default_keyspace();
    let mut history = History::default();
    // Each of the two reads the list to which the other one appends, before either commits.
    let pairs =
        [(0_u32, 1_u32), (1, 0)].map(|(read, own)| (db.transaction_with(snapshot_isolation()), read, own));
    for (transaction, read, own) in &pairs {
        assert_eq!(transaction.prefix(&lists, read.to_be_bytes()).count(), 0);
        transaction.put(&lists, [own.to_be_bytes(), [0; 4]].concat(), (own + 1).to_be_bytes()).unwrap();
    }
    let mut states = BTreeMap::new();
    for (transaction, read, own) in pairs {
        transaction.commit().unwrap();
        let element = u64::from(own + 1);
        let append = Step::Append { key: own, element };
        history.commit(vec![Step::ReadList { key: read, length: 0, digest: list_digest(&[]) }, append]);
        states.insert(own, vec![element]);
    }
    history.check(&states, Level::Snapshot).unwrap();
    assert!(history.check(&states, Level::Serializable).is_err());
}

#[test]
fn one_transaction_serves_several_threads() {
    let db = open_in_memory(&MemVfs::new(), Options::default()).unwrap();
    let keyspace = db.default_keyspace();
    let transaction = Arc::new(db.transaction());
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (transaction, keyspace) = (Arc::clone(&transaction), &keyspace);
            scope.spawn(move || {
                for number in 0..50 {
                    transaction.put(keyspace, key(100 * thread + number), "").unwrap();
                    assert!(transaction.iter(keyspace).count() > number as usize);
                }
            });
        }
    });
    Arc::into_inner(transaction).unwrap().commit().unwrap();
    assert_eq!(db.iter().count(), 200);
}
