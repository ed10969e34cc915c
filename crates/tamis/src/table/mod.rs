//! Tables: immutable sorted files of entries (`docs/format/table.md`).
//!
//! A table knows nothing of levels, versions or memtables: entries are written in order ([`writer`]), and read by key, by
//! number or in order ([`reader`], [`cursor`]). Every byte has a checksum; no byte is used before it is verified.

mod block;
mod block_builder;
pub(crate) mod cursor;
mod data;
mod direct_buffer;
mod elastic_units;
pub(crate) mod environment;
mod expiry_times;
pub(crate) mod filter_block;
pub(crate) mod filter_choice;
pub(crate) mod filter_file;
pub(crate) mod filter_plan;
pub(crate) mod filter_set;
pub(crate) mod format;
mod index;
pub(crate) mod inspect;
mod key_buffer;
pub(crate) mod lazy_reader;
pub(crate) mod open_files;
pub(crate) mod properties;
mod range_tombstones;
pub(crate) mod read_ahead;
pub(crate) mod reader;
pub(crate) mod refilter;
mod scavenge;
pub(crate) mod scrub;
pub(crate) mod section;
pub(crate) mod shared_choice;
pub(crate) mod writer;
mod zstandard;

#[cfg(test)]
mod tests;
