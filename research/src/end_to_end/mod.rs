//! The experiments of the papers on whole stores: each with no filter, Bloom and prefix Bloom filters, each range filter, and the
//! filters that the store chooses. Definitions are data; `steady.rs`, `shift.rs` and `construction.rs` measure them.
//!
//! Sizes are scaled: memtable, tables and cache have the same share of the data as in the papers. Tables are read with direct I/O, as
//! their data does not fit into memory in the papers.

mod chosen;
mod construction;
mod proteus;
mod rosetta;
mod shift;
mod steady;
mod store;
mod surf;

use tamis_bench::Definition;

/// The experiments of the groups store, surf, rosetta and proteus on filters of whole stores.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &chosen::FILTERS_AT_WORK,
    &surf::FIGURE_5,
    &surf::FIGURE_6,
    &rosetta::FIGURE_5,
    &rosetta::FIGURE_6,
    &rosetta::FIGURE_9,
    &proteus::FIGURE_6,
    &proteus::FIGURE_7,
    &proteus::FIGURE_8,
    &proteus::FIGURE_9E,
];
