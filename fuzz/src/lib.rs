//! Fuzz targets: one function per target that takes bytes and panics if a guarantee is violated.
//!
//! `fuzz_targets/` passes them to libFuzzer; `tests/seeded.rs` runs each with seeded inputs, so that they stay correct.

mod db_ops;
mod filter;
mod index;

pub use db_ops::db_ops;
pub use filter::filter;
pub use index::index;
pub use tamis::fuzz_internals::{batch, edit, manifest, table, view, wal};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets, with the names of the files in `fuzz_targets/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("batch", batch),
    ("db_ops", db_ops),
    ("edit", edit),
    ("filter", filter),
    ("index", index),
    ("manifest", manifest),
    ("table", table),
    ("view", view),
    ("wal", wal),
];

/// Decodes keys of 0 to 15 bytes, each after a byte with its length; this also gives long runs of equal bits.
fn keys(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while let Some((&head, rest)) = data.split_first() {
        let (key, rest) = rest.split_at_checked(usize::from(head % 16)).unwrap_or((rest, &[]));
        let tail = [[0, 0xFF][usize::from(head >> 4 & 1)]; 9];
        keys.push([key, &tail[..if head >= 0xE0 { 9 } else { 0 }]].concat());
        data = rest;
    }
    keys
}
