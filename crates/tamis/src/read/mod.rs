//! The read path: a consistent read state of memtables and tables, then point reads or scans over it.

pub(crate) mod get;
pub(crate) mod scan;
mod select_runs;
pub(crate) mod snapshot;
