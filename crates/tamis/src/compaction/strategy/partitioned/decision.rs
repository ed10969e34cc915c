//! Decides how a partition with too many tables is compacted: a pure function of the counts and sizes of its runs.
//!
//! - **Major**: the newest runs are merged.
//! - **Split**: all runs are merged, and each new partition gets few of the outputs.
//!
//! Candidates are all majors that leave room for a table, and the split. The best one causes the fewest bytes written per flush from now
//! on, if all flushes are as large as the newest run. A job that rewrites `S` bytes and leaves `f` free places is not needed again for `n`
//! flushes. In that time, each byte is written `c` times: by its flush, and by merges with other small runs. The best schedule of such
//! merges (Mathieu, Staelin and Young, "Bigtable Merge Compaction", 2014) reaches
//!
//! ```text
//! n = C(f + c, c)        bytes per flush = S / n + c * (bytes of a flush)
//! ```
//!
//! A small `S` alone is no good choice: merges of the smallest runs leave few places, and so the same entries are merged again after the
//! next flush. A split leaves more places than a merge of all runs, because the base run of each new partition has few tables. But each
//! flush then writes a table to each new partition, with its fixed bytes: where flushes write little to a partition, partitions stay
//! larger.
//!
//! The number of output tables is estimated from bytes, without those of entries that are known to be obsolete. A wrong estimate costs a
//! job that reclaims less: each major leaves fewer runs than before, so that eventually a split follows.

use crate::options::tables_after_split;

/// The bytes of a table besides its entries: its block, index, filters, properties and footer take at least a page of the file system.
pub(crate) const TABLE_BYTES_FIXED: u64 = 4096;

/// The size of a run, as a job writes it: without the bytes of entries that are known to be obsolete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSize {
    pub(crate) table_count: usize,
    pub(crate) bytes: u64,
}

/// The parameters of the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) table_bytes: u64,
    /// The maximum number of tables of a partition.
    pub(crate) tables_max: usize,
    /// The number of tables of each partition that a split creates.
    pub(crate) tables_after_split: usize,
}

impl Limits {
    pub(crate) const fn new(tables_per_partition: u32, table_bytes: u64) -> Self {
        let tables_after_split = tables_after_split(tables_per_partition);
        Self { table_bytes, tables_max: tables_per_partition as usize, tables_after_split }
    }
}

/// See the head of this file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// The partition takes more flushes as it is.
    Keep,
    /// Merge this many of the newest runs.
    Major {
        run_count: usize,
    },
    Split,
}

/// Decides for the runs of a partition, newest first.
pub(crate) fn decide(runs: &[RunSize], limits: Limits) -> Decision {
    let table_count: usize = runs.iter().map(|run| run.table_count).sum();
    if table_count <= limits.tables_max {
        return Decision::Keep;
    }
    let Some(newest) = runs.first() else { return Decision::Keep };
    let (mut inputs, mut bytes) = (0, 0);
    let mut best: Option<(usize, f64)> = None;
    for (index, run) in runs.iter().enumerate() {
        inputs += run.table_count;
        bytes += run.bytes;
        let tables_after = (table_count + output_count(bytes, limits)).saturating_sub(inputs);
        let has_room = tables_after < limits.tables_max;
        if index == 0 || !has_room {
            continue;
        }
        let cost = bytes_per_flush(bytes, limits.tables_max - tables_after, *newest, 1);
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((index + 1, cost));
        }
    }
    let Some((run_count, cost)) = best else { return Decision::Split };
    let outputs = output_count(bytes, limits);
    let divides = outputs > limits.tables_after_split;
    let free_after_split = limits.tables_max.saturating_sub(limits.tables_after_split);
    let partition_count = outputs.div_ceil(limits.tables_after_split.max(1));
    if divides && bytes_per_flush(bytes, free_after_split, *newest, partition_count) < cost {
        Decision::Split
    } else {
        Decision::Major { run_count }
    }
}

/// The bytes written per flush of runs like `flushed`, after a job that rewrites `bytes`, leaves room for `free_tables` and makes so many
/// partitions.
fn bytes_per_flush(bytes: u64, free_tables: usize, flushed: RunSize, partition_count: usize) -> f64 {
    let fixed = TABLE_BYTES_FIXED * partition_count as u64;
    let rewritten = (bytes + fixed) as f64;
    let flushed_bytes = (flushed.bytes + fixed) as f64;
    let free = free_tables / flushed.table_count.max(1);
    let mut flush_count = 1.0;
    let mut least = f64::INFINITY;
    // Writes of a byte: by its flush, and by merges of small runs.
    for writes in 1..=6 {
        // C(f + c, c) from C(f + c - 1, c - 1).
        flush_count *= (free + writes) as f64 / writes as f64;
        least = least.min(rewritten / flush_count + writes as f64 * flushed_bytes);
    }
    least
}

/// The expected number of tables for these bytes.
fn output_count(bytes: u64, limits: Limits) -> usize {
    // A table is full soon after it has reached its size: a 32nd of more bytes needs no further table.
    let least_bytes = bytes - bytes / 32;
    least_bytes.div_ceil(limits.table_bytes.max(1)).max(1) as usize
}

#[cfg(test)]
mod tests;
