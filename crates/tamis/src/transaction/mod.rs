//! Transactions: reads, writes, and the condition of the commit.
//!
//! ```text
//! get, range --> own writes (a separate memtable) --> snapshot        reads: key ranges
//! put, delete --> batch, own writes
//! commit --> no key of these ranges has changed since the snapshot? --> group commit of the batch
//! ```
//!
//! An optimistic transaction takes no lock until it commits. A commit asks twice whether an entry of the ranges is newer than the snapshot: once
//! on its own thread, memtables and tables, and once more as a part of the group commit, only for what was committed between the two, which is in
//! memtables except after a flush. So the order of commits is the order of the transactions, and each has read what it would read at its place
//! (serializable). A key that was not there is a range that was read: a key that comes into it is a conflict, too.
//!
//! An exclusive transaction has the leadership of the group commit ([`crate::write`]) while it is open: other writers wait in its queue.
//!
//! The handles are in `handle.rs` and `scan.rs`.

pub(crate) mod condition;
pub(crate) mod exclusive;
pub(crate) mod handle;
mod key_ranges;
pub(crate) mod own_writes;
mod reads;
pub(crate) mod recent_commits;
pub(crate) mod scan;
mod write_set;
