//! What must hold for any input: one function per fuzz target, given bytes, panicking where a promise is broken.
//!
//! `fuzz_targets/` hands them to libFuzzer; `tests/seeded.rs` runs each on seeded inputs, so that they never rot.

mod db_ops;
mod filter;
mod index;

pub use db_ops::db_ops;
pub use filter::filter;
pub use index::index;
pub use tamis::fuzz_internals::{batch, edit, manifest, table, wal};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets by name: the names of the files in `fuzz_targets/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("batch", batch),
    ("db_ops", db_ops),
    ("edit", edit),
    ("filter", filter),
    ("index", index),
    ("manifest", manifest),
    ("table", table),
    ("wal", wal),
];

/// Keys of 0 to 15 bytes, the length of each in the byte before it; long runs of equal bits come with it.
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
