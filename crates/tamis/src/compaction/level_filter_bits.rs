//! The bits per key of the filters of each level, if a total is distributed over all levels.
//!
//! A lookup of an absent key probes one filter of each run of its partition. The total is `bits_per_key` for every key in the partition.
//! It is distributed so that the expected number of false-positive reads of such a lookup is minimal
//! ([`tamis_filter::level_filter_bits`]): small levels get more bits per key than large ones. A table keeps its filter until it is
//! merged, so the total is met once the levels have settled.

use std::sync::Arc;

use tamis_filter::level_filter_bits::{LevelLoad, allocate_bits};

use crate::version::{handle::Table, level::Run, partition::Partition};

/// A job with fewer keys uses the mean.
const KEY_COUNT_MIN: u64 = 1000;

/// The bits per key of new tables of a run (its level and age) that hold `key_count` keys in all and replace the tables with the numbers
/// `replaced`.
pub(super) fn bits_of_level(
    partition: &Partition,
    (level, run_age): (usize, u64),
    key_count: u64,
    replaced: &[u64],
    bits_per_key: f32,
) -> f32 {
    let stay = |table: &&Arc<Table>| !replaced.contains(&table.number());
    let keys_of =
        |run: &Run| run.tables().iter().filter(stay).map(|table| table.summary().entry_count).sum::<u64>();
    let load = |key_count| LevelLoad { key_count, weight: 1.0 };
    // The new tables come first. They join the tables of their run that stay.
    let mut loads = vec![load(key_count)];
    for (other, run) in partition.runs() {
        match loads.first_mut() {
            Some(own) if (other, run.age()) == (level, run_age) => own.key_count += keys_of(run),
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
