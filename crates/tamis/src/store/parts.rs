//! The parts of an open store that its reads, writes, jobs and administration share.

use std::sync::Arc;

use super::{
    commit_log::CommitLog, context::StoreContext, keyspace_state::KeyspaceRegistry,
    version_installer::VersionInstaller,
};
use crate::{
    cache::table::TableCache, compaction::scheduler::Scheduler, read::snapshot::Snapshots,
    version::set::VersionSet, write::back_pressure::BackPressure,
};

/// See the head of this file. Each part says who may use it when.
pub(crate) struct StoreParts {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) keyspaces: Arc<KeyspaceRegistry>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) log: Arc<CommitLog>,
    pub(crate) installer: Arc<VersionInstaller>,
    pub(crate) versions: Arc<VersionSet>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) back_pressure: Arc<BackPressure>,
}
