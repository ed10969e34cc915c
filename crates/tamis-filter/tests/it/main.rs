//! The guarantees of every family, through the public interface.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod allocations;
mod auto;
mod candidates;
mod excluded_bounds;
mod golden;
mod hostile_bytes;
mod hostile_keys;
mod key_sets;
mod sets;
mod sharing;
mod threads;
