//! The integration tests of the engine: one binary, one module per capability. Modules that need calls of Unix (forks, permissions, links,
//! writes into open files) are not built on Windows.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod scenario;
mod support;

mod all_statistics;
mod automatic_filters;
#[cfg(unix)]
mod bad_input;
#[cfg(unix)]
mod changed_files;
mod changes;
mod checkpoint;
mod closed_scans;
mod concurrent;
mod corrupt;
mod cost;
mod crash;
mod deleted_ranges;
mod elastic;
mod expiry;
mod fault;
mod filter_changes;
mod filter_checks;
#[cfg(unix)]
mod filter_damage;
mod filtered_scans;
mod fixed_bugs;
mod foreign_tables;
#[cfg(unix)]
mod fork;
mod garbage;
mod golden_db;
mod ingest;
mod job_failures;
mod keyspaces;
mod kill;
mod layout;
mod log_segments;
mod lost_segments;
mod merge_operators;
mod model;
mod multi_range;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod open_files;
mod open_seeks;
mod options;
mod panics;
mod partition_sweeps;
mod partitioned;
mod pinned_cache;
mod pins;
mod pressure;
mod query_sample;
mod queue;
mod range_deletes;
mod range_filters;
mod read_merges;
mod read_statistics;
mod readers;
mod refilter;
mod repair;
mod replay;
mod retain;
mod same_result;
mod scan_movements;
mod stretches;
mod transactions;
mod view_answers;
mod view_costs;
mod view_files;
#[cfg(unix)]
mod view_mapped;
mod view_ranges;
mod views;
mod write_statistics;
