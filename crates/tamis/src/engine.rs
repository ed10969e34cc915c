//! What an open database is made of, shared by the ways of reads, writes and background jobs.
//!
//! # What readers see
//!
//! A [`ReadState`] names the memtables and the version of one keyspace; it is immutable and stands behind one atomic
//! pointer. A reader takes the read state, then the visible sequence number, and takes both again if the read state changed
//! meanwhile ([`KeyspaceState::read_point`]): so the read state holds every entry at or below the number, and no job that
//! began later has dropped any of them.
//!
//! # Locks, in the order in which they are taken
//!
//! 1. `jobs`: shared by every job that writes to the folder; alone by close, before it lets go of the folder.
//! 2. `log`: the commit leader; sealing; creating and dropping keyspaces.
//! 3. The manifest's own lock, inside of `versions`: one edit at a time.
//! 4. The read state of a keyspace is replaced by compare-and-swap, so that a rotation and a finished job do not lose each other.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use parking_lot::{Mutex, RwLock};
use tamis_filter::Digester;
use tamis_vfs::{Lock, Vfs};

use crate::{
    cache::table::TableCache,
    compaction::scheduler::Scheduler,
    error::{Error, Result},
    events::Event,
    key::Sequence,
    memtable::{ChunkPool, Memtable},
    metrics::Metrics,
    open_report::OpenReport,
    options::{KeyspaceOptions, Options},
    read::snapshot::Snapshots,
    runtime::Runtime,
    version::{set::VersionSet, version::KeyspaceVersion},
    wal::writer::Log,
    write::{
        GroupQueue, Request,
        back_pressure::{BackPressure, Pressure},
    },
};

/// A memtable and the oldest log segment that holds one of its entries.
pub(crate) struct LoggedMemtable {
    pub(crate) memtable: Arc<Memtable>,
    first_segment: AtomicU64,
}

impl LoggedMemtable {
    pub(crate) fn new(pool: &Arc<ChunkPool>) -> Arc<Self> {
        Arc::new(Self { memtable: Memtable::new(pool), first_segment: AtomicU64::new(u64::MAX) })
    }

    /// Notes that an entry of this memtable lies in log segment `number`.
    pub(crate) fn note_segment(&self, number: u64) {
        // Mostly it is noted already, and a load costs less.
        if number < self.first_segment() {
            self.first_segment.fetch_min(number, Ordering::Relaxed);
        }
    }

    /// The oldest log segment that this memtable needs; `u64::MAX` when it needs none.
    pub(crate) fn first_segment(&self) -> u64 {
        self.first_segment.load(Ordering::Relaxed)
    }
}

/// What a reader of one keyspace needs, newest first.
pub(crate) struct ReadState {
    pub(crate) memtable: Arc<LoggedMemtable>,
    /// Immutable memtables, the newest first.
    pub(crate) immutable: Vec<Arc<LoggedMemtable>>,
    pub(crate) version: Arc<KeyspaceVersion>,
}

impl ReadState {
    /// All memtables, the newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<LoggedMemtable>> {
        std::iter::once(&self.memtable).chain(&self.immutable)
    }
}

/// One open keyspace.
pub(crate) struct KeyspaceState {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) options: KeyspaceOptions,
    pub(crate) read_state: ArcSwap<ReadState>,
    pub(crate) is_dropped: AtomicBool,
    /// A flush of this keyspace runs: they run one at a time, the oldest memtable first.
    pub(crate) is_flushing: AtomicBool,
    /// When a memtable was last found full, in nanoseconds of the clock; 0 for never.
    filled_at: AtomicU64,
    /// Nanoseconds between the last two that were full; `u64::MAX` where fewer were.
    fill_time: AtomicU64,
    /// Ingests that wait for the keyspace's writers to pause.
    pub(crate) ingest_count: AtomicUsize,
    /// Whether the read state is one whose writers are slowed ([`Pressure::is_felt`]).
    is_pressed: AtomicBool,
    pool: Arc<ChunkPool>,
}

impl KeyspaceState {
    pub(crate) fn new(version: Arc<KeyspaceVersion>, pool: &Arc<ChunkPool>) -> Arc<Self> {
        let memtable = LoggedMemtable::new(pool);
        let keyspace = Arc::new(Self {
            id: u32::try_from(version.id).expect("ids are given out from 1 upward, one at a time"),
            name: version.name.to_string(),
            options: KeyspaceOptions::clone(&version.options),
            read_state: ArcSwap::from_pointee(ReadState { memtable, immutable: Vec::new(), version }),
            is_dropped: AtomicBool::new(false),
            is_flushing: AtomicBool::new(false),
            filled_at: AtomicU64::new(0),
            fill_time: AtomicU64::new(u64::MAX),
            ingest_count: AtomicUsize::new(0),
            is_pressed: AtomicBool::new(false),
            pool: Arc::clone(pool),
        });
        keyspace.note_pressure();
        keyspace
    }

    /// How far the background lags behind, as `read_state` shows it.
    pub(crate) fn pressure(&self, read_state: &ReadState) -> Pressure {
        Pressure {
            immutable_count: read_state.immutable.len(),
            level0_run_count: read_state.version.level0_run_count(),
            level0_runs_trigger: self.options.level0_runs as usize,
        }
    }

    /// Keeps what writers ask first in step with the read state that was just replaced. Whoever stores last has looked again
    /// afterwards, so that what stays is of the newest read state.
    fn note_pressure(&self) {
        loop {
            let read_state = self.read_state.load();
            self.is_pressed.store(self.pressure(&read_state).is_felt(), Ordering::SeqCst);
            if Arc::ptr_eq(&read_state, &self.read_state.load()) {
                return;
            }
        }
    }

    /// Whether writers may have to wait: the background lags behind, or tables are taken in.
    pub(crate) fn may_hold_writers(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed) || self.ingest_count.load(Ordering::Relaxed) > 0
    }

    /// As [`KeyspaceState::read_point`], for a read that ends soon: nothing is counted, so that threads do not meet.
    pub(crate) fn read_point_now(&self, snapshots: &Snapshots) -> (Guard<Arc<ReadState>>, Sequence) {
        let mut read_state = self.read_state.load();
        loop {
            let sequence = snapshots.visible();
            let now = self.read_state.load();
            if Arc::ptr_eq(&read_state, &now) {
                return (read_state, sequence);
            }
            read_state = now;
        }
    }

    /// A read state and a sequence number that belong together, see the head of this file.
    pub(crate) fn read_point(&self, snapshots: &Snapshots) -> (Arc<ReadState>, Sequence) {
        let mut read_state = self.read_state.load_full();
        loop {
            let sequence = snapshots.visible();
            let now = self.read_state.load();
            if Arc::ptr_eq(&read_state, &now) {
                return (read_state, sequence);
            }
            read_state = Arc::clone(&now);
        }
    }

    /// Replaces the read state by what `change` makes of it.
    pub(crate) fn update_read_state(&self, change: impl Fn(&ReadState) -> ReadState) {
        self.read_state.rcu(|read_state| Arc::new(change(read_state)));
        self.note_pressure();
    }

    /// Seals the memtable: writes go to a new one from now on. An empty memtable stays. Under the `log` lock.
    pub(crate) fn rotate_memtable(&self) -> bool {
        let read_state = self.read_state.load();
        if read_state.memtable.memtable.is_empty() {
            return false;
        }
        self.update_read_state(|read_state| {
            let mut immutable = read_state.immutable.clone();
            immutable.insert(0, Arc::clone(&read_state.memtable));
            ReadState {
                memtable: LoggedMemtable::new(&self.pool),
                immutable,
                version: Arc::clone(&read_state.version),
            }
        });
        true
    }

    /// Notes that the memtable was full at `now`.
    pub(crate) fn record_memtable_full(&self, now: Duration) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.filled_at.swap(now, Ordering::Relaxed);
        let fill_time = if before > 0 { now.saturating_sub(before) } else { u64::MAX };
        self.fill_time.store(fill_time, Ordering::Relaxed);
    }

    /// The time between the last two memtables that were full; `None` where fewer were.
    pub(crate) fn fill_time(&self) -> Option<Duration> {
        Some(self.fill_time.load(Ordering::Relaxed)).filter(|&time| time < u64::MAX).map(Duration::from_nanos)
    }

    /// When a memtable was last found full.
    pub(crate) fn filled_at(&self) -> Option<Duration> {
        Some(self.filled_at.load(Ordering::Relaxed)).filter(|&at| at > 0).map(Duration::from_nanos)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) { Err(Error::KeyspaceDropped) } else { Ok(()) }
    }
}

/// The log and the last number given out: what the commit leader works on.
pub(crate) struct LogState {
    pub(crate) log: Log,
    pub(crate) last_sequence: Sequence,
}

/// The keyspaces by id.
pub(crate) type Keyspaces = BTreeMap<u32, Arc<KeyspaceState>>;

/// An open database.
pub(crate) struct Engine {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) folder: PathBuf,
    pub(crate) options: Options,
    pub(crate) runtime: Runtime,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) snapshots: Snapshots,
    pub(crate) digester: Digester,
    pub(crate) tables: Arc<TableCache>,
    /// Memory of memtables that are gone.
    pub(crate) pool: Arc<ChunkPool>,
    pub(crate) keyspaces: ArcSwap<Keyspaces>,
    /// `None` when opened read-only.
    pub(crate) log: Mutex<Option<LogState>>,
    pub(crate) versions: Arc<VersionSet>,
    pub(crate) group: GroupQueue<Request, Result<()>>,
    pub(crate) back_pressure: BackPressure,
    pub(crate) scheduler: Scheduler,
    /// The first background error: after it all writes are refused.
    pub(crate) background_error: OnceLock<Arc<str>>,
    pub(crate) is_closed: AtomicBool,
    pub(crate) report: OpenReport,
    /// See the head of this file.
    pub(crate) jobs: RwLock<()>,
    /// Let go by close: the folder is free then.
    pub(crate) lock: Mutex<Option<Box<dyn Lock>>>,
}

impl Engine {
    /// Tells the program's listener.
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.options.listener {
            listener.on_event(event);
        }
    }

    /// Refuses from now on: what is on disk is no longer known.
    pub(crate) fn set_background_error(&self, error: &Error) {
        let _ = self.background_error.set(Arc::from(error.to_string()));
    }

    /// Refuses reads of a database that was closed: its folder may have another owner.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Refuses writes that can't be done.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.read_only {
            return Err(Error::ReadOnly { path: self.folder.clone() });
        }
        match self.background_error.get() {
            Some(cause) => Err(Error::WritesRefused { cause: Arc::clone(cause) }),
            None => Ok(()),
        }
    }
}
