//! New filters for tables that are in force: when one is damaged, or another number of bits per key is wanted.
//!
//! Table by table a filter file is written and an edit puts it in force; readers of an older version keep the older
//! filter. A table that a compaction takes away meanwhile is passed over.

use std::sync::Arc;

use crate::{
    error::{Error, Result},
    file_name::FileName,
    options::check_bits_per_key,
    state::{Engine, KeyspaceState},
    table::refilter::write_filter_of,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        version::KeyspaceVersion,
    },
};

impl Engine {
    /// See [`crate::Db::rebuild_filters`].
    pub(crate) fn rebuild_filters(&self, keyspace: &KeyspaceState, bits_per_key: f32) -> Result<()> {
        let _job = self.begin_job()?;
        check_bits_per_key(bits_per_key)?;
        for (place, table) in tables_of(&keyspace.view.load().version) {
            keyspace.check()?;
            let number = self.versions.new_file_number();
            let (_, seed) = self.versions.database();
            let reader = Arc::clone(&*self.tables.reader(&table)?);
            write_filter_of(&reader, number, bits_per_key, seed)?;
            let mut edit = VersionEdit::default();
            edit.push(Change::SetTableFilter { place, number: table.number(), filter_file: Some(number) });
            if let Err(error) = self.apply(edit) {
                if self.versions.refusal().is_none() {
                    self.versions.garbage().extend([FileName::Filter(number)]);
                }
                let is_there = tables_of(&keyspace.view.load().version)
                    .iter()
                    .any(|(other, at)| *other == place && at.number() == table.number());
                if is_there || !matches!(error, Error::InvalidArgument { .. }) {
                    return Err(error);
                }
            }
        }
        self.scheduler.wake();
        self.run_inline();
        Ok(())
    }
}

/// All tables of a version and where they stand.
fn tables_of(version: &KeyspaceVersion) -> Vec<(RunPlace, Arc<Table>)> {
    let mut tables = Vec::new();
    for partition in &version.partitions {
        for (level, run) in partition.runs() {
            let place = RunPlace {
                keyspace: version.id,
                partition: partition.id,
                level: level as u8,
                run_age: run.age(),
            };
            tables.extend(run.tables().iter().map(|table| (place, Arc::clone(table))));
        }
    }
    tables
}
