//! The cost of writes in steps, which only tests count.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, atomic::Ordering};

use tamis_vfs::MemVfs;

use super::Db;
use crate::{
    keyspace_state::steps,
    options::{KeyspaceOptions, Options},
    runtime::Runtime,
};

const KEYSPACES: usize = 1_000;
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Flushes of all keyspaces are running for as long as `is_flushing` is set.
fn set_flushing(db: &Db, is_flushing: bool) {
    let keyspaces = db.engine.keyspaces.load();
    keyspaces.values().for_each(|keyspace| keyspace.is_flushing.store(is_flushing, Ordering::SeqCst));
}

#[test]
fn commits_over_the_log_limit_do_not_visit_all_keyspaces() {
    let options = Options { workers: 0, log_bytes_max: LOG_BYTES_MAX, ..Options::default() };
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    for index in 0..KEYSPACES {
        let keyspace = db.create_keyspace(&index.to_string(), KeyspaceOptions::default()).unwrap();
        keyspace.put("key", "value").unwrap();
    }
    set_flushing(&db, true);
    while db.statistics().log_bytes <= LOG_BYTES_MAX {
        db.put("large", [0; 64 << 10]).unwrap();
    }
    steps::take();
    for index in 0..1_000_u32 {
        db.put(index.to_be_bytes(), "value").unwrap();
    }
    assert!(db.statistics().log_bytes > LOG_BYTES_MAX);
    let visited = steps::take();
    assert!(visited <= 2 * KEYSPACES, "1,000 commits visited {visited} keyspaces");

    // When the flushes end, the log shrinks again, and the next time it grows over the limit, too.
    set_flushing(&db, false);
    for _ in 0..3 {
        for _ in 0..32 {
            db.put("large", [0; 64 << 10]).unwrap();
        }
        let logged = db.statistics().log_bytes;
        assert!(logged <= LOG_BYTES_MAX + (128 << 10), "{logged} bytes of log");
    }
}
