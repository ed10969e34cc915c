//! The world of a store: its disk, its clock, its threads, its listener, and what goes wrong with them.
//!
//! A *life* is the time between an open and the next close, kill or crash. Its file system is a [`MemVfs`] under a [`FaultVfs`] under
//! [`SimVfs`], which makes each operation a hand-over point with a duration in simulated time, and adds the operation to the hash of the
//! history. After a kill or a crash each operation of the old life fails, so that its threads end; the next life begins with the disk as it
//! was at that moment.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tamis_vfs::{DirEntry, FaultVfs, MemVfs, OperationKind, Vfs as _};

mod runtime;
mod vfs;

pub use runtime::{PRINTS_EVENTS, SimClock, SimJoin, SimListener, SimSpawner, milliseconds};
pub use vfs::SimVfs;

use crate::{
    coverage::Coverage,
    schedule::{Schedule, current},
};

/// The folder of the store.
pub const FOLDER: &str = "/store";

/// A bit that has flipped on the medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// The file.
    pub path: PathBuf,
    /// The byte.
    pub offset: u64,
    /// The changed bits of the byte.
    pub mask: u8,
}

/// See the head of this file.
#[derive(Debug)]
pub struct Life {
    /// The schedule of the history.
    pub schedule: Arc<Schedule>,
    /// Coverage of the history.
    pub coverage: Arc<Coverage>,
    /// The disk.
    pub disk: MemVfs,
    /// Injects the faults of file operations.
    pub faults: FaultVfs,
    /// The disk after a crash.
    pub after_crash: Mutex<Option<MemVfs>>,
    /// Bits that have flipped and not been restored.
    pub flips: Mutex<Vec<Flip>>,
    /// All bits that have flipped in this life: damage may be found later, and be remembered.
    pub flipped: Mutex<Vec<Flip>>,
    /// The next event makes the listener panic.
    pub listener_panics: AtomicBool,
    /// The next job panics.
    pub job_panics: AtomicBool,
    /// File operations take this many times longer.
    pub slowness: AtomicU64,
    /// Something has gone wrong in this life, and may have lasting consequences.
    pub is_disturbed: AtomicBool,
    is_off: AtomicBool,
    is_closing: AtomicBool,
    is_closed: AtomicBool,
}

impl Life {
    /// A life on a disk.
    pub fn new(schedule: &Arc<Schedule>, coverage: &Arc<Coverage>, disk: MemVfs) -> Arc<Self> {
        Arc::new(Self {
            schedule: Arc::clone(schedule),
            coverage: Arc::clone(coverage),
            faults: FaultVfs::new(Arc::new(disk.clone())),
            disk,
            after_crash: Mutex::default(),
            flips: Mutex::default(),
            flipped: Mutex::default(),
            listener_panics: AtomicBool::new(false),
            job_panics: AtomicBool::new(false),
            slowness: AtomicU64::new(1),
            is_disturbed: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Ends the life: all operations fail from now on.
    pub fn turn_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
        if PRINTS_EVENTS.load(Ordering::Relaxed) {
            println!("the life ends: a crash of the machine: {}", self.after_crash.lock().is_some());
        }
        self.disturb();
    }

    /// Whether the process was killed or the machine has crashed.
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// A close begins while clients work.
    pub fn begin_close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// The close has returned: no thread of the store may change its folder from now on.
    pub fn end_close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether calls may be refused because the store is closed.
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// From now on errors have a reason.
    pub fn disturb(&self) {
        self.is_disturbed.store(true, Ordering::Relaxed);
    }

    /// Whether errors have a reason.
    pub fn is_disturbed(&self) -> bool {
        self.is_disturbed.load(Ordering::Relaxed) || self.faults.fault_count() > 0
    }

    /// Whether a bit has flipped in this life.
    pub fn has_flipped(&self) -> bool {
        !self.flipped.lock().is_empty()
    }

    /// Flips a bit of a table, a filter or a view, if there is one; `number` chooses.
    pub fn flip(&self, folder: &Path, number: u64) {
        // The disk of the next life is already made.
        if self.is_off() {
            return;
        }
        let kinds = [".table", ".filter", ".view"];
        let is_kind =
            |entry: &DirEntry| kinds.iter().any(|kind| entry.name.ends_with(kind)) && entry.length > 0;
        let entries: Vec<DirEntry> =
            self.disk.list(folder).unwrap_or_default().into_iter().filter(is_kind).collect();
        let Some(entry) = entries.get(number as usize % entries.len().max(1)) else { return };
        let flip = Flip {
            path: folder.join(&entry.name),
            offset: tamis_workload::mix64(number) % entry.length,
            mask: 1 << (number >> 40 & 7),
        };
        self.disturb();
        if self.disk.flip_bits(&flip.path, flip.offset, flip.mask).is_ok() {
            self.flips.lock().push(flip.clone());
            self.flipped.lock().push(flip);
        }
    }

    /// Restores all flipped bits of files that still exist, on this disk or on what a crash has left of it.
    pub fn restore_bits(&self, disk: &MemVfs) {
        for flip in self.flips.lock().drain(..) {
            let _ = disk.flip_bits(&flip.path, flip.offset, flip.mask);
        }
    }

    /// A crash of the machine: keeps what was synced, and a part of the rest that `seed` decides.
    pub fn crash(&self, seed: u64) {
        if !self.is_off() {
            *self.after_crash.lock() = Some(self.disk.crash_clone(seed));
            self.turn_off();
        }
    }

    /// Before each file operation: time passes, other threads run.
    fn begin(&self, kind: OperationKind, path: &Path, extent: (u64, usize)) -> io::Result<()> {
        let schedule = &self.schedule;
        let (most, sleeps) = match kind {
            OperationKind::Sync | OperationKind::SyncDir => (3_000, true),
            OperationKind::Append | OperationKind::Read => (60, false),
            _ => (100, false),
        };
        let slowness = self.slowness.load(Ordering::Relaxed);
        let time = Duration::from_micros((1 + schedule.below(most)) * slowness);
        if sleeps || slowness > 1 || schedule.below(8) == 0 {
            schedule.sleep(time);
        } else {
            schedule.advance(time);
            schedule.point();
        }
        if self.is_off() {
            return Err(io::Error::other("the machine is off"));
        }
        let reads = [
            OperationKind::Read,
            OperationKind::Open,
            OperationKind::OpenFolder,
            OperationKind::List,
            OperationKind::Exists,
        ];
        let is_of_store = path.starts_with(FOLDER) && !path.starts_with(Path::new(FOLDER).join("readers"));
        if self.is_closed.load(Ordering::Relaxed) && is_of_store && !reads.contains(&kind) {
            schedule.fail(format!("after the close of the store: {kind:?} of {}", path.display()));
        }
        self.coverage.note_operation(kind);
        if PRINTS_EVENTS.load(Ordering::Relaxed) {
            println!("{:?} thread {}: {kind:?} {} {extent:?}", schedule.now(), current(), path.display());
        }
        schedule.record(kind as u64 ^ extent.0 << 8 ^ (extent.1 as u64) << 32);
        schedule.record_bytes(path.as_os_str().as_encoded_bytes());
        Ok(())
    }

    fn end<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.schedule.record(error.kind() as u64);
        }
        result
    }

    fn run<T>(
        &self,
        kind: OperationKind,
        path: &Path,
        operation: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.begin(kind, path, (0, 0))?;
        self.end(operation())
    }
}
