//! How a reader follows the manifest of its writer.
//!
//! A reader applies the edits that were appended since it last looked. If the writer has begun another manifest, the reader reads the whole one: its
//! tables are opened again when they are used.
//!
//! Pure but for the reads: the result is installed by the caller ([`super::set::VersionSet::follow`]), which has read the log meanwhile.

use std::sync::Arc;

use tamis_vfs::Folder;

use super::{
    catalog::Catalog,
    current::Current,
    handle::{FileHandle, ObsoleteFiles},
    manifest::{self, ManifestPosition},
    set::{replay, resolve_operators},
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    merge_operator::MergeOperator,
};

/// The catalog of a writer, as a reader has followed it.
#[derive(Debug, Clone)]
pub(crate) struct FollowedCatalog {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) position: ManifestPosition,
    /// Files that the catalog no longer names.
    pub(crate) obsolete: Vec<Arc<FileHandle>>,
}

impl FollowedCatalog {
    /// The catalog after the edits that have been appended; `None` if there are none.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Corruption`], [`Error::UnknownFormat`], [`Error::UnknownChange`], [`Error::MergeOperatorMissing`]; the system's.
    pub(crate) fn next(
        &self,
        folder: &Folder,
        obsolete_files: &Arc<ObsoleteFiles>,
        operators: &[MergeOperator],
    ) -> Result<Option<Self>> {
        let current = Current::read(folder)?;
        if current.manifest != self.position.manifest {
            return self.reread(folder, current, obsolete_files, operators).map(Some);
        }
        let (edits, position) = manifest::read_from(folder, self.position)?;
        if edits.is_empty() {
            return Ok(None);
        }
        let mut next = Self { position, ..self.clone() };
        let mut catalog = Catalog::clone(&self.catalog);
        for edit in edits {
            let applied = catalog.apply(&edit, obsolete_files).map_err(|reason| {
                let path = FileName::Manifest(position.manifest).path(folder);
                Error::corruption(
                    &path,
                    self.position.offset,
                    "version edit",
                    "an edit that fits those before it",
                    reason,
                )
            })?;
            catalog = applied.catalog;
            next.obsolete.extend(applied.obsolete);
        }
        resolve_operators(&mut catalog, operators)?;
        next.catalog = Arc::new(catalog);
        Ok(Some(next))
    }

    /// The catalog of another manifest. Its handles are new.
    fn reread(
        &self,
        folder: &Folder,
        current: Current,
        obsolete_files: &Arc<ObsoleteFiles>,
        operators: &[MergeOperator],
    ) -> Result<Self> {
        let contents = manifest::read(folder, current)?;
        let mut catalog = replay(&contents, obsolete_files)?;
        resolve_operators(&mut catalog, operators)?;
        let mut obsolete = self.obsolete.clone();
        let before = self.catalog.keyspaces.values().flat_map(|version| version.files());
        obsolete.extend(before.map(Arc::clone));
        Ok(Self { catalog: Arc::new(catalog), position: contents.position(current), obsolete })
    }

    /// Whether it has a keyspace or an ingested table that `before` lacks, or lacks a keyspace: commits that are not in records.
    pub(crate) fn has_more_than(&self, before: &Self) -> bool {
        let newest_ingested = |catalog: &Catalog| {
            let tables = catalog.keyspaces.values().flat_map(|version| version.tables());
            tables.filter(|table| table.is_ingested()).map(|table| table.number()).max()
        };
        !self.catalog.keyspaces.keys().eq(before.catalog.keyspaces.keys())
            || newest_ingested(&self.catalog) > newest_ingested(&before.catalog)
    }

    /// Whether the memtables of a reader of this catalog serve the next one, too: no keyspace is new, and no flush has moved entries to tables.
    pub(crate) fn has_memtables_of(&self, before: &Catalog) -> bool {
        self.catalog.keyspaces.iter().all(|(id, version)| {
            let flushed = |version: &super::version::KeyspaceVersion| -> Vec<(Vec<u8>, u64)> {
                version
                    .partitions
                    .iter()
                    .map(|partition| (partition.lower.clone(), partition.flushed_sequence))
                    .collect()
            };
            before
                .keyspaces
                .get(id)
                .is_some_and(|old| Arc::ptr_eq(old, version) || flushed(old) == flushed(version))
        })
    }
}
