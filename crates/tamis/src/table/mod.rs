//! Tables: immutable sorted files of entries (`docs/format/table.md`).
//!
//! A table knows nothing of levels, versions or memtables: entries in order go in, and come out by key, by
//! number or in order. Every byte is checksummed; nothing is believed before it was verified.

pub(crate) mod properties;
