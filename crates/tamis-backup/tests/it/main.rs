//! Backups through the public interface.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod backups;
mod concurrent;
mod damage;
mod faults;
mod kill;
mod support;
