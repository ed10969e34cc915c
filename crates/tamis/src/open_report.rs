//! What opening a database found and did, for programs that want to know.

use std::path::PathBuf;

/// A torn end of the log that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalTruncation {
    /// The segment.
    pub file: PathBuf,
    /// Where its valid part ends; 0 for a segment that was left out as a whole.
    pub offset: u64,
    /// Bytes left out.
    pub bytes: u64,
}

/// What was found and done at open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// Whether the database was made by this open.
    pub is_new: bool,
    /// Bytes of the log that was replayed.
    pub log_bytes: u64,
    /// Log records replayed.
    pub replayed_records: u64,
    /// Entries replayed, those not counted that were in tables already.
    pub replayed_entries: u64,
    /// Torn ends of the log that were left out, after a crash: writes that were not synced.
    pub wal_truncations: Vec<WalTruncation>,
    /// Bytes at the manifest's end that a crash had torn and that were left out: an edit that was not acknowledged.
    pub manifest_truncated_bytes: u64,
    /// Files that interrupted work had left and that were removed.
    pub removed_file_count: usize,
    /// Tables that the manifest does not name, and that may hold what is nowhere else, by their names: they are in the folder
    /// `quarantine` now. Behind a crash of the machine they hold writes that were not synced; otherwise the end of the manifest is lost.
    pub quarantined_files: Vec<String>,
    /// Files in the folder that are none of the database's; they are left alone.
    pub foreign_files: Vec<String>,
}
