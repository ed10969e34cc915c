//! Makes a backup.
//!
//! 1. A checkpoint fixes the content (`checkpoint.rs`).
//! 2. A lease excludes prunes (`lease.rs`).
//! 3. Each file is split into parts, and the parts that the target lacks are uploaded, several at the same time.
//! 4. The list of tables is uploaded, unless the newest backup has the same one.
//! 5. The description of the backup is uploaded last: a backup is in the list if all that it needs is in the target.
//!
//! A killed backup leaves parts, which the next one finds.
//!
//! `upload.rs` says which files are read and how they are split.

use std::{path::PathBuf, sync::Arc};

use tamis::{Clock as _, OsVfs, SystemClock, Vfs};

use crate::{
    checkpoint::{Checkpoint, Source},
    error::{Error, Result},
    format::{self, BACKUPS, Backup, FileEntry, FileList, Kind, VERSION},
    lease::{Lease, Role},
    progress::{NoProgress, Progress},
    target::Target,
    upload::{Known, Previous, Uploaded, upload},
};

/// How to make a backup.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackupOptions {
    /// Upload only log if the tables are those of the newest backup, whose objects are not listed again. Default: false.
    pub log: bool,
    /// Make no backup if nothing has changed since the newest one. Default: false.
    pub skip_unchanged: bool,
    /// The folder in which the temporary checkpoint is made. Default: that of the store's folder. On another file system tables are copied.
    pub temporary: Option<PathBuf>,
    /// Receives the progress. Default: none.
    pub progress: Arc<dyn Progress>,
    /// The file system of the store. Default: that of the system.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            log: false,
            skip_unchanged: false,
            temporary: None,
            progress: Arc::new(NoProgress),
            vfs: Arc::new(OsVfs),
        }
    }
}

/// The result of [`backup`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackupReport {
    /// The new backup, or the newest one if nothing had changed.
    pub backup: Backup,
    /// Whether the backup is new.
    pub is_new: bool,
    /// Bytes of all objects that were uploaded.
    pub uploaded_bytes: u64,
    /// Why tables were uploaded although [`BackupOptions::log`] was given.
    pub whole_because: Option<String>,
    /// The newest backup before this one, if its time is later: the clock has jumped back.
    pub clock_jumped_since: Option<u64>,
}

/// Makes a backup of a store.
///
/// # Errors
/// Those of the store, for example [`tamis::Error::Locked`]; [`Error::Foreign`], [`Error::OtherStore`] and [`Error::UnknownFormat`] for the
/// content of the target; [`Error::Target`] and [`Error::File`]; [`Error::LeaseLost`]; [`Error::Cancelled`].
pub fn backup(source: Source<'_>, target: &Target, options: &BackupOptions) -> Result<BackupReport> {
    let time = SystemClock::default().since_epoch();
    let checkpoint = Checkpoint::make(&options.vfs, source, options.temporary.as_deref())?;
    target.claim(&checkpoint.store)?;
    let lease = Lease::acquire(target, Role::User, "a backup")?;
    let backups = target.backups()?;
    let previous = Previous::read(target, &backups)?;
    let known = if options.log { previous.parts() } else { Known::list(target)? };
    let uploaded = upload(target, &checkpoint, &previous, known, &*options.progress)?;
    let Uploaded { list, tables, files, bytes } = uploaded;
    let newest = backups.newest();
    let is_same_base = newest.is_some_and(|newest| newest.tables == list);
    let unchanged = newest.filter(|newest| {
        let is_same_log = logs(&newest.files).eq(logs(&files));
        is_same_base
            && is_same_log
            && newest.sequence == checkpoint.sequence
            && newest.catalog == checkpoint.catalog
    });
    if let (Some(newest), true) = (unchanged, options.skip_unchanged) {
        return Ok(BackupReport {
            backup: newest.clone(),
            is_new: false,
            uploaded_bytes: bytes,
            whole_because: None,
            clock_jumped_since: None,
        });
    }
    let number = next_number(target)?;
    let all = || files.iter().chain(&tables.files);
    let mut backup = Backup {
        format: VERSION,
        store: checkpoint.store.clone(),
        number,
        time_milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        sequence: checkpoint.sequence,
        kind: if is_same_base { Kind::Log } else { Kind::Whole },
        base: newest.filter(|_| is_same_base).map_or(number, |newest| newest.base),
        uploaded_bytes: bytes,
        store_bytes: all().map(|file| file.bytes).sum(),
        catalog: checkpoint.catalog.clone(),
        tables: list,
        files: files.clone(),
        object: String::new(),
    };
    let (object, encoded) = backup.encode();
    lease.check()?;
    target.put(&object, &encoded)?;
    if let Err(error @ Error::LeaseLost { .. }) = lease.check() {
        // A prune may have read the list before: it removes parts that this backup needs.
        target.remove(&object)?;
        return Err(error);
    }
    backup.object = object;
    let jumped = newest.filter(|newest| newest.time_milliseconds > backup.time_milliseconds);
    Ok(BackupReport {
        is_new: true,
        uploaded_bytes: bytes + encoded.len() as u64,
        whole_because: (options.log && !is_same_base).then(|| whole_reason(newest, &previous, &tables)),
        clock_jumped_since: jumped.map(|newest| newest.number),
        backup,
    })
}

/// The log segments among the files of a backup.
fn logs(files: &[FileEntry]) -> impl Iterator<Item = &FileEntry> {
    files.iter().filter(|file| file.name.ends_with(".log"))
}

/// One more than the greatest number, also of damaged backups and of those that others have made meanwhile.
fn next_number(target: &Target) -> Result<u64> {
    let listed = target.list(BACKUPS)?;
    let numbers = listed.iter().filter_map(|object| format::number_of(&object.name));
    Ok(numbers.max().unwrap_or_default().saturating_add(1))
}

fn whole_reason(newest: Option<&Backup>, previous: &Previous, tables: &FileList) -> String {
    let Some(newest) = newest else { return "there was no backup before".to_owned() };
    let new = tables.files.iter().filter(|file| !previous.contains(&file.name)).count();
    format!("the tables have changed since backup {} ({new} files are new)", newest.number)
}
