//! What must hold for any input: one function per fuzz target, given bytes, panicking where a promise is broken.
//!
//! `fuzz_targets/` hands them to libFuzzer; `tests/seeded.rs` runs each on seeded inputs, so that they never rot.

mod db_ops;
mod filter;

pub use db_ops::db_ops;
pub use filter::filter;
pub use tamis::fuzz_internals::{batch, edit, manifest, table, wal};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets by name: the names of the files in `fuzz_targets/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("batch", batch),
    ("db_ops", db_ops),
    ("edit", edit),
    ("filter", filter),
    ("manifest", manifest),
    ("table", table),
    ("wal", wal),
];
