//! Experiments of the group store: costs and savings of the parts of the store that choose by themselves.

mod filters;
mod pairs;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[&filters::FILTERS_AT_WORK, &pairs::AUTOMATIC_PARTS];
