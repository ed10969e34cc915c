//! Replaces the filters of existing tables: after one was found damaged, or because the program wants others.
//!
//! For each table a filter file is written and an edit installs it; readers of an older version keep the older filter. A table
//! that a compaction removes in the meantime is skipped.

use std::sync::Arc;

use super::background_jobs::BackgroundJobs;
use crate::{
    cache::table::TableCache,
    context::StoreContext,
    error::Result,
    file_name::FileName,
    keyspace_state::KeyspaceState,
    options::TableFilter,
    table::refilter::write_filters_of,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        version::KeyspaceVersion,
    },
    version_installer::VersionInstaller,
};

/// See the head of this file.
pub(crate) struct FilterRebuilder {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) installer: Arc<VersionInstaller>,
    pub(crate) background: Arc<BackgroundJobs>,
}

impl FilterRebuilder {
    /// See [`crate::Db::rebuild_filters`].
    pub(crate) fn rebuild(&self, keyspace: &KeyspaceState, filters: &[TableFilter]) -> Result<()> {
        let job = self.context.begin_write_job()?;
        filters.iter().try_for_each(TableFilter::check)?;
        let numbers: Vec<u64> =
            keyspace.read_state.load().version.tables().map(|table| table.number()).collect();
        for number in numbers {
            // A table that a compaction moves in the meantime is looked up again; one that was removed needs no filter.
            while let Some((place, table)) = find(&keyspace.read_state.load().version, number) {
                keyspace.check()?;
                if self.rebuild_table(place, &table, filters)? {
                    break;
                }
            }
        }
        drop(job);
        self.background.run_due();
        Ok(())
    }

    /// Replaces the filters of a table; returns `false` if it is no longer at its place.
    fn rebuild_table(&self, place: RunPlace, table: &Arc<Table>, filters: &[TableFilter]) -> Result<bool> {
        let versions = &self.installer.versions;
        let filter_file = (!filters.is_empty()).then(|| versions.new_file_number());
        if let Some(file) = filter_file {
            let (_, seed) = versions.database();
            let reader = Arc::clone(&*self.tables.reader(table)?);
            write_filters_of(&reader, file, filters, seed)?;
        }
        let mut edit = VersionEdit::default();
        edit.push(Change::SetTableFilter { place, number: table.number(), filter_file });
        let Err(error) = self.installer.install(edit) else { return Ok(true) };
        self.installer.discard(filter_file.map(FileName::Filter).as_slice());
        let now = versions.catalog();
        let place_now = now.keyspaces.get(&place.keyspace).and_then(|version| find(version, table.number()));
        if place_now.is_some_and(|(now, _)| now == place) { Err(error) } else { Ok(false) }
    }
}

/// Finds a table of a version and its place by its number.
fn find(version: &KeyspaceVersion, number: u64) -> Option<(RunPlace, Arc<Table>)> {
    version.partitions.iter().find_map(|partition| {
        partition.runs().find_map(|(level, run)| {
            let table = run.tables().iter().find(|table| table.number() == number)?;
            let (keyspace, level) = (version.id, level as u8);
            let place = RunPlace { keyspace, partition: partition.id, level, run_age: run.age() };
            Some((place, Arc::clone(table)))
        })
    })
}
