//! The target sizes of the levels of the leveled layout, derived from their current sizes.
//!
//! The deepest levels are filled first. The *base level* is the level into which L0 is merged; the levels between L0 and it are
//! empty. The largest level determines the targets: each level above it is smaller by the size ratio, and the base level is
//! chosen so that its own target is at most `base_bytes`. As data grows, the base level moves up one level at a time. So nine
//! tenths of the data (at ratio 10) are always in the deepest level (RocksDB: dynamic level bytes).
//!
//! `base_bytes` is the size of L0 when it is merged during a bulk load. A merge of L0 rewrites the base level: a base level much
//! larger than L0 makes each merge more expensive, and a smaller one is full after each merge and is compacted again at once, which
//! increases write amplification.

use std::sync::Arc;

use crate::{
    observe::metrics::LEVEL_COUNT_MAX,
    options::{KeyspaceOptions, Layout, per_level},
    version::{handle::Table, level::Level, partition::Partition},
};

/// The parameters of the picker, derived from a keyspace's options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PickerConfig {
    /// How many times larger each level is than the one above.
    pub(crate) size_ratio: u64,
    /// Number of runs at which L0 is merged.
    pub(crate) level0_runs: usize,
    /// Bytes at which L0 is merged.
    pub(crate) level0_bytes: u64,
    /// Size of a table in bytes.
    pub(crate) table_bytes: u64,
    /// The largest target of the base level, in bytes.
    pub(crate) base_bytes: u64,
    /// Number of levels, including L0.
    pub(crate) level_count: usize,
    /// The maximum input of a job when neighbours are added, in bytes.
    pub(crate) input_bytes_max: u64,
    /// The approximate maximum overlap of an output table with the next level, in bytes.
    pub(crate) grandparent_bytes_max: u64,
    /// The layout of the keyspace.
    pub(crate) layout: Layout,
    options: Arc<KeyspaceOptions>,
}

impl PickerConfig {
    pub(crate) fn new(options: &Arc<KeyspaceOptions>) -> Self {
        let level0_bytes = options.memtable_bytes.saturating_mul(u64::from(options.level0_runs));
        Self {
            size_ratio: u64::from(options.size_ratio.max(2)),
            level0_runs: options.level0_runs.max(1) as usize,
            level0_bytes: level0_bytes.max(options.table_bytes),
            table_bytes: options.table_bytes,
            // As much as L0 has during a bulk load.
            base_bytes: level0_bytes.saturating_mul(2).max(options.table_bytes),
            level_count: LEVEL_COUNT_MAX,
            input_bytes_max: options.table_bytes.saturating_mul(25),
            grandparent_bytes_max: options.table_bytes.saturating_mul(10),
            layout: options.layout,
            options: Arc::clone(options),
        }
    }

    /// Whether a table that could be moved is not merged: a small one is, so that it grows.
    pub(super) fn is_worth_moving(&self, table: &Table) -> bool {
        table.file_bytes() >= self.table_bytes / 8
    }

    /// The parameters during a bulk load: L0 may have twice the size.
    pub(crate) fn during_bulk_load(mut self) -> Self {
        self.level0_runs = self.level0_runs.saturating_mul(2);
        self.level0_bytes = self.level0_bytes.saturating_mul(2);
        self
    }

    /// Whether tables at both depths are written with the same options, so that a table can be moved.
    pub(crate) fn has_same_options(&self, depth: usize, other: usize) -> bool {
        let KeyspaceOptions { compression, filters, .. } = &*self.options;
        per_level(compression, depth) == per_level(compression, other)
            && filters.of_level(depth) == filters.of_level(other)
    }
}

/// The base level and the target size of each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelTargets {
    /// The level into which L0 is merged.
    pub(crate) base_level: usize,
    /// Bytes per level; those above the base level should be empty.
    pub(crate) bytes: [u64; LEVEL_COUNT_MAX],
}

impl LevelTargets {
    pub(crate) fn new(partition: &Partition, config: &PickerConfig) -> Self {
        let deepest = config.level_count - 1;
        let sizes = level_sizes(partition);
        let filled = |level: &usize| sizes.get(*level).is_some_and(|&bytes| bytes > 0);
        let first = (1..=deepest).find(filled).unwrap_or(deepest);
        let largest = sizes.iter().skip(1).copied().max().unwrap_or(0);
        let ratio = config.size_ratio;
        let least = config.base_bytes / ratio;
        // The target of the first filled level, if the largest one is the deepest.
        let mut size = (first..deepest).fold(largest, |size, _| size / ratio);
        let mut base_level = first;
        if size <= least {
            size = least + 1;
        } else {
            while base_level > 1 && size > config.base_bytes {
                base_level -= 1;
                size /= ratio;
            }
            size = size.min(config.base_bytes);
        }
        let mut bytes = [0; LEVEL_COUNT_MAX];
        for (level, target) in bytes.iter_mut().enumerate().skip(base_level) {
            let factor = ratio.saturating_pow((level - base_level) as u32);
            *target = size.saturating_mul(factor).max(config.base_bytes);
        }
        Self { base_level, bytes }
    }

    pub(crate) fn of(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(u64::MAX)
    }

    /// Position in per-level options: 0 for L0, 1 for the base level, and so on.
    pub(crate) const fn depth(&self, level: usize) -> usize {
        if level == 0 { 0 } else { 1 + level.saturating_sub(self.base_level) }
    }
}

fn level_sizes(partition: &Partition) -> Vec<u64> {
    partition.levels().iter().map(Level::bytes).collect()
}

/// Approximate bytes that compactions must still read and write until every level of the leveled layout has its target size.
pub(super) fn leveled_pending_bytes(partition: &Partition, config: &PickerConfig) -> u64 {
    let targets = LevelTargets::new(partition, config);
    let sizes = level_sizes(partition);
    let size = |level: usize| sizes.get(level).copied().unwrap_or(0);
    let mut pending = 0_u64;
    // The excess of a level is added to the next level before its own excess is computed.
    let mut arriving = 0;
    let level0_runs = partition.level(0).map_or(0, |level| level.runs().len());
    if level0_runs >= config.level0_runs || size(0) >= config.level0_bytes {
        arriving = size(0);
        pending += size(0) + size(targets.base_level);
    }
    for level in targets.base_level..config.level_count - 1 {
        let total = size(level) + arriving;
        let excess = total.saturating_sub(targets.of(level));
        if excess > 0 {
            let overlap = u128::from(size(level + 1)) * u128::from(excess) / u128::from(total);
            pending = pending.saturating_add(excess).saturating_add(overlap as u64);
        }
        arriving = excess;
    }
    pending
}

#[cfg(test)]
mod tests;
