//! What a program can be told of while the database works.

use std::{fmt, path::PathBuf};

/// Something that happened in the background or at open.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A memtable became a table.
    Flushed {
        /// The keyspace's name.
        keyspace: String,
        /// Bytes of the table.
        bytes: u64,
    },
    /// A compaction replaced tables.
    Compacted {
        /// The keyspace's name.
        keyspace: String,
        /// Level of the newest input.
        level: usize,
        /// Level of the outputs.
        output_level: usize,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
    },
    /// Writers are slowed or stopped, or run free again (`microseconds_per_mib` 0). `None`: stopped.
    BackPressure {
        /// Delay per MiB written; `None` while writes stop altogether.
        microseconds_per_mib: Option<u64>,
    },
    /// The end of the last log segment was torn and was cut.
    WalTruncated {
        /// The segment.
        file: PathBuf,
        /// Where it was cut.
        offset: u64,
        /// How many bytes were cut.
        bytes: u64,
    },
    /// A damaged filter is passed over: reads are slower, answers the same.
    FilterCorrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A table was written without one of its filters, which can't be built for its keys: reads are slower, answers the
    /// same. Give the family more bits per key, or choose another.
    FilterBuildFailed {
        /// The table's file.
        file: PathBuf,
        /// The filter, and why it can't be built.
        reason: String,
    },
    /// An index or filter does not fit its share of the cache: it is read anew when it is needed (an index), or done without
    /// (a filter). Raise `cache_bytes` or `cache_pinned_percent`.
    CacheTooSmall {
        /// The file.
        file: PathBuf,
        /// Bytes that it needs in memory.
        bytes: u64,
    },
    /// A background job failed; it is tried again where that can help.
    JobFailed {
        /// What was tried.
        job: &'static str,
        /// The error's text.
        error: String,
    },
}

/// Told of events, on the thread where they happen: it must return soon and must not call the database.
pub trait EventListener: fmt::Debug + Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &Event);
}
