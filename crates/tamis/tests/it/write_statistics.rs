//! Statistics of writes and of the work behind them move with what they name, and with nothing else.

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis::{Db, Keyspace, KeyspaceOptions, KeyspaceStatistics, Views, WriteBatch};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{FOLDER, inline_options, key, open_in_memory, open_on, small_keyspace};

const KEY_COUNT: u64 = 10_000;

fn of_keyspace(db: &Db) -> KeyspaceStatistics {
    db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == "k").unwrap()
}

/// Puts keys in an order in which flushed tables overlap.
fn put_all(keyspace: &Keyspace, count: u64) {
    for number in 0..count {
        keyspace.put(key(number * 7919 % count), [1; 100]).unwrap();
    }
}

#[test]
fn entries_written_counts_each_put_and_delete_of_a_batch() {
    let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
    let written = || (db.statistics().writes, db.statistics().entries_written);
    let before = written();
    db.put("a", "1").unwrap();
    assert_eq!(written(), (before.0 + 1, before.1 + 1));
    let keyspace = db.default_keyspace();
    let mut batch = WriteBatch::new();
    for name in ["a", "b", "c"] {
        batch.put(&keyspace, name, "2").unwrap();
    }
    batch.delete(&keyspace, "a").unwrap();
    batch.delete(&keyspace, "absent").unwrap();
    db.write(batch).unwrap();
    assert_eq!(written(), (before.0 + 2, before.1 + 6));
    db.flush().unwrap();
    assert!(db.get("b").unwrap().is_some());
    assert_eq!(written(), (before.0 + 2, before.1 + 6), "flushes and reads write no entries");
}

#[test]
fn pending_compaction_bytes_are_those_that_due_compactions_will_move() {
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let options = inline_options().table_access(Access::Buffered);
    let db = open_on(Arc::new(vfs.clone()), options).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    assert_eq!(of_keyspace(&db).pending_compaction_bytes, 0);
    // Compactions cannot read their tables, so they stay due.
    let rule = vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Read]).path(".t").forever());
    put_all(&keyspace, 5_000);
    let level = of_keyspace(&db).levels[0];
    assert!(level.run_count >= 4, "{level:?}");
    let pending = of_keyspace(&db).pending_compaction_bytes;
    assert!(pending >= level.bytes, "{pending} bytes, {level:?}");
    vfs.remove_rule(rule);
    db.wait_for_compactions().unwrap();
    assert!(db.statistics().compactions > 0);
    assert_eq!(of_keyspace(&db).pending_compaction_bytes, 0);
}

#[test]
fn garbage_compactions_are_counted_only_for_deleted_entries() {
    let db = open_in_memory(&MemVfs::new(), inline_options()).unwrap();
    let options = KeyspaceOptions::default().memtable_bytes(256 << 10).table_bytes(256 << 10);
    let keyspace = db.create_keyspace("k", options).unwrap();
    put_all(&keyspace, KEY_COUNT);
    db.flush().unwrap();
    assert_eq!(db.statistics().garbage_compactions, 0, "no entry was deleted");
    for number in 0..KEY_COUNT {
        keyspace.delete(key(number)).unwrap();
    }
    db.flush().unwrap();
    let statistics = db.statistics();
    assert!(statistics.garbage_compactions > 0);
    assert!(statistics.garbage_compactions <= statistics.compactions);
}

#[test]
fn view_bytes_written_are_the_bytes_of_the_view_files() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let db = open_on(Arc::clone(&vfs), inline_options()).unwrap();
    let options = KeyspaceOptions::default().level0_runs(64).views(Views::On);
    let keyspace = db.create_keyspace("k", options).unwrap();
    let mut view_bytes = 0;
    for run in 0..4 {
        for number in (run..KEY_COUNT).step_by(4) {
            keyspace.put(key(number), [1; 20]).unwrap();
        }
        let before = db.statistics().view_bytes_written;
        db.flush().unwrap();
        view_bytes = db.statistics().view_bytes_written - before;
    }
    let folder = Path::new(FOLDER);
    let names = vfs.list(folder).unwrap().into_iter().map(|entry| entry.name);
    let files = names.filter(|name| name.ends_with(".view"));
    let sizes: Vec<u64> = files.map(|name| vfs.read(&folder.join(name)).unwrap().len() as u64).collect();
    assert_eq!(sizes, [view_bytes], "the last view");
    assert_eq!(of_keyspace(&db).views.count, 1);
}
