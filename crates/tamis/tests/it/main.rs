//! The integration tests of the engine: one binary, one module per capability.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod automatic_filters;
mod scenario;
mod support;

mod bad_input;
mod changed_files;
mod checkpoint;
mod concurrent;
mod corrupt;
mod cost;
mod crash;
mod elastic;
mod fault;
mod filter_damage;
mod fixed_bugs;
mod gap_cache;
mod garbage;
mod golden_db;
mod ingest;
mod keyspaces;
mod kill;
mod layout;
mod log_segments;
mod model;
mod multi_range;
mod open_files;
mod open_seeks;
mod options;
mod panics;
mod partitioned;
mod pins;
mod pressure;
mod query_sample;
mod queue;
mod range_filters;
mod refilter;
mod repair;
mod same_result;
mod views;
