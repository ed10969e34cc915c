//! Operations that run at the same time on one target.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tamis_backup::{BackupOptions, Error, Keep, NoProgress, Source, Target, backup, prune, restore, verify};

use crate::support::{MemoryObjects, Place, fill, is_complete, open, quick_leases};

/// Backups of a store that is written, prunes and restores, all at once: each listed backup can be restored at each time.
#[test]
fn backups_prunes_and_restores_run_at_the_same_time() {
    let place = Place::new();
    fill(&place.db, 0..1_000, 0);
    place.backup();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let backups = [0, 1].map(|_| {
            scope.spawn(|| {
                for round in 0..if is_complete() { 8 } else { 3 } {
                    fill(&place.db, 0..300, round);
                    place.backup();
                }
            })
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                match prune(&place.target, Keep::Count(3), &NoProgress) {
                    Ok(_) | Err(Error::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        scope.spawn(|| {
            let mut restored = 0;
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(place.restore(None).len(), 1_000);
                restored += 1;
            }
            assert!(restored > 0);
        });
        let results = backups.map(|thread| thread.join());
        is_done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
    prune(&place.target, Keep::Count(3), &NoProgress).unwrap();
    let backups = place.target.backups().unwrap();
    assert_eq!(backups.intact.len(), 3);
    for backup in &backups.intact {
        place.restore(Some(&backup.id()));
    }
    let report = verify(&place.target, &NoProgress).unwrap();
    assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
}

/// The leases of killed processes delay a prune and a backup, and do not prevent them.
#[test]
fn leases_of_killed_processes_expire() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..10, 0);
    place.backup();
    let put = |name: &str| {
        objects.objects.lock().unwrap().insert(name.to_owned(), b"a backup by process 1, beat 7\n".to_vec())
    };
    put("leases/use-0000000000000001");
    prune(&place.target, Keep::Count(1), &NoProgress).unwrap();
    put("leases/prune-0000000000000002");
    place.backup();
    assert!(objects.objects.lock().unwrap().keys().all(|name| !name.starts_with("leases/")));
}

/// A running backup is not disturbed: a prune waits for it, and says who runs if that takes too long.
#[test]
fn a_prune_says_who_uses_the_target() {
    let (place, objects) = Place::in_memory();
    fill(&place.db, 0..10, 0);
    place.backup();
    let beat = |number: u64| {
        let content = format!("a restore by process 4711, beat {number}\n").into_bytes();
        objects.objects.lock().unwrap().insert("leases/use-0000000000000001".to_owned(), content);
    };
    beat(0);
    let is_done = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                beat(number);
                std::thread::park_timeout(Duration::from_millis(20));
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let result = prune(&place.target, Keep::Count(1), &NoProgress);
        is_done.store(true, Ordering::Relaxed);
        result
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }) && error.to_string().contains("process 4711"), "{error}");
}

/// Removes all leases when an object of a folder is put, as a prune does with those of a process that did not run for a minute.
#[derive(Debug)]
struct Suspended(MemoryObjects, &'static str);

impl tamis_backup::Objects for Suspended {
    fn put(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        if name.starts_with(self.1) {
            self.0.objects.lock().unwrap().retain(|name, _| !name.starts_with("leases/"));
        }
        self.0.put(name, bytes)
    }
    fn get(&self, name: &str) -> std::io::Result<Vec<u8>> {
        self.0.get(name)
    }
    fn length(&self, name: &str) -> std::io::Result<Option<u64>> {
        self.0.length(name)
    }
    fn list(&self, folder: &str) -> std::io::Result<Vec<tamis_backup::Object>> {
        self.0.list(folder)
    }
    fn first_parts(&self) -> std::io::Result<Vec<String>> {
        self.0.first_parts()
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }
}

#[test]
fn a_backup_that_was_suspended_is_not_in_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder.path().join("store"));
    fill(&db, 0..10, 0);
    // Before the description is written, and after the last check before it.
    for moment in ["objects/", "backups/"] {
        let objects = Arc::new(Suspended(MemoryObjects::default(), moment));
        let target = Target::of_objects(objects, "memory").with_lease_times(quick_leases());
        let error = backup(Source::Db(&db), &target, &BackupOptions::default()).unwrap_err();
        assert!(matches!(error, Error::LeaseLost { .. }) && error.is_transient(), "{error}");
        assert!(target.backups().unwrap().intact.is_empty());
        assert!(restore(&target, folder.path().join("restored"), &Default::default()).is_err());
    }
}
