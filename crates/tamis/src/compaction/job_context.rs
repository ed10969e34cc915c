//! The inputs that a flush or compaction takes from the store besides its entries.

use std::{
    ops::ControlFlow,
    sync::{Arc, atomic::AtomicBool},
};

use tamis_filter::auto::{Effort, Prices};
use tamis_vfs::{Access, Folder};

use crate::{
    error::{Error, Result},
    expiry,
    key::Readers,
    observe::{events::EventListener, query_sample::SharedQueries, read_times::expected_nanoseconds},
    options::{Compression, FilterBudget, FilterSource, KeyspaceOptions, Options, per_level},
    store::parts::StoreParts,
    sync::sim_fault,
    table::{
        filter_plan::{ChoiceInput, FilterPlan, GivenFilters, KeySpan},
        properties::TableOrigin,
        shared_choice::SharedChoice,
        writer::TableOptions,
    },
    version::{edit::RunPlace, handle::Table, level::Run, version::KeyspaceVersion},
};

/// See the head of this file.
#[derive(Clone)]
pub(crate) struct JobContext<'a> {
    pub(crate) folder: &'a Folder,
    /// The version of the keyspace for which the job was planned.
    pub(crate) version: &'a KeyspaceVersion,
    pub(crate) database_id: u64,
    pub(crate) filter_seed: u64,
    /// Whether tables are written with direct I/O.
    pub(crate) is_direct: bool,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
    pub(crate) next_number: &'a dyn Fn() -> u64,
    /// Those that must not notice the job.
    pub(crate) readers: Readers,
    /// The keyspace's queries, from which filters are chosen.
    pub(crate) sampled_queries: SharedQueries,
    /// Entries of all tables of the version, by which a budget in bytes is divided.
    pub(crate) entry_count: u64,
    /// The choice of filters that the small tables of the job share.
    pub(crate) shared_choice: Arc<SharedChoice>,
    /// The prices by which filters are chosen.
    pub(crate) prices: Prices,
    pub(crate) is_cancelled: &'a AtomicBool,
    /// Called before each table; a break cancels the job.
    pub(crate) between_tables: &'a dyn Fn() -> ControlFlow<()>,
}

impl JobContext<'_> {
    /// The options of tables that hold `key_count` keys in all; `depth` is the position in per-level options.
    pub(crate) fn table_options(&self, origin: &TableOrigin, depth: usize, key_count: u64) -> TableOptions {
        let options: &KeyspaceOptions = &self.version.options;
        let filters = match options.filters.source() {
            FilterSource::Chosen(budget) => FilterPlan::Chosen(Box::new(ChoiceInput {
                other_runs: self.other_runs(origin),
                ..self.choice_input(*budget, key_count, origin, Effort::Write)
            })),
            FilterSource::Given(_) => FilterPlan::Given(GivenFilters {
                filters: options.filters.of_level(depth).to_vec(),
                queries: self.sampled_queries.clone(),
            }),
        };
        TableOptions {
            block_bytes: options.block_bytes,
            compression: per_level(&options.compression, depth).unwrap_or(Compression::None),
            filters,
            filter_seed: self.filter_seed,
            origin: origin.clone(),
            is_direct: self.is_direct,
            listener: self.listener.clone(),
        }
    }

    /// Whether the stored value of an expiring put is expired for all readers.
    pub(crate) fn is_expired(&self, stored: &[u8]) -> bool {
        expiry::live_value(stored, || self.readers.expiry_time).is_none()
    }

    /// Makes the names of finished tables durable.
    pub(crate) fn sync_folder(&self) -> Result<()> {
        if sim_fault!("skip-folder-sync") {
            return Ok(());
        }
        self.folder.sync().map_err(|source| Error::io("sync", self.folder.path(), source))
    }

    /// The input of the choice of filters for `key_count` keys of this origin, if all filters have this budget.
    pub(crate) fn choice_input(
        &self,
        budget: FilterBudget,
        key_count: u64,
        origin: &TableOrigin,
        effort: Effort,
    ) -> ChoiceInput {
        // A compaction has at most the keys of the tables that it replaces.
        let new_keys = if origin.replaced.is_empty() { key_count } else { 0 };
        ChoiceInput {
            bits_per_key: budget.bits_per_key(self.entry_count + new_keys),
            effort,
            prices: self.prices,
            queries: self.sampled_queries.clone(),
            current: None,
            other_runs: Arc::default(),
            seed: self.filter_seed,
            shared: Arc::clone(&self.shared_choice),
        }
    }

    /// The keys of the other runs of the partition, without the tables that are replaced.
    pub(crate) fn other_runs(&self, origin: &TableOrigin) -> Arc<[KeySpan]> {
        let Some(partition) = self.version.partition_of(&origin.partition_lower) else {
            return Arc::default();
        };
        let own = (usize::from(origin.level), origin.run_age);
        let others = partition.runs().filter(|(level, run)| (*level, run.age()) != own);
        let stays = |table: &&Arc<Table>| !origin.replaced.contains(&table.number());
        let span = |run: &Run| span_of(run.tables().iter().filter(stays));
        others.filter_map(|(_, run)| span(run)).collect()
    }

    /// The origin that the tables of a run record in their properties.
    pub(crate) fn origin(&self, partition: u64, place: RunPlace, replaced: Vec<u64>) -> TableOrigin {
        let index = self.version.partitions.iter().position(|other| other.id == partition).unwrap_or(0);
        self.origin_at(index, place, replaced)
    }

    /// As [`JobContext::origin`], for the partition at `index`.
    pub(crate) fn origin_at(&self, index: usize, place: RunPlace, replaced: Vec<u64>) -> TableOrigin {
        let partition = self.version.partitions.get(index);
        TableOrigin {
            database_id: self.database_id,
            keyspace_id: self.version.id,
            keyspace_name: self.version.name.to_string(),
            merge_operator: self
                .version
                .options
                .merge
                .as_ref()
                .map_or_else(String::new, |merge| merge.name().to_owned()),
            partition_lower: partition.map(|partition| partition.lower.clone()).unwrap_or_default(),
            partition_upper: self.version.upper_of(index).unwrap_or_default().to_vec(),
            level: place.level,
            run_age: place.run_age,
            replaced,
        }
    }
}

/// The keys of tables of a run, which are in order; `None` without a table.
pub(super) fn span_of<'t>(mut tables: impl DoubleEndedIterator<Item = &'t Arc<Table>>) -> Option<KeySpan> {
    let first = tables.next()?;
    let last = tables.next_back().unwrap_or(first);
    Some(KeySpan::new(first.shared_summary(), last.shared_summary()))
}

/// The prices by which filters are chosen: constants, so that the choice does not depend on the load of the machine.
pub(crate) const fn filter_prices(options: &Options) -> Prices {
    // The nanoseconds of a query that a bit per key must save.
    Prices { read_ns: expected_nanoseconds(options.table_access), bit_ns: 0.5 }
}

/// Calls `work` with the context of a job that begins now on `version`.
pub(super) fn with_job_context<R>(
    store: &StoreParts,
    version: &KeyspaceVersion,
    work: impl FnOnce(&JobContext<'_>) -> R,
) -> R {
    let (database_id, filter_seed) = store.versions.database();
    let mut sampled_queries = SharedQueries::default();
    if version.options.filters.uses_sample()
        && let Some(keyspace) =
            u32::try_from(version.id).ok().and_then(|id| store.keyspaces.load().get(&id).cloned())
    {
        sampled_queries = keyspace.read_state.load().query_sample.shared();
    }
    work(&JobContext {
        folder: &store.context.folder,
        version,
        database_id,
        filter_seed,
        is_direct: store.context.options.table_access == Access::Direct,
        listener: store.context.options.listener.clone(),
        next_number: &|| store.versions.new_file_number(),
        readers: store.snapshots.readers(&store.context.expiry),
        sampled_queries,
        entry_count: version.entry_count(),
        shared_choice: Arc::default(),
        prices: filter_prices(&store.context.options),
        is_cancelled: store.scheduler.is_stopping(),
        between_tables: &|| ControlFlow::Continue(()),
    })
}
