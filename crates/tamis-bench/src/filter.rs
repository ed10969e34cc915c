//! How filters are measured: one way for `tamis filter eval` and for all experiments.
//!
//! A [`Plan`] is what a filter is built from; [`Plan::measure`] builds it, asks it every query, compares the answers with the keys,
//! and takes times. Times are those of this machine: the calibration unit ([`tamis_workload::Calibration`]: a binary search
//! among as many random integers as there are keys) makes those of different machines comparable.

mod figures;
mod measure;
mod ranges;

use std::sync::Arc;

use tamis_filter::KeySet;

pub use figures::{Figures, Outcome};
pub use measure::{Answers, Calibrated, Calibration, Plan, answers};
pub(crate) use measure::{median, median_of_passes};
pub use ranges::Ranges;

/// Keys and queries of a measurement.
#[derive(Debug, Default)]
pub struct FilterInput {
    /// The keys.
    pub keys: Arc<KeySet>,
    /// Queries; those that hold a key are counted apart.
    pub queries: Ranges,
    /// Queries that a family which designs itself may learn from.
    pub samples: Ranges,
    /// Ranges that all hold a key: none may be denied.
    pub present: Ranges,
}
