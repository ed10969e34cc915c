//! The filters that the store chooses, compared with every family.

pub(crate) mod accuracy;
pub(crate) mod candidates;
mod measured;
pub(crate) mod strings;
