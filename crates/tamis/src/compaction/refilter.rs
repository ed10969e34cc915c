//! New filters for tables that are in force: when one is damaged, or others are wanted.
//!
//! Table by table a filter file is written and an edit puts it in force; readers of an older version keep the older
//! filter. A table that a compaction takes away meanwhile is passed over.

use std::sync::Arc;

use crate::{
    engine::{Engine, KeyspaceState},
    error::Result,
    file_name::FileName,
    options::TableFilter,
    table::refilter::write_filters_of,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        version::KeyspaceVersion,
    },
};

impl Engine {
    /// See [`crate::Db::rebuild_filters`].
    pub(crate) fn rebuild_filters(&self, keyspace: &KeyspaceState, filters: &[TableFilter]) -> Result<()> {
        let job = self.begin_job()?;
        filters.iter().try_for_each(TableFilter::check)?;
        let numbers: Vec<u64> =
            keyspace.read_state.load().version.tables().map(|table| table.number()).collect();
        for number in numbers {
            // A table that a compaction moves meanwhile is looked for again; one that is gone needs no filter.
            while let Some((place, table)) = find(&keyspace.read_state.load().version, number) {
                keyspace.check()?;
                if self.rebuild_filters_of(place, &table, filters)? {
                    break;
                }
            }
        }
        drop(job);
        self.scheduler.wake();
        self.run_inline();
        Ok(())
    }

    /// Gives a table other filters; `false` when it was no longer at its place.
    fn rebuild_filters_of(
        &self,
        place: RunPlace,
        table: &Arc<Table>,
        filters: &[TableFilter],
    ) -> Result<bool> {
        let filter_file = (!filters.is_empty()).then(|| self.versions.new_file_number());
        if let Some(file) = filter_file {
            let (_, seed) = self.versions.database();
            let reader = Arc::clone(&*self.tables.reader(table)?);
            write_filters_of(&reader, file, filters, seed)?;
        }
        let mut edit = VersionEdit::default();
        edit.push(Change::SetTableFilter { place, number: table.number(), filter_file });
        let Err(error) = self.apply(edit) else { return Ok(true) };
        if self.versions.background_error().is_none() {
            self.versions.obsolete_files().extend(filter_file.map(FileName::Filter));
        }
        let now = self.versions.catalog();
        let place_now = now.keyspaces.get(&place.keyspace).and_then(|version| find(version, table.number()));
        if place_now.is_some_and(|(now, _)| now == place) { Err(error) } else { Ok(false) }
    }
}

/// A table of a version by its number, and where it stands.
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
