//! The report of an open: what recovery found and did.

use std::path::PathBuf;

/// A torn end of a log segment that was not replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalTruncation {
    /// The segment.
    pub file: PathBuf,
    /// Where its valid part ends; 0 if the whole segment was ignored.
    pub offset: u64,
    /// Bytes after the offset.
    pub bytes: u64,
}

/// See [`crate::Db::open_report`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// Whether this open created the store.
    pub is_new: bool,
    /// Bytes of the replayed log.
    pub log_bytes: u64,
    /// Replayed log records.
    pub replayed_records: u64,
    /// Replayed entries, without those that were in tables already.
    pub replayed_entries: u64,
    /// Torn ends of log segments after a crash: writes that were not synced.
    pub wal_truncations: Vec<WalTruncation>,
    /// Bytes of a torn edit at the manifest's end after a crash: the edit was not acknowledged.
    pub manifest_truncated_bytes: u64,
    /// Deleted files that interrupted jobs had left.
    pub removed_file_count: usize,
    /// Names of tables that the manifest does not name but that may hold the only copy of some entries: they are in the folder
    /// `quarantine` now. After a crash of the machine they hold writes that were not synced; otherwise the end of the manifest is
    /// lost.
    pub quarantined_files: Vec<String>,
    /// Files in the folder that do not belong to the store; they are not touched.
    pub foreign_files: Vec<String>,
}
