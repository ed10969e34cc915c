//! The list of backups in a target, and the backup that a number, an id or a time names.

use crate::{
    error::{Error, Result},
    format::{BACKUPS, Backup},
    parallel::in_parallel,
    target::Target,
    time,
};

impl Target {
    /// Reads the description of each backup.
    ///
    /// # Errors
    /// [`Error::NotATarget`], [`Error::UnknownFormat`]. A damaged description is no error but in the list.
    pub fn backups(&self) -> Result<BackupList> {
        self.require()?;
        let names: Vec<String> = self.list(BACKUPS)?.into_iter().map(|object| object.name).collect();
        let decoded = in_parallel(&names, |object| {
            // A prune has removed those that are missing.
            Ok(self.get(object)?.map(|bytes| Backup::decode(object, &bytes)))
        })?;
        let mut backups =
            BackupList { target: self.name().to_owned(), intact: Vec::new(), damaged: Vec::new() };
        for (object, decoded) in names.into_iter().zip(decoded) {
            match decoded {
                None => {}
                Some(Ok(backup)) => backups.intact.push(backup),
                Some(Err(what)) => backups.damaged.push((object, what)),
            }
        }
        backups.intact.sort_by(|one, other| (one.number, &one.object).cmp(&(other.number, &other.object)));
        Ok(backups)
    }
}

/// The backups of a target.
#[derive(Debug)]
pub struct BackupList {
    /// The address of the target.
    target: String,
    /// From the oldest to the newest, by number.
    pub intact: Vec<Backup>,
    /// Objects that can't be read, each with the difference.
    pub damaged: Vec<(String, String)>,
}

impl BackupList {
    /// The newest backup.
    pub fn newest(&self) -> Option<&Backup> {
        self.intact.last()
    }

    /// A backup by number, id (or its beginning) or time (the newest at that time, in UTC). Without any, the newest.
    ///
    /// # Errors
    /// [`Error::NoBackup`]; [`Error::ClockJumped`] if a time names several states.
    pub fn find(&self, wanted: Option<&str>) -> Result<&Backup> {
        let Some(wanted) = wanted else { return self.newest().ok_or_else(|| self.no_backup("at all")) };
        if let Some(time) = time::parse(wanted) {
            return self.at_time(wanted, time);
        }
        let is_number = wanted.parse::<u64>().ok();
        let mut matches = self.intact.iter().filter(|backup| match is_number {
            Some(number) => backup.number == number,
            None => wanted.contains('-') && backup.id().starts_with(wanted),
        });
        match (matches.next(), matches.next()) {
            (Some(backup), None) => Ok(backup),
            (None, _) => Err(self.no_backup(wanted)),
            (Some(one), Some(other)) => Err(Error::NoBackup {
                target: self.target.clone(),
                wanted: wanted.to_owned(),
                known: format!("it may be {} or {}: name one of them", one.id(), other.id()),
            }),
        }
    }

    fn at_time(&self, wanted: &str, time: u64) -> Result<&Backup> {
        let found = self.intact.iter().rposition(|backup| backup.time_milliseconds <= time);
        let (earlier, backup) = found
            .and_then(|index| Some((self.intact.get(..index)?, self.intact.get(index)?)))
            .ok_or_else(|| self.no_backup(wanted))?;
        match earlier.iter().find(|earlier| earlier.time_milliseconds > time) {
            None => Ok(backup),
            Some(earlier) => Err(Error::ClockJumped {
                target: self.target.clone(),
                time: wanted.to_owned(),
                earlier: earlier.number,
                later: backup.number,
            }),
        }
    }

    fn no_backup(&self, wanted: &str) -> Error {
        let known = match (self.intact.first(), self.intact.last()) {
            (Some(first), Some(last)) => format!(
                "there are {} to {} ({} to {}); give a number, an id or a time such as 2026-11-30T09:20 (UTC)",
                first.number,
                last.number,
                first.time(),
                last.time()
            ),
            _ => "there is none; make one with `tamis backup STORE TARGET`".to_owned(),
        };
        Error::NoBackup { target: self.target.clone(), wanted: wanted.to_owned(), known }
    }
}

#[cfg(test)]
pub(crate) mod tests;
