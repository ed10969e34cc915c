//! Experiments of the group rosetta: the figures of the Rosetta paper.

mod bits_and_data;
mod inputs;
mod points;
mod strategies;
mod strings;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &strategies::FIGURE_4,
    &points::FIGURE_7,
    &bits_and_data::FIGURE_8,
    &strings::FIGURE_10,
    &bits_and_data::FIGURE_11,
];
