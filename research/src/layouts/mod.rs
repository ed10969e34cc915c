//! Whole stores of the REMIX paper: the partitioned layout next to the leveled and the tiered one, as in Section 5.2 of the
//! REMIX paper.
//!
//! The paper compares RemixDB with other stores; here the layouts of one store are compared, with equal sizes. Data, memtable, cache and
//! tables have the ratios of the paper down to the least sizes that the store takes, and every other option has its default. Tables are
//! read through the cache. All operations run on one thread.

pub(crate) mod figures;
mod store;
