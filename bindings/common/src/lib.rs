//! What the C interface and the Python package share: error codes, options by name, bulk scans, statistics as JSON, filters alone,
//! and the guard against use after a fork.
//!
//! Both packages reach the engine's changing parts (options, statistics, scans) through this crate only, so that a rename there is
//! one edit here.

pub mod advise;
pub mod columns;
pub mod filter;
pub mod fork;
pub mod options;
pub mod report;
pub mod scan;

mod failure;
mod statistics;

pub use failure::{Code, Failure};
pub use statistics::to_json as statistics_json;
