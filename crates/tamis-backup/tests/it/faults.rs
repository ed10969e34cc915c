//! An error at every request to the target, and a power failure at every file operation of a target in a folder.

use std::{io::ErrorKind, path::Path, sync::Arc, time::Duration};

use tamis::{Db, OpenMode, Options, Runtime};
use tamis_backup::{
    BackupOptions, BackupReport, Error, FolderObjects, Keep, LeaseTimes, NoProgress, RestoreOptions, Source,
    Target, backup, prune, restore, verify,
};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{MemoryObjects, State, fill, quick_leases, small_keyspace, state};

/// A store in memory.
struct Memory {
    vfs: Arc<dyn Vfs>,
    db: Db,
}

impl Memory {
    fn new(memory: MemVfs) -> Self {
        let vfs: Arc<dyn Vfs> = Arc::new(memory);
        let options = Options::default().workers(0).default_keyspace(small_keyspace());
        let db = Db::open_on(Arc::clone(&vfs), "/store", options, Runtime::system()).unwrap();
        Self { vfs, db }
    }

    fn backup(&self, target: &Target) -> tamis_backup::Result<BackupReport> {
        let mut options = BackupOptions::default();
        options.vfs = Arc::clone(&self.vfs);
        backup(Source::Db(&self.db), target, &options)
    }
}

/// The entries of a backup, restored in a memory.
fn restored(vfs: &Arc<dyn Vfs>, target: &Target, folder: &str, to: &str) -> State {
    let mut options = RestoreOptions::default();
    options.vfs = Arc::clone(vfs);
    options.to = Some(to.to_owned());
    restore(target, folder, &options).unwrap();
    let read_only = Options::default().mode(OpenMode::Reader);
    state(&Db::open_on(Arc::clone(vfs), Path::new(folder), read_only, Runtime::system()).unwrap())
}

/// A backup, and then a prune, that fail at the n-th request, for each n: the list has only backups that can be restored, and the same call
/// succeeds afterwards.
#[test]
fn an_error_at_any_request_loses_nothing() {
    for fails_forever in [false, true] {
        for failed in (0..).step_by(if fails_forever { 3 } else { 1 }) {
            let store = Memory::new(MemVfs::new());
            fill(&store.db, 0..300, 0);
            store.db.flush().unwrap();
            let objects = Arc::new(MemoryObjects { fails_forever, ..MemoryObjects::default() });
            // No other process runs.
            let times = LeaseTimes {
                beat: Duration::from_millis(4),
                expiry: Duration::from_millis(20),
                ..quick_leases()
            };
            let target =
                Target::of_objects(Arc::<MemoryObjects>::clone(&objects), "memory").with_lease_times(times);
            store.backup(&target).unwrap();
            let states = [state(&store.db), {
                fill(&store.db, 0..300, 1);
                state(&store.db)
            }];
            store.db.flush().unwrap();
            *objects.failure.lock().unwrap() = Some((failed, ErrorKind::ConnectionReset));
            let result = store.backup(&target);
            let pruned = prune(&target, Keep::Count(1), &NoProgress);
            let was_reached = objects.failure.lock().unwrap().take().is_none_or(|(left, _)| left == 0);
            for error in [result.err(), pruned.err()].into_iter().flatten() {
                assert!(matches!(error, Error::Target { .. }) && error.is_transient(), "{error}");
                assert!(error.to_string().contains("run the command again"), "{error}");
            }
            let backups = target.backups().unwrap();
            assert!(backups.damaged.is_empty() && !backups.intact.is_empty());
            for backup in &backups.intact {
                let folder = format!("/restored{}", backup.number);
                let found = restored(&store.vfs, &target, &folder, &backup.id());
                let expected = &states[usize::from(backup.number > 1)];
                assert!(found == *expected, "request {failed}, backup {}", backup.number);
            }
            let last = store.backup(&target).unwrap().backup;
            prune(&target, Keep::Count(1), &NoProgress).unwrap();
            assert!(restored(&store.vfs, &target, "/last", &last.id()) == states[1]);
            let report = verify(&target, &NoProgress).unwrap();
            assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
            if !was_reached {
                assert!(failed > 20, "{failed}");
                break;
            }
        }
    }
}

/// The machine of the target loses its power after a backup: the backup is durable, with all of its objects.
#[test]
fn a_backup_in_a_folder_survives_a_power_failure() {
    for seed in 0..20 {
        let memory = MemVfs::new();
        let store = Memory::new(memory.clone());
        let target = |vfs: &Arc<dyn Vfs>| {
            Target::of_objects(Arc::new(FolderObjects::new(Arc::clone(vfs), "/target")), "/target")
        };
        let mut states = Vec::new();
        for round in 0..3 {
            fill(&store.db, 0..500, round);
            store.backup(&target(&store.vfs)).unwrap();
            states.push(state(&store.db));
        }
        let crashed: Arc<dyn Vfs> = Arc::new(memory.crash_clone(seed));
        for (number, expected) in (1..).zip(&states) {
            let folder = format!("/restored{number}");
            let found = restored(&crashed, &target(&crashed), &folder, &number.to_string());
            assert!(found == *expected, "seed {seed}, backup {number}");
        }
    }
}
