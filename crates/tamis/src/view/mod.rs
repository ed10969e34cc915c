//! Sorted views: the global order of the entries of overlapping runs, kept in a file (`docs/format/view.md`).
//!
//! ```text
//! runs      0: a@9 c@8 f@7     1: a@3 b@5 f@2
//! view      a@9 a@3 | b@5 c@8 | f@7 f@2        segments, each with an anchor
//! selectors  0   1  |  1   0  |  0   1         which run has the entry; a@3 and f@2 are old versions
//! ```
//!
//! A view is derived data: the runs have all entries, and a merge of them returns the same ([`check`]). With it a seek reads one key, a
//! step compares none, old versions and tombstones are skipped without reading them ([`search`], [`cursor`]). Counts need no cursor
//! ([`lookup`]). A view orders and rejects nothing: ranges without keys are rejected by the filters of the tables. It is built in one pass
//! ([`build`]), or from the previous view and new runs ([`rebuild`]). The rows of the table in `tidy/src/ranks.rs` apply: a view knows tables and the
//! interface of cursors, not levels, versions or merges.
//!
//! Scans use views by `cursor/view_source.rs`; `compaction/view_builder.rs` builds them.

pub(crate) mod build;
pub(crate) mod check;
#[cfg(any(test, feature = "fuzz-internals"))]
#[path = "../../internals/view/checksums.rs"]
pub(crate) mod checksums;
pub(crate) mod cursor;
mod entry_heap;
pub(crate) mod format;
mod index;
mod index_builder;
pub(crate) mod inspect;
mod key_bits;
pub(crate) mod lookup;
#[cfg(any(test, feature = "fuzz-internals"))]
#[path = "../../internals/view/memory_run.rs"]
pub(crate) mod memory_run;
mod output;
mod page;
mod page_builder;
pub(crate) mod reader;
pub(crate) mod rebuild;
pub(crate) mod run;
mod run_entries;
pub(crate) mod run_set;
pub(crate) mod scan;
mod search;
mod segment;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
