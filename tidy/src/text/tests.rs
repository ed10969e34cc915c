//! Each pattern is found as a word and not inside another.

use super::{
    LENGTH_CASTS, SEAMS, TRACES, UNFINISHED, lengths_are_whole, no_traces, nothing_unfinished,
    world_enters_through_seams,
};
use crate::Tree;

#[test]
fn each_pattern_is_found() {
    for (pattern, _) in UNFINISHED {
        let tree = Tree::of_samples(&[("a.rs", &format!("\n {pattern} "))]);
        assert!(nothing_unfinished(&tree).iter().any(|finding| finding.line == 2), "{pattern}");
    }
    for (pattern, _) in TRACES {
        let tree = Tree::of_samples(&[("a.md", &format!("\n {pattern} "))]);
        assert!(no_traces(&tree).iter().any(|finding| finding.line == 2), "{pattern}");
    }
    for (pattern, _, _) in SEAMS {
        let tree = Tree::of_samples(&[("crates/tamis/src/a.rs", &format!("\n {pattern} "))]);
        assert!(world_enters_through_seams(&tree).iter().any(|finding| finding.line == 2), "{pattern}");
    }
}

#[test]
fn ordinary_text_has_no_findings() {
    let tree = Tree::of_samples(&[
        ("crates/tamis/src/a.rs", "// mastodon, XXXL, briefly, `std::fs` is not used\nlet s = \"println!\";"),
        ("crates/tamis-cli/src/main.rs", "std::fs::read(path); println!();"),
        ("crates/tamis/src/store/runtime.rs", "use std::thread;"),
        ("a.md", "networks of work and shared things"),
    ]);
    assert_eq!(nothing_unfinished(&tree), []);
    assert_eq!(no_traces(&tree), []);
    assert_eq!(world_enters_through_seams(&tree), []);
}

#[test]
fn casts_that_cut_a_length_are_found() {
    for pattern in LENGTH_CASTS {
        let code = format!("fn f(key: &[u8]) {{\n    let length = key{pattern};\n}}\n");
        let tree = Tree::of_samples(&[("crates/tamis/src/a.rs", &code)]);
        assert!(lengths_are_whole(&tree).iter().any(|finding| finding.line == 2), "{pattern}");
    }
    let wide = "let length = key.len() as u64;";
    assert_eq!(lengths_are_whole(&Tree::of_samples(&[("crates/tamis/src/a.rs", wide)])), []);
}
