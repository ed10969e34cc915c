//! Trials with copies of the disk between two lives: damage that the store of the history must not suffer, and repairs.
//!
//! A copy is made before an open. The open decides the state of the model, and then the copy is tried:
//!
//! | trial | the copy must |
//! |---|---|
//! | open | have the same content, also when it is read-only |
//! | repair | have the same content after a repair, which may change nothing that is intact |
//! | damage | give an error that names the damaged file, or have the same content; `verify` finds what an open refuses |
//! | repair after damage | open, and contain nothing that no client has written; without a reported loss, the same content |
//!
//! An end of the log or of the manifest that was not known to be synced when it was written counts as torn: it may be dropped, which the open
//! reports. Then all entries must be of clients, too.

use std::{
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::{Access, Db, Error, OpenMode, OpenReport, Options, RepairReport};
use tamis_vfs::{MemVfs, Vfs};
use tamis_workload::SplitMix64;

use crate::{
    check::{self, Difference},
    client::collect,
    operator::operators,
    ops::Direction,
    store::{Mode, Shared, install_hooks},
    world::{FOLDER, Flip, Life, SimVfs},
};

/// See the head of this file.
pub(super) struct Trial {
    copy: MemVfs,
    random: SplitMix64,
    is_repaired: bool,
}

/// The result of an open of a damaged copy.
enum Opened {
    /// The content is that of the model.
    Equal,
    /// The content is not that of the model. The flag: the open has reported a torn end.
    Different(String, bool),
    /// The open or a read has failed.
    Refused(Error),
}

impl Trial {
    /// Copies the store for a trial, if the number of the open decides for one.
    pub(super) fn draw(disk: &MemVfs, number: u64) -> Option<Self> {
        let mut random = SplitMix64::new(number.rotate_left(32));
        (random.below(3) == 0).then(|| Self { copy: copy_of(disk), random, is_repaired: false })
    }

    /// Makes the trial; the model has the content of the store that was opened. `was_torn`: its open has reported a torn end.
    ///
    /// # Errors
    /// The sentence that says what is wrong.
    pub(super) fn run(mut self, shared: &Arc<Shared>, was_torn: bool) -> Result<(), String> {
        let sequence = shared.model.lock().visible();
        let life = Life::new(&shared.schedule, &shared.coverage, self.copy.clone());
        install_hooks(shared, &life, Mode::Ignore);
        let result = match self.random.below(4) {
            0 => self.open_copy(shared, &life, sequence),
            1 => self.repair_copy(shared, &life, (sequence, was_torn)),
            2 => self.damage(shared, &life, sequence),
            _ => self.repair_after_damage(shared, &life, sequence),
        };
        life.turn_off();
        result
    }

    fn options(&mut self) -> Options {
        Options::default()
            .workers(0)
            .table_access(Access::Buffered)
            .sample_queries(false)
            .merge_operators(operators().to_vec())
            .mode(match self.random.below(2) {
                0 if !self.is_repaired => OpenMode::Reader,
                _ => OpenMode::Existing,
            })
    }

    fn open(&mut self, shared: &Arc<Shared>, life: &Arc<Life>, sequence: u64) -> Result<Opened, String> {
        let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new(life));
        let db = match Db::open_on(vfs, FOLDER, self.options(), check::runtime(shared, Arc::new(|| {}))) {
            Ok(db) => db,
            Err(error) => return Ok(Opened::Refused(error)),
        };
        if let Err(error) = restore_operators(shared, &db) {
            return Ok(Opened::Refused(error));
        }
        let is_torn = is_torn(db.open_report());
        let compared = check::compare(shared, &db, sequence);
        let foreign = foreign_entry(shared, &db);
        match (compared, foreign) {
            (Ok(()), _) => Ok(Opened::Equal),
            (Err(Difference::Failed(error)), _) | (_, Err(error)) => Ok(Opened::Refused(error)),
            (_, Ok(Some(entry))) => Err(format!("{entry}, which no client has written")),
            (Err(Difference::Wrong(message)), Ok(None)) => Ok(Opened::Different(message, is_torn)),
        }
    }

    fn open_copy(&mut self, shared: &Arc<Shared>, life: &Arc<Life>, sequence: u64) -> Result<(), String> {
        match self.open(shared, life, sequence).map_err(|message| format!("a copy: {message}"))? {
            Opened::Equal => Ok(()),
            Opened::Different(message, _) => {
                Err(format!("a copy has another content than the store: {message}"))
            }
            Opened::Refused(error) => Err(format!("a copy can't be opened or read: {error}")),
        }
    }

    fn repair(&mut self, shared: &Arc<Shared>, life: &Arc<Life>) -> Result<RepairReport, Error> {
        self.is_repaired = true;
        Db::repair_on(Arc::new(SimVfs::new(life)), FOLDER, &check::runtime(shared, Arc::new(|| {})))
    }

    fn repair_copy(
        &mut self,
        shared: &Arc<Shared>,
        life: &Arc<Life>,
        (sequence, was_torn): (u64, bool),
    ) -> Result<(), String> {
        let report =
            self.repair(shared, life).map_err(|error| format!("a repair of an intact copy: {error}"))?;
        if let Some(lost) = report.lost_ranges.first().filter(|_| !was_torn) {
            return Err(format!("a repair of an intact copy reports a loss: {lost:?}"));
        }
        match self.open(shared, life, sequence) {
            Ok(Opened::Equal) => Ok(()),
            // Tables that no manifest names may have writes that the open has dropped.
            Ok(Opened::Different(..)) if !report.lost_ranges.is_empty() => Ok(()),
            Ok(Opened::Different(message, _)) => Err(format!("a repair reports no loss: {message}")),
            Ok(Opened::Refused(error)) => Err(format!("after a repair the store is unreadable: {error}")),
            Err(message) => Err(format!("after a repair {message}")),
        }
    }

    /// Flips a bit of any file of the store.
    fn flip(&mut self) -> Option<Flip> {
        let files = self.copy.list(Path::new(FOLDER)).unwrap_or_default();
        let files: Vec<_> = files.into_iter().filter(|file| !file.is_dir && file.length > 0).collect();
        let file = files.get(self.random.below(files.len().max(1) as u64) as usize)?;
        let (path, mask) = (Path::new(FOLDER).join(&file.name), 1 << self.random.below(8));
        let flip = Flip { path, offset: self.random.below(file.length), mask };
        self.copy.flip_bits(&flip.path, flip.offset, flip.mask).ok()?;
        Some(flip)
    }

    fn damage(&mut self, shared: &Arc<Shared>, life: &Arc<Life>, sequence: u64) -> Result<(), String> {
        let Some(flip) = self.flip() else { return Ok(()) };
        let place = format!("byte {} of {}", flip.offset, flip.path.display());
        let error = match self.open(shared, life, sequence) {
            Ok(Opened::Equal) => return Ok(()),
            Ok(Opened::Different(_, true)) if is_at_an_end(&flip.path) => return Ok(()),
            Ok(Opened::Different(message, _)) => return Err(format!("damage of {place}: {message}")),
            Ok(Opened::Refused(error)) => error,
            Err(message) => return Err(format!("damage of {place}: {message}")),
        };
        shared.coverage.note_error(&error);
        // Without the last edit of the manifest the open misses files that the edit had replaced.
        let is_missing = matches!(error, Error::MissingFile { .. }) && is_at_an_end(&flip.path);
        if !names(&error, &flip.path) && !is_missing {
            return Err(format!("the error after damage of {place} does not name the file: {error}"));
        }
        let verified = Db::verify_folder_on(Arc::new(SimVfs::new(life)), FOLDER);
        match verified {
            Ok(report) if report.is_sound() => {
                Err(format!("verify has not found the damage of {place}, but an open or read has: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn repair_after_damage(
        &mut self,
        shared: &Arc<Shared>,
        life: &Arc<Life>,
        sequence: u64,
    ) -> Result<(), String> {
        let Some(flip) = self.flip() else { return Ok(()) };
        let place = format!("byte {} of {}", flip.offset, flip.path.display());
        let report = self.repair(shared, life);
        let report = report.map_err(|error| format!("a repair after damage of {place}: {error}"))?;
        match self.open(shared, life, sequence) {
            Ok(Opened::Equal) => Ok(()),
            Ok(Opened::Different(..)) if is_at_an_end(&flip.path) || !report.lost_ranges.is_empty() => Ok(()),
            Ok(Opened::Different(message, _)) => {
                Err(format!("a repair after damage of {place} reports no loss: {message}"))
            }
            Ok(Opened::Refused(error)) => {
                Err(format!("after a repair of damage of {place} the store is unreadable: {error}"))
            }
            Err(message) => Err(format!("after a repair of damage of {place} {message}")),
        }
    }
}

/// Whether an open has reported the end of a log or manifest that was not synced, or tables that such an end may have named.
pub(super) fn is_torn(report: &OpenReport) -> bool {
    !report.wal_truncations.is_empty()
        || report.manifest_truncated_bytes > 0
        || !report.quarantined_files.is_empty()
}

/// Whether damage of the file can look like an end that was not synced.
fn is_at_an_end(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".log") || name.ends_with(".manifest") || name == "CURRENT"
}

/// Whether an error names a file.
fn names(error: &Error, path: &Path) -> bool {
    match error {
        Error::Corruption(found) => found.file == path,
        Error::UnknownFormat { file, .. }
        | Error::UnknownEntryKind { file, .. }
        | Error::UnknownChange { file, .. } => file == path,
        Error::MissingFile { path: missing, .. } => missing == path,
        _ => false,
    }
}

/// A repair without manifest and tables can't know the operators of keyspaces; a program that knows them gives them again.
fn restore_operators(shared: &Shared, db: &Db) -> tamis::Result<()> {
    let names = shared.model.lock().names.clone();
    for name in db.keyspace_names() {
        // A keyspace whose name is lost, too, has its id in the new name.
        let mut known =
            names.iter().filter(|(known, (id, _))| **known == name || name == format!("recovered-{id}"));
        let merge = known.next().and_then(|(_, (_, options))| options.merge.clone());
        let keyspace = db.keyspace(&name)?;
        let found = keyspace.options();
        if found.merge.is_none() && merge.is_some() {
            keyspace.set_options(found.merge(merge))?;
        }
    }
    Ok(())
}

/// An entry that no client has written.
fn foreign_entry(shared: &Shared, db: &Db) -> tamis::Result<Option<String>> {
    for name in db.keyspace_names() {
        let keyspace = db.keyspace(&name)?;
        let all = (Bound::<Vec<u8>>::Unbounded, Bound::Unbounded);
        let found = match collect(keyspace.range(all), Direction::Forward, usize::MAX) {
            // Of a keyspace that was dropped: its end and its operator are lost with the manifest.
            Err(Error::MergeFailed { .. }) if name.starts_with("recovered-") => continue,
            found => found?,
        };
        let model = shared.model.lock();
        if let Some((key, _)) = found.iter().find(|(key, value)| !model.was_written(key, *value)) {
            return Ok(Some(format!("keyspace {name} has {}", crate::model::short(key))));
        }
    }
    Ok(None)
}

/// The files of the store, as a power failure could not leave them: with all bytes and names.
fn copy_of(disk: &MemVfs) -> MemVfs {
    let copy = MemVfs::new();
    copy_folder(disk, &copy, PathBuf::from(FOLDER));
    copy
}

/// Copies a folder; errors leave files out, which a trial finds.
fn copy_folder(disk: &MemVfs, copy: &MemVfs, folder: PathBuf) {
    let _ = copy.create_dir_all(&folder);
    for entry in disk.list(&folder).unwrap_or_default() {
        let path = folder.join(&entry.name);
        if entry.is_dir {
            copy_folder(disk, copy, path);
        } else if let (Ok(bytes), Ok(file)) = (disk.read(&path), copy.create(&path)) {
            let _ = file.append(&bytes).and_then(|()| file.sync());
        }
    }
    let _ = copy.sync_dir(&folder);
}
