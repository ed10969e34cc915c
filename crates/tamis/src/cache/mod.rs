//! What is kept in memory of tables, within one byte budget.

pub(crate) mod account;
pub(crate) mod block;
pub(crate) mod hotness;
pub(crate) mod table;
