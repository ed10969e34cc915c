//! Caches of blocks, indexes, filters and open tables, within one byte budget.

pub(crate) mod block;
pub(crate) mod hotness;
pub(crate) mod pinned_cache;
pub(crate) mod table;
