//! The parts that observe a store: counters and statistics, events, sampled queries, measured times.

pub(crate) mod advise;
pub(crate) mod events;
pub(crate) mod metrics;
pub(crate) mod query_sample;
pub(crate) mod read_times;
pub(crate) mod sample_file;
pub(crate) mod statistics;
pub(crate) mod steps;
