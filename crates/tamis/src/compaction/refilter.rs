//! Replaces the filters of existing tables on request: after one was found damaged, or because the program wants others.
//!
//! For each table a filter file is written and an edit installs it; readers of an older version keep the older filter. A table
//! that a compaction removes in the meantime is skipped.

use std::sync::Arc;

use super::{
    background_jobs::BackgroundJobs,
    filter_check::{FilterChecker, find},
};
use crate::{
    error::Result,
    options::TableFilter,
    store::keyspace_state::KeyspaceState,
    table::{filter_plan::GivenFilters, refilter::write_filters_of},
    version::{handle::Table, losses::DueLoss},
};

impl BackgroundJobs {
    /// See [`crate::Db::rebuild_filters`].
    pub(crate) fn rebuild_filters(&self, keyspace: &KeyspaceState, filters: &[TableFilter]) -> Result<()> {
        let job = self.store.context.begin_write_job()?;
        filters.iter().try_for_each(TableFilter::check)?;
        let filters = FilterChecker::given(keyspace, filters);
        for number in numbers_of(keyspace) {
            let version = Arc::clone(&keyspace.read_state.load().version);
            // A table that was removed needs no filter.
            if let Some((_, table)) = find(&version, number) {
                keyspace.check()?;
                self.rebuild_filters_of(keyspace, &table, &filters)?;
            }
        }
        drop(job);
        self.run_due();
        Ok(())
    }

    /// See [`crate::Db::check_filters`].
    pub(crate) fn check_filters(&self, keyspace: &KeyspaceState) -> Result<u64> {
        let job = self.store.context.begin_write_job()?;
        let checker = &self.filter_checker;
        let mut replaced_count = 0;
        for number in numbers_of(keyspace) {
            keyspace.check()?;
            replaced_count += u64::from(checker.check(keyspace, number, &|| {}, DueLoss::default())?);
        }
        drop(job);
        self.run_due();
        Ok(replaced_count)
    }

    fn rebuild_filters_of(
        &self,
        keyspace: &KeyspaceState,
        table: &Arc<Table>,
        filters: &GivenFilters,
    ) -> Result<()> {
        let versions = &self.store.installer.versions;
        let filter_file = (!filters.filters.is_empty()).then(|| versions.new_file_number());
        if let Some(file) = filter_file {
            let (_, seed) = versions.database();
            let reader = Arc::clone(self.store.tables.reader(table)?);
            let check = || self.store.context.check_open().and_then(|()| keyspace.check());
            write_filters_of(&reader, file, filters, seed, &check)?;
        }
        self.filter_checker.install(keyspace, table.number(), filter_file)?;
        Ok(())
    }
}

fn numbers_of(keyspace: &KeyspaceState) -> Vec<u64> {
    keyspace.read_state.load().version.tables().map(|table| table.number()).collect()
}
