//! Recommends a layout for a workload: a pure function of counts.
//!
//! For each layout the bytes written per byte, and the runs that a read searches, follow from the sizes ([`LayoutEstimate`]). Both are
//! converted to one unit, the time of a random read of a block, and the layout of least cost is recommended. A flush of the partitioned layout
//! creates a file for each partition, which has its own cost. The result is an estimate for inserts and updates at random; writes in key order,
//! or to parts of the key space, favour the partitioned layout further.

use crate::{
    observe::metrics::{KeyspaceStatistics, Statistics},
    options::{KeyspaceOptions, Layout},
};

/// Bytes that are written in the time of one random read.
const BYTES_PER_READ: f64 = 128.0 * 1024.0;
/// The share of the runs without the key in which a filter is wrong.
const FALSE_POSITIVES: f64 = 0.01;
/// Merges and splits of an entry of a partitioned store, for inserts at random (`docs/design/0014-partitioned-layout.md`).
const PARTITIONED_REWRITES: f64 = 2.1;
/// Full tables that a partition has on average.
const PARTITION_TABLES: f64 = 4.0;
/// Random reads in the time in which a flush creates and syncs a small table.
const READS_PER_TABLE: f64 = 2.0;
/// Runs of a partition on average, which has 2 to 10 tables.
const PARTITIONED_RUNS: f64 = 6.0;

/// The counts of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Workload {
    /// Bytes of keys and values that the program wrote.
    pub user_bytes_written: u64,
    /// Reads of one key.
    pub point_reads: u64,
    /// Scans and seeks.
    pub scans: u64,
    /// Bytes of all tables.
    pub data_bytes: u64,
}

impl Workload {
    /// The workload of a keyspace of a running store. The counters are those of the whole store.
    #[must_use]
    pub fn of(statistics: &Statistics, keyspace: &KeyspaceStatistics) -> Self {
        let Statistics { range_scans, prefix_scans, forward_seeks, backward_seeks, .. } = *statistics;
        Self {
            user_bytes_written: statistics.user_bytes_written,
            point_reads: statistics.point_reads,
            scans: range_scans + prefix_scans + forward_seeks + backward_seeks,
            data_bytes: keyspace.levels.iter().map(|level| level.bytes).sum(),
        }
    }
}

/// The expected costs of a layout.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LayoutEstimate {
    /// The layout.
    pub layout: Layout,
    /// Bytes written for each byte of the program, including the log.
    pub write_amplification: f64,
    /// Runs that a scan merges, and whose filters a point read probes.
    pub runs_per_read: f64,
    /// The cost of the workload, relative to the layout of least cost, which has 1.
    pub relative_cost: f64,
}

/// Estimates all layouts for a workload, the recommended one first.
#[must_use]
pub fn advise_layout(workload: &Workload, options: &KeyspaceOptions) -> Vec<LayoutEstimate> {
    let ratio = f64::from(options.size_ratio.max(2));
    let level0_runs = f64::from(options.level0_runs.max(1));
    let memtables = (workload.data_bytes as f64 / options.memtable_bytes.max(1) as f64).max(1.0);
    let levels = (memtables / level0_runs).max(1.0).log(ratio).ceil().max(1.0);
    // Runs per level of the tiered layout.
    let tiered_runs = 4.0_f64;
    let tiers = memtables.log(tiered_runs).ceil().max(1.0);
    // The log and the flush.
    let least = 2.0;
    let partitions =
        (workload.data_bytes as f64 / (options.table_bytes.max(1) as f64 * PARTITION_TABLES)).max(1.0);
    let flushes = workload.user_bytes_written as f64 / options.memtable_bytes.max(1) as f64;
    let estimates = [
        (Layout::Leveled, least + levels * ratio / 2.0, level0_runs / 2.0 + levels),
        (Layout::tiered(), least + tiers, tiers * (tiered_runs - 1.0) / 2.0),
        (Layout::partitioned(), least + PARTITIONED_REWRITES.min(memtables - 1.0), PARTITIONED_RUNS),
    ];
    let costs = estimates.map(|(layout, write_amplification, runs_per_read)| {
        let written = workload.user_bytes_written as f64 * write_amplification / BYTES_PER_READ;
        let points = workload.point_reads as f64 * (1.0 + FALSE_POSITIVES * runs_per_read);
        let scans = workload.scans as f64 * runs_per_read;
        let small_tables = if layout.is_partitioned() { flushes * partitions * READS_PER_TABLE } else { 0.0 };
        let relative_cost = written + small_tables + points + scans;
        LayoutEstimate { layout, write_amplification, runs_per_read, relative_cost }
    });
    let mut sorted = costs.to_vec();
    // Of equal costs the default layout comes first.
    sorted.sort_by(|left, right| left.relative_cost.total_cmp(&right.relative_cost));
    let least = sorted.first().map_or(1.0, |first| first.relative_cost).max(f64::MIN_POSITIVE);
    sorted.iter_mut().for_each(|estimate| estimate.relative_cost = (estimate.relative_cost / least).max(1.0));
    sorted
}

#[cfg(test)]
mod tests;
