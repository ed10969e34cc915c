//! Views compared with a sorted list of the entries of all runs.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};
use tamis_workload::SplitMix64;

use tamis_vfs::{Access, Folder, MemVfs, Vfs};

use super::{
    build::build_view,
    cursor::{SearchMode, ViewCursor},
    memory_run::{Entry, MemoryRun, count_before, first_at},
    reader::View,
    rebuild::rebuild_view,
    scan::ViewScan,
    writer::{ViewOptions, ViewOwner},
};
use crate::{
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    cursor::Cursor,
    error::{Error, Result},
    key::{BoundKind, Kind, SEQUENCE_MAX, Sequence},
    observe::metrics::Metrics,
    table::{environment::TableEnvironment, open_files::OpenFiles},
};

mod check;
mod damage;
mod golden;
mod limits;
mod lookup;
mod model;
mod reads;
mod rebuild;
mod rebuild_tables;
mod scan;
mod tables;

/// Runs, their view, and the list of all entries.
struct Sample {
    runs: Arc<[MemoryRun]>,
    view: Arc<View>,
    entries: Vec<Entry>,
}

impl Sample {
    fn new(options: ViewOptions, runs: Vec<Vec<Entry>>) -> Self {
        let runs: Vec<MemoryRun> = runs.into_iter().map(MemoryRun::new).collect();
        let bytes = build(options, &runs).unwrap();
        Self::of(runs, &bytes)
    }

    fn of(runs: Vec<MemoryRun>, bytes: &[u8]) -> Self {
        let entries = MemoryRun::new(runs.iter().flat_map(|run| run.entries.iter().cloned()).collect());
        let view = open(bytes).unwrap();
        Self { runs: runs.into(), view, entries: entries.entries.to_vec() }
    }

    fn cursor(&self) -> ViewCursor<Arc<[MemoryRun]>> {
        ViewCursor::new(&self.view, &self.runs).unwrap()
    }

    /// The sample with more runs, whose view is built from this one's, and the number of pages that were copied.
    fn rebuild(&self, runs: Vec<Vec<Entry>>) -> (Self, u64) {
        let new: Vec<MemoryRun> = runs.into_iter().map(MemoryRun::new).collect();
        let named: Vec<_> = (200..).zip(new.iter().cloned()).collect();
        let mut bytes = Vec::new();
        let owner = self.view.options().owner;
        let copied = rebuild_view(owner, &self.view, &self.runs, &named, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        let copied_pages = copied.unwrap();
        let runs = self.runs.iter().cloned().chain(new).collect();
        (Self::of(runs, &bytes), copied_pages)
    }

    fn scan(&self, snapshot: Sequence) -> ViewScan<Arc<[MemoryRun]>> {
        ViewScan::new(self.cursor(), snapshot)
    }

    /// Entries that were read since the last call.
    fn take_read_count(&self) -> u64 {
        self.runs.iter().map(|run| run.read_count.swap(0, Ordering::Relaxed)).sum()
    }
}

const NUMBER: u64 = 7;

fn options() -> ViewOptions {
    ViewOptions { owner: ViewOwner { number: NUMBER, ..ViewOwner::default() }, ..ViewOptions::default() }
}

/// The bytes of a view of runs with the ids 100, 101, ...
fn build(options: ViewOptions, runs: &[MemoryRun]) -> Result<Vec<u8>> {
    let runs: Vec<_> = (100..).zip(runs.iter().cloned()).collect();
    let mut bytes = Vec::new();
    build_view(options, &runs, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

fn environment(vfs: Arc<dyn Vfs>, access: Access) -> TableEnvironment {
    TableEnvironment {
        folder: Folder::open(&*vfs, Path::new("/db")).unwrap(),
        access,
        open_files: OpenFiles::new(&*vfs),
        cache: Arc::new(BlockCache::new(4 << 20)),
        pinned_cache: PinnedCache::new(1 << 20, &Arc::default(), &Arc::default(), None),
        metrics: Arc::new(Metrics::default()),
        listener: None,
    }
}

fn open_with(bytes: &[u8], access: Access) -> Result<Arc<View>> {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    vfs.create(Path::new("/db/000007.view")).unwrap().append(bytes).unwrap();
    View::open(&environment(Arc::new(vfs), access), NUMBER)
}

fn open(bytes: &[u8]) -> Result<Arc<View>> {
    open_with(bytes, Access::Mapped)
}

fn at(cursor: &impl Cursor) -> Option<Entry> {
    let entry = || (cursor.key().to_vec(), cursor.sequence(), cursor.kind(), cursor.value().to_vec());
    cursor.is_valid().then(entry)
}

/// Keys of 16 bytes, evenly distributed.
fn even_keys(random: &mut SplitMix64, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat()).collect()
}

/// Keys that break search trees: prefixes of each other, runs of 0x00 and 0xFF, common prefixes, long keys.
fn hostile_key(random: &mut SplitMix64) -> Vec<u8> {
    let letters: &[u8] = [b"\x00\xFF".as_slice(), b"a", b"ab", b"\x00a\xFF"][random.index(4)];
    let mut key = match random.index(4) {
        0 => b"shared-beginning-of-many-keys/".to_vec(),
        1 => vec![0xFF; random.index(6)],
        _ => Vec::new(),
    };
    let length = if random.index(400) == 0 { 300 + random.index(1_000) } else { 1 + random.index(9) };
    key.extend((0..length).map(|_| letters[random.index(letters.len())]));
    key
}

/// Distributes keys over runs with random kinds; each entry has another sequence number.
fn distribute(
    random: &mut SplitMix64,
    run_count: usize,
    keys: impl Iterator<Item = Vec<u8>>,
) -> Vec<Vec<Entry>> {
    distribute_from(random, 1, run_count, keys)
}

/// As [`distribute`], with sequence numbers from `first` on.
fn distribute_from(
    random: &mut SplitMix64,
    first: u64,
    run_count: usize,
    keys: impl Iterator<Item = Vec<u8>>,
) -> Vec<Vec<Entry>> {
    let mut runs = vec![Vec::new(); run_count];
    let keys: Vec<_> = keys.collect();
    let mut sequences: Vec<u64> = (first..first + keys.len() as u64).collect();
    for place in (1..sequences.len()).rev() {
        sequences.swap(place, random.index(place + 1));
    }
    for (key, sequence) in keys.into_iter().zip(sequences) {
        let is_put = random.index(4) > 0;
        let (kind, value) =
            if is_put { (Kind::Put, vec![sequence as u8; 3]) } else { (Kind::Tombstone, vec![]) };
        runs[random.index(run_count)].push((key, sequence, kind, value));
    }
    runs
}
