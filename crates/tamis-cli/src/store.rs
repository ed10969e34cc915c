//! Opens the store and the keyspace of a command.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use tamis::{Db, EventListener, Keyspace, KeyspaceOptions, OpenMode, Options};

use crate::failure::Failure;

/// The file of sampled queries.
const SAMPLES: &str = "SAMPLES";

/// Options for the store and the keyspace.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Folder of the store
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Keyspace: a separate, named map in the store [default: "default"]
    #[arg(long, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,
}

impl StoreArgs {
    /// Opens read-only: changes nothing in the folder.
    pub(crate) fn open_to_read(&self) -> Result<(Db, Keyspace), Failure> {
        let db = open_to_read(&self.dir)?;
        let keyspace = self.existing(&db)?;
        Ok((db, keyspace))
    }

    /// Opens for writing; creates the store and the keyspace if missing.
    pub(crate) fn open_to_write(&self) -> Result<(Db, Keyspace), Failure> {
        let db = open(&self.dir, to_write(&self.dir)).map_err(Failure::of_store)?;
        let keyspace = match &self.keyspace {
            Some(name) => db.get_or_create_keyspace(name, KeyspaceOptions::default())?,
            None => db.default_keyspace(),
        };
        Ok((db, keyspace))
    }

    /// Opens an existing store and keyspace for writing.
    pub(crate) fn open_existing(&self) -> Result<(Db, Keyspace), Failure> {
        let options = to_write(&self.dir).mode(OpenMode::Existing);
        let db = open(&self.dir, options).map_err(Failure::of_existing)?;
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

/// Returns an existing keyspace; the error lists all keyspaces.
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

/// The options of a command that writes. The store's program has decided whether the sampled queries are in a file: commands keep it so.
fn to_write(dir: &Path) -> Options {
    Options::default().sample_file(dir.join(SAMPLES).exists())
}

/// Opens a store read-only.
pub(crate) fn open_to_read(dir: &Path) -> Result<Db, Failure> {
    let options = Options::default().mode(OpenMode::Reader);
    open(dir, options).map_err(Failure::of_existing)
}

/// Opens an existing store for writing, with a listener for its background work.
pub(crate) fn open_to_work(dir: &Path, listener: Arc<dyn EventListener>) -> Result<Db, Failure> {
    let options = to_write(dir).mode(OpenMode::Existing).listener(listener);
    open(dir, options).map_err(Failure::of_existing)
}

/// As [`open_to_work`]; if another process has the store open, opens a reader, which the caller refreshes.
pub(crate) fn open_to_watch(dir: &Path, listener: Arc<dyn EventListener>) -> Result<Db, Failure> {
    match open_to_work(dir, listener) {
        Err(Failure::Store(tamis::Error::Locked { .. })) => open_to_read(dir),
        opened => opened,
    }
}

/// Opens a store and reports recovered crash damage on standard error.
fn open(dir: &Path, options: Options) -> tamis::Result<Db> {
    let db = Db::open_with(dir, options)?;
    for cut in &db.open_report().wal_truncations {
        eprintln!(
            "tamis: {}: dropped {} bytes from offset {}: a crash interrupted their write, and they were never synced",
            cut.file.display(),
            cut.bytes,
            cut.offset
        );
    }
    for name in &db.open_report().quarantined_files {
        eprintln!(
            "tamis: {}: {name} is not in the manifest but may contain the only copy of some writes; \
             it was moved to the folder `quarantine`",
            dir.display()
        );
    }
    Ok(db)
}

/// The files of one kind in the folder of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileKind {
    /// `*.table`, or the full name if there is only one such file.
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl FileKind {
    /// The content of such files.
    pub(crate) fn content(&self) -> &'static str {
        match self.name.as_str() {
            "*.log" => "write-ahead log",
            "*.table" => "sorted entries, with index and filters",
            "*.filter" => "filters that replace those of tables",
            "*.view" => "sorted views: the order of the entries of several runs",
            "*.manifest" => "log of version edits: the live tables",
            "*.obsolete" => "obsolete files, to be deleted",
            "CURRENT" => "name of the current manifest",
            SAMPLES => "sampled queries, from which filters are chosen",
            _ => "",
        }
    }
}

/// Counts the files in the folder of a store, by kind.
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
        // The file was deleted after the folder was listed.
        let Ok(metadata) = entry.metadata() else { continue };
        // A folder such as `quarantine` is not part of the store.
        if metadata.is_dir() {
            continue;
        }
        let kind = kinds.entry(name.clone()).or_insert(FileKind { name, count: 0, bytes: 0 });
        kind.count += 1;
        kind.bytes += metadata.len();
    }
    Ok(kinds.into_values().collect())
}
