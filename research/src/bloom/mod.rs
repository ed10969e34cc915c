//! Point filters, and the effect of sharing a digest between filters.

mod cost_model;
pub(crate) mod elastic;
pub(crate) mod levels;
mod murmur;
pub(crate) mod table_1;
mod unit_allocation;
