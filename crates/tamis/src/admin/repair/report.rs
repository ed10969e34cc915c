//! Findings, actions and losses of a repair.

use std::path::PathBuf;

use crate::admin::verify::Fault;

/// Keys of which writes may be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// The keyspace; `None`: any of them.
    pub keyspace: Option<String>,
    /// The least key that may be affected, included.
    pub lower: Vec<u8>,
    /// The greatest key that may be affected, included; `None`: all from `lower` on.
    pub upper: Option<Vec<u8>>,
    /// Whether a delete may be lost, so that a deleted key may reappear. Otherwise only values may be missing or
    /// older than they were.
    pub may_lose_deletes: bool,
    /// The reason.
    pub why: String,
}

/// A file that is no part of the repaired store. It is kept in the folder `quarantine`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedFile {
    /// Where it is now.
    pub file: PathBuf,
    /// Why it was left out.
    pub why: String,
}

/// Findings and actions of [`crate::Db::repair`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// All faults; empty if the store is intact, and then nothing was changed.
    pub faults: Vec<Fault>,
    /// Tables of the repaired store.
    pub table_count: usize,
    /// Of those: tables that were rewritten.
    pub rewritten_table_count: usize,
    /// Entries of the log that were put into tables.
    pub log_entry_count: u64,
    /// Files that were left out; none is deleted.
    pub quarantined: Vec<QuarantinedFile>,
    /// Every range of keys in which writes may be lost ([`LostRange`] reports whether deletes may be among them). If the manifest is
    /// lost, a missing table cannot be detected.
    pub lost_ranges: Vec<LostRange>,
    /// Keyspaces whose options were in a lost part of the manifest: they have the defaults now.
    pub default_options: Vec<String>,
}

impl RepairReport {
    /// Whether nothing was wrong, and nothing was changed.
    pub const fn was_sound(&self) -> bool {
        self.faults.is_empty()
    }
}
