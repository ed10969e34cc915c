//! Joins small neighbouring tables of a run, if nothing else is due.
//!
//! Trivial moves keep tables as they are: a thousand small tables that are ingested into disjoint ranges would stay a thousand files. So
//! neighbours of a run are merged in place if together
//!
//! 1. they fit into one table, and
//! 2. they have at least `fan_in` times the bytes of the largest of them.
//!
//! **Write amplification.** By rule 2 the table of an entry grows at least `fan_in` times with each join. So an entry is rewritten at most
//! log(table size / size of the smallest table) times, to the base `fan_in`: 7 times from 4 KiB to 64 MiB with a base of 4. Tables of
//! normal size are never joined. The tables that are left are few: their sizes differ so much that no neighbours satisfy rule 2.
//!
//! Cost: each table of the run is visited once for each table before it that fits into one table with it; nothing is allocated.

use std::sync::Arc;

use crate::{
    compaction::{plan::InProgress, targets::PickerConfig},
    version::{handle::Table, level::Run},
};

/// The longest list of neighbours of a run that are due, from the first table that begins one. `is_allowed` returns whether these tables can
/// be joined into one.
pub(super) fn small_neighbours<'r>(
    run: &'r Run,
    in_progress: &InProgress,
    config: &PickerConfig,
    is_allowed: impl Fn(&[Arc<Table>]) -> bool,
) -> Option<&'r [Arc<Table>]> {
    let tables = run.tables();
    let fan_in = config.level0_runs.max(2) as u64;
    let sizes = |from: usize| {
        let free = tables.iter().skip(from).take_while(|table| !in_progress.holds(table));
        free.map(|table| table.file_bytes())
    };
    (0..tables.len()).find_map(|from| {
        let count = due_count(sizes(from), config.table_bytes, fan_in);
        let due = tables.get(from..from + count).filter(|due| !due.is_empty())?;
        is_allowed(due).then_some(due)
    })
}

/// The length of the longest list of sizes from the first on that satisfies both rules; 0 for none.
fn due_count(sizes: impl Iterator<Item = u64>, bytes_max: u64, fan_in: u64) -> usize {
    let (mut total, mut largest, mut due) = (0_u64, 0, 0);
    for (index, size) in sizes.enumerate() {
        total = total.saturating_add(size);
        largest = size.max(largest);
        if total > bytes_max {
            break;
        }
        if total >= largest.saturating_mul(fan_in) {
            due = index + 1;
        }
    }
    due
}

#[cfg(test)]
mod tests;
