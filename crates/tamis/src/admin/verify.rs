//! Reads every byte of the current state and names each fault: file, offset, kind. It continues after a fault.
//!
//! Checked: `CURRENT` and the manifest (by replaying them), every log segment (headers, records, entries), every table
//! (section checksums, every data block, entry order, counts against properties, filters against keys, filter files), every sorted
//! view (checksums, and each entry against a merge of the runs). Data
//! written since the last sync of the log may be torn after a crash and is no fault.
//!
//! A store that cannot be opened is checked as far as the readable part of its manifest names files ([`verify_folder`]); without one,
//! all existing tables and log segments are read. Tables that the manifest does not name and that are not proven obsolete
//! are named, too (`store/orphans.rs`).
//!
//! A table that cannot be opened is checked part by part, as far as its parts can be found (`table/scrub.rs`).
//!
//! Cost: every file is read once.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, Folder, LockMode, Vfs};

use crate::{
    cache::table::TableCache,
    cursor::run_tables::open_run,
    error::{Error, Result},
    file_name::FileName,
    options::{OpenMode, Options},
    store::{
        open_report::WalTruncation,
        orphans::{self, LogSpan},
        parts::StoreParts,
        recover::{inspect_folder, lock, open_folder},
    },
    table::{
        lazy_reader::NamedTable as _,
        reader::TableReader,
        scrub::{check_filter_file_alone, scrub_unreadable},
    },
    version::{
        catalog::Catalog, folder, handle::Table, named_view::open_view, partition::Partition,
        prefix::read_longest, version::KeyspaceVersion,
    },
    view::{check::check_view, reader::View, writer::ViewOwner},
    wal::{
        format::database_id_of,
        reader::{LogFiles, salvage},
    },
};

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// Offset in bytes, where it is known.
    pub offset: Option<u64>,
    /// A description of the fault.
    pub what: String,
}

/// Findings of [`crate::Db::verify`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files read.
    pub file_count: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Table entries read.
    pub entry_count: u64,
    /// Every fault found.
    pub faults: Vec<Fault>,
    /// Torn ends of log segments after a crash: writes that were not synced. They are no faults; the next open drops them.
    pub torn_tails: Vec<WalTruncation>,
}

/// Receives the findings so far, before each table; a break ends the call.
pub(crate) type Progress<'a> = dyn FnMut(&VerifyReport) -> ControlFlow<()> + 'a;

impl VerifyReport {
    /// Whether nothing is damaged.
    pub const fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Reads the log and records each fault.
    fn add_log(&mut self, folder: &Folder, files: &LogFiles) -> LogSpan {
        self.file_count += files.segments().len();
        self.bytes += files.segments().iter().map(|segment| segment.length).sum::<u64>();
        let (replayed, faults) = salvage(files, &mut |_, _| {});
        faults.iter().for_each(|error| self.note(folder.path().to_path_buf(), error));
        self.torn_tails.extend_from_slice(&replayed.truncations);
        LogSpan::of(&replayed)
    }

    /// Records the tables that show that the manifest or the log was longer once.
    fn add_orphans(
        &mut self,
        folder: &Folder,
        tables: &TableCache,
        state: &Catalog,
        log: LogSpan,
    ) -> Result<()> {
        for (name, why) in orphans::find(tables, &folder::list(folder)?, state, log) {
            let what = format!("the manifest does not name this table, but {why}");
            self.faults.push(Fault { file: name.path(folder), offset: None, what });
        }
        Ok(())
    }

    /// Reads all existing tables and log segments, if the manifest is lost.
    fn add_nameless(&mut self, folder: &Folder, tables: &TableCache) -> Result<()> {
        let mut id = None;
        for entry in folder::list(folder)?.iter().filter(|entry| !entry.is_dir) {
            match FileName::parse(&entry.name) {
                Some(FileName::Table(number)) => self.add_nameless_table(folder, tables, number),
                // Segments of another store would be faults.
                Some(name @ FileName::Log(_)) => {
                    let bytes = folder.read(&name.path(folder)).unwrap_or_default();
                    id = database_id_of(&bytes).or(id);
                }
                _ => {}
            }
        }
        let log = LogFiles::find_all(folder, id.unwrap_or_default())?;
        self.add_log(folder, &log);
        Ok(())
    }

    fn add_nameless_table(&mut self, folder: &Folder, tables: &TableCache, number: u64) {
        let path = FileName::Table(number).path(folder);
        self.file_count += 1;
        match TableReader::open_unnamed(tables.environment(), number, 0) {
            Ok(reader) => {
                self.entry_count += reader.properties().summary.entry_count;
                self.bytes += reader.properties().summary.file_bytes;
                reader.verify().iter().for_each(|error| self.note(path.clone(), error));
            }
            Err(error) => self.add_unreadable_table(&path, tables, number, error),
        }
    }

    /// Reads the parts of a table that can't be opened, and records each fault.
    fn add_unreadable_table(&mut self, path: &Path, tables: &TableCache, number: u64, why: Error) {
        let scrubbed = scrub_unreadable(tables.environment(), number, why);
        self.bytes += scrubbed.bytes;
        self.entry_count += scrubbed.entry_count;
        scrubbed.faults.iter().for_each(|error| self.note(path.to_path_buf(), error));
    }

    /// Reads the sorted views of a version, compares them with a merge of their runs, and records each fault.
    fn add_views(
        &mut self,
        folder: &Folder,
        tables: &TableCache,
        database_id: u64,
        version: &KeyspaceVersion,
    ) {
        for partition in &version.partitions {
            let Some(named) = &partition.view else { continue };
            let number = named.number();
            let path = FileName::View(number).path(folder);
            self.file_count += 1;
            let owner = ViewOwner { database_id, keyspace_id: version.id, number };
            // Opens the file again: an open view may have bytes that were read before.
            let runs = partition.runs_of_view(named.runs()).unwrap_or_default();
            let view = match open_view(tables.environment(), owner, &runs) {
                Ok(view) => view,
                Err(error) => {
                    self.note(path, &error);
                    continue;
                }
            };
            self.bytes += view.file_bytes();
            match compare_view(&view, partition, tables) {
                Ok(faults) => faults.iter().for_each(|error| self.note(path.clone(), error)),
                Err(error) => self.note_unless_known(fault_of(path, &error)),
            }
        }
    }

    /// Reads a table and its filter file, and records each fault.
    fn add_table(&mut self, folder: &Folder, tables: &TableCache, table: &Arc<Table>) {
        let path = FileName::Table(table.number()).path(folder);
        self.file_count += 1;
        // Opens the file again: an open reader may have a removed file, or bytes that were read before.
        let reader = match TableReader::open_named(tables.environment(), table) {
            Ok(reader) => reader,
            Err(error) => {
                self.add_unreadable_table(&path, tables, table.number(), error);
                return self.add_filter_file_alone(folder, tables, table);
            }
        };
        self.bytes += table.file_bytes();
        self.entry_count += table.summary().entry_count;
        if reader.properties().summary != *table.summary() {
            let (expected, got) = ("the summary that the manifest has", "another");
            self.note(path.clone(), &Error::corruption(&path, 0, "table", expected, got));
        }
        reader.verify().iter().for_each(|error| self.note(path.clone(), error));
        let Some(number) = table.filter_file() else { return };
        self.file_count += 1;
        if let Err(error) = reader.check_filter_file(number) {
            self.note(FileName::Filter(number).path(folder), &error);
        }
    }

    fn add_filter_file_alone(&mut self, folder: &Folder, tables: &TableCache, table: &Table) {
        let Some(number) = table.filter_file() else { return };
        self.file_count += 1;
        let faults = check_filter_file_alone(tables.environment(), number);
        faults.iter().for_each(|error| self.note(FileName::Filter(number).path(folder), error));
    }

    /// Records why a view was not compared, unless a fault of the same file was recorded: those of tables were, with the tables.
    fn note_unless_known(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.file == fault.file) {
            self.faults.push(fault);
        }
    }

    fn note(&mut self, file: PathBuf, error: &Error) {
        self.faults.push(fault_of(file, error));
    }
}

/// The faults of an open view of a partition, which is compared with a merge of its runs.
///
/// # Errors
/// Those of a run: the view was not compared to its end.
pub(crate) fn compare_view(
    view: &Arc<View>,
    partition: &Partition,
    tables: &TableCache,
) -> Result<Vec<Error>> {
    let runs = view.runs().iter().filter_map(|run| partition.run_with_id(run.id));
    let runs: Vec<_> = runs.map(|run| open_run(run, tables)).collect::<Result<_>>()?;
    check_view(view, &runs)
}

/// A fault as text; `file` is used if the error contains no file.
pub(crate) fn fault_of(file: PathBuf, error: &Error) -> Fault {
    match error {
        Error::Corruption(found) => {
            let what = format!("{}: expected {}, got {}", found.what, found.expected, found.got);
            Fault { file: found.file.clone(), offset: Some(found.offset), what }
        }
        Error::UnknownEntryKind { file, offset, kind } => {
            Fault { file: file.clone(), offset: Some(*offset), what: format!("entry of unknown kind {kind}") }
        }
        Error::UnknownChange { file, offset, what, kind } => {
            Fault { file: file.clone(), offset: Some(*offset), what: format!("unknown {what} {kind}") }
        }
        Error::MissingFile { path, .. } => {
            Fault { file: path.clone(), offset: None, what: "the file is missing".to_owned() }
        }
        other => Fault { file, offset: None, what: other.to_string() },
    }
}

impl StoreParts {
    /// See [`crate::Db::verify_with`].
    pub(crate) fn verify(&self, progress: &mut Progress<'_>) -> Result<VerifyReport> {
        self.context.check_open()?;
        let mut report = VerifyReport::default();
        self.verify_manifest(&mut report);
        self.verify_log(&mut report)?;
        // Files that another program changes meanwhile are damage, and must not end the process.
        let options =
            Options { table_access: Access::Buffered, listener: None, ..self.context.options.clone() };
        let folder = &self.context.folder;
        let tables = TableCache::new(folder, &options, &Arc::default());
        // The read states keep the tables from being deleted.
        let read_states = self.keyspaces.read_states();
        for table in read_states.iter().flat_map(|read_state| read_state.version.tables()) {
            if progress(&report).is_break() {
                return Ok(report);
            }
            report.add_table(folder, &tables, table);
        }
        let (database_id, _) = self.versions.database();
        for read_state in &read_states {
            if progress(&report).is_break() {
                return Ok(report);
            }
            report.add_views(folder, &tables, database_id, &read_state.version);
        }
        Ok(report)
    }

    fn verify_manifest(&self, report: &mut VerifyReport) {
        report.file_count += 2;
        match self.versions.check() {
            Ok(bytes) => report.bytes += bytes,
            Err(error) => report.note(FileName::Current.path(&self.context.folder), &error),
        }
    }

    fn verify_log(&self, report: &mut VerifyReport) -> Result<()> {
        let pinned = {
            // Under the lock no append is in progress, and no segment is removed. Writes continue while the files are read.
            let log = self.log.lock();
            self.log.pin(log.as_ref(), &self.versions, &self.versions.catalog())
        };
        report.add_log(&self.context.folder, &pinned.files());
        Ok(())
    }
}

/// See [`crate::Db::verify_folder_with`].
pub(crate) fn verify_folder(vfs: &dyn Vfs, path: &Path, progress: &mut Progress<'_>) -> Result<VerifyReport> {
    let options = Options::default().mode(OpenMode::Reader).lock(false);
    let (folder, _) = &open_folder(vfs, path, &options)?;
    let _lock = lock(folder, LockMode::Shared)?;
    if let Err(error @ Error::NotADatabase { .. }) = inspect_folder(folder, &options) {
        return Err(error);
    }
    let prefix = read_longest(folder)?;
    let mut report = VerifyReport { file_count: 2, bytes: prefix.bytes, ..VerifyReport::default() };
    for error in &prefix.faults {
        report.note(FileName::Current.path(folder), error);
    }
    let tables = TableCache::new(folder, &options, &Arc::default());
    for table in prefix.catalog.keyspaces.values().flat_map(|version| version.tables()) {
        if progress(&report).is_break() {
            return Ok(report);
        }
        report.add_table(folder, &tables, table);
    }
    if let Some((id, _)) = prefix.catalog.database {
        for version in prefix.catalog.keyspaces.values() {
            if progress(&report).is_break() {
                return Ok(report);
            }
            report.add_views(folder, &tables, id, version);
        }
        let log = LogFiles::find(folder, prefix.catalog.known_log())?;
        let span = report.add_log(folder, &log);
        report.add_orphans(folder, &tables, &prefix.catalog, span)?;
    } else {
        report.add_nameless(folder, &tables)?;
    }
    Ok(report)
}
