//! Writes in a write stall: none of them visits all partitions.

use std::sync::Arc;

use tamis_vfs::MemVfs;

use super::{partition_at, set_flushing};
use crate::{
    db::Db,
    observe::steps::{self, Step},
    options::{KeyspaceOptions, Layout, Options},
    store::runtime::Runtime,
};

const PARTITIONS: u32 = 1_000;
const WRITES: u32 = 2_000;

/// Each delayed write counted the runs of every partition, and again each time it checked whether it may continue.
#[test]
fn delayed_writes_do_not_visit_all_partitions() {
    let default_keyspace = KeyspaceOptions::default().layout(Layout::partitioned());
    for workers in [0, 1] {
        let options = Options::default().workers(workers).default_keyspace(default_keyspace.clone());
        let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
        set_flushing(&db, true);
        let lower = |index: u32| if index == 0 { Vec::new() } else { index.to_be_bytes().to_vec() };
        partition_at(&db, (0..PARTITIONS).map(lower));
        let state = db.default_keyspace().state;
        for _ in 0..2 {
            db.put("key", "value").unwrap();
            let _log = db.engine.store.log.lock();
            assert!(state.rotate_memtable());
        }
        assert!(state.may_delay_writers());
        steps::take(Step::CountedLevel0);
        for number in 0..WRITES {
            db.put(number.to_be_bytes(), [7; 1_000]).unwrap();
        }
        let visited = steps::take(Step::CountedLevel0);
        assert!(visited <= PARTITIONS as usize, "{WRITES} writes visited {visited} partitions");
        assert_eq!(db.statistics().throttled_writes > 0, workers > 0);
        set_flushing(&db, false);
        db.flush().unwrap();
    }
}
