//! Merge operators: operands in memtables and tables, with snapshots, deletes, failing operators and bad input.

use std::{
    panic,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis::{
    Db, Durability, Error, Keyspace, KeyspaceOptions, Layout, Merge, MergeOperator, Runtime, TableWriter,
    Views, WriteBatch,
};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, inline_options, key, open_in_memory, outside_table, small_keyspace, totals};

fn appending() -> KeyspaceOptions {
    small_keyspace().merge(Some(MergeOperator::append(b",")))
}

fn text(keyspace: &Keyspace, key: &str) -> Option<String> {
    keyspace.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn texts(keyspace: &Keyspace) -> Vec<String> {
    let as_text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let entry = |entry: tamis::Result<(tamis::Slice, tamis::Slice)>| {
        let (key, value) = entry.unwrap();
        format!("{}={}", as_text(&key), as_text(&value))
    };
    let forward: Vec<String> = keyspace.iter().map(entry).collect();
    let mut backward: Vec<String> = keyspace.iter().rev().map(entry).collect();
    backward.reverse();
    assert_eq!(forward, backward, "both directions");
    forward
}

#[test]
fn operands_apply_to_the_newest_put_or_delete_wherever_they_are() {
    for layout in [Layout::Leveled, Layout::tiered(), Layout::partitioned()] {
        for views in [Views::On, Views::Off] {
            let vfs = MemVfs::new();
            let db = open_in_memory(&vfs, inline_options()).unwrap();
            let keyspace = db.create_keyspace("k", appending().layout(layout).views(views)).unwrap();
            keyspace.put("base", "0").unwrap();
            keyspace.put("deleted", "0").unwrap();
            keyspace.put("range", "0").unwrap();
            keyspace.put("z", "0").unwrap();
            for round in 1..=4 {
                keyspace.merge("alone", round.to_string()).unwrap();
                keyspace.merge("base", round.to_string()).unwrap();
                if round == 3 {
                    keyspace.delete("deleted").unwrap();
                    keyspace.delete_prefix("ran").unwrap();
                }
                keyspace.merge("deleted", round.to_string()).unwrap();
                keyspace.merge("range", round.to_string()).unwrap();
                db.flush().unwrap();
            }
            let expected = ["alone=1,2,3,4", "base=0,1,2,3,4", "deleted=3,4", "range=3,4", "z=0"];
            assert_eq!(texts(&keyspace), expected, "{layout}, views {views}, four runs");
            db.wait_for_compactions().unwrap();
            assert_eq!(texts(&keyspace), expected, "{layout}, views {views}, after compactions");
            keyspace.merge("base", "5").unwrap();
            assert_eq!(text(&keyspace, "base").as_deref(), Some("0,1,2,3,4,5"));
            db.compact_range(&keyspace, ..).unwrap();
            assert_eq!(text(&keyspace, "base").as_deref(), Some("0,1,2,3,4,5"));
            assert_eq!(keyspace.multi_get(["alone", "none"]).unwrap()[0].as_deref(), Some(&b"1,2,3,4"[..]));
        }
    }
}

#[test]
fn snapshots_see_the_operands_of_their_time() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = db.create_keyspace("k", appending()).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..6 {
        keyspace.merge("key", round.to_string()).unwrap();
        snapshots.push(db.snapshot());
        if round % 2 == 1 {
            db.flush().unwrap();
        }
    }
    db.compact_range(&keyspace, ..).unwrap();
    let expected = |round: usize| (0..=round).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    for (round, snapshot) in snapshots.iter().enumerate() {
        assert_eq!(snapshot.get(&keyspace, "key").unwrap().as_deref(), Some(expected(round).as_bytes()));
        let scanned = snapshot.range(&keyspace, ..).next_back().unwrap().unwrap().1;
        assert_eq!(&*scanned, expected(round).as_bytes());
    }
    drop(snapshots);
    keyspace.put("other", "1").unwrap();
    db.flush().unwrap();
    db.compact_range(&keyspace, ..).unwrap();
    assert_eq!(text(&keyspace, "key"), Some(expected(5)));
}

#[test]
fn a_flush_and_a_compaction_leave_one_entry() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let options = small_keyspace().memtable_bytes(64 << 20).merge(Some(MergeOperator::add_u64()));
    let keyspace = db.create_keyspace("k", options).unwrap();
    const COUNT: u64 = 100_000;
    let mut batch = WriteBatch::new();
    for _ in 0..COUNT {
        batch.merge(&keyspace, "counter", 1_u64.to_be_bytes()).unwrap();
    }
    db.write_with(batch, Durability::Deferred).unwrap();
    db.flush().unwrap();
    let entries = |db: &Db| totals(db).0;
    assert_eq!(entries(&db), 1, "the flush has folded the operands");
    assert_eq!(keyspace.get("counter").unwrap().as_deref(), Some(COUNT.to_be_bytes().as_slice()));
    keyspace.merge("counter", 5_u64.to_be_bytes()).unwrap();
    keyspace.merge("counter", 6_u64.to_be_bytes()).unwrap();
    db.flush().unwrap();
    assert_eq!(entries(&db), 2, "the value may be in an older table");
    db.compact_range(&keyspace, ..).unwrap();
    assert_eq!(entries(&db), 1);
    assert_eq!(keyspace.get("counter").unwrap().as_deref(), Some((COUNT + 11).to_be_bytes().as_slice()));
}

#[test]
fn a_transaction_reads_its_own_operands_over_the_snapshot() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = db.create_keyspace("k", appending()).unwrap();
    keyspace.put("key", "a").unwrap();
    db.flush().unwrap();
    keyspace.merge("key", "b").unwrap();
    let transaction = db.transaction();
    keyspace.merge("key", "later").unwrap();
    transaction.merge(&keyspace, "key", "c").unwrap();
    transaction.merge(&keyspace, "new", "d").unwrap();
    assert_eq!(transaction.get(&keyspace, "new").unwrap().as_deref(), Some(&b"d"[..]));
    let scanned: Vec<_> = transaction.range(&keyspace, ..).map(|entry| entry.unwrap().1.to_vec()).collect();
    assert_eq!(scanned, [b"a,b,c".to_vec(), b"d".to_vec()]);
    let back: Vec<_> =
        transaction.range(&keyspace, ..).rev().map(|entry| entry.unwrap().1.to_vec()).collect();
    assert_eq!(back, [b"d".to_vec(), b"a,b,c".to_vec()]);
    // The value was read, and another write has changed it.
    assert_eq!(transaction.get(&keyspace, "key").unwrap().as_deref(), Some(&b"a,b,c"[..]));
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    // An operand alone reads nothing.
    let (one, other) = (db.transaction(), db.transaction());
    one.merge(&keyspace, "key", "one").unwrap();
    other.merge(&keyspace, "key", "other").unwrap();
    one.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(text(&keyspace, "key").as_deref(), Some("a,b,later,one,other"));
}

/// Fails for operands `fail` and panics for `panic`, while it is broken.
struct Breakable(Arc<AtomicBool>);

impl Merge for Breakable {
    fn merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let all: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        if self.0.load(Ordering::Relaxed) {
            if all.contains(&&b"panic"[..]) {
                panic!("out of order");
            }
            if all.contains(&&b"fail"[..]) {
                return Err("out of order".to_owned());
            }
        }
        Ok(all.concat())
    }
}

#[test]
fn a_failing_operator_is_an_error_of_its_key_until_it_is_fixed() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let operator = MergeOperator::new("breakable", Breakable(Arc::clone(&is_broken)));
    let vfs = MemVfs::new();
    let options = inline_options().merge_operators(vec![operator.clone()]);
    let db = open_in_memory(&vfs, options.clone()).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace().merge(Some(operator))).unwrap();
    panic::set_hook(Box::new(|_| ()));
    for (name, operand) in [("a", "x"), ("b", "fail"), ("c", "y"), ("d", "panic"), ("e", "z")] {
        keyspace.put(name, "0").unwrap();
        keyspace.merge(name, operand).unwrap();
    }
    let check = |keyspace: &Keyspace| {
        for (name, expected) in [("b", "out of order"), ("d", "it panicked: out of order")] {
            let Err(Error::MergeFailed { key, reason, operator, .. }) = keyspace.get(name) else {
                panic!("{name} has a value")
            };
            assert_eq!((&*key, &*reason, &*operator), (name.as_bytes(), expected, "breakable"));
        }
        for (name, expected) in [("a", "0x"), ("c", "0y"), ("e", "0z")] {
            assert_eq!(text(keyspace, name).as_deref(), Some(expected));
        }
        // A scan returns the error, and continues behind the key, in both directions.
        let mut scan = keyspace.range(..);
        for _ in 0..2 {
            for (key, is_next) in [
                ("a", true),
                ("", true),
                ("c", true),
                ("", true),
                ("e", true),
                ("", false),
                ("c", false),
                ("", false),
            ] {
                let moved = if is_next { scan.move_next() } else { scan.move_prev() };
                match (key, moved) {
                    ("", Err(Error::MergeFailed { .. })) => assert!(scan.key().is_empty()),
                    (key, moved) => {
                        assert!(moved.unwrap());
                        assert_eq!(scan.key(), key.as_bytes());
                    }
                }
            }
            assert!(scan.move_prev().unwrap());
            assert!(!scan.move_prev().unwrap());
        }
        assert!(matches!(scan.seek("b"), Err(Error::MergeFailed { .. })));
        assert!(scan.move_next().unwrap());
        assert_eq!(scan.key(), b"c");
        for found in [keyspace.iter().collect::<Vec<_>>(), keyspace.iter().rev().collect()] {
            assert_eq!(found.iter().filter(|entry| entry.is_ok()).count(), 3);
            assert_eq!(found.len(), 5);
        }
    };
    check(&keyspace);
    db.flush().unwrap();
    check(&keyspace);
    db.compact_range(&keyspace, ..).unwrap();
    check(&keyspace);
    drop(keyspace);
    db.close().unwrap();
    is_broken.store(false, Ordering::Relaxed);
    let db = open_in_memory(&vfs, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(texts(&keyspace), ["a=0x", "b=0fail", "c=0y", "d=0panic", "e=0z"]);
    let _ = panic::take_hook();
}

#[test]
fn a_repair_without_a_manifest_counts_each_operand_once() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let counting = || small_keyspace().merge(Some(MergeOperator::add_u64()));
    let keyspace = db.create_keyspace("k", counting()).unwrap();
    let number = |number: u64| number.to_be_bytes();
    // Keeps the log.
    db.put("other", "1").unwrap();
    keyspace.put("c", number(5)).unwrap();
    keyspace.merge("c", number(2)).unwrap();
    db.compact_range(&keyspace, ..).unwrap();
    keyspace.merge("c", number(1)).unwrap();
    db.persist(Durability::Synced).unwrap();
    drop(keyspace);
    db.close().unwrap();
    let folder = Path::new(FOLDER);
    let names = vfs.list(folder).unwrap();
    for entry in names.iter().filter(|entry| entry.name == "CURRENT" || entry.name.ends_with(".manifest")) {
        vfs.remove(&folder.join(&entry.name)).unwrap();
    }
    Db::repair_on(Arc::new(vfs.clone()), FOLDER, &Runtime::deterministic(7)).unwrap();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.options().merge, Some(MergeOperator::add_u64()), "the tables name the operator");
    assert_eq!(keyspace.get("c").unwrap().as_deref(), Some(number(8).as_slice()));
    // A keyspace without an operator can get one.
    let plain = db.default_keyspace();
    plain.set_options(plain.options().merge(Some(MergeOperator::max()))).unwrap();
    plain.merge("other", "2").unwrap();
    assert_eq!(plain.get("other").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn operands_count_as_keys() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = db.create_keyspace("k", appending()).unwrap();
    for number in 0..100 {
        keyspace.merge(key(number), "1").unwrap();
    }
    assert_eq!(keyspace.approximate_count(..).unwrap(), 100);
    db.flush().unwrap();
    assert_eq!(keyspace.approximate_count(..).unwrap(), 100);
}

#[test]
fn an_open_needs_the_operators_of_the_program() {
    let vfs = MemVfs::new();
    let operator = || MergeOperator::associative("join", |older, newer| Ok([older, newer].concat()));
    let with = || inline_options().merge_operators(vec![operator()]);
    let db = open_in_memory(&vfs, with()).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace().merge(Some(operator()))).unwrap();
    keyspace.merge("key", "a").unwrap();
    keyspace.merge("key", "b").unwrap();
    drop(keyspace);
    db.close().unwrap();
    let Err(Error::MergeOperatorMissing { keyspace, operator }) = open_in_memory(&vfs, inline_options())
    else {
        panic!("it opened")
    };
    assert_eq!((&*keyspace, &*operator), ("k", "join"));
    let db = open_in_memory(&vfs, with()).unwrap();
    assert_eq!(text(&db.keyspace("k").unwrap(), "key").as_deref(), Some("ab"));
    // Another operator than the stored one is refused, and none is not compared.
    let changed = db.get_or_create_keyspace("k", appending());
    assert!(matches!(changed, Err(Error::KeyspaceOption { option: "merge", .. })), "{changed:?}");
    db.get_or_create_keyspace("k", small_keyspace()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let changed = keyspace.set_options(keyspace.options().merge(None));
    assert!(matches!(changed, Err(Error::KeyspaceOption { option: "merge", .. })));
}

#[test]
fn operands_that_nothing_can_merge_are_refused() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let plain = db.default_keyspace();
    let refused = |result: tamis::Result<()>| {
        let Err(Error::InvalidArgument { what, .. }) = result else { panic!("{result:?}") };
        assert_eq!(what, "merge operand");
    };
    refused(plain.merge("key", "operand"));
    refused(WriteBatch::new().merge(&plain, "key", "operand"));
    refused(db.transaction().merge(&plain, "key", "operand"));
    let numbers = small_keyspace().merge(Some(MergeOperator::add_u64()));
    let counters = db.create_keyspace("counters", numbers.clone()).unwrap();
    refused(counters.merge("key", "four"));
    assert!(matches!(counters.merge("", 1_u64.to_be_bytes()), Err(Error::KeyEmpty)));
    let mut table =
        TableWriter::create_on(Arc::new(vfs.clone()), outside_table(1), &small_keyspace()).unwrap();
    refused(table.merge("key", "operand"));
    // A value that the operator does not know is an error of the key.
    counters.put("text", "four").unwrap();
    counters.merge("text", 1_u64.to_be_bytes()).unwrap();
    assert!(matches!(counters.get("text"), Err(Error::MergeFailed { .. })));
    // Operands that a table brings into a keyspace without an operator, too.
    let mut table = TableWriter::create_on(Arc::new(vfs.clone()), outside_table(2), &numbers).unwrap();
    table.merge(key(1), 7_u64.to_be_bytes()).unwrap();
    let table = table.finish().unwrap();
    db.ingest(&plain, [&table.path]).unwrap();
    assert!(matches!(plain.get(key(1)), Err(Error::MergeFailed { .. })));
    plain.put(key(1), "value").unwrap();
    assert_eq!(plain.get(key(1)).unwrap().as_deref(), Some(&b"value"[..]));
}
