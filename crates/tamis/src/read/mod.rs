//! The read path: a consistent read state of memtables and tables, then point reads or scans over it.

mod count;
mod deleted_ranges;
mod gaps;
mod get;
mod multi_range;
pub(crate) mod scan;
mod scan_query;
mod select_runs;
mod select_views;
pub(crate) mod snapshot;

use std::sync::Arc;

use tamis_filter::{Digester, Probe};

pub(crate) use self::deleted_ranges::DeletedRanges;
use self::snapshot::Snapshots;
use crate::{cache::table::TableCache, context::StoreContext, metrics::Metrics, query_sample::Sampling};

/// Point reads ([`get`]), scans ([`scan`]) and counts ([`count`]) of an open store.
pub(crate) struct ReadPath {
    context: Arc<StoreContext>,
    metrics: Arc<Metrics>,
    snapshots: Arc<Snapshots>,
    tables: Arc<TableCache>,
    deleted_ranges: Arc<DeletedRanges>,
    digester: Digester,
    /// [`crate::Options::sample_queries`].
    samples_queries: bool,
}

impl ReadPath {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        snapshots: &Arc<Snapshots>,
        tables: &Arc<TableCache>,
        deleted_ranges: DeletedRanges,
        digester: Digester,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            metrics: Arc::clone(&context.metrics),
            snapshots: Arc::clone(snapshots),
            tables: Arc::clone(tables),
            deleted_ranges: Arc::new(deleted_ranges),
            digester,
            samples_queries: context.options.sample_queries,
        }
    }

    /// How the read with this number is sampled.
    #[inline]
    fn sampling(&self, number: u64) -> Sampling {
        let sampling = Sampling::of(number);
        Sampling { weight: if self.samples_queries { sampling.weight } else { 0 }, ..sampling }
    }

    /// A probe whose digest serves the filters of all levels.
    fn probe<'a>(&'a self, key: &'a [u8]) -> Probe<'a> {
        Probe::new(key, &self.digester)
    }
}
