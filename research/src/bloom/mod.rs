//! Experiments of the group bloom: point filters, and the effect of sharing a digest between filters.

mod cost_model;
mod elastic;
mod levels;
mod murmur;
mod rate_by_bits;
mod sharing;
mod single;
mod table_1;
mod unit_allocation;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &rate_by_bits::RATE_BY_BITS,
    &table_1::TABLE_1,
    &single::TABLE_2,
    &single::TABLE_3,
    &single::FIGURE_2,
    &single::FIGURE_3,
    &sharing::FIGURE_1,
    &sharing::FIGURE_5A,
    &sharing::FIGURE_5B,
    &sharing::FIGURE_6,
    &sharing::FIGURE_7,
    &sharing::FIGURES_8_9,
    &elastic::ELASTIC,
];
