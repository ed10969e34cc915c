//! New tables are as much needed as those they come from.
//!
//! A table that a compaction wrote begins with the hotness of its ancestors for each key, averaged over the keys it has
//! from them. Which keys those are is not known; an ancestor's are taken to lie in the new tables that it overlaps, in
//! proportion to their sizes.

use std::sync::Arc;

use tamis_filter::bloom::elastic::allocate::{Ancestor, inherited_hotness};

use super::handle::Table;
use crate::table::lazy_reader::NamedTable as _;

fn overlap(left: &Table, right: &Table) -> bool {
    left.smallest_key() <= right.largest_key() && right.smallest_key() <= left.largest_key()
}

fn entry_count(table: &Table) -> u64 {
    table.summary().entry_count
}

/// Gives each of the new tables the hotness that it has from those that went.
pub(super) fn transfer_hotness<'a>(new: &[Arc<Table>], gone: impl Iterator<Item = &'a Arc<Table>> + Clone) {
    let Some(epoch) = gone.clone().map(|table| table.slot().hotness().epoch()).max() else { return };
    for table in new {
        let as_ancestor = |ancestor: &Arc<Table>| {
            let heirs = new.iter().filter(|heir| overlap(heir, ancestor));
            let heirs_count: u64 = heirs.map(|heir| entry_count(heir)).sum();
            let key_count = entry_count(ancestor);
            let share = entry_count(table) as f64 / (heirs_count as f64).max(1.0);
            let shared_count = (key_count as f64 * share) as u64;
            Ancestor { hotness: ancestor.slot().hotness().at(epoch), key_count, shared_count }
        };
        let ancestors: Vec<_> =
            gone.clone().filter(|ancestor| overlap(table, ancestor)).map(as_ancestor).collect();
        let lookups = inherited_hotness(entry_count(table), &ancestors);
        table.slot().hotness().set(lookups, epoch);
    }
}

#[cfg(test)]
mod tests;
