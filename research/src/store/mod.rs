//! Experiments of the group store: costs and savings of the automatic parts of the store.

mod pairs;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[&pairs::AUTOMATIC_PARTS];
