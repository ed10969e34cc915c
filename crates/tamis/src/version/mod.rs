//! Versions: the tables of each keyspace, how they change, and the manifest that records the changes
//! (`docs/format/manifest.md`).
//!
//! A version is immutable and shared by `Arc`: readers hold one, writers install another. Each change is a
//! [`edit::VersionEdit`], which is checked against the current catalog, appended to the manifest, synced, and only then
//! visible. A file is deleted after the last version that names it is dropped.

pub(crate) mod bound_view;
pub(crate) mod catalog;
pub(crate) mod counters;
pub(crate) mod current;
pub(crate) mod edit;
mod failure;
pub(crate) mod filter_tally;
pub(crate) mod folder;
pub(crate) mod follow;
pub(crate) mod handle;
mod header;
mod hotness_transfer;
pub(crate) mod invariants;
pub(crate) mod key_bounds;
pub(crate) mod level;
pub(crate) mod losses;
pub(crate) mod manifest;
pub(crate) mod named_view;
mod options_format;
pub(crate) mod partition;
mod partition_finder;
pub(crate) mod partitions;
pub(crate) mod prefix;
mod search_order;
pub(crate) mod set;
mod tagged_record;
mod totals;
#[expect(clippy::module_inception, reason = "the folder's main noun")]
pub(crate) mod version;
mod view_slot;

#[cfg(test)]
#[path = "../../internals/version/test_support.rs"]
pub(crate) mod test_support;
