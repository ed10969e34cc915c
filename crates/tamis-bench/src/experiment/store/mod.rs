//! Experiments of the group store: what operations on whole stores cost.

mod harness;
mod load;
mod workloads;

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[
    &workloads::YCSB_ALL,
    &workloads::MICRO_ALL,
    &workloads::EMPTY_RANGES,
    &workloads::SHIFTING,
    &harness::HARNESS,
];
