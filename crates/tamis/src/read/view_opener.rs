//! The views that reads may use: those that the background opened, or, in a store without a background, those that reads open.
//!
//! Opening a view reads all of it. A store that is opened read-only has no thread for this, and one read is not worth an open. Each read
//! that could have used the view adds its lost time to a sum. The read that raises the sum to the cost of opening opens the view. So a
//! program that reads a few entries opens none. [`ReadPath::open_views`] opens them at once.

use std::sync::Arc;

use super::ReadPath;
use crate::{
    options::Options,
    table::environment::TableEnvironment,
    version::{named_view::NamedView, partition::Partition, version::KeyspaceVersion},
    view::{
        reader::View,
        writer::{RunSummary, ViewOwner},
    },
};

/// See the head of this file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewOpener {
    /// That of a store whose reads open views; `None`: the background opens them.
    database_id: Option<u64>,
}

impl ViewOpener {
    pub(super) fn new(database_id: u64, options: &Options) -> Self {
        Self { database_id: options.is_reader().then_some(database_id) }
    }

    /// The view of a partition, if reads can use it now.
    #[inline]
    pub(super) fn reader<'a>(
        self,
        named: &'a NamedView,
        partition: &Partition,
        environment: &TableEnvironment,
        keyspace_id: u64,
    ) -> Option<&'a Arc<View>> {
        let reader = named.reader();
        match self.database_id {
            Some(database_id) if reader.is_none() => {
                open_if_paid(named, partition, environment, (database_id, keyspace_id))
            }
            _ => reader,
        }
    }
}

impl ReadPath {
    /// In a store whose reads open views, opens all views of a version. A damaged one is reported.
    pub(crate) fn open_views(&self, version: &KeyspaceVersion) {
        let Some(database_id) = self.tools.views.database_id else { return };
        for partition in &version.partitions {
            if let Some(named) = partition.view.as_ref().filter(|named| named.needs_open())
                && let Some(runs) = partition.runs_of_view(named.runs())
            {
                open(named, &runs, self.tools.tables.environment(), (database_id, version.id));
            }
        }
    }
}

fn open_if_paid<'a>(
    named: &'a NamedView,
    partition: &Partition,
    environment: &TableEnvironment,
    ids: (u64, u64),
) -> Option<&'a Arc<View>> {
    if named.is_failed() {
        return None;
    }
    let runs = partition.runs_of_view(named.runs())?;
    let entry_count: u64 = runs.iter().map(|run| run.entry_count).sum();
    // A read loses 200 nanoseconds for each run that a view would save.
    let lost = (named.count_missed_read() * 200).saturating_mul(runs.len() as u64);
    // Opening a view takes four nanoseconds for each entry: its bytes are read and verified.
    if lost >= entry_count * 4 {
        open(named, &runs, environment, ids);
    }
    named.reader()
}

/// Opens a view, unless another thread does.
fn open(
    named: &NamedView,
    runs: &[RunSummary],
    environment: &TableEnvironment,
    (database_id, keyspace_id): (u64, u64),
) {
    if named.claim_open() {
        let owner = ViewOwner { database_id, keyspace_id, number: named.number() };
        if let Err(error) = named.open(environment, owner, runs) {
            named.fail(environment, &error);
        }
    }
}
