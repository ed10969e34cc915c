//! The write-ahead log: the durable copy of the memtables.
