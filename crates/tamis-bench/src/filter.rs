//! Measures filters, for `tamis filter eval` and for all experiments.
//!
//! [`Plan::measure`] builds a filter, probes it with every query, compares the answers with the keys, and takes times. The calibration unit
//! ([`tamis_workload::Calibration`]: a binary search in as many random integers as there are keys) makes times of different machines
//! comparable.

mod answers;
mod calibration;
mod figures;
mod measure;
mod ranges;

use std::sync::Arc;

use tamis_filter::KeySet;

pub use answers::{Answers, answers};
pub use calibration::{Calibrated, Calibration};
pub use calibration::{median, median_of_passes};
pub use figures::{Figures, Outcome};
pub use measure::Plan;
pub use ranges::Ranges;

/// Keys and queries of a measurement.
#[derive(Debug, Default)]
pub struct FilterInput {
    /// The keys.
    pub keys: Arc<KeySet>,
    /// Queries; those with a key are counted separately.
    pub queries: Ranges,
    /// The sample of queries for families that choose their design.
    pub samples: Ranges,
    /// Ranges with a key: the filter must reject none.
    pub present: Ranges,
}
