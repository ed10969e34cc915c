//! Each rule, with a text that keeps it and one that breaks it.

use super::{
    FILE_LINES_MAX, FUNCTION_LINES_MAX, ascii, file_length, function_length, head_comment, no_inline_tests,
};
use crate::Tree;

#[test]
fn a_file_may_have_a_thousand_lines_and_no_more() {
    let (kept, broken) = ("\n".repeat(FILE_LINES_MAX), "\n".repeat(FILE_LINES_MAX + 1));
    let tree = Tree::of_samples(&[("a.rs", &kept), ("b.rs", &broken), ("c.md", &broken)]);
    let paths: Vec<_> = file_length(&tree).into_iter().map(|finding| finding.path).collect();
    assert_eq!(paths, ["b.rs"]);
}

#[test]
fn a_function_may_have_seventy_lines_and_no_more() {
    let kept = format!("fn kept() {{{}}}", "\n".repeat(FUNCTION_LINES_MAX - 1));
    let broken = format!("// {{\nfn broken() {{{}}}", "\n".repeat(FUNCTION_LINES_MAX));
    let tree = Tree::of_samples(&[("a.rs", &kept), ("b.rs", &broken), ("b/tests.rs", &broken)]);
    let found = function_length(&tree);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found.iter().all(|f| f.path == "b.rs" && f.line == 2 && f.message.contains("`broken` has 71")));
}

#[test]
fn a_file_begins_with_its_purpose() {
    let tree = Tree::of_samples(&[
        ("a.rs", "//! Says what it is for.\n"),
        ("b.rs", "use std::io;\n//! Too late to say it.\n"),
        ("c.rs", "//! x\n"),
        ("c/tests.rs", "use super::x;\n"),
    ]);
    let paths: Vec<_> = head_comment(&tree).into_iter().map(|finding| finding.path).collect();
    assert_eq!(paths, ["b.rs", "c.rs"]);
}

#[test]
fn sources_are_ascii() {
    let tree = Tree::of_samples(&[("a.rs", "// plain\n// caf\u{e9}\n"), ("a.md", "caf\u{e9}")]);
    let found = ascii(&tree);
    assert_eq!(found.iter().map(|f| (f.path.as_str(), f.line)).collect::<Vec<_>>(), [("a.rs", 2)]);
}

#[test]
fn tests_are_in_a_separate_file() {
    let tree =
        Tree::of_samples(&[("a.rs", "#[cfg(test)]\nmod tests;"), ("b.rs", "#[cfg(test)]\nmod tests {\n}")]);
    let found = no_inline_tests(&tree);
    assert_eq!(found.iter().map(|f| (f.path.as_str(), f.line)).collect::<Vec<_>>(), [("b.rs", 2)]);
}
