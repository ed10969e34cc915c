//! Experiments of the group remix: sorted views of sets of tables, as in Section 5.1 of the REMIX paper.

mod figures;
mod sizes;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] =
    &[&figures::FIGURE_11, &figures::FIGURE_12, &figures::FIGURE_13, &sizes::TABLE_1];
