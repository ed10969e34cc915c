//! The read path: a consistent read state of memtables and tables, then point reads or scans over it.

mod count;
mod counting_view;
mod deleted_ranges;
mod get;
mod multi_range;
mod partition_walk;
pub(crate) mod scan;
mod scan_coverage;
mod scan_query;
mod scan_record;
pub(crate) mod scan_source;
mod seek_answers;
mod select_range;
mod select_runs;
mod select_views;
pub(crate) mod snapshot;
mod touched_range;
mod view_opener;

use std::sync::Arc;

use tamis_filter::{Digester, Probe};

use self::{deleted_ranges::DeletedRanges, snapshot::Snapshots, view_opener::ViewOpener};
use crate::{
    cache::table::TableCache,
    observe::metrics::Metrics,
    store::{context::StoreContext, parts::StoreParts},
};

/// The parts of an open store that open tables and views, and probe filters. A scan has its own.
struct ReadTools {
    context: Arc<StoreContext>,
    tables: Arc<TableCache>,
    digester: Digester,
    views: ViewOpener,
}

/// Point reads ([`get`]), scans ([`scan`]) and counts ([`count`]) of an open store.
pub(crate) struct ReadPath {
    context: Arc<StoreContext>,
    metrics: Arc<Metrics>,
    snapshots: Arc<Snapshots>,
    deleted_ranges: Arc<DeletedRanges>,
    tools: Arc<ReadTools>,
}

impl ReadPath {
    pub(crate) fn new(store: &Arc<StoreParts>, digester: Digester) -> Self {
        let (database_id, _) = store.versions.database();
        let StoreParts { context, snapshots, tables, .. } = &**store;
        Self {
            tools: Arc::new(ReadTools {
                context: Arc::clone(context),
                tables: Arc::clone(tables),
                digester,
                views: ViewOpener::new(database_id, &context.options),
            }),
            context: Arc::clone(context),
            metrics: Arc::clone(&context.metrics),
            snapshots: Arc::clone(snapshots),
            deleted_ranges: Arc::new(DeletedRanges {
                store: Arc::clone(store),
                key_count_min: context.options.deleted_range_keys,
            }),
        }
    }

    /// A probe whose digest serves the filters of all levels.
    fn probe<'a>(&'a self, key: &'a [u8]) -> Probe<'a> {
        Probe::new(key, &self.tools.digester)
    }
}
