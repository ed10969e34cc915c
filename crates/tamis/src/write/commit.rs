//! The commit pipeline: one leader numbers the writes of its group, logs them, puts them into the memtables and
//! publishes them.
//!
//! # Invariants
//!
//! 1. Sequence numbers reach the log in order; an entry's number is above all numbers logged before it.
//! 2. A number is visible only when its entry, and every entry below it, is in a memtable.
//! 3. What the log refused was put into no memtable and was never visible; its numbers are given out again.
//! 4. A memtable knows the oldest log segment that holds one of its entries before the entry is visible.
//! 5. A group is one log record: after a crash it is there whole or not at all, and so is each batch in it.
//!
//! # Steps
//!
//! back-pressure (outside of any lock) -> group ([`super::GroupQueue`]) -> room (rotate full memtables) -> number ->
//! log (and sync, when one of the group asked for it) -> memtables -> publish -> wake the background.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arc_swap::Guard;

use crate::{
    batch::WriteBatch,
    engine::{Engine, KeyspaceState, LogState, ReadState},
    error::{Error, Result},
    events::Event,
    options::Durability,
    write::{back_pressure::IMMUTABLE_COUNT_MAX, group::Committer, request::Request},
};

/// How often a writer that waits for a flush looks for itself.
const WAIT: Duration = Duration::from_millis(20);
/// Bytes of a group's batches beyond which the rest of the group gets records of its own.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// The batches of a group that go into one log record.
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

/// A keyspace that a record writes to, and the read state whose memtable takes its entries: under the lock of the log, where
/// memtables are rotated, it stays the one.
struct Target<'a> {
    keyspace: &'a KeyspaceState,
    read_state: Guard<Arc<ReadState>>,
}

impl<'a> Target<'a> {
    fn new(keyspace: &'a KeyspaceState) -> Self {
        Self { keyspace, read_state: keyspace.read_state.load() }
    }
}

/// Puts a numbered batch into the memtables; returns the bytes of its keys and values.
fn insert(batch: &WriteBatch, targets: &[Target<'_>]) -> u64 {
    let mut user_bytes = 0;
    // Mostly all entries are of one keyspace, which is looked for once.
    let mut known = targets.first();
    for entry in batch.entries() {
        if known.is_none_or(|target| target.keyspace.id != entry.keyspace) {
            known = targets.iter().find(|target| target.keyspace.id == entry.keyspace);
        }
        if let Some(target) = known {
            target.read_state.memtable.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            user_bytes += (entry.key.len() + entry.value.len()) as u64;
        }
    }
    user_bytes
}

/// Whether the memtable has the size at which it is rotated.
fn is_full(keyspace: &KeyspaceState, read_state: &ReadState) -> bool {
    read_state.memtable.memtable.bytes() as u64 >= keyspace.options.memtable_bytes
}

/// A batch that leads nobody looks for its keyspace; those of a group are put into records.
impl Committer<Request, Result<()>> for Engine {
    fn commit_one(&self, own: Request) -> Result<()> {
        match own.batch.only_keyspace() {
            Some(id) => {
                let keyspaces = self.keyspaces.load();
                self.commit_to_keyspace(keyspaces.get(&id).ok_or(Error::KeyspaceDropped)?, own)
            }
            None => self.commit_group(vec![own]).pop().unwrap_or(Ok(())),
        }
    }

    /// As few records as the bound on their size allows. A batch for a keyspace that is gone fails alone.
    fn commit_group(&self, group: Vec<Request>) -> Vec<Result<()>> {
        let mut log = self.log.lock();
        let mut results = Vec::with_capacity(group.len());
        let mut record = Record::default();
        for request in group {
            let keyspaces = match self.keyspaces_of(&request.batch) {
                Ok(keyspaces) => keyspaces,
                Err(error) => {
                    self.commit(log.as_mut(), &mut record, &mut results);
                    results.push(Err(error));
                    continue;
                }
            };
            if record.size_bytes + request.batch.size_bytes() > RECORD_BYTES_MAX {
                self.commit(log.as_mut(), &mut record, &mut results);
            }
            record.add(request, keyspaces);
        }
        self.commit(log.as_mut(), &mut record, &mut results);
        results
    }
}

/// As the engine leads, for a writer that knows the keyspace.
struct SingleKeyspaceCommitter<'a> {
    engine: &'a Engine,
    keyspace: &'a KeyspaceState,
}

impl Committer<Request, Result<()>> for SingleKeyspaceCommitter<'_> {
    fn commit_one(&self, own: Request) -> Result<()> {
        self.engine.commit_to_keyspace(self.keyspace, own)
    }

    fn commit_group(&self, group: Vec<Request>) -> Vec<Result<()>> {
        self.engine.commit_group(group)
    }
}

impl Engine {
    /// Writes a batch: all of it or nothing. See [`crate::Db::write_with`].
    pub(crate) fn write(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        self.check_writable()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.throttle(&batch)?;
        self.group.submit(Request { batch, durability }, self)?;
        self.run_inline();
        Ok(())
    }

    /// As [`Engine::write`], for a batch whose entries are all of this keyspace.
    pub(crate) fn write_in(&self, keyspace: &KeyspaceState, batch: WriteBatch) -> Result<()> {
        self.check_writable()?;
        if keyspace.may_hold_writers() || self.back_pressure.is_slowing() {
            self.throttle(&batch)?;
        }
        let committer = SingleKeyspaceCommitter { engine: self, keyspace };
        self.group.submit(Request { batch, durability: Durability::default() }, &committer)?;
        self.run_inline();
        Ok(())
    }

    /// Commits the batch of a writer that leads nobody: the same steps, without the lists of a group.
    fn commit_to_keyspace(&self, keyspace: &KeyspaceState, request: Request) -> Result<()> {
        keyspace.check()?;
        let Request { mut batch, durability } = request;
        let mut log = self.log.lock();
        let Some(state) = log.as_mut() else { return Err(Error::ReadOnly { path: self.folder.clone() }) };
        let mut target = Target::new(keyspace);
        let targets = std::slice::from_mut(&mut target);
        self.commit_record(state, std::slice::from_mut(&mut batch), targets, durability)
    }

    /// The keyspaces that a batch writes to.
    fn keyspaces_of(&self, batch: &WriteBatch) -> Result<Vec<Arc<KeyspaceState>>> {
        let keyspaces = self.keyspaces.load();
        let find = |id| keyspaces.get(&id).cloned().ok_or(Error::KeyspaceDropped);
        batch.keyspaces().map(find).collect()
    }

    /// Commits a record and leaves it empty; each of its batches gets the same result.
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
            None => Err(Error::ReadOnly { path: self.folder.clone() }),
        };
        results.extend(std::iter::repeat_n(result, count));
    }

    /// One record: log, memtables, publish. `targets` are the keyspaces of the batches, each once.
    fn commit_record(
        &self,
        state: &mut LogState,
        batches: &mut [WriteBatch],
        targets: &mut [Target<'_>],
        durability: Durability,
    ) -> Result<()> {
        self.check_writable()?;
        self.make_room(state, targets);
        let mut last_sequence = state.last_sequence;
        for batch in &mut *batches {
            batch.seal(last_sequence + 1);
            last_sequence += batch.sequence_count();
        }
        // The log may go on to another segment by itself: the number from before is a lower bound.
        let segment = state.log.number();
        let log_bytes = self
            .log_record(state, batches, durability)
            .inspect_err(|error| self.propagate_background_error(state, error))?;
        for target in &*targets {
            target.read_state.memtable.note_segment(segment);
        }
        let user_bytes = batches.iter().map(|batch| insert(batch, targets)).sum();
        state.last_sequence = last_sequence;
        self.snapshots.publish(last_sequence);
        let sum = |count: fn(&WriteBatch) -> usize| batches.iter().map(count).sum::<usize>() as u64;
        self.metrics.writes.add_alone(batches.len() as u64);
        self.metrics.entries_written.add_alone(sum(WriteBatch::len));
        self.metrics.user_bytes_written.add_alone(user_bytes);
        self.metrics.log_bytes_written.add_alone(log_bytes);
        self.bound_log(state);
        Ok(())
    }

    /// Appends numbered batches as one record; gives its bytes.
    fn log_record(
        &self,
        state: &mut LogState,
        batches: &[WriteBatch],
        durability: Durability,
    ) -> Result<u64> {
        let now = match durability {
            Durability::Deferred => self.runtime.clock.now(),
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
            // The first that waits in the process: a worker sees to it that it does not wait long.
            self.scheduler.wake();
        }
        Ok(bytes)
    }

    /// Seals the memtables that are full.
    fn make_room(&self, state: &mut LogState, targets: &mut [Target<'_>]) {
        let mut is_rotated = false;
        for target in targets {
            if is_full(target.keyspace, &target.read_state) {
                target.keyspace.record_memtable_full(self.runtime.clock.now());
                is_rotated |= target.keyspace.rotate_memtable();
                target.read_state = target.keyspace.read_state.load();
            }
        }
        if is_rotated {
            self.begin_segment(state);
        }
    }

    /// Begins a new log segment, so that old ones can go once their memtables are flushed. Where none can be made the
    /// old one goes on: nothing depends on it but the time at which space is freed.
    pub(crate) fn begin_segment(&self, state: &mut LogState) {
        if let Err(error) = state.log.rotate() {
            self.tell(&Event::JobFailed { job: "begin a log segment", error: error.to_string() });
            self.propagate_background_error(state, &error);
        }
        self.scheduler.wake();
    }

    /// Keeps the log below its limit: the memtables that hold its oldest segment are rotated, to be flushed.
    fn bound_log(&self, state: &mut LogState) {
        if state.log.total_bytes() <= self.options.log_bytes_max {
            return;
        }
        let Some(oldest) = self.oldest_needed_segment() else { return };
        let mut is_rotated = false;
        for keyspace in self.keyspaces.load().values() {
            if keyspace.read_state.load().memtable.first_segment() == oldest {
                is_rotated |= keyspace.rotate_memtable();
            }
        }
        if is_rotated {
            self.begin_segment(state);
        }
    }

    /// The oldest log segment that some memtable needs.
    pub(crate) fn oldest_needed_segment(&self) -> Option<u64> {
        let keyspaces = self.keyspaces.load();
        let needed = keyspaces.values().flat_map(|keyspace| {
            let read_state = keyspace.read_state.load_full();
            read_state.memtables().map(|memtable| memtable.first_segment()).min()
        });
        needed.min().filter(|&number| number != u64::MAX)
    }

    /// Makes writers as slow as the background is behind; waits where a keyspace has as many immutable memtables as
    /// memory allows.
    fn throttle(&self, batch: &WriteBatch) -> Result<()> {
        for id in batch.keyspaces() {
            let keyspaces = self.keyspaces.load();
            let keyspace = keyspaces.get(&id).ok_or(Error::KeyspaceDropped)?;
            if keyspace.ingest_count.load(Ordering::Relaxed) > 0 {
                let keyspace = Arc::clone(keyspace);
                drop(keyspaces);
                self.wait_for_ingest(&keyspace)?;
                continue;
            }
            let read_state = keyspace.read_state.load();
            if read_state.immutable.len() >= IMMUTABLE_COUNT_MAX && is_full(keyspace, &read_state) {
                let keyspace = Arc::clone(keyspace);
                drop(read_state);
                drop(keyspaces);
                self.wait_for_flush(&keyspace)?;
            }
        }
        if self.options.workers == 0 {
            // This thread does the work itself: nothing lags behind.
            return Ok(());
        }
        let rate = self.rate_of(batch);
        if let Some(microseconds_per_mib) = self.back_pressure.news(rate) {
            self.tell(&Event::BackPressure { microseconds_per_mib: Some(microseconds_per_mib) });
        }
        let Some(rate) = rate else { return Ok(()) };
        let start = self.runtime.clock.now();
        let Some(until) = self.back_pressure.charge(rate, batch.size_bytes() as u64, start) else {
            return Ok(());
        };
        let mut now = start;
        // A job that has ended may have taken the pressure away.
        while now < until && self.rate_of(batch).is_some() && self.check_writable().is_ok() {
            self.scheduler.wait_for_progress(&*self.runtime.clock, until - now);
            now = self.runtime.clock.now();
        }
        self.metrics.throttled_writes.add(1);
        let waited = now.saturating_sub(start);
        self.metrics.throttled_microseconds.add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// The bytes a second at which a batch may be written; `None` where none of its keyspaces lags behind.
    fn rate_of(&self, batch: &WriteBatch) -> Option<u64> {
        let keyspaces = self.keyspaces.load();
        let rate = |keyspace: &Arc<KeyspaceState>| {
            self.back_pressure.rate(keyspace.pressure(&keyspace.read_state.load()))
        };
        batch.keyspaces().filter_map(|id| keyspaces.get(&id).and_then(rate)).min()
    }

    /// Waits until the tables that somebody takes in are in force.
    fn wait_for_ingest(&self, keyspace: &KeyspaceState) -> Result<()> {
        while keyspace.ingest_count.load(Ordering::SeqCst) > 0 {
            self.check_writable()?;
            self.scheduler.wait_for_progress(&*self.runtime.clock, WAIT);
        }
        Ok(())
    }

    /// Waits until a flush made room, or says why none can: a flush that is tried while the writer waits fails.
    fn wait_for_flush(&self, keyspace: &KeyspaceState) -> Result<()> {
        let start = self.runtime.clock.now();
        self.metrics.stopped_writes.add(1);
        self.tell(&Event::BackPressure { microseconds_per_mib: None });
        let (failed_before, _) = self.scheduler.flush_failures();
        self.scheduler.retry_now();
        let result = loop {
            self.run_inline();
            if keyspace.read_state.load().immutable.len() < IMMUTABLE_COUNT_MAX || keyspace.check().is_err() {
                break Ok(());
            }
            if let Err(error) = self.check_writable() {
                break Err(error);
            }
            if let (count, Some(error)) = self.scheduler.flush_failures()
                && count != failed_before
            {
                break Err(error);
            }
            self.scheduler.wait_for_progress(&*self.runtime.clock, WAIT);
        };
        let waited = self.runtime.clock.now().saturating_sub(start);
        self.metrics.stopped_microseconds.add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.tell(&Event::BackPressure { microseconds_per_mib: Some(0) });
        result
    }

    /// Makes all acknowledged writes as durable as `durability` says.
    pub(crate) fn persist(&self, durability: Durability) -> Result<()> {
        let mut log = self.log.lock();
        self.check_writable()?;
        let Some(state) = log.as_mut() else { return Err(Error::ReadOnly { path: self.folder.clone() }) };
        state.log.persist(durability).inspect_err(|error| self.propagate_background_error(state, error))
    }

    /// The last step on the log: all of it is synced, and says so. Under the same lock the database is closed, so that
    /// nothing is acknowledged that came too late for the sync.
    pub(crate) fn end_writes(&self) -> Result<()> {
        let mut log = self.log.lock();
        let result = match log.as_mut() {
            Some(state) => match self.check_writable() {
                Ok(()) => {
                    state.log.close().inspect_err(|error| self.propagate_background_error(state, error))
                }
                // What waits is saved where the log can take it. The program has to know that the rest may be lost.
                Err(refusal) => {
                    let _ = state.log.flush_deferred();
                    Err(refusal)
                }
            },
            None => Ok(()),
        };
        self.is_closed.store(true, Ordering::Release);
        result
    }

    /// After a failed sync of the log nothing more is written, to the manifest neither.
    pub(crate) fn propagate_background_error(&self, state: &LogState, error: &Error) {
        if state.log.background_error().is_some() {
            self.set_background_error(error);
        }
    }
}
