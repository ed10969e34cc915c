//! Flushes and compactions: what to do, and doing it.

pub(crate) mod drop_rules;
// flush.rs, job.rs and output.rs are written; they are declared as soon as table::writer and cursor::run are there.
