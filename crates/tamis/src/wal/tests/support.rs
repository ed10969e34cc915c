//! Shared by the tests of the log: numbered records, a log in any file system, and replay as a list of numbers.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis_vfs::{Folder, MemVfs, Vfs};

use crate::{
    batch::WriteBatch,
    error::{Error, Result},
    file_name::FileName,
    options::{Durability, KeepChanges},
    store::runtime::ManualClock,
    wal::{
        reader::{KnownLog, LogFiles, ReplayReport, replay},
        writer::{Log, LogSetup, SegmentEnd},
    },
};

pub(crate) const DATABASE_ID: u64 = 0x0123_4567_89AB_CDEF;
pub(crate) const DEFERRED_BYTES_MAX: usize = 400;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from("/db")
}

pub(crate) fn path(number: u64) -> PathBuf {
    FileName::Log(number).path(folder())
}

pub(crate) fn new_vfs() -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(&folder()).unwrap();
    vfs
}

/// File numbers that continue over reopens.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    pub(crate) fn starting_at(first: u64) -> Self {
        Self(Arc::new(AtomicU64::new(first)))
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::starting_at(1)
    }
}

pub(crate) fn folder_in(vfs: &dyn Vfs) -> Result<Folder> {
    Folder::open(vfs, &folder()).map_err(|error| Error::io("open", &folder(), error))
}

pub(crate) fn open_log(vfs: Arc<dyn Vfs>, numbers: &Numbers, previous: &[SegmentEnd]) -> Result<Log> {
    let numbers = numbers.clone();
    let setup = LogSetup {
        folder: folder_in(&*vfs)?,
        database_id: DATABASE_ID,
        deferred_bytes_max: DEFERRED_BYTES_MAX,
        keep_changes: KeepChanges::default(),
        next_number: Box::new(move || numbers.0.fetch_add(1, Ordering::SeqCst)),
        clock: Arc::new(ManualClock::default()),
    };
    Log::create(setup, &[], previous)
}

/// Removes the segments below `number`, as the engine does.
pub(crate) fn remove_below(log: &mut Log, vfs: &dyn Vfs, number: u64) -> Result<()> {
    let mut obsolete = log.take_obsolete(number);
    let result = obsolete.remove(&folder_in(vfs)?);
    log.put_back(obsolete);
    result
}

/// The payload of record `id`: one to three entries with the sequence numbers 4 `id`, 4 `id` + 1, ...
pub(crate) fn payload(id: u64) -> Vec<u8> {
    let mut batch = WriteBatch::new();
    for index in 0..=id % 3 {
        let value = vec![id as u8; (id * 7 % 40) as usize];
        batch.put_in(index as u32, format!("key {id}").as_bytes(), &value).unwrap();
    }
    batch.assign_sequences(4 * id).to_vec()
}

pub(crate) fn append(log: &mut Log, id: u64, durability: Durability) -> Result<()> {
    log.append(&[&payload(id)], durability, Duration::ZERO).map(drop)
}

/// The numbers of the replayed records, in order; fails on half a record or wrong entries.
pub(crate) fn replayed(vfs: &(impl Vfs + Clone), first_needed: u64) -> Result<(Vec<u64>, ReplayReport)> {
    replayed_with(vfs, KnownLog { database_id: DATABASE_ID, first_needed, ..KnownLog::default() })
}

/// As [`replayed`], with all facts that a manifest has about the log.
pub(crate) fn replayed_with(vfs: &(impl Vfs + Clone), known: KnownLog) -> Result<(Vec<u64>, ReplayReport)> {
    let files = LogFiles::find(&folder_in(vfs)?, known)?;
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    let mut ids = Vec::new();
    let report = replay(&files, &mut |entry, _| {
        let id = entry.sequence / 4;
        assert_eq!(entry.key, format!("key {id}").as_bytes());
        assert_eq!(entry.value, vec![id as u8; (id * 7 % 40) as usize]);
        let count = found.entry(id).or_default();
        assert_eq!(
            (entry.sequence % 4, u64::from(entry.keyspace)),
            (*count, *count),
            "order within record {id}"
        );
        if *count == 0 {
            ids.push(id);
        }
        *count += 1;
        Ok(())
    })?;
    assert!(found.iter().all(|(id, count)| *count == id % 3 + 1), "half a record: {found:?}");
    assert_eq!(report.entries, found.values().sum::<u64>());
    Ok((ids, report))
}

/// The logs of the folder: name and bytes.
pub(crate) fn log_files(vfs: &dyn Vfs) -> BTreeMap<String, Vec<u8>> {
    let entries = vfs.list(&folder()).unwrap().into_iter();
    let logs = entries.filter(|entry| matches!(FileName::parse(&entry.name), Some(FileName::Log(_))));
    logs.map(|entry| (entry.name.clone(), vfs.read(&folder().join(&entry.name)).unwrap())).collect()
}

/// A file system with these logs.
pub(crate) fn vfs_of(files: &BTreeMap<String, Vec<u8>>) -> MemVfs {
    let vfs = new_vfs();
    for (name, bytes) in files {
        write(&vfs, &folder().join(name), bytes);
    }
    vfs
}

pub(crate) fn write(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) {
    vfs.create(path).unwrap().append(bytes).unwrap();
}
