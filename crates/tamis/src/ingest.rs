//! Takes tables that were built outside of the store into a keyspace, all of them in one edit.
//!
//! 1. Each file gets a name in the folder (a link, or a copy) and is read as a whole: a damaged file, or one that is no table
//!    built outside, is refused. Nothing names these files yet: after a crash the next open sweeps them.
//! 2. The keyspace's memtables are flushed, so that all that it holds is in tables. Where writers go on meanwhile, those of this
//!    keyspace wait from the second try on.
//! 3. Under the log's lock: the log is synced (what was acknowledged before survives whatever survives of this), the tables get
//!    the next sequence number, one for all, and one edit puts them into L0 as the newest run. It also says that all of the
//!    keyspace up to this number is in tables, so that a replay puts nothing older above them.
//!
//! The sequence number stands in the manifest and not in the file, which never changes: readers add it (`table/reader.rs`).
//!
//! Cost: each file is read once; a flush; an edit.

use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use tamis_vfs::{Access, Vfs};

use crate::{
    engine::{Engine, KeyspaceState},
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    link::link_or_copy,
    options::Durability,
    table::{properties::TableSummary, reader::TableReader},
    version::{
        catalog::Counters,
        edit::{Change, RunPlace, VersionEdit},
        version::KeyspaceVersion,
    },
};

/// What [`crate::Db::ingest`] took in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IngestReport {
    /// Tables.
    pub table_count: usize,
    /// Their entries.
    pub entry_count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sequence number that all entries got; 0 where there were none.
    pub sequence: u64,
}

/// Files in the folder that nothing names yet; they go unless they are put in force.
struct PendingTables<'a> {
    engine: &'a Engine,
    summaries: Vec<TableSummary>,
    names: Vec<FileName>,
}

impl Drop for PendingTables<'_> {
    fn drop(&mut self) {
        for name in self.names.drain(..) {
            // One that can't be removed is swept at the next open.
            let _ = self.engine.vfs.remove(&name.path(&self.engine.folder));
        }
    }
}

/// While it is held, writers of the keyspace wait before they take part in a group.
struct WriteGate<'a> {
    engine: &'a Engine,
    keyspace: &'a KeyspaceState,
}

impl<'a> WriteGate<'a> {
    fn close(engine: &'a Engine, keyspace: &'a KeyspaceState) -> Self {
        keyspace.ingest_count.fetch_add(1, Ordering::SeqCst);
        Self { engine, keyspace }
    }
}

impl Drop for WriteGate<'_> {
    fn drop(&mut self) {
        self.keyspace.ingest_count.fetch_sub(1, Ordering::SeqCst);
        self.engine.scheduler.note_progress();
    }
}

impl Engine {
    /// See [`crate::Db::ingest`].
    pub(crate) fn ingest(&self, keyspace: &KeyspaceState, paths: &[PathBuf]) -> Result<IngestReport> {
        let mut pending = self.link_tables(paths)?;
        let mut report = IngestReport::default();
        if pending.summaries.is_empty() {
            return Ok(report);
        }
        report.table_count = pending.summaries.len();
        report.entry_count = pending.summaries.iter().map(|summary| summary.entry_count).sum();
        report.bytes = pending.summaries.iter().map(|summary| summary.file_bytes).sum();
        let mut gate = None;
        report.sequence = loop {
            self.flush_all()?;
            if let Some(sequence) = self.try_ingest(keyspace, &mut pending)? {
                break sequence;
            }
            gate.get_or_insert_with(|| WriteGate::close(self, keyspace));
        };
        drop(gate);
        self.scheduler.wake();
        self.run_inline();
        Ok(report)
    }

    /// Step 1.
    fn link_tables(&self, paths: &[PathBuf]) -> Result<PendingTables<'_>> {
        let _job = self.begin_job()?;
        let mut pending = PendingTables { engine: self, summaries: Vec::new(), names: Vec::new() };
        for path in paths {
            let number = self.versions.new_file_number();
            let name = FileName::Table(number);
            link_or_copy(&*self.vfs, path, &name.path(&self.folder))?;
            pending.names.push(name);
            let summary = self.verify_table(number).map_err(|error| at_path(error, path))?;
            pending.summaries.push(summary);
            sync_file(&*self.vfs, &name.path(&self.folder))?;
        }
        self.vfs.sync_dir(&self.folder).map_err(|error| Error::io("sync", &self.folder, error))?;
        check_disjoint(&mut pending.summaries)?;
        Ok(pending)
    }

    /// Reads a whole table that was just brought in.
    fn verify_table(&self, number: u64) -> Result<TableSummary> {
        let reader = TableReader::open_outside(self.tables.environment(), number)?;
        match reader.verify().into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(reader.properties().summary.clone()),
        }
    }

    /// Step 3; `None` where somebody wrote to the keyspace since the flush.
    fn try_ingest(
        &self,
        keyspace: &KeyspaceState,
        pending: &mut PendingTables<'_>,
    ) -> Result<Option<Sequence>> {
        let _job = self.begin_job()?;
        let mut log = self.log.lock();
        self.check_writable()?;
        keyspace.check()?;
        let Some(state) = log.as_mut() else { return Err(Error::ReadOnly { path: self.folder.clone() }) };
        let read_state = keyspace.read_state.load_full();
        if !read_state.memtable.memtable.is_empty() || !read_state.immutable.is_empty() {
            return Ok(None);
        }
        state
            .log
            .persist(Durability::Synced)
            .inspect_err(|error| self.propagate_background_error(state, error))?;
        let sequence = state.last_sequence + 1;
        let edit = edit_of(&read_state.version, &pending.summaries, sequence)?;
        if let Err(error) = self.apply(edit) {
            if self.versions.background_error().is_some() {
                // They may turn out to be in force.
                pending.names.clear();
            }
            return Err(error);
        }
        pending.names.clear();
        state.last_sequence = sequence;
        self.snapshots.publish(sequence);
        Ok(Some(sequence))
    }
}

/// The edit that puts the tables in force.
fn edit_of(version: &KeyspaceVersion, summaries: &[TableSummary], sequence: Sequence) -> Result<VersionEdit> {
    let mut edit = VersionEdit::default();
    for (index, partition) in version.partitions.iter().enumerate() {
        let upper = version.upper_of(index);
        let place = RunPlace { keyspace: version.id, partition: partition.id, level: 0, run_age: sequence };
        let begins_here = |summary: &&TableSummary| {
            summary.smallest_key >= partition.lower
                && upper.is_none_or(|upper| *summary.smallest_key < *upper)
        };
        for summary in summaries.iter().filter(begins_here) {
            if upper.is_some_and(|upper| *summary.largest_key >= *upper) {
                return Err(Error::InvalidArgument {
                    what: "table",
                    got: format!("keys on both sides of {}", upper.unwrap_or_default().escape_ascii()),
                    expected: "the keyspace is divided there: divide the table too".to_owned(),
                });
            }
            let summary =
                TableSummary { smallest_sequence: sequence, largest_sequence: sequence, ..summary.clone() };
            edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: true });
        }
        edit.push(Change::SetFlushedSequence { keyspace: version.id, partition: partition.id, sequence });
    }
    edit.push(Change::AdvanceCounters(Counters { last_sequence: sequence, ..Counters::default() }));
    Ok(edit)
}

/// Refuses tables that share keys: all get one sequence number, so that none would be the newer.
fn check_disjoint(summaries: &mut [TableSummary]) -> Result<()> {
    summaries.sort_unstable_by(|left, right| left.smallest_key.cmp(&right.smallest_key));
    for pair in summaries.windows(2) {
        if let [left, right] = pair
            && left.largest_key >= right.smallest_key
        {
            return Err(Error::InvalidArgument {
                what: "tables",
                got: format!("two that overlap at {}", right.smallest_key.escape_ascii()),
                expected: "ingest them one after the other, the newer one last".to_owned(),
            });
        }
    }
    Ok(())
}

/// A file that was brought here by another program may not be on the disk yet.
fn sync_file(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let file = vfs.open(path, Access::Buffered).map_err(|error| Error::io("open", path, error))?;
    file.sync().map_err(|error| Error::io("sync", path, error))
}

/// Names the program's file instead of the one in the folder, which goes again.
fn at_path(error: Error, path: &Path) -> Error {
    match error {
        Error::Corruption(mut found) => {
            found.file = path.to_path_buf();
            Error::Corruption(found)
        }
        Error::UnknownEntryKind { offset, kind, .. } => {
            Error::UnknownEntryKind { file: path.to_path_buf(), offset, kind }
        }
        Error::UnknownFormat { found, known, .. } => {
            Error::UnknownFormat { file: path.to_path_buf(), found, known }
        }
        other => other,
    }
}
