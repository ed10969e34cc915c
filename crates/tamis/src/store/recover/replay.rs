//! Replays the log into memtables, within the memory that writers may use.
//!
//! 1. [`LogReplay::read`] reads the whole log before anything is written, and so finds its end and all damage. It inserts the entries
//!    until a bound is reached: a memtable is full, or all memtables have received [`crate::Options::log_bytes_max`].
//! 2. [`UnreplayedLog::replay`] reads the rest once more, as soon as the store can write tables. It flushes whenever a bound is reached.
//!    The flushed entries are in tables then, and segments that only they needed are removed: if this open is killed, the next one replays
//!    less.
//!
//! Usually no bound is reached, and the log is read once. A read-only open flushes nothing: it has no bounds.
//!
//! # Invariants
//!
//! 1. *A memtable ends between two records*: a batch is in one record, and a flush writes all of its entries in a keyspace or none.
//! 2. *A keyspace is flushed only after its last retained entry* ([`crate::compaction::retain`]). Entries that were logged before the retained
//!    ones may be newer, and the log may have the retained ones twice: all of them come into one memtable.
//! 3. *Flushes retain nothing*: the entries would be logged after those that are not replayed yet, and the memtable that receives them would
//!    pass the numbers of these.
//! 4. *Segments that are not replayed yet are needed* ([`KeyspaceRegistry::note_replayed_segment`]).

use std::{collections::BTreeMap, sync::Arc};

use tamis_vfs::Folder;

use crate::{
    batch::BatchEntry,
    compaction::background_jobs::BackgroundJobs,
    error::Result,
    key::Sequence,
    store::keyspace_state::{KeyspaceRegistry, KeyspaceState, Keyspaces, LoggedMemtable, ReadState},
    wal::reader::{KnownLog, LogFiles, RecordPlace, ReplayReport, replay},
};

/// A keyspace whose entries are replayed.
struct Target {
    keyspace: Arc<KeyspaceState>,
    read_state: Arc<ReadState>,
    /// The record of the entry that was inserted last.
    record: Option<RecordPlace>,
    /// The greatest number of a retained entry that was read.
    last_retained: Sequence,
}

impl Target {
    fn new(keyspace: &Arc<KeyspaceState>) -> Self {
        let (keyspace, read_state) = (Arc::clone(keyspace), keyspace.read_state.load_full());
        Self { keyspace, read_state, record: None, last_retained: 0 }
    }

    /// Whether an entry is in tables, or in the log under a greater number.
    fn has_flushed(&self, entry: &BatchEntry<'_>) -> bool {
        let partition = self.read_state.version.partition_of(entry.key);
        partition.is_some_and(|partition| entry.logged_at <= partition.flushed_sequence)
    }
}

/// See the head of this file.
pub(crate) struct LogReplay {
    targets: BTreeMap<u32, Target>,
    /// Bytes of keys and values that all memtables may receive before they are flushed; `None` if nothing can be flushed.
    bytes_max: Option<u64>,
    /// Those that they have received.
    bytes: u64,
    /// The record of the entry that was inserted last.
    record: Option<RecordPlace>,
    entry_count: u64,
}

/// The entries of a log that are not in memtables yet.
pub(crate) struct UnreplayedLog {
    replay: LogReplay,
    files: LogFiles,
    /// The number at which the first of them was logged.
    first: Sequence,
}

impl LogReplay {
    /// Into the memtables of these keyspaces.
    pub(crate) fn new(keyspaces: &Keyspaces, bytes_max: Option<u64>) -> Self {
        let targets = keyspaces.iter().map(|(id, keyspace)| (*id, Target::new(keyspace))).collect();
        Self { targets, bytes_max, bytes: 0, record: None, entry_count: 0 }
    }

    /// Step 1. Returns the report, the number of entries that were inserted, and the rest of the log.
    ///
    /// # Errors
    /// As [`replay`].
    pub(crate) fn read(
        mut self,
        files: &LogFiles,
        folder: &Folder,
        known: KnownLog,
    ) -> Result<(ReplayReport, u64, Option<UnreplayedLog>)> {
        let mut rest = None;
        let report = replay(files, &mut |entry, place| {
            // Entries of a dropped keyspace are skipped: ids are never used twice.
            let Some(target) = self.targets.get_mut(&entry.keyspace) else { return Ok(()) };
            if target.has_flushed(&entry) {
                return Ok(());
            }
            if entry.logged_at != entry.sequence {
                target.last_retained = entry.logged_at;
            }
            if rest.is_none() && self.full_keyspaces(&entry, place).is_empty() {
                self.insert(&entry, place);
            } else {
                rest.get_or_insert((place.segment, entry.logged_at));
            }
            Ok(())
        })?;
        let inserted = self.entry_count;
        let rest = rest.map(|(first_needed, first)| {
            let files = LogFiles::of_open_log(&report.segments, folder, KnownLog { first_needed, ..known });
            UnreplayedLog { replay: self, files, first }
        });
        Ok((report, inserted, rest))
    }

    /// Inserts an entry of a record that was appended after the log was read.
    pub(crate) fn receive(&mut self, entry: &BatchEntry<'_>, place: RecordPlace) {
        if self.targets.get(&entry.keyspace).is_some_and(|target| !target.has_flushed(entry)) {
            self.insert(entry, place);
        }
    }

    /// The keyspaces that must be flushed before this entry is inserted.
    fn full_keyspaces(&self, entry: &BatchEntry<'_>, place: RecordPlace) -> Vec<Arc<KeyspaceState>> {
        let Some(bytes_max) = self.bytes_max else { return Vec::new() };
        let may_flush = |target: &&Target| target.last_retained < entry.logged_at;
        let keyspaces = |target: &Target| Arc::clone(&target.keyspace);
        if self.record != Some(place) && self.bytes > bytes_max {
            return self.targets.values().filter(may_flush).map(keyspaces).collect();
        }
        let target = self.targets.get(&entry.keyspace).filter(may_flush);
        let is_full = |target: &&Target| {
            target.record != Some(place) && target.keyspace.is_memtable_full(&target.read_state)
        };
        target.filter(is_full).map(keyspaces).into_iter().collect()
    }

    /// Flushes the memtables of these keyspaces.
    fn flush(&mut self, keyspaces: &[Arc<KeyspaceState>], jobs: &BackgroundJobs) -> Result<()> {
        for keyspace in keyspaces {
            keyspace.rotate_memtable();
        }
        if self.bytes_max.is_some_and(|bytes_max| self.bytes > bytes_max) {
            self.bytes = 0;
        }
        jobs.flush_immutable()?;
        for target in self.targets.values_mut() {
            target.read_state = target.keyspace.read_state.load_full();
        }
        Ok(())
    }

    fn insert(&mut self, entry: &BatchEntry<'_>, place: RecordPlace) {
        let Some(target) = self.targets.get_mut(&entry.keyspace) else { return };
        self.entry_count += u64::from(insert_replayed(&target.read_state.memtable, entry));
        target.read_state.memtable.note_segment(place.segment);
        target.record = Some(place);
        self.record = Some(place);
        self.bytes += (entry.key.len() + entry.value.len()) as u64;
    }
}

impl UnreplayedLog {
    /// Step 2, for a store that is open and has no workers yet. Returns the number of entries that were inserted.
    ///
    /// # Errors
    /// As [`replay`], and the error of a flush that failed. The log is complete; nothing is lost.
    pub(crate) fn replay(self, keyspaces: &KeyspaceRegistry, jobs: &BackgroundJobs) -> Result<u64> {
        let Self { replay: mut rest, files, first } = self;
        let _whole = keyspaces.begin_whole_flushes();
        let inserted_before = rest.entry_count;
        replay(&files, &mut |entry, place| {
            keyspaces.note_replayed_segment(place.segment);
            let target = rest.targets.get(&entry.keyspace);
            if entry.logged_at < first || target.is_none_or(|target| target.has_flushed(&entry)) {
                return Ok(());
            }
            let full = rest.full_keyspaces(&entry, place);
            if !full.is_empty() {
                rest.flush(&full, jobs)?;
            }
            rest.insert(&entry, place);
            Ok(())
        })?;
        keyspaces.note_replayed_segment(u64::MAX);
        Ok(rest.entry_count - inserted_before)
    }
}

/// Inserts an entry of the log into a memtable; returns `false` for a retained one that the log had before it was retained.
fn insert_replayed(target: &LoggedMemtable, entry: &BatchEntry<'_>) -> bool {
    let memtable = &target.memtable;
    if entry.logged_at == entry.sequence {
        memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
        return true;
    }
    target.note_received(entry.logged_at, entry.key);
    memtable.note_sequence(entry.logged_at);
    let found = memtable.get(entry.key, entry.sequence);
    if found.is_some_and(|(_, sequence, _)| sequence == entry.sequence) {
        return false;
    }
    memtable.insert_retained(entry.key, entry.sequence, entry.kind, entry.value);
    true
}
