//! Flushes and compactions: [`strategy`] decides which tables to compact, [`background_jobs`] runs the jobs.

pub(crate) mod background_jobs;
pub(crate) mod carry;
mod compactor;
pub(crate) mod deleted_range_jobs;
mod direct_flush;
pub(crate) mod drop_rules;
mod due_jobs;
pub(crate) mod filter_check;
pub(crate) mod filter_memory;
pub(crate) mod flush;
mod flush_split;
mod flusher;
pub(crate) mod job_context;
mod level_filter_bits;
pub(crate) mod manual;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod read_request;
pub(crate) mod refilter;
pub(crate) mod repartition;
pub(crate) mod scheduler;
mod stall;
pub(crate) mod strategy;
pub(crate) mod table_sink;
pub(crate) mod targets;
mod view_builder;
pub(crate) mod view_plan;
