//! Ingests that wait for the log's lock at the same time.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule};

use super::*;
use crate::{Db, KeyspaceOptions, Options, Runtime};

fn request(db: &Db, name: &str, key: u8) -> (Arc<Request>, Vec<FileName>) {
    let keyspace = db.keyspace(name).unwrap();
    let path = format!("/{name}{key}.table");
    let mut table = keyspace.table_writer(&path).unwrap();
    table.put([key], path.as_bytes()).unwrap();
    table.finish().unwrap();
    let mut pending = db.engine.ingester.place_tables(&[path.into()], IngestOptions::default()).unwrap();
    let summaries = pending.summaries.clone();
    let names = std::mem::take(&mut pending.names);
    (
        Arc::new(Request {
            keyspace: Arc::clone(&keyspace.state),
            summaries,
            answer: Mutex::default(),
            ingested: Mutex::default(),
        }),
        names,
    )
}

/// Each ingest had a separate edit, with the syncs of the log, of the manifest and of `CURRENT`, under the log's lock.
#[test]
fn ingests_that_wait_for_the_log_share_one_edit() {
    let faults = FaultVfs::new(Arc::new(MemVfs::new()));
    let options = Options::default().workers(0);
    let vfs = Arc::new(faults.clone());
    let db = Db::open_on(vfs, "/db", options.clone(), Runtime::deterministic(7)).unwrap();
    for name in ["other", "written"] {
        db.create_keyspace(name, KeyspaceOptions::default()).unwrap();
    }
    let requests = [("default", 1), ("other", 2), ("written", 3), ("default", 4)]
        .map(|(name, key)| request(&db, name, key));
    db.keyspace("written").unwrap().put("key", "value").unwrap();
    let group: Vec<_> = requests.iter().map(|(request, _)| Arc::clone(request)).collect();
    let renames =
        faults.add_rule(Rule::slow(|_| ()).on(&[OperationKind::Rename]).path("CURRENT").times(u64::MAX));
    db.engine.ingester.install_group(db.engine.store.log.lock().as_mut(), &group);
    assert_eq!(faults.hit_count(renames), 1, "one edit");
    let answers: Vec<_> =
        group.iter().map(|request| request.answer.lock().take().unwrap().unwrap()).collect();
    // After two created keyspaces and a put.
    assert_eq!(answers, [Some(4), Some(5), None, Some(6)], "a memtable with entries is flushed first");
    let check = |db: &Db| {
        let get =
            |name: &str, key: u8| db.keyspace(name).unwrap().get([key]).unwrap().map(|value| value.to_vec());
        assert_eq!(get("default", 1).as_deref(), Some(b"/default1.table".as_slice()));
        assert_eq!(get("default", 4).as_deref(), Some(b"/default4.table".as_slice()));
        assert_eq!(get("other", 2).as_deref(), Some(b"/other2.table".as_slice()));
        assert_eq!(get("written", 3), None);
        assert!(db.verify().unwrap().is_sound());
    };
    check(&db);
    db.close().unwrap();
    check(&Db::open_on(Arc::new(faults), "/db", options, Runtime::deterministic(7)).unwrap());
}
