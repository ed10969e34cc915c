//! Reads and checks every byte of every object that a backup needs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::{Error, Result},
    format::{FileEntry, OBJECTS, Part},
    lease::lease_if_writable,
    parallel::in_parallel,
    progress::{self, Progress},
    target::Target,
};

/// A damaged or missing object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectFault {
    /// The name of the object.
    pub object: String,
    /// The difference.
    pub what: String,
    /// The numbers of the backups that need it. Empty for a description of a backup, whose name has its number.
    pub backups: Vec<u64>,
}

/// The result of [`verify`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Backups whose description is intact.
    pub backup_count: usize,
    /// Objects that were read.
    pub object_count: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that no backup needs: of interrupted uploads. The next prune removes them.
    pub unused_object_count: usize,
    /// Damaged and missing objects.
    pub faults: Vec<ObjectFault>,
}

/// Reads every object of every backup and compares its digest. Restores nothing.
///
/// # Errors
/// [`Error::NotATarget`], [`Error::UnknownFormat`], [`Error::Target`], [`Error::Cancelled`]. Damage is no error but in the report.
pub fn verify(target: &Target, progress: &dyn Progress) -> Result<VerifyReport> {
    let _lease = lease_if_writable(target, "a verification")?;
    let backups = target.backups()?;
    let description = |(object, what): &(String, String)| {
        let (object, what) = (object.clone(), what.clone());
        ObjectFault { object, what, backups: Vec::new() }
    };
    let mut report = VerifyReport {
        backup_count: backups.intact.len(),
        faults: backups.damaged.iter().map(description).collect(),
        ..VerifyReport::default()
    };
    let mut lists: BTreeMap<&Part, BTreeSet<u64>> = BTreeMap::new();
    let mut parts: BTreeMap<Part, BTreeSet<u64>> = BTreeMap::new();
    for backup in &backups.intact {
        lists.entry(&backup.tables).or_default().insert(backup.number);
        for part in backup.files.iter().flat_map(|file| &file.parts) {
            parts.entry(part.clone()).or_default().insert(backup.number);
        }
    }
    for backup in &backups.intact {
        let Some(users) = lists.remove(&backup.tables) else { continue };
        parts.entry(backup.tables.clone()).or_default().extend(&users);
        match target.file_list(backup) {
            Ok(list) => {
                for part in list.files.iter().flat_map(|file: &FileEntry| &file.parts) {
                    parts.entry(part.clone()).or_default().extend(&users);
                }
            }
            // Reported below, as it is a part.
            Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    progress.expect(parts.keys().map(|part| part.bytes).sum());
    let parts: Vec<(Part, BTreeSet<u64>)> = parts.into_iter().collect();
    let found = in_parallel(&parts, |(part, users)| {
        progress::check(progress)?;
        let result = target.get_part(part);
        progress.advance(part.bytes);
        match result {
            Ok(_) => Ok(None),
            Err(Error::Damaged { object, what, .. }) => {
                Ok(Some(ObjectFault { object, what, backups: users.iter().copied().collect() }))
            }
            Err(error) => Err(error),
        }
    })?;
    report.faults.extend(found.into_iter().flatten());
    report.object_count = parts.len();
    report.bytes = parts.iter().map(|(part, _)| part.bytes).sum();
    let used: BTreeSet<String> = parts.iter().map(|(part, _)| part.object()).collect();
    let listed = target.list(OBJECTS)?;
    report.unused_object_count = listed.iter().filter(|object| !used.contains(&object.name)).count();
    Ok(report)
}
