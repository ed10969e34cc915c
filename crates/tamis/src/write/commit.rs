//! The commit pipeline: one leader assigns sequence numbers to the writes of its group, logs them, inserts them into the
//! memtables and publishes them.
//!
//! # Invariants
//!
//! 1. Sequence numbers reach the log in order: an entry's number is greater than all numbers logged before it.
//! 2. A number becomes visible only when its entry and every entry below it is in a memtable.
//! 3. A write that the log refused is in no memtable and was never visible; its numbers are assigned again.
//! 4. A memtable records the oldest log segment that holds one of its entries before the entry is visible.
//! 5. A group is one log record (several, if it is large). After a crash a record is there completely or not at all, and so is
//!    each batch in it.
//!
//! # Steps
//!
//! A transaction is a batch with a condition, which is checked in its place in the order of commits. An exclusive transaction leads while it is open.
//!
//! throttle (outside of any lock) -> group ([`super::group`]) -> rotate full memtables -> assign sequence numbers -> append to
//! the log (and sync it, if one of the group requires that) -> insert into memtables -> end ranges that were known to be empty
//! -> publish -> let due jobs run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::Guard;

use super::{
    group::{Committer, GroupQueue},
    request::Request,
    throttle::WriteThrottle,
};
use crate::{
    batch::WriteBatch,
    compaction::background_jobs::BackgroundJobs,
    error::{Error, Result},
    observe::metrics::Metrics,
    options::Durability,
    store::{
        commit_log::LogState,
        keyspace_state::{KeyspaceState, ReadState},
        parts::StoreParts,
    },
    sync::sim_fault,
    transaction::{condition::Condition, exclusive::ExclusiveThreads, recent_commits::RecentCommits},
};

/// The error of a commit that panics. It never unwinds into the group: the leadership would not be released.
const COMMIT: &str = "commit a batch";

/// The batches of a group that share one log record.
#[derive(Default)]
struct Record {
    batches: Vec<WriteBatch>,
    size_bytes: usize,
    /// Each once.
    keyspaces: Vec<Arc<KeyspaceState>>,
    durability: Durability,
}

impl Record {
    fn add(&mut self, request: Request, keyspaces: Vec<Arc<KeyspaceState>>) {
        self.size_bytes += request.batch.size_bytes();
        self.durability = match self.batches.is_empty() {
            true => request.durability,
            false => self.durability.max(request.durability),
        };
        self.batches.push(request.batch);
        if self.keyspaces.is_empty() {
            self.keyspaces = keyspaces;
            return;
        }
        for keyspace in keyspaces {
            if !self.keyspaces.iter().any(|other| other.id == keyspace.id) {
                self.keyspaces.push(keyspace);
            }
        }
    }
}

/// A keyspace that a record writes to, and the read state whose memtable receives the entries. It stays current while the log's
/// lock is held, because memtables are rotated under that lock.
struct Target<'a> {
    keyspace: &'a KeyspaceState,
    read_state: Guard<Arc<ReadState>>,
}

impl<'a> Target<'a> {
    fn new(keyspace: &'a KeyspaceState) -> Self {
        Self { keyspace, read_state: keyspace.read_state.load() }
    }
}

/// Inserts a batch, whose sequence numbers are assigned, into the memtables; returns the bytes of its keys and values.
fn insert(batch: &WriteBatch, targets: &[Target<'_>]) -> u64 {
    let mut user_bytes = 0;
    // Usually all entries belong to one keyspace, which is looked up once.
    let mut target = targets.first();
    for entry in batch.entries() {
        if target.is_none_or(|target| target.keyspace.id != entry.keyspace) {
            target = targets.iter().find(|target| target.keyspace.id == entry.keyspace);
        }
        if let Some(target) = target {
            target.read_state.memtable.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            user_bytes += (entry.key.len() + entry.value.len()) as u64;
        }
    }
    user_bytes
}

/// Ends the ranges without entries that the batches, which were inserted, put into.
fn end_empty_ranges(batches: &[WriteBatch], targets: &[Target<'_>]) {
    for target in targets {
        let KeyspaceState { id, empty_ranges, .. } = target.keyspace;
        if empty_ranges.are_used() {
            let entries = batches.iter().flat_map(WriteBatch::entries);
            let puts = entries.filter(|entry| entry.keyspace == *id && entry.kind.sets_value());
            puts.for_each(|put| empty_ranges.note_put(put.key, put.sequence));
        }
    }
}

/// Reports a record to a simulation: before it is logged, and when it is committed.
#[cfg(feature = "simulation")]
fn observe(batches: &[WriteBatch], is_committed: bool) {
    use crate::{
        key::Kind,
        sync::hooks::{CommittedEntry, EntryKind, committed},
    };

    for batch in batches {
        let entries = batch.entries().map(|entry| CommittedEntry {
            keyspace: entry.keyspace,
            sequence: entry.sequence,
            kind: match entry.kind {
                Kind::Put => EntryKind::Put,
                Kind::Tombstone => EntryKind::Delete,
                Kind::RangeTombstone => EntryKind::DeleteRange,
                Kind::Operand => EntryKind::Merge,
                Kind::ExpiringPut => EntryKind::PutUntil,
            },
            key: entry.key,
            value: entry.value,
        });
        committed(entries, is_committed);
    }
}

#[cfg(not(feature = "simulation"))]
const fn observe(_batches: &[WriteBatch], _is_committed: bool) {}

/// See the head of this file.
pub(crate) struct WritePath {
    store: Arc<StoreParts>,
    metrics: Arc<Metrics>,
    background: Arc<BackgroundJobs>,
    throttle: WriteThrottle,
    group: GroupQueue<Request, Result<()>>,
    /// [`crate::store::keyspace_state::KeyspaceRegistry::release_count`] when the memtables with the oldest log segment were last found immutable: only flushes
    /// free log space until it grows.
    bounded_at: AtomicU64,
    exclusive_threads: ExclusiveThreads,
    /// For the conditions of transactions.
    pub(crate) recent: RecentCommits,
}

impl Committer<Request, Result<()>> for WritePath {
    fn commit_one(&self, own: Request) -> Result<()> {
        match own.batch.only_keyspace() {
            Some(id) if own.condition.is_none() => {
                let keyspaces = self.store.keyspaces.load();
                self.commit_alone(keyspaces.get(&id).ok_or(Error::KeyspaceDropped)?, own)
            }
            _ => self.commit_group(vec![own]).pop().unwrap_or(Ok(())),
        }
    }

    fn commit_group(&self, group: Vec<Request>) -> Vec<Result<()>> {
        let count = group.len();
        let results = self.store.context.catch(COMMIT, || self.commit_records(group));
        results.unwrap_or_else(|panic| vec![Err(panic); count])
    }
}

/// Commits as [`WritePath`] does, for a writer that has looked up the keyspace of its batch already.
struct SingleKeyspaceCommitter<'a> {
    write_path: &'a WritePath,
    keyspace: &'a KeyspaceState,
}

impl Committer<Request, Result<()>> for SingleKeyspaceCommitter<'_> {
    fn commit_one(&self, own: Request) -> Result<()> {
        self.write_path.commit_alone(self.keyspace, own)
    }

    fn commit_group(&self, group: Vec<Request>) -> Vec<Result<()>> {
        self.write_path.commit_group(group)
    }
}

impl WritePath {
    pub(crate) fn new(store: &Arc<StoreParts>, background: &Arc<BackgroundJobs>) -> Self {
        Self {
            store: Arc::clone(store),
            metrics: Arc::clone(&store.context.metrics),
            background: Arc::clone(background),
            throttle: WriteThrottle { store: Arc::clone(store), background: Arc::clone(background) },
            group: GroupQueue::new(),
            bounded_at: AtomicU64::new(u64::MAX),
            exclusive_threads: ExclusiveThreads::default(),
            recent: RecentCommits::default(),
        }
    }

    /// Writes a batch: all of it or nothing. See [`crate::Db::write_with`].
    pub(crate) fn write(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        self.store.context.check_writable()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.submit(batch, durability, None)
    }

    /// Writes the batch of a transaction, if its condition holds.
    ///
    /// # Errors
    /// [`Error::Conflict`]; those of [`WritePath::write`] and of reads.
    pub(crate) fn write_if(
        &self,
        batch: WriteBatch,
        durability: Durability,
        condition: Condition,
    ) -> Result<()> {
        self.store.context.check_writable()?;
        self.submit(batch, durability, Some(Box::new(condition)))
    }

    fn submit(
        &self,
        batch: WriteBatch,
        durability: Durability,
        mut condition: Option<Box<Condition>>,
    ) -> Result<()> {
        self.exclusive_threads.refuse()?;
        self.throttle.wait(&batch)?;
        if let Some(condition) = &mut condition {
            condition.check_early(&self.store, &self.recent)?;
        }
        self.group.submit(Request { batch, durability, condition }, self)?;
        self.background.run_inline();
        Ok(())
    }

    /// Waits until no other thread commits, and lets the caller commit alone until [`WritePath::end_exclusive`].
    ///
    /// # Errors
    /// As [`StoreContext::check_writable`](crate::store::context::StoreContext::check_writable); [`Error::ExclusiveTransaction`].
    pub(crate) fn begin_exclusive(&self) -> Result<()> {
        self.store.context.check_writable()?;
        self.exclusive_threads.refuse()?;
        self.group.lead(Request::default());
        self.note_exclusive();
        // The store may have been closed in the meantime.
        self.store.context.check_writable().inspect_err(|_| self.end_exclusive())
    }

    /// Records that the calling thread uses the open exclusive transaction.
    pub(crate) fn note_exclusive(&self) {
        self.exclusive_threads.enter();
    }

    pub(crate) fn end_exclusive(&self) {
        self.exclusive_threads.end();
        self.group.release();
    }

    /// Writes the batch of the open exclusive transaction. Its condition fails only after an ingest.
    pub(crate) fn write_exclusive(
        &self,
        batch: WriteBatch,
        durability: Durability,
        condition: Condition,
    ) -> Result<()> {
        // Waits for background jobs only, which never wait for a leader.
        self.throttle.wait(&batch)?;
        let condition = Some(Box::new(condition));
        self.commit_one(Request { batch, durability, condition })
    }

    /// Jobs that a commit has made due, in a store without workers.
    pub(crate) fn run_inline(&self) {
        self.background.run_inline();
    }

    /// As [`WritePath::write`], for a batch whose entries all belong to this keyspace.
    pub(crate) fn write_in(&self, keyspace: &KeyspaceState, batch: WriteBatch) -> Result<()> {
        self.store.context.check_writable()?;
        self.exclusive_threads.refuse()?;
        if self.throttle.is_active(keyspace) {
            self.throttle.wait(&batch)?;
        }
        let committer = SingleKeyspaceCommitter { write_path: self, keyspace };
        self.group.submit(Request { batch, ..Request::default() }, &committer)?;
        self.background.run_inline();
        Ok(())
    }

    /// Commits the batch of a leader without followers.
    fn commit_alone(&self, keyspace: &KeyspaceState, request: Request) -> Result<()> {
        self.store.context.catch(COMMIT, || self.commit_to_keyspace(keyspace, request))?
    }

    /// The same steps as for a group, without its lists.
    fn commit_to_keyspace(&self, keyspace: &KeyspaceState, request: Request) -> Result<()> {
        keyspace.check()?;
        let Request { mut batch, durability, .. } = request;
        let mut log = self.store.log.lock();
        let Some(state) = log.as_mut() else { return Err(self.store.context.read_only_error()) };
        let mut target = Target::new(keyspace);
        let targets = std::slice::from_mut(&mut target);
        self.commit_record(state, std::slice::from_mut(&mut batch), targets, durability)
    }

    /// Writes as few records as their maximum size allows. A batch for a dropped keyspace, or whose condition does not hold, fails without the others.
    fn commit_records(&self, group: Vec<Request>) -> Vec<Result<()>> {
        let mut log = self.store.log.lock();
        let mut results = Vec::with_capacity(group.len());
        let mut record = Record::default();
        for request in group {
            let keyspaces = self.keyspaces_of(&request.batch);
            let condition = request.condition.as_ref();
            // Whether there is a conflict depends on whether they are committed.
            if condition.is_some_and(|condition| condition.meets(&record.batches)) {
                self.commit(log.as_mut(), &mut record, &mut results);
            }
            let checked =
                condition.map_or(Ok(()), |condition| condition.check_now(&self.store, &self.recent));
            let keyspaces = match checked.and(keyspaces) {
                Ok(keyspaces) => keyspaces,
                Err(error) => {
                    self.commit(log.as_mut(), &mut record, &mut results);
                    results.push(Err(error));
                    continue;
                }
            };
            // A group whose batches exceed this size is written as several records.
            if record.size_bytes + request.batch.size_bytes() > 1 << 20 {
                self.commit(log.as_mut(), &mut record, &mut results);
            }
            record.add(request, keyspaces);
        }
        self.commit(log.as_mut(), &mut record, &mut results);
        results
    }

    /// The keyspaces that a batch writes to.
    fn keyspaces_of(&self, batch: &WriteBatch) -> Result<Vec<Arc<KeyspaceState>>> {
        let keyspaces = self.store.keyspaces.load();
        let find = |id| keyspaces.get(&id).cloned().ok_or(Error::KeyspaceDropped);
        batch.keyspaces().map(find).collect()
    }

    /// Commits a record and empties it; each of its batches gets the same result.
    fn commit(&self, state: Option<&mut LogState>, record: &mut Record, results: &mut Vec<Result<()>>) {
        if record.batches.is_empty() {
            return;
        }
        let mut record = std::mem::take(record);
        let count = record.batches.len();
        let result = match state {
            Some(state) => {
                let mut targets: Vec<_> =
                    record.keyspaces.iter().map(|keyspace| Target::new(keyspace)).collect();
                self.commit_record(state, &mut record.batches, &mut targets, record.durability)
            }
            None => Err(self.store.context.read_only_error()),
        };
        results.extend(std::iter::repeat_n(result, count));
    }

    /// Commits one record: log, memtables, publish. `targets` are the keyspaces of the batches, each once.
    fn commit_record(
        &self,
        state: &mut LogState,
        batches: &mut [WriteBatch],
        targets: &mut [Target<'_>],
        durability: Durability,
    ) -> Result<()> {
        self.store.context.check_writable()?;
        self.rotate_full_memtables(state, targets);
        let (before, mut last_sequence) = (state.last_sequence, state.last_sequence);
        for batch in &mut *batches {
            batch.assign_sequences(last_sequence + 1);
            last_sequence += batch.sequence_count();
        }
        // The append may begin another segment: the number before it is a lower bound.
        let segment = state.log.number();
        observe(batches, false);
        let log_bytes = self
            .log_record(state, batches, durability)
            .inspect_err(|error| self.store.log.propagate_background_error(state, error))?;
        for target in &*targets {
            target.read_state.memtable.note_segment(segment);
        }
        let user_bytes = batches.iter().map(|batch| insert(batch, targets)).sum();
        end_empty_ranges(batches, targets);
        state.last_sequence = last_sequence;
        observe(batches, true);
        self.store.snapshots.publish(last_sequence);
        let sum = |count: fn(&WriteBatch) -> usize| batches.iter().map(count).sum::<usize>() as u64;
        self.metrics.writes.add_exclusive(batches.len() as u64);
        self.metrics.entries_written.add_exclusive(sum(WriteBatch::len));
        self.metrics.user_bytes_written.add_exclusive(user_bytes);
        self.metrics.log_bytes_written.add_exclusive(log_bytes);
        self.recent.note(before + 1, batches);
        self.bound_log(state);
        Ok(())
    }

    /// Appends batches, whose sequence numbers are assigned, as one record; returns its bytes.
    fn log_record(
        &self,
        state: &mut LogState,
        batches: &[WriteBatch],
        durability: Durability,
    ) -> Result<u64> {
        let durability =
            if sim_fault!("skip-log-sync") { durability.min(Durability::Buffered) } else { durability };
        let now = match durability {
            Durability::Deferred => self.store.context.runtime.clock.now(),
            _ => Duration::ZERO,
        };
        let bytes = match batches {
            [batch] => state.log.append(&[batch.bytes()], durability, now)?,
            _ => {
                let parts: Vec<&[u8]> = batches.iter().map(WriteBatch::bytes).collect();
                state.log.append(&parts, durability, now)?
            }
        };
        if durability == Durability::Deferred && state.log.deferred_since() == Some(now) {
            // These are the first deferred bytes: a worker writes them when their time is over.
            self.store.scheduler.wake();
        }
        Ok(bytes)
    }

    fn rotate_full_memtables(&self, state: &mut LogState, targets: &mut [Target<'_>]) {
        let mut is_rotated = false;
        for target in targets {
            if target.keyspace.is_memtable_full(&target.read_state) {
                target.keyspace.record_memtable_full(self.store.context.runtime.clock.now());
                is_rotated |= target.keyspace.rotate_memtable();
                target.read_state = target.keyspace.read_state.load();
            }
        }
        if is_rotated {
            self.begin_segment(state);
        }
    }

    /// Begins a log segment after memtables were rotated, and wakes the workers that flush them.
    fn begin_segment(&self, state: &mut LogState) {
        self.store.log.begin_segment(state);
        self.store.scheduler.wake();
    }

    /// Keeps the log below its limit: the memtables that hold its oldest segment are rotated, to be flushed. While the flushes
    /// have not ended, a commit over the limit visits no keyspace again.
    fn bound_log(&self, state: &mut LogState) {
        if state.log.total_bytes() <= self.store.context.options.log_bytes_max {
            return;
        }
        let release_count = self.store.keyspaces.release_count();
        if self.bounded_at.load(Ordering::Relaxed) == release_count {
            return;
        }
        let Some(oldest) = self.store.keyspaces.oldest_needed_segment() else { return };
        let (mut is_rotated, mut is_immutable) = (false, false);
        for keyspace in self.store.keyspaces.load().values() {
            let read_state = keyspace.read_state.load();
            is_immutable |= read_state.immutable.iter().any(|memtable| memtable.first_segment() == oldest);
            if read_state.memtable.first_segment() == oldest {
                is_rotated |= keyspace.rotate_memtable();
            }
        }
        if is_rotated || is_immutable {
            self.bounded_at.store(release_count, Ordering::Relaxed);
        }
        if is_rotated {
            self.begin_segment(state);
        }
    }
}
