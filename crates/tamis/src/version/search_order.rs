//! The runs of a partition as reads search them, with the ends of their keys next to each other.
//!
//! A point read passes every run of its partition, of which most can't have the key or have one table. So the order has for each run the
//! heads of its smallest and largest key (`key_head`), and its table if it is the only one: most runs are passed without a read of the run
//! itself. Heads begin after the bytes that all these ends share, because ids and names often begin alike.

use std::sync::Arc;

use tamis_bits::key_head;

use super::{
    handle::Table,
    level::{Level, Run},
};

/// See the head of this file. Newest entries first.
#[derive(Debug, Clone)]
pub(super) struct SearchOrder {
    runs: Box<[SearchedRun]>,
    /// The bytes with which the ends of all runs begin.
    shared: Box<[u8]>,
    pub(super) has_range_tombstones: bool,
}

#[derive(Debug, Clone)]
struct SearchedRun {
    /// The heads of the smallest and the largest key.
    first_head: u64,
    last_head: u64,
    level: usize,
    only_table: Option<Arc<Table>>,
    run: Arc<Run>,
}

impl SearchOrder {
    pub(super) fn new(levels: &[Level]) -> Self {
        let runs = || {
            let levels = levels.iter().enumerate();
            levels.flat_map(|(index, level)| level.runs().iter().map(move |run| (index, run)))
        };
        let ends = || runs().filter_map(|(_, run)| ends_of(run));
        let least = ends().map(|(first, _)| first).min().unwrap_or_default();
        let greatest = ends().map(|(_, last)| last).max().unwrap_or_default();
        let shared_count = tamis_bits::common_prefix_length(least, greatest);
        let shared: Box<[u8]> = least.iter().take(shared_count).copied().collect();
        let searched = |(level, run): (usize, &Arc<Run>)| {
            let (first, last) = ends_of(run).unwrap_or_default();
            let only_table = match run.tables() {
                [table] => Some(Arc::clone(table)),
                _ => None,
            };
            SearchedRun {
                first_head: head_after(&shared, first),
                last_head: head_after(&shared, last),
                level,
                only_table,
                run: Arc::clone(run),
            }
        };
        Self {
            runs: runs().map(searched).collect(),
            has_range_tombstones: runs().any(|(_, run)| run.has_range_tombstones()),
            shared,
        }
    }

    /// All runs with their levels.
    #[inline]
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.runs.iter().map(|searched| (searched.level, &searched.run))
    }

    /// The tables that can have an entry of `key`, with their levels and runs.
    #[inline]
    pub(super) fn tables_of(
        &self,
        key: &[u8],
    ) -> impl Iterator<Item = (usize, &Arc<Run>, &Arc<Table>)> + Clone {
        let head = head_after(&self.shared, key);
        self.runs.iter().filter_map(move |searched| {
            searched.table_of(key, head).map(|table| (searched.level, &searched.run, table))
        })
    }
}

impl SearchedRun {
    #[inline]
    fn table_of(&self, key: &[u8], head: u64) -> Option<&Arc<Table>> {
        if head < self.first_head || head > self.last_head {
            return None;
        }
        match &self.only_table {
            Some(table) if self.first_head < head && head < self.last_head => Some(table),
            _ => self.run.table_of(key),
        }
    }
}

/// The smallest and the largest key of a run; `None` without tables.
fn ends_of(run: &Run) -> Option<(&[u8], &[u8])> {
    Some((run.tables().first()?.smallest_key(), run.tables().last()?.largest_key()))
}

/// The head of `key` after the `shared` bytes; of a key that does not begin with them, the least or the greatest one. Of two keys,
/// the one with the smaller head is smaller.
#[inline]
fn head_after(shared: &[u8], key: &[u8]) -> u64 {
    match key.strip_prefix(shared) {
        Some(rest) => key_head(rest),
        None if key < shared => 0,
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests;
