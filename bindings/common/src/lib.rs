//! Shared code of the language bindings: error codes, options by name, bulk scans, statistics as JSON, filters without a store,
//! and protection against use after a fork.
//!
//! Bindings use the parts of the engine that change (options, statistics, scans) only through this crate, so that a rename in
//! the engine needs one edit here.

pub mod advise;
pub mod columns;
pub mod event;
pub mod expiry;
pub mod filter;
pub mod fork;
pub mod options;
pub mod report;
pub mod scan;
pub mod transaction;

mod failure;
mod statistics;

pub use failure::{Code, Conflict, Failure};
pub use statistics::{table_filters as table_filters_json, to_json as statistics_json};
