//! Removes old backups, and the objects that no backup needs.
//!
//! 1. A lease excludes backups, restores and verifications (`lease.rs`).
//! 2. The descriptions of old backups are removed: they are no longer in the list.
//! 3. Objects that no remaining backup needs are removed, and what killed uploads have left.
//!
//! A killed prune leaves objects, which the next one removes. If a description or a list of tables is damaged, nothing is removed: it is
//! unknown what its backup needs.

use std::{collections::BTreeSet, str::FromStr, time::Duration};

use tamis::{Clock as _, SystemClock};

use crate::{
    backup_list::BackupList,
    error::{Error, Result},
    format::{BACKUPS, Backup, OBJECTS},
    lease::{Lease, Role},
    progress::{self, Progress},
    target::Target,
};

/// The backups that a prune keeps. The newest one always stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// This many of the newest, at least one.
    Count(usize),
    /// Those that a restore to any moment of the last time needs: younger ones, and the newest of the older ones.
    Age(Duration),
}

impl FromStr for Keep {
    type Err = String;

    /// `20`, `7d`, `12h`, `30m`, `2w`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is no number of backups and no time; write 20, 12h, 7d or 4w");
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let number: u64 = digits.parse().map_err(|_| refuse())?;
        let unit_seconds = match text.get(digits.len()..).unwrap_or_default() {
            "" => {
                return usize::try_from(number)
                    .ok()
                    .filter(|number| *number > 0)
                    .map(Self::Count)
                    .ok_or_else(refuse);
            }
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return Err(refuse()),
        };
        number
            .checked_mul(unit_seconds)
            .map(|seconds| Self::Age(Duration::from_secs(seconds)))
            .ok_or_else(refuse)
    }
}

impl Keep {
    /// The backups to remove. `backups` are in the order of numbers, `now` is milliseconds since 1970.
    ///
    /// Ages count from the time of the newest backup if the clock is later: a clock that jumped ahead removes nothing.
    fn obsolete<'a>(&self, backups: &'a [Backup], now: u64) -> Vec<&'a Backup> {
        match self {
            Self::Count(count) => backups.iter().rev().skip(*count.max(&1)).collect(),
            Self::Age(age) => {
                let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                let newest = backups.last().map_or(now, |newest| newest.time_milliseconds);
                let reference = now.min(newest);
                let pairs = backups.iter().zip(backups.iter().skip(1));
                let is_old = |next: &Backup| next.time_milliseconds.saturating_add(age) <= reference;
                pairs.filter(|(_, next)| is_old(next)).map(|(backup, _)| backup).collect()
            }
        }
    }
}

/// The result of [`prune`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PruneReport {
    /// The numbers of the removed backups.
    pub removed: Vec<u64>,
    /// Backups that remain.
    pub kept_count: usize,
    /// Removed objects, without the descriptions of backups.
    pub object_count: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes all backups that `keep` does not keep, and unused objects.
///
/// # Errors
/// [`Error::Busy`] if a backup, restore or verification does not end in time; [`Error::Unprunable`]; [`Error::NotATarget`],
/// [`Error::UnknownFormat`], [`Error::Target`], [`Error::LeaseLost`], [`Error::Cancelled`].
pub fn prune(target: &Target, keep: Keep, progress: &dyn Progress) -> Result<PruneReport> {
    target.require()?;
    let lease = Lease::acquire(target, Role::Prune, "a prune")?;
    let backups = target.backups()?;
    let now = u64::try_from(SystemClock::default().since_epoch().as_millis()).unwrap_or(u64::MAX);
    let obsolete = keep.obsolete(&backups.intact, now);
    let used = used_objects(target, &backups, &obsolete)?;
    for backup in &obsolete {
        progress::check(progress)?;
        lease.check()?;
        target.remove(&backup.object)?;
    }
    let mut report = PruneReport {
        removed: obsolete.iter().map(|backup| backup.number).collect(),
        kept_count: backups.intact.len() - obsolete.len(),
        ..PruneReport::default()
    };
    report.removed.sort_unstable();
    let listed = target.list(OBJECTS)?;
    for object in listed.iter().filter(|object| !used.contains(&object.name)) {
        progress::check(progress)?;
        lease.check()?;
        target.remove(&object.name)?;
        report.object_count += 1;
        report.bytes += object.bytes;
    }
    lease.check()?;
    for folder in [OBJECTS, BACKUPS] {
        let cleaned = target.objects().remove_unfinished(folder);
        cleaned.map_err(|error| target.fail("clean", folder, error))?;
    }
    Ok(report)
}

/// The objects of all backups that remain.
fn used_objects(target: &Target, backups: &BackupList, obsolete: &[&Backup]) -> Result<BTreeSet<String>> {
    let unprunable =
        |object: String, what: String| Error::Unprunable { target: target.name().to_owned(), object, what };
    if let Some((object, what)) = backups.damaged.first() {
        return Err(unprunable(object.clone(), what.clone()));
    }
    let mut used = BTreeSet::new();
    for backup in
        backups.intact.iter().filter(|backup| !obsolete.iter().any(|other| other.object == backup.object))
    {
        used.extend(backup.files.iter().flat_map(|file| &file.parts).map(|part| part.object()));
        if used.insert(backup.tables.object()) {
            let list = target.file_list(backup).map_err(|error| match error {
                Error::Damaged { object, what, .. } => unprunable(
                    backup.object.clone(),
                    format!("its list of tables {object} is unusable ({what})"),
                ),
                error => error,
            })?;
            used.extend(list.files.iter().flat_map(|file| &file.parts).map(|part| part.object()));
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests;
