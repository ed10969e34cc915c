//! Experiments of the group remix on whole stores: the partitioned layout next to the leveled and the tiered one, as in Section 5.2 of the
//! REMIX paper.
//!
//! The paper compares RemixDB with other stores; here the layouts of one store are compared, with equal sizes. Data, memtable, cache and
//! tables have the ratios of the paper down to the least sizes that the store takes, and every other option has its default. Tables are
//! read through the cache. All operations run on one thread.

mod figures;
mod store;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &figures::FIGURE_14,
    &figures::FIGURE_15,
    &figures::FIGURE_16,
    &figures::FIGURE_17,
    &figures::FIGURE_18,
];
