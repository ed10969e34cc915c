//! The way of a read.
