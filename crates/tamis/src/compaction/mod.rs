//! Flushes and compactions: what to do (decided purely), and doing it.

pub(crate) mod drop_rules;
pub(crate) mod picker;
pub(crate) mod plan;
pub(crate) mod targets;
// flush.rs, job.rs and output.rs are written; they are declared as soon as table::writer and cursor::run are there.
