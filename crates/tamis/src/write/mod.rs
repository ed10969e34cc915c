//! The way of a write.
