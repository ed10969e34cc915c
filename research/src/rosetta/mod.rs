//! Experiments of the group rosetta: the figures of the Rosetta paper.

mod figures;
mod strings;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] =
    &[&figures::FIGURE_4, &figures::FIGURE_7, &figures::FIGURE_8, &strings::FIGURE_10, &figures::FIGURE_11];
