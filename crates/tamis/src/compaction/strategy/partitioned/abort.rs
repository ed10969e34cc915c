//! Decides which new entries a flush leaves in memory (the abort of RemixDB): a pure function of counts and sizes.
//!
//! A flush writes a table for each partition that it touches, however few entries it has for it. The table takes one of the places of the
//! partition, and when all are taken, the partition is compacted ([`super::decision`]). So a few entries cause
//!
//! ```text
//! the fixed bytes of a table + (the bytes of the next compaction, without new entries) / (tables until it is due)
//! ```
//!
//! bytes of writes. Retained in the next memtable, they share one table with the entries that follow them; their own bytes are written to
//! the log once more.
//!
//! 1. A partition qualifies if this saves [`RATIO_MIN`] times its new bytes. One that is small enough to be united with others does not:
//!    partitions with retained entries are not united.
//! 2. Partitions are taken by bytes saved for each byte kept, up to [`KEPT_PERCENT_MAX`] of the memtable. One that does not fit is
//!    skipped: a smaller one after it may fit.
//! 3. Nothing is retained if all of it saves less than the bytes of the memtable: the log is synced for retained entries, and otherwise need
//!    not be.
//!
//! A wrong estimate costs bytes of writes and nothing else: the bytes that are kept are counted again when they are retained.

use super::decision::{Decision, Limits, RunSize, TABLE_BYTES_FIXED, decide};

/// The maximum share of a memtable's bytes that is kept, as in the paper.
const KEPT_PERCENT_MAX: u64 = 15;
/// The least bytes saved for each byte kept.
const RATIO_MIN: u64 = 4;
/// Maximum size of the log record with the entries of a partition.
const PARTITION_BYTES_MAX: u64 = 1 << 20;

/// The new entries of a partition, and its runs.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    /// The position of the partition.
    pub(crate) partition: usize,
    pub(crate) new_bytes: u64,
    /// Its runs, newest first.
    pub(crate) runs: Vec<RunSize>,
}

/// The partitions whose new entries stay in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AbortPlan {
    /// The best first.
    pub(crate) partitions: Vec<usize>,
    /// The maximum bytes of their entries.
    pub(crate) bytes_max: u64,
    /// The expected bytes that are not written.
    pub(crate) saved_bytes: u64,
}

/// Decides for the partitions that a flush of `memtable_bytes` touches.
pub(crate) fn choose(loads: &[Load], memtable_bytes: u64, limits: Limits) -> AbortPlan {
    let bytes_max = memtable_bytes * KEPT_PERCENT_MAX / 100;
    let saved = |load: &Load| {
        let bytes: u64 = load.runs.iter().map(|run| run.bytes).sum();
        let is_small = load.new_bytes <= bytes_max.min(PARTITION_BYTES_MAX);
        (is_small && bytes > limits.table_bytes).then(|| saved_bytes(load, limits))
    };
    let mut candidates: Vec<(u64, &Load)> = loads
        .iter()
        .filter_map(|load| Some((saved(load)?, load)))
        .filter(|(saved, load)| *saved >= load.new_bytes.saturating_mul(RATIO_MIN))
        .collect();
    let product = |saved: u64, bytes: u64| u128::from(saved) * u128::from(bytes);
    candidates.sort_by(|(saved, load), (other_saved, other)| {
        product(*other_saved, load.new_bytes).cmp(&product(*saved, other.new_bytes))
    });
    let mut plan = AbortPlan { bytes_max, ..AbortPlan::default() };
    let mut kept = 0;
    for (saved, load) in candidates {
        if kept + load.new_bytes <= bytes_max {
            kept += load.new_bytes;
            plan.saved_bytes += saved;
            plan.partitions.push(load.partition);
        }
    }
    if plan.saved_bytes < memtable_bytes { AbortPlan::default() } else { plan }
}

/// See the head of this file.
fn saved_bytes(load: &Load, limits: Limits) -> u64 {
    let table_count: usize = load.runs.iter().map(|run| run.table_count).sum();
    let free = (limits.tables_max + 1).saturating_sub(table_count).max(1);
    let new = std::iter::repeat_n(RunSize { table_count: 1, bytes: load.new_bytes }, free);
    let runs: Vec<RunSize> = new.chain(load.runs.iter().copied()).collect();
    let run_count = match decide(&runs, limits) {
        Decision::Keep => 0,
        Decision::Major { run_count } => run_count,
        Decision::Split => runs.len(),
    };
    let rewritten: u64 = runs.iter().take(run_count).skip(free).map(|run| run.bytes).sum();
    TABLE_BYTES_FIXED + rewritten / free as u64
}

#[cfg(test)]
mod tests;
