//! Immutable sorted files.
