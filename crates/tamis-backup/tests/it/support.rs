//! Stores, targets and comparisons of the tests.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis::{Db, KeyspaceOptions, OpenMode, Options};
use tamis_backup::{
    BackupOptions, BackupReport, LeaseTimes, Object, Objects, RestoreOptions, Source, Target, backup, restore,
};

/// Whether long tests run whole: `TAMIS_SWEEPS=1`, as the sweeps of the store (CONTRIBUTING.md).
pub(crate) fn is_complete() -> bool {
    std::env::var_os("TAMIS_SWEEPS").is_some()
}

/// All entries of all keyspaces.
pub(crate) type State = Vec<(String, Vec<u8>, Vec<u8>)>;

pub(crate) fn state(db: &Db) -> State {
    let mut entries = Vec::new();
    for name in db.keyspace_names() {
        for entry in db.keyspace(&name).unwrap().iter() {
            let (key, value) = entry.unwrap();
            entries.push((name.clone(), key.to_vec(), value.to_vec()));
        }
    }
    entries
}

/// Small memtables and tables, so that there are many files.
pub(crate) fn small_keyspace() -> KeyspaceOptions {
    KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10)
}

pub(crate) fn open(path: &Path) -> Db {
    Db::open_with(path, Options::default().cache_bytes(8 << 20).workers(1).default_keyspace(small_keyspace()))
        .unwrap()
}

/// Puts a value of 100 bytes for each number.
pub(crate) fn fill(db: &Db, numbers: impl Iterator<Item = u64>, round: u64) {
    for number in numbers {
        db.put(format!("key{number:08}"), format!("{round:050}{number:050}")).unwrap();
    }
}

/// Leases of tests end soon.
pub(crate) fn quick_leases() -> LeaseTimes {
    LeaseTimes {
        beat: Duration::from_millis(50),
        expiry: Duration::from_millis(2000),
        patience: Duration::from_millis(3000),
    }
}

/// A folder with a store and a target.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) db: Db,
    pub(crate) target: Target,
    restored: AtomicU64,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::folder(folder.path().join("target")).with_lease_times(quick_leases());
        Self { db: open(&folder.path().join("store")), target, folder, restored: AtomicU64::new(0) }
    }

    /// With objects in memory.
    pub(crate) fn in_memory() -> (Self, Arc<MemoryObjects>) {
        let objects = Arc::new(MemoryObjects::default());
        let target = Target::of_objects(Arc::<MemoryObjects>::clone(&objects), "memory")
            .with_lease_times(quick_leases());
        (Self { target, ..Self::new() }, objects)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn backup(&self) -> BackupReport {
        backup(Source::Db(&self.db), &self.target, &BackupOptions::default()).unwrap()
    }

    pub(crate) fn try_restore(&self, to: Option<&str>) -> tamis_backup::Result<State> {
        let folder = self.path(&format!("restored{}", self.restored.fetch_add(1, Ordering::Relaxed)));
        restored_state(&self.target, &folder, to)
    }

    pub(crate) fn restore(&self, to: Option<&str>) -> State {
        self.try_restore(to).unwrap()
    }

    /// Files of the target.
    pub(crate) fn objects(&self, below: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("target").join(below)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }
}

pub(crate) fn restored_state(
    target: &Target,
    folder: &Path,
    to: Option<&str>,
) -> tamis_backup::Result<State> {
    let mut options = RestoreOptions::default();
    options.to = to.map(str::to_owned);
    restore(target, folder, &options)?;
    let db = Db::open_with(folder, Options::default().mode(OpenMode::Reader)).unwrap();
    let found = state(&db);
    drop(db);
    std::fs::remove_dir_all(folder).unwrap();
    Ok(found)
}

/// Objects in memory that fail on demand.
#[derive(Debug, Default)]
pub(crate) struct MemoryObjects {
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Calls until one fails, and its kind.
    pub(crate) failure: Mutex<Option<(u64, io::ErrorKind)>>,
    pub(crate) call_count: AtomicU64,
    /// Bytes of all puts.
    pub(crate) put_bytes: AtomicU64,
    /// Whether all calls from the failed one on fail.
    pub(crate) fails_forever: bool,
}

impl MemoryObjects {
    fn count(&self) -> io::Result<()> {
        self.call_count.fetch_add(1, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap();
        match &mut *failure {
            None => Ok(()),
            Some((0, kind)) => {
                let error = io::Error::from(*kind);
                if !self.fails_forever {
                    *failure = None;
                }
                Err(error)
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl Objects for MemoryObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.count()?;
        self.put_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.objects.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.count()?;
        self.objects.lock().unwrap().get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        self.count()?;
        Ok(self.objects.lock().unwrap().get(name).map(|bytes| bytes.len() as u64))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Object>> {
        self.count()?;
        let prefix = format!("{folder}/");
        let objects = self.objects.lock().unwrap();
        let found = objects.iter().filter(|(name, _)| name.starts_with(&prefix));
        Ok(found.map(|(name, bytes)| Object { name: name.clone(), bytes: bytes.len() as u64 }).collect())
    }

    fn first_parts(&self) -> io::Result<Vec<String>> {
        self.count()?;
        let objects = self.objects.lock().unwrap();
        Ok(objects.keys().filter_map(|name| Some(name.split('/').next()?.to_owned())).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.count()?;
        self.objects.lock().unwrap().remove(name);
        Ok(())
    }
}
