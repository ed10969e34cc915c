//! How many bits per key the filters of a level get, where a total is spread over the levels.
//!
//! A lookup of an absent key asks a filter of each run. With what the keyspace holds now, the total is `bits_per_key` for
//! every key; it is given out so that the expected number of false reads of such a lookup is least
//! ([`tamis_filter::level_filter_bits`]): small levels get more bits for each key than large ones. A table keeps the filter it was
//! written with until it is merged, so the total is met as the levels settle, not at every moment.

use std::sync::Arc;

use tamis_filter::level_filter_bits::{LevelLoad, allocate_bits};

use crate::version::{handle::Table, level::Run, version::KeyspaceVersion};

/// Fewer keys than this are not worth a thought: they take the mean.
const KEY_COUNT_MIN: u64 = 1000;

/// The bits per key of tables that are now written to `level`, with `key_count` keys in all, in place of the tables with
/// the numbers `replaced`.
pub(super) fn bits_of_level(
    version: &KeyspaceVersion,
    level: usize,
    key_count: u64,
    replaced: &[u64],
    bits_per_key: f32,
) -> f32 {
    let stay = |table: &&Arc<Table>| !replaced.contains(&table.number());
    let keys_of =
        |run: &Run| run.tables().iter().filter(stay).map(|table| table.summary().entry_count).sum::<u64>();
    let load = |key_count| LevelLoad { key_count, weight: 1.0 };
    // The run that is written comes first; at L0 it is one of its own, below it joins what stays in its level.
    let mut loads = vec![load(key_count)];
    for (other, run) in version.partitions.iter().flat_map(|partition| partition.runs()) {
        match loads.first_mut() {
            Some(own) if other == level && level > 0 => own.key_count += keys_of(run),
            _ => loads.push(load(keys_of(run))),
        }
    }
    let total: u64 = loads.iter().map(|load| load.key_count).sum();
    if key_count < KEY_COUNT_MIN {
        return bits_per_key;
    }
    let bits = allocate_bits(&loads, total as f64 * f64::from(bits_per_key));
    bits.first().map_or(bits_per_key, |bits| *bits as f32)
}

#[cfg(test)]
mod tests;
