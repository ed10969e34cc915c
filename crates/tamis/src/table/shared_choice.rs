//! The choice of filters that the small tables of one job share.
//!
//! A flush of the partitioned layout writes dozens of small tables, and a choice takes longer than writing one of them. Their keys, the sample and
//! the prices are alike, because one job writes them. So the choice for a small table serves the next ones of the job, up to [`KEYS_MAX`] keys
//! in all, unless a later table overlaps more runs than the first one.

use tamis_filter::auto;

use super::filter_choice::FilterChoice;
use crate::sync::Mutex;

/// A table with fewer keys is small.
pub(crate) const SMALL_KEYS: usize = 16_384;
/// Keys of small tables after which a choice is made again.
const KEYS_MAX: usize = 65_536;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct SharedChoice(Mutex<Option<Shared>>);

#[derive(Debug)]
struct Shared {
    choice: FilterChoice,
    /// Keys of further tables that it serves.
    keys_left: usize,
}

impl SharedChoice {
    /// The choice for a table of so many keys that overlaps so many tables, itself included; `None`: it needs its own.
    pub(super) fn take(&self, key_count: usize, overlapping_tables: u32) -> Option<FilterChoice> {
        let mut shared = self.0.lock();
        let Shared { choice, keys_left } = shared.as_mut()?;
        if key_count >= SMALL_KEYS || overlapping_tables > choice.overlapping_tables {
            return None;
        }
        *keys_left = keys_left.checked_sub(key_count)?;
        Some(choice.clone())
    }

    /// Keeps the choice for a table of so many keys for the next small ones. One that few queries reach has a choice for the assumed workload,
    /// which does not replace a choice for sampled queries.
    pub(super) fn put(&self, key_count: usize, choice: &FilterChoice) {
        if key_count >= SMALL_KEYS {
            return;
        }
        let is_sampled = |choice: &FilterChoice| choice.empty_query_count >= auto::SAMPLE_MIN as u64;
        let mut shared = self.0.lock();
        let before = shared.take().map(|before| before.choice).filter(|before| is_sampled(before));
        let choice = before.filter(|_| !is_sampled(choice)).unwrap_or_else(|| choice.clone());
        *shared = Some(Shared { choice, keys_left: KEYS_MAX.saturating_sub(key_count) });
    }
}

#[cfg(test)]
mod tests;
