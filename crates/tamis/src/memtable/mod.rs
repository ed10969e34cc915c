//! The newest data, sorted, in memory.
