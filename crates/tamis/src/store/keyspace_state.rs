//! The memtables and tables of one open keyspace, and the registry of all open keyspaces.
//!
//! A [`ReadState`] holds the memtables and the version of one keyspace. It is immutable and published by one atomic pointer. A
//! reader loads the read state, then the visible sequence number, and repeats both if the read state changed in between
//! ([`KeyspaceState::read_point`]). The read state therefore holds every entry at or below that number, and no job that began
//! later has dropped any of them.
//!
//! A read state is replaced by compare-and-swap and never locked, so that a memtable rotation and a finished job do not
//! overwrite each other's change.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};

use crate::{
    empty_ranges::EmptyRanges,
    error::{Error, Result},
    expiry::milliseconds,
    key::Sequence,
    memtable::{ChunkPool, Memtable},
    observe::{
        query_sample::{QuerySample, SampleMemory},
        steps::{self, Step},
    },
    options::KeyspaceOptions,
    read::snapshot::Snapshots,
    store::{
        changed_keyspaces::{Changed, ChangedKeyspaces},
        flush_slot::FlushSlot,
        memory_budget::MemoryBudget,
    },
    sync::Mutex,
    version::{bound_view::BoundViews, partition::Partition, version::KeyspaceVersion},
    write::back_pressure::Pressure,
};

/// A memtable is full if it has at least this many range tombstones, and one for [`ENTRIES_PER_RANGE_TOMBSTONE`] entries of the tables:
/// the entries that they delete take space until they are in tables, too.
pub(crate) const RANGE_TOMBSTONES_MIN: u64 = 1_024;
/// See [`RANGE_TOMBSTONES_MIN`].
const ENTRIES_PER_RANGE_TOMBSTONE: u64 = 64;

/// The first and the last key of some entries, both included.
pub(crate) type BoundingRange = (Vec<u8>, Vec<u8>);

/// Entries of one memtable that a flush retained in a newer one ([`crate::compaction::retain`]).
#[derive(Debug, Default)]
struct Retained {
    /// Of those that the memtable has received, by the number at which they were logged.
    received: BTreeMap<Sequence, BoundingRange>,
    /// Of those of it that were retained in a newer memtable, the last key of each partition by the first one.
    spans: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The log refused a record for them, which a replay may nevertheless find.
    has_failed: bool,
}

/// A memtable and the oldest log segment that holds one of its entries.
pub(crate) struct LoggedMemtable {
    pub(crate) memtable: Arc<Memtable>,
    first_segment: AtomicU64,
    retained: Mutex<Retained>,
}

impl LoggedMemtable {
    fn new(resources: &KeyspaceResources) -> Arc<Self> {
        let memtable = Memtable::new(&resources.pool);
        Arc::new(Self { memtable, first_segment: AtomicU64::new(u64::MAX), retained: Mutex::default() })
    }

    /// Records that the memtable has received an entry of this key, which was logged at `logged_at`.
    pub(crate) fn note_received(&self, logged_at: Sequence, key: &[u8]) {
        let mut retained = self.retained.lock();
        let (first, last) =
            retained.received.entry(logged_at).or_insert_with(|| (key.to_vec(), key.to_vec()));
        if key < first.as_slice() {
            *first = key.to_vec();
        }
        if key > last.as_slice() {
            *last = key.to_vec();
        }
    }

    /// Records that all entries between these keys were retained in a newer memtable.
    pub(crate) fn note_retained(&self, (first, last): BoundingRange) {
        self.retained.lock().spans.insert(first, last);
    }

    /// Whether the entries of this key were retained in a newer memtable.
    pub(crate) fn has_retained(&self, key: &[u8]) -> bool {
        let retained = self.retained.lock();
        let before = retained.spans.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        before.is_some_and(|(_, last)| key <= last.as_slice())
    }

    /// Records whether the log may have a record of retained entries that was refused.
    pub(crate) fn set_retain_failed(&self, has_failed: bool) {
        self.retained.lock().has_failed = has_failed;
    }

    pub(crate) fn has_retain_failed(&self) -> bool {
        self.retained.lock().has_failed
    }

    /// Whether entries were retained in a newer memtable.
    pub(crate) fn has_retained_any(&self) -> bool {
        !self.retained.lock().spans.is_empty()
    }

    /// Whether it has received entries, which may be older than its own.
    pub(crate) fn has_received(&self) -> bool {
        !self.retained.lock().received.is_empty()
    }

    /// The keys of the entries that it has received.
    fn received(&self) -> Vec<BoundingRange> {
        self.retained.lock().received.values().cloned().collect()
    }

    /// Records that log segment `number` holds an entry of this memtable.
    pub(crate) fn note_segment(&self, number: u64) {
        // It is usually recorded already, and a load costs less than a read-modify-write.
        if number < self.first_segment() {
            self.first_segment.fetch_min(number, Ordering::Relaxed);
        }
    }

    /// The oldest log segment that this memtable needs; `u64::MAX` if it needs none.
    pub(crate) fn first_segment(&self) -> u64 {
        self.first_segment.load(Ordering::Relaxed)
    }
}

/// The resources that all keyspaces of a store share.
pub(crate) struct KeyspaceResources {
    /// Memory of memtables.
    pool: Arc<ChunkPool>,
    samples: Arc<SampleMemory>,
    /// [`crate::Options::sample_queries`].
    samples_queries: bool,
    pub(crate) changed: Arc<ChangedKeyspaces>,
}

impl KeyspaceResources {
    pub(crate) fn new(budget: &Arc<MemoryBudget>, samples_queries: bool) -> Arc<Self> {
        let (pool, samples) = (ChunkPool::new(), SampleMemory::new(budget));
        Arc::new(Self { pool, samples, samples_queries, changed: Arc::default() })
    }
}

/// The sources of a read, newest first (RocksDB: super version).
pub(crate) struct ReadState {
    /// How many read states of the keyspace it has replaced.
    number: u64,
    pub(crate) memtable: Arc<LoggedMemtable>,
    /// Immutable memtables, the newest first.
    pub(crate) immutable: Vec<Arc<LoggedMemtable>>,
    pub(crate) version: Arc<KeyspaceVersion>,
    /// The sample of the keyspace's queries.
    pub(crate) query_sample: Arc<QuerySample>,
    /// Ranges of the keyspace in which scans have found no entry.
    pub(crate) empty_ranges: Arc<EmptyRanges>,
    /// The views of the version with their runs, once a read has used them.
    pub(crate) views: BoundViews,
}

impl ReadState {
    /// The next one, with these sources.
    pub(crate) fn with_sources(
        &self,
        memtable: &Arc<LoggedMemtable>,
        immutable: Vec<Arc<LoggedMemtable>>,
        version: &Arc<KeyspaceVersion>,
    ) -> Self {
        Self {
            number: self.number + 1,
            memtable: Arc::clone(memtable),
            immutable,
            version: Arc::clone(version),
            query_sample: Arc::clone(&self.query_sample),
            empty_ranges: Arc::clone(&self.empty_ranges),
            views: BoundViews::default(),
        }
    }

    /// All memtables, the newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<LoggedMemtable>> {
        std::iter::once(&self.memtable).chain(&self.immutable)
    }

    /// Whether no memtable holds an entry.
    pub(crate) fn has_empty_memtables(&self) -> bool {
        self.memtables().all(|memtable| memtable.memtable.is_empty())
    }
}

/// One open keyspace.
pub(crate) struct KeyspaceState {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) read_state: ArcSwap<ReadState>,
    /// How many replacements of the read state have begun: counted before each one.
    replacements: AtomicU64,
    /// That of each read state.
    pub(crate) empty_ranges: Arc<EmptyRanges>,
    pub(crate) is_dropped: AtomicBool,
    /// [`KeyspaceOptions::expire_after`] in milliseconds, for writers; 0: never.
    expire_after: AtomicU64,
    /// Taken by a running flush: flushes run one at a time, the oldest memtable first.
    pub(crate) flush_slot: FlushSlot,
    /// Held while the options change, and by a compaction from the check that they are those of its plan until its edit is installed.
    pub(crate) options_lock: Mutex<()>,
    /// When a memtable was last found full, in nanoseconds of the clock; 0 for never.
    filled_at: AtomicU64,
    /// Nanoseconds between the last two full memtables; `u64::MAX` if there were fewer than two.
    fill_time: AtomicU64,
    /// Ingests that wait until writers of the keyspace pause.
    pub(crate) ingest_count: AtomicUsize,
    /// Whether the current read state throttles writers ([`Pressure::throttles`]).
    is_throttled: AtomicBool,
    /// Versions that were replaced, and when, as long as a scan reads them.
    replaced: Mutex<Vec<(Weak<KeyspaceVersion>, Duration)>>,
    resources: Arc<KeyspaceResources>,
}

impl KeyspaceState {
    pub(crate) fn new(version: Arc<KeyspaceVersion>, resources: &Arc<KeyspaceResources>) -> Arc<Self> {
        let memtable = LoggedMemtable::new(resources);
        let empty_ranges: Arc<EmptyRanges> = Arc::default();
        let keyspace = Arc::new(Self {
            id: u32::try_from(version.id).expect("ids are assigned from 1 upward, one at a time"),
            name: version.name.to_string(),
            read_state: ArcSwap::from_pointee(ReadState {
                number: 0,
                memtable,
                immutable: Vec::new(),
                version,
                query_sample: Arc::new(QuerySample::new(&resources.samples, resources.samples_queries)),
                empty_ranges: Arc::clone(&empty_ranges),
                views: BoundViews::default(),
            }),
            replacements: AtomicU64::new(0),
            empty_ranges,
            is_dropped: AtomicBool::new(false),
            expire_after: AtomicU64::new(0),
            flush_slot: FlushSlot::new(),
            options_lock: Mutex::default(),
            filled_at: AtomicU64::new(0),
            fill_time: AtomicU64::new(u64::MAX),
            ingest_count: AtomicUsize::new(0),
            is_throttled: AtomicBool::new(false),
            replaced: Mutex::default(),
            resources: Arc::clone(resources),
        });
        keyspace.update_is_throttled();
        keyspace.update_expire_after();
        keyspace.mark(Changed::Version);
        keyspace
    }

    /// Lets writers use the option of now.
    pub(crate) fn update_expire_after(&self) {
        let age = self.options().expire_after.map_or(0, milliseconds);
        self.expire_after.store(age, Ordering::Relaxed);
    }

    /// The age at which puts expire, in milliseconds; 0: never.
    #[inline]
    pub(crate) fn expire_after(&self) -> u64 {
        self.expire_after.load(Ordering::Relaxed)
    }

    /// An empty memtable for the writes of a transaction.
    pub(crate) fn new_memtable(&self) -> Arc<Memtable> {
        Memtable::new(&self.resources.pool)
    }

    /// Its options now ([`crate::Keyspace::set_options`]).
    pub(crate) fn options(&self) -> Arc<KeyspaceOptions> {
        Arc::clone(&self.read_state.load().version.options)
    }

    /// Whether it still has these options, and had no others in between.
    pub(crate) fn has_options(&self, options: &Arc<KeyspaceOptions>) -> bool {
        Arc::ptr_eq(&self.read_state.load().version.options, options)
    }

    /// Records that the current version is replaced at `now`.
    pub(crate) fn record_replaced(&self, now: Duration) {
        let mut replaced = self.replaced.lock();
        replaced.retain(|(version, _)| version.strong_count() > 0);
        replaced.push((Arc::downgrade(&self.read_state.load().version), now));
    }

    /// When the oldest version that is replaced and still read was replaced.
    pub(crate) fn oldest_replaced(&self) -> Option<Duration> {
        let replaced = self.replaced.lock();
        let current = Arc::downgrade(&self.read_state.load().version);
        let is_read =
            |version: &Weak<KeyspaceVersion>| version.strong_count() > 0 && !version.ptr_eq(&current);
        replaced.iter().find(|(version, _)| is_read(version)).map(|(_, at)| *at)
    }

    /// How far flushes and compactions lag behind in `read_state`.
    pub(crate) fn pressure(&self, read_state: &ReadState) -> Pressure {
        let KeyspaceOptions { layout, level0_runs, .. } = *read_state.version.options;
        Pressure {
            immutable_count: read_state.immutable.len(),
            level0_run_count: read_state.version.level0_run_count(),
            level0_runs_trigger: layout.level0_trigger(level0_runs),
        }
    }

    /// The partitions that stop writers ([`Pressure::stops`]). Cost: O(partitions).
    pub(crate) fn stopping_partitions(&self, read_state: &ReadState) -> BTreeSet<u64> {
        let all = self.pressure(read_state);
        let stops = |partition: &&Arc<Partition>| {
            Pressure { level0_run_count: partition.level0_run_count(), ..all }.stops()
        };
        read_state.version.partitions.iter().filter(stops).map(|partition| partition.id).collect()
    }

    /// Updates the flag that writers check first. Every caller loads the read state again after its store, so that the last
    /// stored value belongs to the newest read state.
    fn update_is_throttled(&self) {
        loop {
            let read_state = self.read_state.load();
            self.is_throttled.store(self.pressure(&read_state).throttles(), Ordering::SeqCst);
            if Arc::ptr_eq(&read_state, &self.read_state.load()) {
                return;
            }
        }
    }

    /// Whether writers may have to wait: for flushes, for compactions, or for an ingest.
    pub(crate) fn may_delay_writers(&self) -> bool {
        self.is_throttled.load(Ordering::Relaxed) || self.ingest_count.load(Ordering::Relaxed) > 0
    }

    /// As [`KeyspaceState::read_point`], for a short read: the guard costs no reference count, on which threads would contend.
    pub(crate) fn read_point_now(&self, snapshots: &Snapshots) -> (Guard<Arc<ReadState>>, Sequence) {
        let mut read_state = self.read_state.load();
        loop {
            let sequence = snapshots.visible();
            if self.is_current(&read_state) {
                return (read_state, sequence);
            }
            read_state = self.read_state.load();
        }
    }

    /// A consistent pair of read state and sequence number, see the head of this file.
    pub(crate) fn read_point(&self, snapshots: &Snapshots) -> (Arc<ReadState>, Sequence) {
        let mut read_state = self.read_state.load_full();
        loop {
            let sequence = snapshots.visible();
            if self.is_current(&read_state) {
                return (read_state, sequence);
            }
            read_state = self.read_state.load_full();
        }
    }

    /// Whether no other read state was published before the call. The count saves most callers a second load of the read state, which costs
    /// more than the load of a number.
    #[inline]
    fn is_current(&self, read_state: &Arc<ReadState>) -> bool {
        self.replacements.load(Ordering::Acquire) == read_state.number
            || Arc::ptr_eq(read_state, &self.read_state.load())
    }

    /// Replaces the read state by the result of `change`, which may be called more than once ([`ReadState::with_sources`]).
    pub(crate) fn update_read_state(&self, change: impl Fn(&ReadState) -> ReadState) {
        self.replacements.fetch_add(1, Ordering::SeqCst);
        let before = self.read_state.rcu(|read_state| Arc::new(change(read_state)));
        self.update_is_throttled();
        let is_same_version = Arc::ptr_eq(&before.version, &self.read_state.load().version);
        self.mark(if is_same_version { Changed::Memtables } else { Changed::Version });
    }

    /// Replaces the read state of a reader: by another version, and other memtables, unless they have the new entries already. Ranges that were known to be
    /// empty are forgotten.
    pub(crate) fn follow(&self, version: &Arc<KeyspaceVersion>, memtable: Option<&Arc<LoggedMemtable>>) {
        self.update_read_state(|state| {
            let next = state.with_sources(memtable.unwrap_or(&state.memtable), Vec::new(), version);
            ReadState { empty_ranges: Arc::default(), ..next }
        });
    }

    /// The keyspace in its state of now, which no refresh changes.
    pub(crate) fn frozen(&self, resources: &Arc<KeyspaceResources>) -> Arc<Self> {
        let state = self.read_state.load_full();
        let frozen = Self::new(Arc::clone(&state.version), resources);
        frozen.read_state.store(state);
        frozen
    }

    /// Marks the keyspace for the scheduler's next check.
    pub(crate) fn mark(&self, changed: Changed) {
        self.resources.changed.mark(self.id, changed);
    }

    /// Makes the memtable immutable and begins a new one; returns `false` for an empty memtable, which stays. The caller holds
    /// the log's lock, or replays the log.
    pub(crate) fn rotate_memtable(&self) -> bool {
        let read_state = self.read_state.load();
        if read_state.memtable.memtable.is_empty() {
            return false;
        }
        self.update_read_state(|read_state| {
            let mut immutable = read_state.immutable.clone();
            immutable.insert(0, Arc::clone(&read_state.memtable));
            let memtable = LoggedMemtable::new(&self.resources);
            read_state.with_sources(&memtable, immutable, &read_state.version)
        });
        true
    }

    /// The keys between which memtables have retained entries.
    pub(crate) fn retained(&self) -> Vec<BoundingRange> {
        self.read_state.load().memtables().flat_map(|memtable| memtable.received()).collect()
    }

    /// Whether the memtable of `read_state` has the size at which it is rotated, or many range tombstones.
    pub(crate) fn is_memtable_full(&self, read_state: &ReadState) -> bool {
        let memtable = &read_state.memtable.memtable;
        let tombstones = memtable.range_tombstones().count();
        let has_many = || {
            let totals = read_state.version.partitions.iter().map(|partition| partition.totals());
            let entries: u64 = totals.map(|totals| totals.entry_count).sum();
            tombstones >= entries / ENTRIES_PER_RANGE_TOMBSTONE
        };
        memtable.bytes() as u64 >= read_state.version.options.memtable_bytes
            || tombstones >= RANGE_TOMBSTONES_MIN && has_many()
    }

    /// Records that the memtable was full at `now`.
    pub(crate) fn record_memtable_full(&self, now: Duration) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.filled_at.swap(now, Ordering::Relaxed);
        let fill_time = if before > 0 { now.saturating_sub(before) } else { u64::MAX };
        self.fill_time.store(fill_time, Ordering::Relaxed);
    }

    /// The time between the last two full memtables; `None` if there were fewer than two.
    pub(crate) fn fill_time(&self) -> Option<Duration> {
        Some(self.fill_time.load(Ordering::Relaxed)).filter(|&time| time < u64::MAX).map(Duration::from_nanos)
    }

    /// When a memtable was last found full.
    pub(crate) fn filled_at(&self) -> Option<Duration> {
        Some(self.filled_at.load(Ordering::Relaxed)).filter(|&at| at > 0).map(Duration::from_nanos)
    }

    /// # Errors
    /// [`Error::KeyspaceDropped`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) { Err(Error::KeyspaceDropped) } else { Ok(()) }
    }
}

/// The open keyspaces by id.
pub(crate) type Keyspaces = BTreeMap<u32, Arc<KeyspaceState>>;

/// The open keyspaces of a store, published by one atomic pointer.
pub(crate) struct KeyspaceRegistry {
    keyspaces: ArcSwap<Keyspaces>,
    /// Dropped keyspaces, as long as a handle has them.
    dropped: Mutex<Vec<Weak<KeyspaceState>>>,
    /// See [`KeyspaceRegistry::release_count`].
    release_count: AtomicU64,
    /// See [`KeyspaceRegistry::begin_whole_flushes`].
    whole_flush_count: AtomicUsize,
    /// The log segment that an open replays; `u64::MAX` if none is left.
    replayed_segment: AtomicU64,
}

/// See [`KeyspaceRegistry::begin_whole_flushes`].
pub(crate) struct WholeFlushes<'a>(&'a KeyspaceRegistry);

impl Drop for WholeFlushes<'_> {
    fn drop(&mut self) {
        self.0.whole_flush_count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl KeyspaceRegistry {
    pub(crate) fn new(keyspaces: Keyspaces) -> Arc<Self> {
        Arc::new(Self {
            keyspaces: ArcSwap::from_pointee(keyspaces),
            dropped: Mutex::default(),
            release_count: AtomicU64::new(0),
            whole_flush_count: AtomicUsize::new(0),
            replayed_segment: AtomicU64::new(u64::MAX),
        })
    }

    /// While the result exists, no flush leaves entries in memory. (One that retains entries checks that under the log's lock.)
    pub(crate) fn begin_whole_flushes(&self) -> WholeFlushes<'_> {
        self.whole_flush_count.fetch_add(1, Ordering::SeqCst);
        WholeFlushes(self)
    }

    /// Whether flushes must not leave entries in memory.
    pub(crate) fn needs_whole_flushes(&self) -> bool {
        self.whole_flush_count.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn load(&self) -> Guard<Arc<Keyspaces>> {
        self.keyspaces.load()
    }

    /// # Errors
    /// [`Error::KeyspaceNotFound`].
    pub(crate) fn named(&self, name: &str) -> Result<Arc<KeyspaceState>> {
        let keyspaces = self.load();
        let found = keyspaces.values().find(|keyspace| keyspace.name == name);
        found.cloned().ok_or_else(|| Error::KeyspaceNotFound { name: name.to_owned() })
    }

    /// The keyspaces of these names.
    ///
    /// # Errors
    /// [`Error::KeyspaceNotFound`] if one of them does not exist.
    pub(crate) fn all_named(&self, names: &BTreeSet<&str>) -> Result<Vec<Arc<KeyspaceState>>> {
        let keyspaces = self.load();
        let found = keyspaces.values().filter(|keyspace| names.contains(keyspace.name.as_str()));
        let found: Vec<_> = found.cloned().collect();
        if found.len() < names.len() {
            let exists = |name: &&str| found.iter().any(|keyspace| keyspace.name == *name);
            if let Some(missing) = names.iter().find(|name| !exists(name)) {
                return Err(Error::KeyspaceNotFound { name: (*missing).to_owned() });
            }
        }
        Ok(found)
    }

    /// The names of all keyspaces, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.load().values().map(|keyspace| keyspace.name.clone()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn insert(&self, keyspace: &Arc<KeyspaceState>) {
        self.keyspaces.rcu(|keyspaces| {
            let mut changed = Keyspaces::clone(keyspaces);
            changed.insert(keyspace.id, Arc::clone(keyspace));
            changed
        });
    }

    pub(crate) fn remove(&self, removed: &[Arc<KeyspaceState>]) {
        let mut dropped = self.dropped.lock();
        dropped.retain(|keyspace| keyspace.strong_count() > 0);
        dropped.extend(removed.iter().map(Arc::downgrade));
        drop(dropped);
        self.keyspaces.rcu(|keyspaces| {
            let mut changed = Keyspaces::clone(keyspaces);
            removed.iter().for_each(|keyspace| drop(changed.remove(&keyspace.id)));
            changed
        });
        self.note_release();
    }

    /// Records that memtables were replaced by tables or dropped: the log may need fewer segments now.
    pub(crate) fn note_release(&self) {
        self.release_count.fetch_add(1, Ordering::Release);
    }

    /// Grows whenever memtables are replaced by tables or dropped. While it stays the same,
    /// [`KeyspaceRegistry::oldest_needed_segment`] does, too, unless there is none.
    pub(crate) fn release_count(&self) -> u64 {
        self.release_count.load(Ordering::Acquire)
    }

    /// Dropped keyspaces that a handle still has.
    pub(crate) fn dropped(&self) -> Vec<Arc<KeyspaceState>> {
        self.dropped.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The read states of all keyspaces.
    pub(crate) fn read_states(&self) -> Vec<Arc<ReadState>> {
        self.load().values().map(|keyspace| keyspace.read_state.load_full()).collect()
    }

    /// Records that an open replays log segment `number` now and needs the later ones; `u64::MAX` if none is left.
    pub(crate) fn note_replayed_segment(&self, number: u64) {
        self.replayed_segment.store(number, Ordering::Relaxed);
    }

    /// The oldest log segment that some memtable or a replay needs; `None` if none is needed.
    pub(crate) fn oldest_needed_segment(&self) -> Option<u64> {
        let keyspaces = self.load();
        let needed = keyspaces.values().flat_map(|keyspace| {
            steps::count(Step::Segment, 1);
            let read_state = keyspace.read_state.load_full();
            read_state.memtables().map(|memtable| memtable.first_segment()).min()
        });
        let replayed = self.replayed_segment.load(Ordering::Relaxed);
        needed.chain([replayed]).min().filter(|&number| number != u64::MAX)
    }
}
