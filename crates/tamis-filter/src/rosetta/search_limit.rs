//! The step limit of the search for levels: the keys of a filter bound its design time.
//!
//! A step is the evaluation of one level of a design for one query. Steps are counted and no clock is read: equal keys
//! and queries make equal filters on every machine.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::layout::BitLayout;
use super::model::{Filter, Share};
use crate::prefix_counts::PrefixCounts;

/// Steps per key. A step takes about 5 ns, and writing a key of 100 bytes and its value to a table 1 to 2 us: the
/// search takes about a tenth of the write time.
const STEPS_PER_KEY: u64 = 40;

/// Minimum limit, about half a millisecond.
const STEPS_MIN: u64 = 100_000;

/// Steps of the filter of a blocked level: its rate is the sum of a series.
const BLOCKED_FILTER_STEPS: u64 = 1000;

/// The steps of a search, their limit, and the filters of blocked levels computed so far.
#[derive(Debug)]
pub(super) struct SearchLimit {
    used: Cell<u64>,
    max: u64,
    is_reached: Cell<bool>,
    blocked: RefCell<HashMap<(u32, bool, u64), Filter>>,
}

impl SearchLimit {
    pub(super) fn for_keys(key_count: usize) -> Self {
        let max = (key_count as u64).saturating_mul(STEPS_PER_KEY).max(STEPS_MIN);
        Self { used: Cell::new(0), max, is_reached: Cell::new(false), blocked: RefCell::default() }
    }

    pub(super) fn add(&self, steps: usize) {
        crate::steps::count(steps);
        self.used.set(self.used.get() + steps as u64);
    }

    #[cfg(test)]
    pub(super) fn unlimited() -> Self {
        Self::for_keys(usize::MAX)
    }

    /// Remaining steps.
    pub(super) fn rest(&self) -> u64 {
        self.max.saturating_sub(self.used.get())
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> u64 {
        self.used.get()
    }

    /// Whether no step is left. The caller then skips its next design, and the search counts as cut.
    pub(super) fn is_reached(&self) -> bool {
        let is_reached = self.used.get() >= self.max;
        if is_reached {
            self.is_reached.set(true);
        }
        is_reached
    }

    /// Whether the search skipped a design because no step was left.
    pub(super) fn is_cut(&self) -> bool {
        self.is_reached.get()
    }

    /// The filter of a level.
    pub(super) fn filter(&self, share: &Share, counts: &PrefixCounts) -> Filter {
        if share.layout == BitLayout::Standard {
            return share.filter(counts);
        }
        let key = (share.depth, share.is_full, share.bits.to_bits());
        *self.blocked.borrow_mut().entry(key).or_insert_with(|| {
            self.used.set(self.used.get() + BLOCKED_FILTER_STEPS);
            share.filter(counts)
        })
    }
}

#[cfg(test)]
mod tests;
