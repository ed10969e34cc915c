//! Flushes memtables: writes the tables, installs them, and removes log segments that no memtable needs any more.
//!
//! # Durability of batches across keyspaces
//!
//! Flushed entries survive a crash of the machine. If a batch wrote to two keyspaces, its other half must survive too. That half
//! is either in tables of the other keyspace, which survive, or in a memtable of it. So if another keyspace has entries in
//! memory, the log is synced before the flush is installed. If none has, the log may still lose its unsynced end: everything
//! lost is newer than everything flushed, because a memtable is rotated between two batches (under the log's lock, and between
//! two records in a replay), and entries leave memory only once the manifest durably names their tables. A flush that retains
//! entries ([`super::retain`]) always syncs the log.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis_vfs::Access;

use super::{
    flush::{Flushed, Layout, flush},
    flush_split::LowerOverlap,
    job_context::with_job_context,
    retain::Retainer,
    table_sink::Written,
};
use crate::{
    error::Result,
    memtable::Memtable,
    observe::events::Event,
    options::Durability,
    store::{
        keyspace_state::{KeyspaceState, LoggedMemtable},
        parts::StoreParts,
        store_folder,
        version_installer::FinishedFlush,
    },
    sync::sim_fault,
    version::{
        catalog::Counters,
        edit::{Change, VersionEdit},
    },
};

/// Smaller memtables are flushed through the page cache: there is little to save.
const DIRECT_BYTES_MIN: u64 = 8 << 20;
/// Writers that take longer to fill a memtable do not wait for flushes.
const DIRECT_FILL_TIME_MAX: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(super) struct Flusher {
    pub(super) store: Arc<StoreParts>,
    /// Blocks that readers had requested when the last flush began.
    pub(super) blocks_at_flush: AtomicU64,
}

impl Flusher {
    /// Flushes the oldest immutable memtable of each of these keyspaces. All are installed by one edit, so that one sync of the
    /// log and one of the manifest serve the whole group.
    ///
    /// # Errors
    /// Those of the file system: memtables that are not installed stay, and their flush can be tried again. The memtables before
    /// the first whose tables can't be written are installed.
    pub(super) fn flush_oldest(&self, keyspaces: &[Arc<KeyspaceState>]) -> Result<()> {
        store_folder::check(&self.store.context.folder)?;
        let start = self.store.context.runtime.clock.now();
        let segment = self.store.log.segment_number().unwrap_or(0);
        let mut finished = Vec::with_capacity(keyspaces.len());
        let mut result = Ok(());
        for keyspace in keyspaces {
            match self.write_oldest(keyspace) {
                Ok(flush) => finished.extend(flush),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if finished.is_empty() {
            return result;
        }
        self.sync_shared_batches(&finished)
            .inspect_err(|_| self.store.installer.discard_flushes(&finished))?;
        self.record_synced_log(&mut finished);
        let installed = self.store.installer.install_flushes(finished)?;
        if installed.is_empty() {
            return result;
        }
        self.note_installed(&installed, self.store.context.runtime.clock.now().saturating_sub(start));
        // Tables sync the folder, and with it the names of all segments that existed when the tables were begun.
        let has_tables = installed.iter().any(|flush| !flush.edit.new_tables().is_empty());
        self.remove_obsolete_segments(if has_tables { segment } else { 0 })?;
        result
    }

    /// Writes the tables of the oldest immutable memtable of a keyspace; `None` if it has none.
    fn write_oldest(&self, keyspace: &Arc<KeyspaceState>) -> Result<Option<FinishedFlush>> {
        let read_state = keyspace.read_state.load_full();
        let Some(oldest) = read_state.immutable.last() else { return Ok(None) };
        let memtable = &oldest.memtable;
        let retainer = Retainer {
            context: &self.store.context,
            keyspaces: &self.store.keyspaces,
            log: &self.store.log,
            snapshots: &self.store.snapshots,
        };
        retainer.retain(keyspace, oldest, &read_state.version)?;
        let lower_overlap = LowerOverlap::of(&read_state.version, memtable)?;
        let is_bulk_load = self.is_bulk_load(keyspace, memtable) && lower_overlap.is_at_most_small();
        let is_direct = is_bulk_load || self.store.context.options.table_access == Access::Direct;
        let newer = || {
            let read_state = keyspace.read_state.load();
            let others = read_state.memtables().map(|other| &other.memtable);
            others.filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect()
        };
        let is_retained = |key: &[u8]| oldest.has_retained(key);
        let layout = Layout { lower_overlap, is_direct, is_retained: &is_retained, newer: &newer };
        let Flushed { edit, bytes_expected, partition_count } =
            with_job_context(&self.store, &read_state.version, |context| flush(context, memtable, &layout))?;
        Ok(Some(FinishedFlush {
            keyspace: Arc::clone(keyspace),
            memtable: Arc::clone(oldest),
            edit,
            bytes_expected,
            partition_count,
            is_direct,
        }))
    }

    /// Adds to the edit of a flush how far the log is synced: the next open finds a segment that was lost or cut since.
    fn record_synced_log(&self, finished: &mut [FinishedFlush]) {
        let segments = self.store.log.synced_segments();
        if let Some(first) = finished.first_mut().filter(|_| !segments.is_empty()) {
            first.edit.push(Change::SetSyncedLog { segments });
        }
    }

    /// Reports flushes that took `time` together.
    fn note_installed(&self, installed: &[FinishedFlush], time: Duration) {
        let bytes = installed.iter().map(|flush| flush.memtable.memtable.bytes() as u64).sum();
        self.store.back_pressure.note_flush(bytes, time);
        let metrics = &self.store.context.metrics;
        for flush in installed {
            let mut written = Written::default();
            for summary in flush.edit.added_tables() {
                written.add(summary);
            }
            metrics.flushes.add(1);
            metrics.direct_flushes.add(u64::from(flush.is_direct));
            metrics.flush_bytes_written.add(written.bytes);
            metrics.flush_blocks_written.add(written.blocks);
            let FinishedFlush { bytes_expected, partition_count, .. } = *flush;
            if flush.keyspace.options().layout.is_partitioned() {
                metrics.partition_decisions.minor.add(partition_count, bytes_expected, written.bytes);
            }
            let keyspace = flush.keyspace.name.clone();
            self.store.context.report(&Event::Flushed { keyspace, bytes_expected, bytes: written.bytes });
        }
    }

    /// Whether the tables of a memtable that overlap no other are written with direct I/O.
    ///
    /// During a bulk load of ascending keys the copy of each table into new pages of the page cache, and the sync that waits for these
    /// pages, limit the writers. No reader needs the pages soon: such a table is moved down the levels without a rewrite, and no merge
    /// reads it. So large memtables that fill fast bypass the cache, if few blocks are read meanwhile. The first reads of their tables come
    /// from the disk.
    fn is_bulk_load(&self, keyspace: &KeyspaceState, memtable: &Memtable) -> bool {
        let blocks = self.store.context.metrics.blocks_used();
        let blocks_read = blocks.saturating_sub(self.blocks_at_flush.swap(blocks, Ordering::Relaxed));
        let bytes = memtable.bytes() as u64;
        bytes >= DIRECT_BYTES_MIN
            && keyspace.fill_time().is_some_and(|time| time < DIRECT_FILL_TIME_MAX)
            && blocks_read * u64::from(keyspace.options().block_bytes) < bytes / 16
    }

    /// Syncs the log if entries were retained, or if a batch may have written both to what is flushed and to other memtables.
    fn sync_shared_batches(&self, finished: &[FinishedFlush]) -> Result<()> {
        let flushed: BTreeMap<u32, &FinishedFlush> =
            finished.iter().map(|flush| (flush.keyspace.id, flush)).collect();
        let holds_entries = |keyspace: &Arc<KeyspaceState>| {
            let read_state = keyspace.read_state.load();
            match flushed.get(&keyspace.id) {
                // Its other memtables are newer than the flushed one, but not than those of the rest of the group.
                Some(flush) => {
                    let is_other = |memtable: &Arc<LoggedMemtable>| !Arc::ptr_eq(memtable, &flush.memtable);
                    let mut others = read_state.memtables().filter(|memtable| is_other(memtable));
                    flushed.len() > 1 && others.any(|memtable| !memtable.memtable.is_empty())
                }
                None => !read_state.has_empty_memtables(),
            }
        };
        let has_retained = finished.iter().any(|flush| flush.memtable.has_retained_any());
        if sim_fault!("flush-part-of-a-batch") {
            return Ok(());
        }
        if !has_retained && !self.store.keyspaces.load().values().any(holds_entries) {
            return Ok(());
        }
        self.store.log.sync_without_lock()?;
        self.store.log.persist(Durability::Synced)
    }

    /// Removes the log segments that no memtable needs: the manifest is updated first. The names of segments up to
    /// `durable_segment` are known to be synced.
    pub(super) fn remove_obsolete_segments(&self, durable_segment: u64) -> Result<()> {
        let (oldest_log, last_sequence) = {
            // Under the lock no writer is between its log record and `LoggedMemtable::note_segment`.
            let mut log = self.store.log.lock();
            let Some(state) = log.as_mut() else { return Ok(()) };
            let current = state.log.number();
            let needed =
                self.store.keyspaces.oldest_needed_segment().filter(|_| !sim_fault!("remove-segment-early"));
            let oldest = needed.unwrap_or(current).min(current);
            if state.log.segments().first().is_none_or(|(first, _)| *first >= oldest) {
                return Ok(());
            }
            // Readers in other processes take the number in the edit for one whose records are in the files.
            state.log.flush_deferred()?;
            let kept = state.log.sync_names_up_to(oldest, durable_segment);
            kept.inspect_err(|error| self.store.log.propagate_background_error(state, error))?;
            (oldest, state.last_sequence)
        };
        let mut edit = VersionEdit::default();
        // The last numbers may be in the removed segments only: those of entries of dropped keyspaces.
        let counters = Counters { oldest_log, last_sequence, ..Counters::default() };
        edit.push(Change::AdvanceCounters(counters));
        self.store.installer.install(edit)?;
        self.store.log.remove_obsolete(oldest_log)
    }
}
