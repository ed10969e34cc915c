//! The experiments of the papers on whole stores: each with no filter, Bloom and prefix Bloom filters, each range filter, and the
//! filters that the store chooses.
//!
//! Sizes are scaled: memtable, tables and cache have the same share of the data as in the papers. Tables are read with direct I/O, as
//! their data does not fit into memory in the papers.

pub(crate) mod construction;
pub(crate) mod shift;
pub(crate) mod steady;
mod store;
