//! `unsafe` in its places with a reason passes; elsewhere, or without one, it does not.

use super::unsafe_is_local_and_justified;
use crate::Tree;

#[test]
fn unsafe_outside_of_allowed_files_or_without_a_reason_is_reported() {
    let justified = "// SAFETY: in bounds.\nlet x = unsafe { y() };";
    let documented = "/// Reads.\n/// # Safety\n/// In bounds.\n#[inline]\npub unsafe fn y() {}";
    let tree = Tree::of_samples(&[
        ("crates/tamis-bits/src/a.rs", justified),
        ("crates/tamis-bits/src/b.rs", documented),
        ("crates/tamis-bits/src/c.rs", "// It is fine.\nunsafe { y() }"),
        ("crates/tamis-bits/src/d.rs", "/// Reads.\npub unsafe fn y() {}"),
        ("crates/tamis/src/table/block.rs", justified),
        (
            "crates/tamis/src/table/word.rs",
            "// unsafe\nlet x = \"unsafe\";\n#![deny(unsafe_op_in_unsafe_fn)]",
        ),
    ]);
    let found: Vec<_> = unsafe_is_local_and_justified(&tree).into_iter().map(|f| (f.path, f.line)).collect();
    let expected = [
        ("crates/tamis-bits/src/c.rs".to_owned(), 2),
        ("crates/tamis-bits/src/d.rs".to_owned(), 2),
        ("crates/tamis/src/table/block.rs".to_owned(), 2),
    ];
    assert_eq!(found, expected);
}
