//! Flushes and compactions: what to do, and doing it.

mod direct_flush;
pub(crate) mod drop_rules;
pub(crate) mod execute;
pub(crate) mod flush;
mod flush_split;
pub(crate) mod job;
mod job_loop;
mod level_filter_bits;
pub(crate) mod picker;
pub(crate) mod plan;
pub(crate) mod refilter;
pub(crate) mod scheduler;
pub(crate) mod table_sink;
pub(crate) mod targets;
