//! Reads every byte that is in force and names each fault: file, offset, what is wrong. It goes on after a fault.
//!
//! Checked: `CURRENT` and the manifest (by replaying them), every log segment (headers, records, entries), every table
//! (section checksums, every data block, entry order, counts against properties, filters against keys, filter files). What was
//! written since the last sync of the log may be torn after a crash and is no fault.
//!
//! Cost: every file is read once.

use std::path::PathBuf;

use crate::{
    error::{Error, Result},
    file_name::FileName,
    state::Engine,
    wal::reader::{LogFiles, replay},
};

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// Offset in bytes, where it is known.
    pub offset: Option<u64>,
    /// What is wrong, for people.
    pub what: String,
}

/// What [`crate::Db::verify`] read and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files read.
    pub file_count: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Table entries read.
    pub entry_count: u64,
    /// Every fault found.
    pub faults: Vec<Fault>,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub const fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn note(&mut self, file: PathBuf, error: &Error) {
        self.faults.push(match error {
            Error::Corruption(found) => {
                let what = format!("{}: expected {}, got {}", found.what, found.expected, found.got);
                Fault { file: found.file.clone(), offset: Some(found.offset), what }
            }
            Error::UnknownEntryKind { file, offset, kind } => Fault {
                file: file.clone(),
                offset: Some(*offset),
                what: format!("entry of unknown kind {kind}"),
            },
            other => Fault { file, offset: None, what: other.to_string() },
        });
    }
}

impl Engine {
    /// See [`crate::Db::verify`].
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        self.check_open()?;
        let mut report = VerifyReport::default();
        self.verify_manifest(&mut report);
        self.verify_log(&mut report)?;
        // The views keep the tables that are read here.
        let views: Vec<_> =
            self.keyspaces.load().values().map(|keyspace| keyspace.view.load_full()).collect();
        for table in views.iter().flat_map(|view| view.version.tables()) {
            let path = FileName::Table(table.number()).path(&self.folder);
            report.file_count += 1;
            report.bytes += table.file_bytes();
            report.entry_count += table.summary().entry_count;
            match self.tables.reader(table) {
                Ok(reader) => {
                    reader.verify().iter().for_each(|error| report.note(path.clone(), error));
                    let Some(number) = table.filter_file() else { continue };
                    report.file_count += 1;
                    if let Err(error) = reader.check_filter_file(number) {
                        report.note(FileName::Filter(number).path(&self.folder), &error);
                    }
                }
                Err(error) => report.note(path, &error),
            }
        }
        Ok(report)
    }

    fn verify_manifest(&self, report: &mut VerifyReport) {
        report.file_count += 2;
        match self.versions.check() {
            Ok(bytes) => report.bytes += bytes,
            Err(error) => report.note(FileName::Current.path(&self.folder), &error),
        }
    }

    fn verify_log(&self, report: &mut VerifyReport) -> Result<()> {
        // No segment begins or goes while the log is read.
        let log = self.log.lock();
        let entries = self.vfs.list(&self.folder).map_err(|error| Error::io("list", &self.folder, error))?;
        let segments = entries.iter().filter_map(|entry| match FileName::parse(&entry.name) {
            Some(FileName::Log(number)) => Some((number, entry.length)),
            _ => None,
        });
        let segments: Vec<_> = segments.collect();
        report.file_count += segments.len();
        report.bytes += segments.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let numbers: Vec<u64> = segments.iter().map(|(number, _)| *number).collect();
        let files = LogFiles {
            folder: &self.folder,
            database_id: self.versions.database().0,
            first_needed: self.versions.state().counters.oldest_log,
            numbers: &numbers,
        };
        if let Err(error) = replay(&*self.vfs, files, &mut |_, _| Ok(())) {
            report.note(self.folder.clone(), &error);
        }
        drop(log);
        Ok(())
    }
}
