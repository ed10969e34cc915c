//! Experiments of the group store: costs of operations on whole stores.

mod filters;
mod harness;
mod load;
mod pairs;
mod workloads;

use crate::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &workloads::YCSB_ALL,
    &workloads::MICRO_ALL,
    &workloads::EMPTY_RANGES,
    &workloads::SHIFTING,
    &filters::FILTERS_AT_WORK,
    &pairs::AUTOMATIC_PARTS,
    &harness::HARNESS,
];
