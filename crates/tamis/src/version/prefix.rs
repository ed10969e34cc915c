//! The longest readable part of the manifest, for repair and for checks of stores that can't be opened.
//!
//! 1. The manifest that `CURRENT` names is read up to its first fault. If `CURRENT` is unreadable, the whole manifest with
//!    the greatest number is read. If none is whole, the one with the greatest number of which something can be read.
//! 2. Its edits are applied as long as they fit. The result is the catalog after the last edit that leaves all invariants
//!    intact: a catalog that was written as several records may be truncated between them. Its last record has the
//!    counters.

use std::{path::PathBuf, sync::Arc};

use tamis_vfs::Folder;

use super::{
    catalog::Catalog,
    current::Current,
    folder,
    handle::ObsoleteFiles,
    manifest::{self, ManifestContents},
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
};

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// Empty and without a database id if nothing could be read.
    pub(crate) catalog: Catalog,
    /// The faults of `CURRENT` and of the manifest.
    pub(crate) faults: Vec<Error>,
    /// Whether the manifest has no fault, so that this is the current catalog.
    pub(crate) is_whole: bool,
    /// Bytes of the files that were read.
    pub(crate) bytes: u64,
    /// The path of the manifest; empty if there is none.
    pub(crate) path: PathBuf,
}

/// Reads as much of the manifest as possible.
///
/// # Errors
/// The system's, if the folder can't be listed.
pub(crate) fn read_longest(folder: &Folder) -> Result<Prefix> {
    match Current::read(folder) {
        Ok(current) => {
            let mut found = read_one(folder, current);
            found.bytes += super::header::HEADER_BYTES as u64;
            Ok(found)
        }
        Err(error) => {
            let mut found = read_newest(folder)?;
            found.faults.insert(0, error);
            Ok(found)
        }
    }
}

fn read_newest(folder: &Folder) -> Result<Prefix> {
    let entries = folder::list(folder)?;
    let manifests = entries.iter().filter_map(|entry| match FileName::parse(&entry.name) {
        Some(FileName::Manifest(number)) => Some(number),
        _ => None,
    });
    let mut numbers: Vec<u64> = manifests.collect();
    numbers.sort_unstable();
    let mut best = Prefix::default();
    for number in numbers.into_iter().rev() {
        let found = read_one(folder, Current { manifest: number, manifest_bytes: 0 });
        if found.is_whole {
            return Ok(found);
        }
        if best.catalog.database.is_none() {
            best = found;
        }
    }
    Ok(best)
}

fn read_one(folder: &Folder, current: Current) -> Prefix {
    let (contents, fault) = manifest::read_prefix(folder, current);
    let mut found = Prefix { bytes: contents.bytes, path: contents.path.clone(), ..Prefix::default() };
    let mut fault = fault.or(found.apply(&contents));
    if fault.is_none() && found.catalog.database.is_none() {
        let expected = "an edit with the database's id";
        fault = Some(Error::corruption(&contents.path, 0, "manifest", expected, "none"));
    }
    found.is_whole = fault.is_none();
    found.faults.extend(fault);
    found
}

impl Prefix {
    /// Step 2. Returns the fault that ended it.
    fn apply(&mut self, contents: &ManifestContents) -> Option<Error> {
        let obsolete_files: Arc<ObsoleteFiles> = Arc::default();
        let mut catalog = Catalog::default();
        let mut violation = None;
        for (offset, edit) in &contents.edits {
            let damage = |reason| {
                let expected = "an edit that fits those before it";
                Error::corruption(&contents.path, *offset, "version edit", expected, reason)
            };
            let was_valid = catalog.is_complete() && violation.is_none();
            let applied = match catalog.apply(edit, &obsolete_files) {
                Ok(applied) => applied,
                Err(reason) => return Some(damage(reason)),
            };
            violation = if !applied.catalog.is_complete() {
                // The counters are at the end of the catalog with which a manifest begins (`Catalog::snapshot`).
                Some(damage("no counters after it".to_owned()))
            } else if was_valid {
                applied.check_invariants().map(damage)
            } else {
                applied.catalog.check_invariants().map(damage)
            };
            catalog = applied.catalog;
            if violation.is_none() {
                self.catalog = catalog.clone();
            }
        }
        violation
    }
}
