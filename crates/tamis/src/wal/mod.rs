//! The write-ahead log: the durable copy of the memtables.
//!
//! A chain of segments `NNNNNN.log`, each a header and records of [`crate::frame`] whose payloads are batches of
//! [`crate::batch`]; `docs/format/wal.md` defines the bytes. What holds at any time:
//!
//! 1. **Prefix**: whatever a crash leaves, replay gives the entries of the first n records in the order of their
//!    appends, for some n, and n covers all that was acknowledged as durable.
//! 2. **A sync covers the whole log**: earlier segments are synced before the one that is written, so that one synced
//!    mark in a segment proves that all segments before it are whole.
//! 3. **Nothing is cut in place**: where the valid part of a segment ends is written into the header of the next one.
//!    A read-only open therefore finds the same entries as one that goes on writing. The log is synced up to that header before
//!    a segment that was left out is removed.
//! 4. **A failed append closes a segment, a failed sync closes the log**: see [`writer`].

pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
