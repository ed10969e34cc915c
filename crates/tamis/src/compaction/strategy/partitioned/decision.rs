//! Decides how a partition with too many tables is compacted: a pure function of the counts and sizes of its runs.
//!
//! - **Major**: the newest runs are merged, as many as free the most tables for each byte that is rewritten. So small runs are merged with
//!   each other several times before a half-filled table is rewritten with them. Older runs, which are larger, are not rewritten.
//! - **Split**: if no merge halves the number of its tables or leaves room for the next flush, all runs are merged, and each new
//!   partition gets few of the outputs.
//!
//! The number of output tables is estimated from bytes. A wrong estimate costs a job that reclaims less: each major leaves fewer runs
//! than before, so that eventually a split follows.

/// A major must have at least this many times as many inputs as outputs.
const MAJOR_RATIO_MIN: f64 = 2.0;

/// The bytes of a table besides its entries: its block, index, filters, properties and footer take at least a page of the file system.
pub(crate) const TABLE_BYTES_FIXED: u64 = 4096;

/// The size of a run.
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
}

/// See the head of this file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// The partition takes more flushes as it is.
    Keep,
    /// Merge this many of the newest runs.
    Major {
        run_count: usize,
        ratio: f64,
    },
    Split,
}

/// Decides for the runs of a partition, newest first.
pub(crate) fn decide(runs: &[RunSize], limits: Limits) -> Decision {
    let table_count: usize = runs.iter().map(|run| run.table_count).sum();
    if table_count <= limits.tables_max {
        return Decision::Keep;
    }
    let (mut inputs, mut bytes) = (0, 0);
    let mut best: Option<(usize, f64, f64)> = None;
    for (index, run) in runs.iter().enumerate() {
        inputs += run.table_count;
        bytes += run.bytes;
        let outputs = output_count(bytes, limits);
        let ratio = inputs as f64 / outputs as f64;
        let has_room = (table_count + outputs).saturating_sub(inputs) < limits.tables_max;
        // A table costs its fixed bytes, too.
        let freed_per_byte = inputs.saturating_sub(outputs) as f64 / (bytes + TABLE_BYTES_FIXED) as f64;
        let is_better = best.is_none_or(|(.., best)| freed_per_byte > best);
        if index > 0 && ratio >= MAJOR_RATIO_MIN && has_room && is_better {
            best = Some((index + 1, ratio, freed_per_byte));
        }
    }
    best.map_or(Decision::Split, |(run_count, ratio, _)| Decision::Major { run_count, ratio })
}

/// The expected number of tables for these bytes.
fn output_count(bytes: u64, limits: Limits) -> usize {
    bytes.div_ceil(limits.table_bytes.max(1)).max(1) as usize
}

#[cfg(test)]
mod tests;
