//! Flushes and compactions: [`strategy`] decides which tables to compact, [`background_jobs`] runs the jobs.

mod back_off;
pub(crate) mod background_jobs;
pub(crate) mod carry;
mod compactor;
pub(crate) mod drop_rules;
mod due_jobs;
pub(crate) mod filter_check;
mod flush;
mod flusher;
pub(crate) mod job_context;
pub(crate) mod law;
pub(crate) mod manual;
pub(crate) mod merge;
pub(crate) mod plan;
mod publisher;
pub(crate) mod range_deletes;
mod read_merges;
mod refilter;
pub(crate) mod repartition;
pub(crate) mod scheduler;
mod stall;
pub(crate) mod strategy;
pub(crate) mod table_sink;
pub(crate) mod targets;
mod view_builder;
pub(crate) mod view_plan;
