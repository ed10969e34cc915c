//! One byte budget for blocks, indexes and filters.
