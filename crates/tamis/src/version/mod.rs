//! Versions: which tables make up each keyspace, how that changes, and how the changes are kept (`docs/format/manifest.md`).
//!
//! A version is immutable and shared by `Arc`; readers hold one, writers install another. Every change is a
//! [`edit::VersionEdit`]: checked against the catalog in force, appended to the manifest and synced, and only then
//! visible. Files that no version names any more are deleted when the last version that named them is dropped.

pub(crate) mod catalog;
pub(crate) mod counters;
pub(crate) mod current;
pub(crate) mod edit;
mod failure;
pub(crate) mod folder;
pub(crate) mod handle;
mod hotness_transfer;
pub(crate) mod invariants;
pub(crate) mod level;
pub(crate) mod manifest;
mod options_format;
pub(crate) mod prefix;
pub(crate) mod set;
mod tagged_record;
#[expect(clippy::module_inception, reason = "the folder's main noun")]
pub(crate) mod version;

#[cfg(test)]
pub(crate) mod test_support;
