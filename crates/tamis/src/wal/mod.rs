//! The write-ahead log: the durable copy of the memtables.
//!
//! A chain of segments `NNNNNN.log`, each with a header and records of [`crate::frame`] whose payloads are batches of
//! [`crate::batch`]. `docs/format/wal.md` defines the bytes. Invariants:
//!
//! 1. **Prefix**: after any crash, replay returns the entries of the first n records in the order of their appends, for
//!    some n, and n covers all that was acknowledged as durable.
//! 2. **A sync covers the whole log**: earlier segments are synced before the current one, so that one synced mark in a
//!    segment proves that all segments before it are complete.
//! 3. **No file is truncated in place**: the header of the next segment has the length of the valid part of a segment. A
//!    read-only open therefore finds the same entries as one that continues the log. The log is synced up to that header
//!    before a segment that was left out is removed.
//! 4. **A failed append closes a segment, a failed sync closes the log**: see [`writer`].

pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod tail;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
