//! Inventory of a folder: the readable part of the manifest, tables with their properties, numbers that were used.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tamis_vfs::Folder;

use super::{check_is_loss, select_tables::Tables};
use crate::{
    admin::quarantine::QUARANTINE,
    cache::table::TableCache,
    coding::checksum,
    error::{Error, Result},
    file_name::FileName,
    observe::metrics::Metrics,
    options::Options,
    store::{
        orphans::{LogSpan, reason_to_keep},
        runtime::Runtime,
    },
    table::{properties::TableProperties, reader::TableReader},
    version::{
        folder,
        handle::Table,
        prefix::{Prefix, read_longest},
    },
    wal::format::database_id_of,
};

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Inventory {
    pub(super) prefix: Prefix,
    /// Whether the prefix is the current state, as far as the manifest and the numbers of files show.
    pub(super) is_certain: bool,
    /// Id and seed of the database.
    pub(super) database: (u64, u64),
    /// The tables that can be opened.
    pub(super) readable: BTreeMap<u64, TableProperties>,
    /// Why the other existing tables can't be opened.
    pub(super) unreadable: BTreeMap<u64, Error>,
    /// No file has this number or a greater one.
    pub(super) next_number: u64,
}

/// The first error that reports an unknown format: such a file is not damaged, and another program can read all of it.
pub(super) fn foreign_format<'a>(errors: impl IntoIterator<Item = &'a Error>) -> Option<Error> {
    let is_foreign = |error: &&Error| {
        matches!(
            error,
            Error::UnknownFormat { .. } | Error::UnknownEntryKind { .. } | Error::UnknownChange { .. }
        )
    };
    errors.into_iter().find(is_foreign).cloned()
}

/// The files of the quarantine folder, if it exists.
fn list_quarantine(folder: &Folder) -> Result<Vec<tamis_vfs::DirEntry>> {
    let quarantine = folder.path().join(QUARANTINE);
    match folder.list(&quarantine) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|error| Error::io("list", &quarantine, error)),
    }
}

impl Inventory {
    pub(super) fn collect(folder: &Folder, runtime: &Runtime) -> Result<Self> {
        let prefix = read_longest(folder)?;
        prefix.faults.iter().try_for_each(check_is_loss)?;
        let entries = folder::list(folder)?;
        let quarantined = list_quarantine(folder)?;
        let numbers = |entries: &[tamis_vfs::DirEntry]| folder::number_above(entries);
        let mut found = Self {
            is_certain: prefix.is_whole,
            database: prefix.catalog.database.unwrap_or_default(),
            next_number: numbers(&entries)
                .max(numbers(&quarantined))
                .max(prefix.catalog.counters.next_file_number),
            prefix,
            readable: BTreeMap::new(),
            unreadable: BTreeMap::new(),
        };
        let tables = TableCache::new(folder, &Options::default(), &Arc::new(Metrics::default()));
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let Some(FileName::Table(number)) = FileName::parse(&entry.name) else { continue };
            let opened = match found.named(number) {
                Some(table) => TableReader::open_named(tables.environment(), table),
                None => TableReader::open_unnamed(tables.environment(), number, 0),
            };
            match opened {
                Ok(reader) => drop(found.readable.insert(number, reader.properties().clone())),
                Err(error) => {
                    check_is_loss(&error)?;
                    found.unreadable.insert(number, error);
                }
            }
        }
        let replaced = found.readable.values().flat_map(|properties| &properties.origin.replaced);
        found.next_number = replaced.map(|number| number.saturating_add(1)).fold(found.next_number, u64::max);
        if found.prefix.catalog.database.is_none() {
            found.database = found.database_by_files(folder, runtime);
        }
        found.is_certain |= found.has_no_later_files(&entries);
        Ok(found)
    }

    /// The table of this number in the readable part of the manifest.
    fn named(&self, number: u64) -> Option<&Arc<Table>> {
        let versions = self.prefix.catalog.keyspaces.values();
        versions.flat_map(|version| version.tables()).find(|table| table.number() == number)
    }

    /// See [`foreign_format`]: of the manifest and the tables.
    pub(super) fn foreign_format(&self) -> Option<Error> {
        foreign_format(self.prefix.faults.iter().chain(self.unreadable.values()))
    }

    /// The id that most tables name, or that of the log; the seed is lost, which costs filters a second hash.
    fn database_by_files(&self, folder: &Folder, runtime: &Runtime) -> (u64, u64) {
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for properties in self.readable.values().filter(|properties| properties.origin.database_id != 0) {
            *votes.entry(properties.origin.database_id).or_default() += 1;
        }
        let by_tables = votes.iter().max_by_key(|(_, count)| **count).map(|(id, _)| *id);
        let logs = folder::list(folder).unwrap_or_default().into_iter().rev();
        let mut logs = logs.filter(|entry| matches!(FileName::parse(&entry.name), Some(FileName::Log(_))));
        let by_log =
            || logs.find_map(|entry| database_id_of(&folder.read(&folder.path().join(entry.name)).ok()?));
        let id = by_tables.or_else(by_log).unwrap_or_else(|| checksum(runtime.seed, b"database id"));
        (id, runtime.seed)
    }

    /// Whether the prefix is a state that was current once, and nothing shows that there was a later one.
    fn has_no_later_files(&self, entries: &[tamis_vfs::DirEntry]) -> bool {
        let state = &self.prefix.catalog;
        let mut numbers = entries.iter().filter_map(|entry| match FileName::parse(&entry.name)? {
            FileName::Table(number) | FileName::Obsolete(number) => Some(number),
            _ => None,
        });
        let mut tables = state.keyspaces.values().flat_map(|version| version.tables());
        let named: BTreeSet<u64> = tables.by_ref().map(|table| table.number()).collect();
        let is_there =
            |number: &u64| self.readable.contains_key(number) || self.unreadable.contains_key(number);
        state.database.is_some()
            && !state.keyspaces.is_empty()
            && named.iter().all(is_there)
            && self.readable.keys().chain(self.unreadable.keys()).all(|number| named.contains(number))
            && numbers.all(|number| number < state.counters.next_file_number)
    }

    /// A table that the prefix does not name and that proves a later state, with the reason.
    pub(super) fn proof_of_later_state(&self, log: LogSpan) -> Option<(u64, String)> {
        let state = &self.prefix.catalog;
        let named: BTreeMap<u64, u64> = state
            .keyspaces
            .values()
            .flat_map(|version| version.tables().map(|table| (table.number(), version.id)))
            .collect();
        let is_gone =
            |number: &u64| !self.readable.contains_key(number) && !self.unreadable.contains_key(number);
        let gone: Vec<(u64, u64)> =
            named.iter().filter(|(number, _)| is_gone(number)).map(|(number, id)| (*number, *id)).collect();
        self.readable.iter().filter(|(number, _)| !named.contains_key(number)).find_map(|(&number, found)| {
            let origin = &found.origin;
            if origin.database_id == 0 {
                // Without CURRENT the length of the manifest is unknown.
                let why = "it was ingested";
                return (!self.prefix.faults.is_empty()).then(|| (number, why.to_owned()));
            }
            if origin.database_id != self.database.0 {
                return None;
            }
            // Inputs are deleted after the edit that names the outputs is installed. Numbers ascend.
            let may_hold = |(input, keyspace): &&(u64, u64)| {
                *input < number && *keyspace == origin.keyspace_id && !origin.replaced.is_empty()
            };
            let of_gone = || {
                let (input, _) = gone.iter().find(may_hold)?;
                Some(format!(
                    "it may contain the entries of {}, which is missing",
                    FileName::Table(*input).name()
                ))
            };
            reason_to_keep(found, state, log).or_else(of_gone).map(|why| (number, why))
        })
    }

    /// The input for the selection of tables.
    pub(super) fn tables(&self) -> Tables {
        let installed = self.prefix.catalog.keyspaces.values().flat_map(|version| version.tables());
        Tables {
            readable: self
                .readable
                .iter()
                .map(|(number, properties)| (*number, properties.origin.replaced.clone()))
                .collect(),
            present: self.readable.keys().chain(self.unreadable.keys()).copied().collect(),
            installed: installed.map(|table| table.number()).collect(),
        }
    }
}
