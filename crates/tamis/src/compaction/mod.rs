//! Flushes and compactions: what to do, and doing it.

mod direct_flush;
pub(crate) mod drop_rules;
mod edges;
pub(crate) mod flush;
pub(crate) mod job;
mod level_filter_bits;
pub(crate) mod output;
pub(crate) mod picker;
pub(crate) mod plan;
pub(crate) mod refilter;
pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod targets;
mod worker;
