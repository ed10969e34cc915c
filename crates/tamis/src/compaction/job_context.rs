//! The inputs that a flush or compaction takes from the store besides its entries.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use tamis_vfs::{Access, Vfs};

use super::{level_filter_bits::bits_of_level, scheduler::Scheduler};
use crate::{
    context::StoreContext,
    events::EventListener,
    key::Sequence,
    metrics::LEVEL_COUNT_MAX,
    options::{Compression, KeyspaceOptions, TableFilter, per_level},
    read::snapshot::Snapshots,
    table::{properties::TableOrigin, writer::TableOptions},
    version::{edit::RunPlace, set::VersionSet, version::KeyspaceVersion},
};

/// See the head of this file.
#[derive(Clone)]
pub(crate) struct JobContext<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) folder: &'a Path,
    /// The version of the keyspace for which the job was planned.
    pub(crate) version: &'a KeyspaceVersion,
    pub(crate) database_id: u64,
    pub(crate) filter_seed: u64,
    /// Whether tables are written with direct I/O.
    pub(crate) is_direct: bool,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
    pub(crate) next_number: &'a dyn Fn() -> u64,
    /// See [`super::drop_rules::DropRules`].
    pub(crate) read_points: Vec<Sequence>,
    pub(crate) is_cancelled: &'a AtomicBool,
    /// Called before each table.
    pub(crate) between_tables: &'a dyn Fn(),
}

impl JobContext<'_> {
    /// The options of tables that hold `key_count` keys in all; `depth` is the position in per-level options.
    pub(crate) fn table_options(&self, origin: &TableOrigin, depth: usize, key_count: u64) -> TableOptions {
        let options: &KeyspaceOptions = &self.version.options;
        let level = usize::from(origin.level);
        let filters = match options.filters.optimal_bits_per_key() {
            Some(bits) => match bits_of_level(self.version, level, key_count, &origin.replaced, bits) {
                0.0 => Vec::new(),
                bits => vec![TableFilter::bits(bits)],
            },
            None => options.filters.of_level(depth, level == LEVEL_COUNT_MAX - 1).to_vec(),
        };
        TableOptions {
            block_bytes: options.block_bytes,
            compression: per_level(&options.compression, depth).unwrap_or(Compression::None),
            filters,
            filter_seed: self.filter_seed,
            key_column: options.key_column,
            origin: origin.clone(),
            is_direct: self.is_direct,
            listener: self.listener.clone(),
        }
    }

    /// The origin that the tables of a run record in their properties.
    pub(crate) fn origin(&self, partition: u64, place: RunPlace, replaced: Vec<u64>) -> TableOrigin {
        let index = self.version.partitions.iter().position(|other| other.id == partition).unwrap_or(0);
        let partition = self.version.partitions.get(index);
        TableOrigin {
            database_id: self.database_id,
            keyspace_id: self.version.id,
            keyspace_name: self.version.name.to_string(),
            partition_lower: partition.map(|partition| partition.lower.clone()).unwrap_or_default(),
            partition_upper: self.version.upper_of(index).unwrap_or_default().to_vec(),
            level: place.level,
            run_age: place.run_age,
            replaced,
        }
    }
}

/// The parts of an open store from which the contexts of its jobs are made.
#[derive(Clone)]
pub(super) struct JobContexts {
    pub(super) context: Arc<StoreContext>,
    pub(super) versions: Arc<VersionSet>,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) scheduler: Arc<Scheduler>,
}

impl JobContexts {
    /// Calls `work` with the context of a job that begins now on `version`.
    pub(super) fn with<R>(&self, version: &KeyspaceVersion, work: impl FnOnce(&JobContext<'_>) -> R) -> R {
        let (database_id, filter_seed) = self.versions.database();
        work(&JobContext {
            vfs: &self.context.vfs,
            folder: &self.context.folder,
            version,
            database_id,
            filter_seed,
            is_direct: self.context.options.table_access == Access::Direct,
            listener: self.context.options.listener.clone(),
            next_number: &|| self.versions.new_file_number(),
            read_points: self.snapshots.read_points(),
            is_cancelled: self.scheduler.is_stopping(),
            between_tables: &|| {},
        })
    }
}
