//! A store in one of its lives, shared by its clients, and the hooks through which it reports to schedule and model.

use std::{
    cell::Cell,
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tamis::{
    Db, Error, Keyspace, Options,
    simulation::{CommittedEntry, Hooks, install},
};

use crate::{coverage::Coverage, model::Model, ops::Profile, schedule::Schedule, world::Life};

/// The folder of the tables that clients ingest.
pub const SOURCES: &str = "/in";

/// State that all lives of a history share.
#[derive(Debug)]
pub struct Shared {
    /// Decides who runs.
    pub schedule: Arc<Schedule>,
    /// Coverage.
    pub coverage: Arc<Coverage>,
    /// The truth.
    pub model: Mutex<Model>,
    /// The profile of the history.
    pub profile: Profile,
}

impl Shared {
    /// Records a broken promise as the failure of the history.
    pub fn check(&self, life: &Life, result: Result<(), String>) {
        if let Err(message) = result
            && !life.is_off()
        {
            self.schedule.fail(message);
        }
    }
}

/// See the head of this file.
pub struct Store {
    /// Shared by all lives.
    pub shared: Arc<Shared>,
    /// This life.
    pub life: Arc<Life>,
    /// The open store.
    pub db: Db,
    /// Its options.
    pub options: Options,
    /// It is open for reads only.
    pub is_read_only: bool,
    /// Handles of the keyspaces by their number in the steps. Those of dropped keyspaces stay until they are created again.
    pub keyspaces: Mutex<BTreeMap<u64, Keyspace>>,
}

/// The name of a keyspace in the steps.
pub fn name_of(keyspace: u64) -> String {
    if keyspace == 0 { "default".to_owned() } else { format!("k{keyspace}") }
}

impl Store {
    /// Calls `work`, which uses another handle of the files: its commits are not those of the model.
    pub fn unobserved<R>(&self, work: impl FnOnce() -> R) -> R {
        install_hooks(&self.shared, &self.life, Mode::Ignore);
        let result = work();
        install_hooks(&self.shared, &self.life, Mode::Observe);
        result
    }

    /// The handle of a keyspace, if it was created.
    pub fn keyspace(&self, number: u64) -> Option<Keyspace> {
        self.keyspaces.lock().get(&number).cloned()
    }

    /// Keeps the handle of a keyspace instead of an older one.
    pub fn keep_keyspace(&self, number: u64, keyspace: Keyspace) {
        let replaced = self.keyspaces.lock().insert(number, keyspace);
        // Not under the lock, which no schedule knows: the schedule may continue with another thread while files of the store are released.
        drop(replaced);
    }

    /// Whether an error has a reason: a fault that was injected in this life.
    ///
    /// # Errors
    /// It has none.
    pub fn judge(&self, operation: &str, error: &Error, faults_before: Option<u64>) -> Result<(), String> {
        self.shared.coverage.note_error(error);
        let life = &self.life;
        if life.is_off() {
            return Ok(());
        }
        let fault_count = life.faults.fault_count();
        let flips = life.flipped.lock();
        let is_disturbed = life.is_disturbed() || fault_count > 0;
        let has_reason = match error {
            // An ingest names its source, which may be a link to the flipped table.
            Error::Corruption(found) => {
                flips.iter().any(|flip| flip.path == found.file || found.file.starts_with(SOURCES))
            }
            Error::UnknownFormat { file, .. } | Error::UnknownEntryKind { file, .. } => {
                flips.iter().any(|flip| flip.path == *file)
            }
            Error::Io { .. } | Error::DiskFull { .. } => {
                is_disturbed && faults_before.is_none_or(|before| fault_count > before || !flips.is_empty())
            }
            Error::LockUnsupported { .. } => is_disturbed,
            Error::WritesRefused { .. } | Error::Panicked { .. } => is_disturbed && faults_before.is_none(),
            Error::ReadOnly { .. } => self.is_read_only,
            Error::Closed => life.is_closing(),
            Error::KeyspaceDropped => self.shared.model.lock().has_dropped,
            _ => false,
        };
        if has_reason { Ok(()) } else { Err(format!("{operation} failed without a reason: {error}")) }
    }
}

/// How a thread reports to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As a thread of the store.
    Observe,
    /// As the thread that opens the store: the first visible number is that of the open. The flag: after a crash of the machine.
    Open(bool),
    /// Not at all: it uses a copy of the store.
    Ignore,
}

/// The hooks of a thread.
struct ThreadHooks {
    shared: Arc<Shared>,
    life: Arc<Life>,
    mode: Cell<Mode>,
}

/// Installs the hooks of the current thread.
pub fn install_hooks(shared: &Arc<Shared>, life: &Arc<Life>, mode: Mode) {
    let hooks = ThreadHooks { shared: Arc::clone(shared), life: Arc::clone(life), mode: Cell::new(mode) };
    install(Some(Rc::new(hooks)));
}

impl ThreadHooks {
    fn observe(&self, observe: impl FnOnce(&mut Model) -> Result<(), String>) {
        if self.mode.get() != Mode::Ignore && !self.life.is_off() {
            let result = observe(&mut self.shared.model.lock());
            self.shared.check(&self.life, result);
        }
    }
}

impl Hooks for ThreadHooks {
    fn point(&self) {
        self.shared.schedule.point();
    }

    fn pause(&self) {
        self.shared.schedule.pause();
    }

    fn wait(&self, object: usize, limit: Option<Duration>) -> bool {
        self.shared.schedule.wait(object, limit)
    }

    fn notify(&self, object: usize, all: bool) {
        self.shared.schedule.notify(object, all);
    }

    fn job(&self, name: &'static str) {
        self.shared.coverage.note_job(name);
        self.shared.schedule.record_bytes(name.as_bytes());
        if self.life.job_panics.swap(false, Ordering::Relaxed) {
            self.life.disturb();
            panic!("a job of the simulation panics");
        }
    }

    fn committed(&self, batch: &[CommittedEntry<'_>], is_certain: bool) {
        self.observe(|model| model.commit(batch, is_certain));
    }

    fn ingested(&self, ingest: (u32, &[u8]), sequence: u64, is_certain: bool) {
        self.observe(|model| model.ingest(ingest, sequence, is_certain));
    }

    fn visible(&self, sequence: u64) {
        self.shared.schedule.record(sequence);
        match self.mode.get() {
            Mode::Open(has_crashed) => {
                self.mode.set(Mode::Observe);
                self.observe(|model| model.reopen(sequence, has_crashed));
            }
            _ => self.observe(|model| model.publish(sequence)),
        }
    }
}
