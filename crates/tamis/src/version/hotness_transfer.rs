//! Transfers hotness from the inputs of a compaction to its outputs.
//!
//! A new table starts with the hotness per key of its inputs, averaged over the keys that it has from them. Which keys it has
//! from an input is not known: the keys of an input are assumed to be in the outputs that it overlaps, in proportion to
//! the sizes of these outputs.
//!
//! Cost: O(n log n) for n tables, plus one step for each input and output that overlap.

use std::{ops::Range, sync::Arc};

use super::handle::Table;
use crate::table::lazy_reader::NamedTable as _;

/// The outputs in order of their smallest keys.
struct Outputs<'a> {
    tables: Vec<&'a Arc<Table>>,
    /// The largest key of each table and all before it: ascending even where tables overlap.
    largest_keys: Vec<&'a [u8]>,
}

impl<'a> Outputs<'a> {
    fn new(new: &'a [Arc<Table>]) -> Self {
        let mut tables: Vec<_> = new.iter().collect();
        tables.sort_by_key(|table| table.smallest_key());
        let largest_keys = tables.iter().scan(&[][..], |largest: &mut &[u8], table| {
            *largest = table.largest_key().max(largest);
            Some(*largest)
        });
        let largest_keys = largest_keys.collect();
        Self { tables, largest_keys }
    }

    /// Positions between which are all outputs that overlap `input`.
    fn candidates(&self, input: &Table) -> Range<usize> {
        let from = self.largest_keys.partition_point(|largest| *largest < input.smallest_key());
        let to = self.tables.partition_point(|table| table.smallest_key() <= input.largest_key());
        from..to.max(from)
    }

    fn overlapping(&self, input: &Table) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        let candidates = self.candidates(input);
        let from = candidates.start;
        let tables = self.tables.get(candidates).unwrap_or_default();
        let overlapping =
            tables.iter().enumerate().filter(move |(_, table)| table.largest_key() >= input.smallest_key());
        overlapping.map(move |(index, table)| (from + index, *table))
    }
}

/// An input table of a compaction, as seen from one output table.
#[derive(Debug, Clone, Copy)]
struct Ancestor {
    hotness: f64,
    key_count: u64,
    /// Estimated number of its keys in the range of the output table.
    shared_count: f64,
}

/// The initial hotness of an output table: the hotness per key of its inputs, averaged over the keys that it takes from
/// them.
fn inherited_hotness(key_count: u64, ancestors: &[Ancestor]) -> f64 {
    let shared: f64 = ancestors.iter().map(|ancestor| ancestor.shared_count).sum();
    if shared == 0.0 {
        return 0.0;
    }
    let of_shared =
        |ancestor: &Ancestor| ancestor.hotness / (ancestor.key_count as f64).max(1.0) * ancestor.shared_count;
    key_count as f64 * ancestors.iter().map(of_shared).sum::<f64>() / shared
}

fn entry_count(table: &Table) -> u64 {
    table.summary().entry_count
}

/// Sets the hotness of the tables in `new` from that of the tables in `removed`.
pub(super) fn transfer_hotness<'a>(
    new: &[Arc<Table>],
    removed: impl Iterator<Item = &'a Arc<Table>> + Clone,
) {
    let Some(epoch) = removed.clone().map(|table| table.slot().hotness().epoch()).max() else { return };
    let outputs = Outputs::new(new);
    let mut ancestors: Vec<Vec<Ancestor>> = new.iter().map(|_| Vec::new()).collect();
    for input in removed {
        let total: u64 = outputs.overlapping(input).map(|(_, output)| entry_count(output)).sum();
        for (index, output) in outputs.overlapping(input) {
            let share = entry_count(output) as f64 / (total as f64).max(1.0);
            let (hotness, key_count) = (input.slot().hotness().at(epoch), entry_count(input));
            let ancestor = Ancestor { hotness, key_count, shared_count: key_count as f64 * share };
            if let Some(of_output) = ancestors.get_mut(index) {
                of_output.push(ancestor);
            }
        }
    }
    for (output, ancestors) in outputs.tables.iter().zip(&ancestors) {
        let lookups = inherited_hotness(entry_count(output), ancestors);
        output.slot().hotness().set(lookups, epoch);
    }
}

#[cfg(test)]
mod tests;
