//! What is kept in memory of tables, within one byte budget.

pub(crate) mod block;
pub(crate) mod hotness;
pub(crate) mod pinned_cache;
pub(crate) mod table;
