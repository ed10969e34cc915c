//! The files of a database folder: whether it is a database, whether all tables exist, and which files are orphans or
//! obsolete.
//!
//! Foreign files are reported and never changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use tamis_vfs::{DirEntry, Folder};

use super::catalog::Catalog;
use crate::{
    error::{Error, Result},
    file_name::FileName,
    store::readers::READERS,
};

/// The kind of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// Nothing, or only files that an interrupted creation left: a database can be created here.
    Vacant,
    /// A database.
    Database,
}

/// Finds out what is in a folder with these entries.
///
/// # Errors
/// [`Error::NotADatabase`] if there are only foreign files, [`Error::MissingFile`] for a database without its `CURRENT`.
pub(crate) fn inspect(entries: &[DirEntry], folder: &Path) -> Result<FolderKind> {
    let mut has_data = false;
    let mut foreign = None;
    for entry in entries {
        match FileName::parse(&entry.name).filter(|_| !entry.is_dir) {
            Some(FileName::Current) => return Ok(FolderKind::Database),
            // These exist before the first `CURRENT`.
            Some(FileName::Manifest(_) | FileName::Temporary(_)) => {}
            // Derived data without its database.
            Some(FileName::Samples) => {}
            Some(_) => has_data = true,
            None if is_readers(entry) => {}
            None => foreign = foreign.or(Some(&entry.name)),
        }
    }
    match (has_data, foreign) {
        (true, _) => Err(Error::MissingFile {
            path: FileName::Current.path(folder),
            advice: "it names the current manifest: restore it from a copy, or run `tamis repair`",
        }),
        (false, Some(name)) => {
            Err(Error::NotADatabase { path: folder.to_path_buf(), found: format!("it contains {name:?}") })
        }
        (false, None) => Ok(FolderKind::Vacant),
    }
}

/// Whether it is the folder in which readers register.
fn is_readers(entry: &DirEntry) -> bool {
    entry.is_dir && entry.name == READERS
}

/// The entries of the folder.
pub(crate) fn list(folder: &Folder) -> Result<Vec<DirEntry>> {
    folder.list(folder.path()).map_err(|error| Error::io("list", folder.path(), error))
}

/// A number that is greater than those of all files in the folder.
pub(crate) fn number_above(entries: &[DirEntry]) -> u64 {
    let numbers = entries.iter().filter_map(|entry| FileName::parse(&entry.name)?.number());
    numbers.max().map_or(1, |number| number.saturating_add(1))
}

/// Checks that the catalog names every table once, and that each is in the folder with its length. A missing filter or view
/// is no error: it is derived data.
///
/// # Errors
/// [`Error::MissingFile`], or [`Error::Corruption`] of the manifest or of a table.
pub(super) fn check_tables(
    entries: &[DirEntry],
    folder: &Path,
    catalog: &Catalog,
    manifest: &Path,
) -> Result<()> {
    let lengths: BTreeMap<&str, u64> =
        entries.iter().map(|entry| (entry.name.as_str(), entry.length)).collect();
    let mut seen = BTreeSet::new();
    for table in catalog.keyspaces.values().flat_map(|version| version.tables()) {
        let name = table.file().name();
        if !seen.insert(name) {
            let got = format!("{} twice", name.name());
            return Err(Error::corruption(manifest, 0, "list of tables", "each table once", got));
        }
        match lengths.get(name.name().as_str()) {
            Some(&length) if length == table.file_bytes() => {}
            Some(length) => {
                let expected = format!("{} bytes", table.file_bytes());
                let got = format!("{length} bytes");
                return Err(Error::corruption(&name.path(folder), 0, "table length", expected, got));
            }
            None => {
                let advice = "the manifest names this table: restore it from a copy, or run `tamis repair`";
                return Err(Error::MissingFile { path: name.path(folder), advice });
            }
        }
    }
    Ok(())
}

/// Files of a folder that are not in a catalog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    /// Files of the database that the catalog does not name.
    pub(crate) orphans: Vec<FileName>,
    /// Full names of files that were renamed to be deleted.
    pub(crate) obsolete: Vec<String>,
    /// Files and folders of other programs.
    pub(crate) foreign: Vec<String>,
}

/// Finds the files that neither the catalog nor its manifest needs. Log segments below the oldest one that is needed are
/// orphans.
pub(crate) fn leftovers(entries: &[DirEntry], catalog: &Catalog, manifest: u64) -> Leftovers {
    let live: BTreeSet<FileName> =
        catalog.keyspaces.values().flat_map(|version| version.files()).map(|file| file.name()).collect();
    let mut found = Leftovers::default();
    for entry in entries {
        match FileName::parse(&entry.name).filter(|_| !entry.is_dir) {
            None if is_readers(entry) => {}
            None => found.foreign.push(entry.name.clone()),
            Some(FileName::Current | FileName::Samples) => {}
            Some(FileName::Obsolete(_)) => found.obsolete.push(entry.name.clone()),
            Some(FileName::Manifest(number)) if number == manifest => {}
            Some(FileName::Log(number)) if number >= catalog.counters.oldest_log => {}
            Some(name) if live.contains(&name) => {}
            Some(name) => found.orphans.push(name),
        }
    }
    found
}
