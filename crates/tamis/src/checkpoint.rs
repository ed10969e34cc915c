//! A copy of an open database, as it is at one moment, while writes go on.
//!
//! 1. Under the log's lock, for a moment: what waits in the process is given to the log, and it is noted which tables are in
//!    force, how long the log is, and which segments are needed. That is the moment of the copy. Tables stay as long as the
//!    noted state is held, segments as long as they are open.
//! 2. Tables and filter files, which never change, are linked; where that is not possible they are copied.
//! 3. The log is copied as far as it went at the moment, and synced.
//! 4. The manifest is written, and last `CURRENT`: before it the folder is no database.
//!
//! A failed checkpoint takes away what it made. Cost: a link for each file, and a copy of the log: at most what
//! [`crate::Options::log_bytes_max`] allows.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::Vfs;

use crate::{
    engine::Engine,
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    link::{Placed, link_or_copy, write_new},
    version::catalog::Catalog,
    wal::reader::LogFiles,
};

/// What [`crate::Db::checkpoint`] made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// The sequence number of the last write that the copy holds.
    pub sequence: u64,
    /// Tables and filter files that are in both folders as one.
    pub linked_file_count: usize,
    /// Files that were copied or written.
    pub copied_file_count: usize,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

/// What the database is at one moment; holds the files of it.
struct Moment {
    sequence: Sequence,
    state: Arc<Catalog>,
    log: LogFiles,
    /// The segments that are part of the log; `None`: all may be.
    parts: Option<Vec<u64>>,
    /// Its segments are not used again as long as they are read.
    _hold: Option<Arc<()>>,
}

impl Engine {
    /// See [`crate::Db::checkpoint`].
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<CheckpointReport> {
        let _running = self.jobs.read();
        self.check_open()?;
        make_vacant_folder(&*self.vfs, target)?;
        let moment = self.moment()?;
        let report = CheckpointReport { sequence: moment.sequence, ..CheckpointReport::default() };
        let mut copy = Copy { vfs: &*self.vfs, target, made: Vec::new(), report };
        self.copy_all(&moment, &mut copy).inspect_err(|_| copy.put_back())?;
        Ok(copy.report)
    }

    fn moment(&self) -> Result<Moment> {
        let mut log = self.log.lock();
        if let Some(state) = log.as_mut() {
            state.log.flush_deferred()?;
        }
        let state = self.versions.catalog();
        let (id, _) = self.versions.database();
        let mut files = LogFiles::find(&*self.vfs, &self.folder, id, state.counters.oldest_log)?;
        let (sequence, parts) = match log.as_ref() {
            Some(state) => (state.last_sequence, Some(state.log.segments())),
            None => (self.snapshots.visible(), None),
        };
        files.limit_to(parts.as_deref().unwrap_or_default());
        let parts = parts.map(|parts| parts.into_iter().map(|(number, _)| number).collect());
        let hold = log.as_ref().map(|state| state.log.pin_segments());
        Ok(Moment { sequence, state, log: files, parts, _hold: hold })
    }

    fn copy_all(&self, moment: &Moment, copy: &mut Copy<'_>) -> Result<()> {
        for file in moment.state.keyspaces.values().flat_map(|version| version.files()) {
            copy.place(&self.folder, file.name())?;
        }
        for segment in moment.log.segments() {
            // A segment that is no part of the log was abandoned after a failed append.
            if moment.parts.as_ref().is_some_and(|parts| !parts.contains(&segment.number)) {
                continue;
            }
            let bytes = segment.read()?;
            copy.write(FileName::Log(segment.number), &bytes)?;
        }
        self.vfs.sync_dir(copy.target).map_err(|error| Error::io("sync", copy.target, error))?;
        let number = self.versions.new_file_number();
        let names = [FileName::Temporary(number), FileName::Manifest(number), FileName::Current];
        copy.made.extend(names.map(|name| name.path(copy.target)));
        let bytes = self.versions.write_copy(&moment.state, copy.target, number)?;
        copy.report.copied_file_count += 2;
        copy.report.copied_bytes += bytes;
        Ok(())
    }
}

/// Makes the folder where it is missing.
///
/// # Errors
/// [`Error::InvalidArgument`] for one that holds something.
fn make_vacant_folder(vfs: &dyn Vfs, target: &Path) -> Result<()> {
    match vfs.list(target) {
        Ok(entries) if entries.is_empty() => Ok(()),
        Ok(entries) => {
            let first = entries.first().map(|entry| entry.name.as_str()).unwrap_or_default();
            Err(Error::InvalidArgument {
                what: "checkpoint folder",
                got: format!("{}, which holds {first:?},", target.display()),
                expected: "name a folder that is new or empty".to_owned(),
            })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            vfs.create_dir_all(target).map_err(|error| Error::io("create", target, error))
        }
        Err(error) => Err(Error::io("list", target, error)),
    }
}

/// The copy while it is made.
struct Copy<'a> {
    vfs: &'a dyn Vfs,
    target: &'a Path,
    made: Vec<PathBuf>,
    report: CheckpointReport,
}

impl Copy<'_> {
    fn place(&mut self, folder: &Path, name: FileName) -> Result<()> {
        let target = name.path(self.target);
        let placed = link_or_copy(self.vfs, &name.path(folder), &target);
        let placed = match placed {
            // Filters are derived data: the manifest may name one that is gone.
            Err(Error::Io { source, .. })
                if source.kind() == ErrorKind::NotFound && matches!(name, FileName::Filter(_)) =>
            {
                return Ok(());
            }
            other => other?,
        };
        self.made.push(target);
        match placed {
            Placed::Linked => self.report.linked_file_count += 1,
            Placed::Copied(bytes) => self.note_copy(bytes),
        }
        Ok(())
    }

    fn write(&mut self, name: FileName, bytes: &[u8]) -> Result<()> {
        let target = name.path(self.target);
        write_new(self.vfs, &target, |append| append(bytes))?;
        self.made.push(target);
        self.note_copy(bytes.len() as u64);
        Ok(())
    }

    fn note_copy(&mut self, bytes: u64) {
        self.report.copied_file_count += 1;
        self.report.copied_bytes += bytes;
    }

    /// Removes what was made. `CURRENT` goes first: half a folder is no database.
    fn put_back(&mut self) {
        for path in self.made.drain(..).rev() {
            let _ = self.vfs.remove(&path);
        }
    }
}
