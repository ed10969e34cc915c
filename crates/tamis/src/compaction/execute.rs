//! Carrying out flushes and compactions: the job, its edit, what follows.
//!
//! # What a flush may promise
//!
//! A flushed entry survives the machine. If a batch touched two keyspaces, the other half must survive too. It is in tables of the
//! other keyspace, which survive, or in its memory: so where another keyspace holds entries in memory, the log is synced before
//! the flush is put in force. Where none does, the log may lose its unsynced end, as ever: what is lost is newer than everything
//! flushed. For a memtable is sealed between two batches (under the log's lock, and between two segments in a replay), so that all
//! that comes into any memory later is newer; and entries leave memory only once the manifest durably names their tables.

use std::{
    io::ErrorKind,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tamis_vfs::Access;

use super::{
    direct_flush::Flush,
    flush::{Layout, flush},
    flush_split::LowerOverlap,
    job::{Merged, merge},
    job_loop::RETRY,
    picker::{RangePick, RangeRequest},
    plan::{Action, Plan},
    scheduler::Scheduler,
    table_sink::JobContext,
};
use crate::{
    cursor::bounded::Bounds,
    engine::{Engine, KeyspaceState, ReadState},
    error::{Error, Result},
    events::Event,
    file_name::FileName,
    memtable::Memtable,
    options::Durability,
    version::{
        catalog::{Catalog, Counters},
        edit::{Change, VersionEdit},
        set::Installed,
        version::KeyspaceVersion,
    },
};

/// How often a thread that waits for the background looks for itself.
const WAIT: Duration = Duration::from_millis(20);

impl Engine {
    /// Makes an edit durable and gives readers the new versions.
    pub(crate) fn apply(&self, edit: VersionEdit) -> Result<Arc<Catalog>> {
        self.apply_with(edit, |_, read_state, version| ReadState {
            memtable: Arc::clone(&read_state.memtable),
            immutable: read_state.immutable.clone(),
            version: Arc::clone(version),
        })
    }

    /// As [`Engine::apply`], with a say in what becomes of a keyspace's read state.
    fn apply_with(
        &self,
        edit: VersionEdit,
        change: impl Fn(u32, &ReadState, &Arc<KeyspaceVersion>) -> ReadState,
    ) -> Result<Arc<Catalog>> {
        let install = |installed: &Installed| {
            let keyspaces = self.keyspaces.load();
            for version in &installed.changed {
                let keyspace = keyspaces.values().find(|keyspace| u64::from(keyspace.id) == version.id);
                if let Some(keyspace) = keyspace {
                    keyspace.update_read_state(|read_state| change(keyspace.id, read_state, version));
                }
            }
        };
        let result = self.versions.apply(edit, install);
        if let (Err(error), true) = (&result, self.versions.background_error().is_some()) {
            self.set_background_error(error);
        }
        result
    }

    fn with_context<R>(&self, version: &KeyspaceVersion, work: impl FnOnce(&JobContext<'_>) -> R) -> R {
        let (database_id, filter_seed) = self.versions.database();
        work(&JobContext {
            vfs: &self.vfs,
            folder: &self.folder,
            version,
            database_id,
            filter_seed,
            is_direct: self.options.table_access == Access::Direct,
            listener: self.options.listener.clone(),
            next_number: &|| self.versions.new_file_number(),
            read_points: self.snapshots.read_points(),
            is_cancelled: self.scheduler.is_stopping(),
            between_tables: &|| {},
        })
    }

    /// Flushes the oldest immutable memtable of a keyspace.
    pub(super) fn flush_oldest(&self, keyspace: &KeyspaceState) -> Result<()> {
        let start = self.runtime.clock.now();
        let read_state = keyspace.read_state.load_full();
        let Some(oldest) = read_state.immutable.last() else { return Ok(()) };
        let segment = self.log.lock().as_ref().map_or(0, |state| state.log.number());
        let memtable = &oldest.memtable;
        let lower_overlap = LowerOverlap::of(&read_state.version, memtable)?;
        let is_direct = self.flushes_directly(keyspace, memtable, lower_overlap.is_at_most_small());
        let newer = || {
            let read_state = keyspace.read_state.load();
            let others = read_state.memtables().map(|other| &other.memtable);
            others.filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect()
        };
        let layout = Layout { lower_overlap, is_direct, newer: &newer };
        let (edit, written) =
            self.with_context(&read_state.version, |context| flush(context, memtable, &layout))?;
        let files = edit.new_tables();
        // Tables sync the folder, and with it the names of all segments that were there when they were begun.
        let durable_segment = if files.is_empty() { 0 } else { segment };
        if let Err(error) = self.install_flush(keyspace, &read_state, edit) {
            if self.versions.background_error().is_none() {
                self.versions.obsolete_files().extend(files);
            }
            // A keyspace that was dropped meanwhile needs no flush.
            return if matches!(error, Error::KeyspaceDropped) { Ok(()) } else { Err(error) };
        }
        let time = self.runtime.clock.now().saturating_sub(start);
        self.back_pressure.note_flush(memtable.bytes() as u64, time);
        if !is_direct {
            self.scheduler.cached_pace.note(memtable.bytes(), time);
        }
        self.metrics.flushes.add(1);
        self.metrics.direct_flushes.add(u64::from(is_direct));
        self.metrics.flush_bytes_written.add(written.bytes);
        self.metrics.flush_blocks_written.add(written.blocks);
        self.tell(&Event::Flushed { keyspace: keyspace.name.clone(), bytes: written.bytes });
        self.drop_old_segments(durable_segment)
    }

    /// Whether the tables of a memtable are written past the page cache ([`super::direct_flush`]).
    fn flushes_directly(&self, keyspace: &KeyspaceState, memtable: &Memtable, is_apart: bool) -> bool {
        let blocks = self.metrics.blocks_read.get() + self.metrics.cache_hits.get();
        let blocks_before = self.scheduler.blocks_at_flush.swap(blocks, Ordering::Relaxed);
        let flush = Flush {
            fill_time: keyspace.fill_time(),
            cached_flush_time: self.scheduler.cached_pace.time_of(memtable.bytes()),
            memtable_bytes: memtable.bytes(),
            read_bytes: blocks.saturating_sub(blocks_before) * u64::from(keyspace.options.block_bytes),
            is_apart,
        };
        self.options.table_access == Access::Direct || flush.goes_past_the_page_cache()
    }

    /// Syncs the log without holding it, so that the sync under its lock, which alone counts, finds little to do and
    /// writers go on meanwhile.
    fn sync_log_aside(&self) -> Result<()> {
        let segments = self.log.lock().as_ref().map(|state| state.log.segments()).unwrap_or_default();
        for (number, _) in segments {
            let path = FileName::Log(number).path(&self.folder);
            let file = match self.vfs.open(&path, Access::Buffered) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(|error| Error::io("open", &path, error))?,
            };
            if let Err(error) = file.sync() {
                let error = Error::io("sync", &path, error);
                self.set_background_error(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether a batch may have touched both what is flushed and what other keyspaces hold in memory.
    fn may_share_batches(&self, flushed: &KeyspaceState) -> bool {
        let holds_entries = |keyspace: &Arc<KeyspaceState>| {
            keyspace.read_state.load().memtables().any(|memtable| !memtable.memtable.is_empty())
        };
        self.keyspaces.load().values().any(|keyspace| keyspace.id != flushed.id && holds_entries(keyspace))
    }

    fn install_flush(
        &self,
        keyspace: &KeyspaceState,
        read_state: &ReadState,
        edit: VersionEdit,
    ) -> Result<()> {
        if self.may_share_batches(keyspace) {
            self.sync_log_aside()?;
            self.persist(Durability::Synced)?;
        }
        let Some(flushed) = read_state.immutable.last() else { return Ok(()) };
        self.apply_with(edit, |id, read_state, version| ReadState {
            memtable: Arc::clone(&read_state.memtable),
            immutable: read_state
                .immutable
                .iter()
                .filter(|memtable| id != keyspace.id || !Arc::ptr_eq(memtable, flushed))
                .cloned()
                .collect(),
            version: Arc::clone(version),
        })?;
        Ok(())
    }

    /// Removes the log segments that no memtable needs: first the manifest says so, then they go. The names of segments up to
    /// `durable_segment` are known to survive the machine.
    fn drop_old_segments(&self, durable_segment: u64) -> Result<()> {
        let needed = {
            // Under the lock no memtable is between its log record and its note of the segment.
            let mut log = self.log.lock();
            let Some(state) = log.as_mut() else { return Ok(()) };
            let current = state.log.number();
            let oldest = self.oldest_needed_segment().unwrap_or(current).min(current);
            if state.log.segments().first().is_none_or(|(first, _)| *first >= oldest) {
                return Ok(());
            }
            let kept = state.log.sync_names_up_to(oldest, durable_segment);
            kept.inspect_err(|error| self.propagate_background_error(state, error))?;
            oldest
        };
        let mut edit = VersionEdit::default();
        edit.push(Change::AdvanceCounters(Counters { oldest_log: needed, ..Counters::default() }));
        self.apply(edit)?;
        let unneeded = self.log.lock().as_mut().map(|state| state.log.take_obsolete(needed));
        let Some(mut unneeded) = unneeded else { return Ok(()) };
        // Writers go on meanwhile.
        let result = unneeded.remove(&*self.vfs, &self.folder);
        if let Some(state) = self.log.lock().as_mut() {
            state.log.put_back(unneeded);
        }
        result
    }

    /// Carries out a plan.
    pub(super) fn compact(&self, keyspace: &KeyspaceState, plan: &Plan) -> Result<()> {
        let start = self.runtime.clock.now();
        if plan.action == Action::Move {
            self.apply_job(plan.move_edit(), &[])?;
            self.metrics.trivial_moves.add(plan.moved_tables().count() as u64);
            return Ok(());
        }
        let read_state = keyspace.read_state.load_full();
        let merged = self.with_context(&read_state.version, |context| {
            let context = JobContext { between_tables: &|| self.flush_between_tables(), ..context.clone() };
            merge(&context, &self.tables, plan)
        })?;
        let Merged { edit, files, bytes_read, written } = merged;
        self.apply_job(edit, &files)?;
        if plan.level() == 0 {
            self.back_pressure.note_merge(plan.bytes_of(0), self.runtime.clock.now().saturating_sub(start));
        }
        self.metrics.compactions.add(1);
        self.metrics.trivial_moves.add(plan.moved_tables().count() as u64);
        self.metrics.compaction_bytes_read.add(bytes_read);
        self.metrics.compaction_bytes_written.add(written.bytes);
        self.metrics.compaction_blocks_written.add(written.blocks);
        self.tell(&Event::Compacted {
            keyspace: keyspace.name.clone(),
            level: plan.level(),
            output_level: plan.output_level,
            bytes_read,
            bytes_written: written.bytes,
        });
        Ok(())
    }

    /// Applies the edit of a job. Tables that it can't put in force are given to the sweep; a keyspace that was dropped
    /// meanwhile needs no job.
    fn apply_job(&self, edit: VersionEdit, written: &[FileName]) -> Result<()> {
        let result = self.apply(edit).map(drop);
        if result.is_err() && self.versions.background_error().is_none() {
            self.versions.obsolete_files().extend(written.iter().copied());
        }
        match result {
            Err(Error::KeyspaceDropped) => Ok(()),
            other => other,
        }
    }

    /// Deletes files that nothing needs. What can't be deleted now is tried again later.
    pub(crate) fn sweep(&self) {
        let result = self.versions.delete_obsolete_files();
        let again_at = result.is_err().then(|| self.runtime.clock.now() + RETRY);
        if let Err(error) = result {
            if self.versions.background_error().is_some() {
                self.set_background_error(&error);
            }
            self.tell(&Event::JobFailed { job: "delete old files", error: error.to_string() });
        }
        self.scheduler.end_sweep(again_at);
    }

    /// See [`crate::Db::flush`].
    pub(crate) fn flush_all(&self) -> Result<()> {
        let mut log = self.log.lock();
        self.check_writable()?;
        if let Some(state) = log.as_mut() {
            let keyspaces = self.keyspaces.load();
            let immutable_count = keyspaces.values().filter(|keyspace| keyspace.rotate_memtable()).count();
            if immutable_count > 0 {
                self.begin_segment(state);
            }
        }
        let read_states = self
            .keyspaces
            .load()
            .values()
            .map(|keyspace| keyspace.read_state.load_full())
            .collect::<Vec<_>>();
        let immutable: Vec<_> =
            read_states.iter().flat_map(|read_state| read_state.immutable.iter().cloned()).collect();
        drop((read_states, log));
        // Those that writers rotate later are no concern of this call.
        let is_done = |engine: &Self| {
            let keyspaces = engine.keyspaces.load();
            immutable.iter().all(|memtable| {
                let waits = |keyspace: &Arc<KeyspaceState>| {
                    keyspace.read_state.load().immutable.iter().any(|other| Arc::ptr_eq(other, memtable))
                };
                !keyspaces.values().any(waits)
            })
        };
        self.wait_until(is_done, Scheduler::flush_failures)
    }

    /// Waits for the background until `is_done`, or until another job of those that `failures` counts has failed.
    fn wait_until(
        &self,
        is_done: impl Fn(&Self) -> bool,
        failures: impl Fn(&Scheduler) -> (u64, Option<Error>),
    ) -> Result<()> {
        let (failed_before, _) = failures(&self.scheduler);
        self.scheduler.retry_now();
        loop {
            self.run_inline();
            if is_done(self) {
                return Ok(());
            }
            self.check_writable()?;
            if let (count, Some(error)) = failures(&self.scheduler)
                && count != failed_before
            {
                return Err(error);
            }
            self.scheduler.wait_for_progress(&*self.runtime.clock, WAIT);
        }
    }

    /// See [`crate::Db::wait_for_compactions`].
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.check_open()?;
        self.scheduler.waiting_count.fetch_add(1, Ordering::SeqCst);
        let result = self.wait_until(|engine| engine.is_idle(), Scheduler::failures);
        self.scheduler.waiting_count.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// See [`crate::Db::compact_range`].
    pub(crate) fn compact_range(&self, keyspace: &KeyspaceState, bounds: &Bounds) -> Result<()> {
        self.flush_all()?;
        let request = RangeRequest {
            lower: bounds.0.clone(),
            upper: bounds.1.clone(),
            sequence_max: self.snapshots.visible(),
            number_max: self.versions.new_file_number(),
        };
        loop {
            keyspace.check()?;
            let job = self.begin_job()?;
            match self.claim_range(keyspace, &request) {
                RangePick::Done => return Ok(()),
                RangePick::Blocked => {
                    drop(job);
                    self.run_inline();
                    self.scheduler.wait_for_progress(&*self.runtime.clock, WAIT);
                }
                RangePick::Plan(plan) => {
                    let result = self.compact(keyspace, &plan);
                    self.release(&plan);
                    self.scheduler.note_progress();
                    result?;
                }
            }
        }
    }
}
