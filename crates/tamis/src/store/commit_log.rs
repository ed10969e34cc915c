//! The write-ahead log of an open store behind its lock, with the last assigned sequence number.
//!
//! The lock is held by the commit leader, by memtable rotations, and while keyspaces are created or dropped.

use std::{collections::BTreeMap, io::ErrorKind, sync::Arc, time::Duration};

use tamis_vfs::Access;

use crate::{
    changes::event::LoggedEvent,
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    options::Durability,
    store::{context::StoreContext, readers::RegisteredReaders},
    sync::{Mutex, MutexGuard},
    version::{catalog::Catalog, folder, set::VersionSet},
    wal::{
        reader::{KnownLog, LogFiles},
        writer::{Log, SegmentEnd},
    },
};

/// The log and the last assigned sequence number.
pub(crate) struct LogState {
    pub(crate) log: Log,
    pub(crate) last_sequence: Sequence,
}

impl LogState {
    /// Appends events for the change feed, each of which takes the next sequence number. The store is complete without: a feed finds numbers that
    /// are missing.
    ///
    /// # Errors
    /// Those of the log. The numbers are taken nevertheless.
    fn append_events(&mut self, events: &[LoggedEvent], now: Duration) -> Result<()> {
        let mut batch = LoggedEvent::batch(events)?;
        let first = self.last_sequence + 1;
        self.last_sequence += batch.sequence_count();
        self.log.append(&[batch.assign_sequences(first)], Durability::Buffered, now).map(drop)
    }
}

/// The segments of a log at one moment. They stay until it is dropped.
pub(crate) struct PinnedLog {
    log: Arc<CommitLog>,
    versions: Arc<VersionSet>,
    known: KnownLog,
    segments: Vec<SegmentEnd>,
    pin: Option<Arc<()>>,
}

impl PinnedLog {
    /// The files of the segments.
    pub(crate) fn files(&self) -> LogFiles {
        LogFiles::of_open_log(&self.segments, &self.log.context.folder, self.known.clone())
    }
}

impl Drop for PinnedLog {
    fn drop(&mut self) {
        if self.pin.take().is_some() {
            // The next flush retries removals that fail.
            let _ = self.log.remove_obsolete(self.versions.catalog().counters.oldest_log);
        }
    }
}

/// See the head of this file.
pub(crate) struct CommitLog {
    context: Arc<StoreContext>,
    /// `None` if the store was opened read-only.
    state: Mutex<Option<LogState>>,
    /// The segments that the open has replayed. Of a read-only store they are the whole log, as far as it was read.
    replayed: Mutex<Vec<SegmentEnd>>,
}

impl CommitLog {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        state: Option<LogState>,
        replayed: Vec<SegmentEnd>,
    ) -> Arc<Self> {
        let replayed = Mutex::new(replayed);
        Arc::new(Self { context: Arc::clone(context), state: Mutex::new(state), replayed })
    }

    /// How far the log was read.
    pub(crate) fn replayed(&self) -> Vec<SegmentEnd> {
        self.replayed.lock().clone()
    }

    /// Of a read-only store: more of the log was read.
    pub(crate) fn set_replayed(&self, segments: Vec<SegmentEnd>) {
        *self.replayed.lock() = segments;
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<LogState>> {
        self.state.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Option<LogState>>> {
        self.state.try_lock()
    }

    /// Pins the segments of the log whose locked state is `state`. Nothing is read under the lock, so that writers don't wait.
    pub(crate) fn pin(
        self: &Arc<Self>,
        state: Option<&LogState>,
        versions: &Arc<VersionSet>,
        catalog: &Catalog,
    ) -> PinnedLog {
        PinnedLog {
            log: Arc::clone(self),
            versions: Arc::clone(versions),
            known: catalog.known_log(),
            segments: state.map_or_else(|| self.replayed(), |state| state.log.ends().collect()),
            pin: state.map(|state| state.log.pin_segments()),
        }
    }

    /// Removes the segments below `number`, which the manifest durably does not need, unless segments are pinned: then they are removed
    /// when the last pin is dropped. If a reader in another process may read the log now, they are removed by a later call.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove_obsolete(&self, number: u64) -> Result<()> {
        let has_obsolete = self.lock().as_ref().is_some_and(|state| state.log.oldest() < number);
        if !has_obsolete || RegisteredReaders::find(&self.context.folder)?.may_need_all() {
            return Ok(());
        }
        let obsolete = self.lock().as_mut().map(|state| state.log.take_obsolete(number));
        let Some(mut obsolete) = obsolete else { return Ok(()) };
        // Writers continue while the files are removed.
        let result = obsolete.remove(&self.context.folder);
        let oldest = self.lock().as_mut().map(|state| {
            state.log.put_back(obsolete);
            state.log.oldest()
        });
        if self.context.options.keep_changes.bytes > 0 {
            self.remove_ingested(oldest.unwrap_or_default())?;
        }
        result
    }

    /// Removes the second names of ingested tables whose events were in segments before `oldest`.
    fn remove_ingested(&self, oldest: u64) -> Result<()> {
        let folder = &self.context.folder;
        for entry in folder::list(folder)? {
            if matches!(FileName::parse(&entry.name), Some(FileName::Ingested(copy)) if copy < oldest) {
                let path = folder.path().join(&entry.name);
                folder.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
            }
        }
        Ok(())
    }

    /// Logs events, which the manifest has already, under the log's lock. A failure is reported only.
    pub(crate) fn log_events(&self, state: &mut LogState, events: &[LoggedEvent]) {
        if let Err(error) = state.append_events(events, self.context.runtime.clock.now()) {
            self.propagate_background_error(state, &error);
            self.context.report_failed_job("log an event", &error);
        }
    }

    /// The number of the segment that is being written; `None` if the store was opened read-only.
    pub(crate) fn segment_number(&self) -> Option<u64> {
        self.lock().as_ref().map(|state| state.log.number())
    }

    /// Makes all acknowledged writes as durable as `durability` says.
    ///
    /// # Errors
    /// As [`StoreContext::check_writable`]; [`Error::DiskFull`] and [`Error::Io`].
    pub(crate) fn persist(&self, durability: Durability) -> Result<()> {
        let mut log = self.lock();
        self.context.check_writable()?;
        let Some(state) = log.as_mut() else { return Err(self.context.read_only_error()) };
        state.log.persist(durability).inspect_err(|error| self.propagate_background_error(state, error))
    }

    /// Writes the deferred bytes to the operating system.
    ///
    /// # Errors
    /// [`Error::DiskFull`] and [`Error::Io`]: the bytes stay in the process and can be written again.
    pub(crate) fn flush_deferred(&self) -> Result<()> {
        self.lock().as_mut().map_or(Ok(()), |state| state.log.flush_deferred())
    }

    /// Since when deferred bytes wait in the process; `None` if there are none or they can't be written any more.
    pub(crate) fn deferred_since(state: Option<&LogState>) -> Option<Duration> {
        let writable = state.filter(|state| state.log.background_error().is_none());
        writable.and_then(|state| state.log.deferred_since())
    }

    /// Begins a new segment, so that old ones can be removed once their memtables are flushed. If that fails, the old segment
    /// is written further: only the time at which its space is freed depends on it.
    pub(crate) fn begin_segment(&self, state: &mut LogState) {
        if let Err(error) = state.log.rotate() {
            self.context.report_failed_job("begin a log segment", &error);
            self.propagate_background_error(state, &error);
        }
    }

    /// Syncs all segments without the lock, so that a later sync under the lock has little to do and writers continue meanwhile.
    ///
    /// # Errors
    /// Those of the file system; a failed sync is a background error.
    pub(crate) fn sync_without_lock(&self) -> Result<()> {
        let segments = self.lock().as_ref().map(|state| state.log.segments()).unwrap_or_default();
        for (number, _) in segments {
            let path = FileName::Log(number).path(&self.context.folder);
            let file = match self.context.folder.open(&path, Access::Buffered) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(|error| Error::io("open", &path, error))?,
            };
            if let Err(error) = file.sync() {
                let error = Error::io("sync", &path, error);
                self.context.set_background_error(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The segments of which a part is synced, by number, and the lengths of these parts.
    pub(crate) fn synced_segments(&self) -> BTreeMap<u64, u64> {
        self.lock().as_ref().map(|state| state.log.synced_segments()).unwrap_or_default()
    }

    /// Syncs the log, marks it as closed and closes the store for all calls. Both happen under one lock, so that no write is
    /// acknowledged after the last sync.
    ///
    /// # Errors
    /// As [`CommitLog::persist`]; the store is closed in any case.
    pub(crate) fn close(&self) -> Result<()> {
        let mut log = self.lock();
        let result = match log.as_mut() {
            Some(state) => match self.context.check_writable() {
                Ok(()) => {
                    state.log.close().inspect_err(|error| self.propagate_background_error(state, error))
                }
                // Deferred bytes are saved if the log still accepts them. The program must know that the rest may be lost.
                Err(background_error) => {
                    let _ = state.log.flush_deferred();
                    Err(background_error)
                }
            },
            None => Ok(()),
        };
        self.context.set_closed();
        result
    }

    /// After a failed sync of the log, nothing is written any more, not to the manifest either.
    pub(crate) fn propagate_background_error(&self, state: &LogState, error: &Error) {
        if state.log.background_error().is_some() {
            self.context.set_background_error(error);
        }
    }
}
