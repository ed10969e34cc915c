//! Experiments of the group proteus: filters that choose their design from a sample, compared with other filters.

mod accuracy;
mod design_space;
mod modelling;
mod strings;
mod words;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &accuracy::FIGURE_4A,
    &accuracy::FIGURE_4B,
    &accuracy::FIGURE_4C,
    &modelling::TABLE_2,
    &design_space::FIGURE_1,
    &design_space::FIGURE_5,
    &strings::FIGURE_9,
    &words::REFERENCE,
];
