//! How commands open a store and choose a keyspace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use tamis::{Db, Keyspace, KeyspaceOptions, Options};

use crate::failure::Failure;

/// Which store and which of its keyspaces.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The keyspace (a named map of its own); without it, the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,
}

impl StoreArgs {
    /// Opens for reading only: nothing in the folder is changed.
    pub(crate) fn open_to_read(&self) -> Result<(Db, Keyspace), Failure> {
        let db = open_to_read(&self.dir)?;
        let keyspace = self.existing(&db)?;
        Ok((db, keyspace))
    }

    /// Opens for writing; makes the store and the keyspace if they are not there.
    pub(crate) fn open_to_write(&self) -> Result<(Db, Keyspace), Failure> {
        let db = open(&self.dir, Options::default())?;
        let keyspace = match &self.keyspace {
            Some(name) => db.get_or_create_keyspace(name, KeyspaceOptions::default())?,
            None => db.default_keyspace(),
        };
        Ok((db, keyspace))
    }

    /// Opens for changing what is there: neither store nor keyspace are made.
    pub(crate) fn open_existing(&self) -> Result<(Db, Keyspace), Failure> {
        let db = open(&self.dir, Options { create_if_missing: false, ..Options::default() })?;
        let keyspace = self.existing(&db)?;
        Ok((db, keyspace))
    }

    fn existing(&self, db: &Db) -> Result<Keyspace, Failure> {
        match &self.keyspace {
            None => Ok(db.default_keyspace()),
            Some(name) => keyspace(db, name),
        }
    }
}

/// A keyspace that is there; the message of a failure lists all.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Failure> {
    db.keyspace(name).map_err(|error| match error {
        tamis::Error::KeyspaceNotFound { name } => Failure::Damage(format!(
            "no keyspace named {name:?} in {}; there are: {}",
            db.path().display(),
            db.keyspace_names().join(", ")
        )),
        other => Failure::Store(other),
    })
}

/// Opens a store for reading only.
pub(crate) fn open_to_read(dir: &Path) -> Result<Db, Failure> {
    let options = Options { create_if_missing: false, read_only: true, ..Options::default() };
    open(dir, options)
}

/// Opens a store and tells on standard error what a crash had torn.
fn open(dir: &Path, options: Options) -> Result<Db, Failure> {
    let db = Db::open_with(dir, options)?;
    for cut in &db.open_report().wal_truncations {
        eprintln!(
            "tamis: {}: {} bytes from offset {} on were torn by a crash and are left out; they were never synced",
            cut.file.display(),
            cut.bytes,
            cut.offset
        );
    }
    for name in &db.open_report().quarantined_files {
        eprintln!(
            "tamis: {}: the manifest does not name {name}, which may hold writes that are nowhere else; \
             it is in the folder `quarantine` now",
            dir.display()
        );
    }
    Ok(db)
}

/// The files of one kind in a store's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileKind {
    /// `*.table`, or the whole name of a file that there is once.
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl FileKind {
    /// What such files are for.
    pub(crate) fn holds(&self) -> &'static str {
        match self.name.as_str() {
            "*.log" => "writes that are not yet in tables",
            "*.table" => "entries in key order, with filters",
            "*.filter" => "filters that replaced those of tables",
            "*.manifest" => "which tables are in force",
            "*.obsolete" => "files about to be deleted",
            "CURRENT" => "which manifest is in force",
            "LOCK" => "held by the process that has the store open",
            _ => "",
        }
    }
}

/// What lies in a store's folder, by kind of file.
pub(crate) fn files(dir: &Path) -> Result<Vec<FileKind>, Failure> {
    let fail = |error: std::io::Error| Failure::Damage(format!("{}: {error}", dir.display()));
    let mut kinds: BTreeMap<String, FileKind> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = PathBuf::from(entry.file_name());
        let name = match path.extension() {
            Some(extension) => format!("*.{}", extension.to_string_lossy()),
            None => path.to_string_lossy().into_owned(),
        };
        // A file that was deleted since the folder was read counts no longer.
        let Ok(metadata) = entry.metadata() else { continue };
        // Such as `quarantine`: nothing in it is of the store.
        if metadata.is_dir() {
            continue;
        }
        let kind = kinds.entry(name.clone()).or_insert(FileKind { name, count: 0, bytes: 0 });
        kind.count += 1;
        kind.bytes += metadata.len();
    }
    Ok(kinds.into_values().collect())
}
