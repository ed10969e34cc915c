//! Filters that choose their design from a sample, compared with other filters.

pub(crate) mod accuracy;
pub(crate) mod modelling;
pub(crate) mod words;
