//! Workloads of whole stores: YCSB, micro benchmarks, empty ranges, shifting mixes, and the overhead of the driver.

mod harness;
mod load;
#[cfg(test)]
mod tests;
mod workloads;

use crate::Definition;

pub use load::VALUE_BYTES;

/// The experiments on workloads of stores.
pub const STORE_EXPERIMENTS: &[&Definition] = &[
    &workloads::YCSB_ALL,
    &workloads::MICRO_ALL,
    &workloads::EMPTY_RANGES,
    &workloads::SHIFTING,
    &harness::HARNESS,
];
