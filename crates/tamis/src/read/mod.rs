//! The way of a read: a consistent view of memtables and tables, then points or scans over it.

mod admission;
pub(crate) mod get;
pub(crate) mod scan;
pub(crate) mod snapshot;
