//! Each promise with its witness, and without.

use super::{
    dependencies_have_reasons_and_users, expected_files, format_pages_are_whole,
    format_pages_have_golden_files, options_have_docs_and_tests, statistics_have_tests,
};
use crate::{Finding, Tree};

fn places(findings: &[Finding]) -> Vec<(&str, usize)> {
    findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect()
}

#[test]
fn a_format_page_has_all_sections_and_a_golden_file() {
    let whole = "```\nbytes\n```\nchecksum limits refuse History";
    let tree = Tree::of_samples(&[
        ("docs/format/table.md", whole),
        ("docs/format/wal.md", whole),
        ("docs/format/view.md", "checksum limits refuse History"),
        ("docs/format/directory.md", whole),
        ("crates/tamis/tests/golden/v1/table-1.txt", ""),
        ("crates/tamis/tests/it/golden.rs", "let name = \"wal\";"),
    ]);
    assert_eq!(places(&format_pages_are_whole(&tree)), [("docs/format/view.md", 0)]);
    assert_eq!(places(&format_pages_have_golden_files(&tree)), [("docs/format/view.md", 0)]);
}

#[test]
fn an_option_has_a_default_and_a_test() {
    let source = "pub struct Options {\n    /// Bytes. Default: 1.\n    pub kept: u8,\n    /// Bytes.\n    pub vague: u8,\n    \
                  /// Default: 2.\n    pub untested: u8,\n}\npub struct Other {\n    pub x: u8,\n}\n";
    let tree = Tree::of_samples(&[
        ("crates/tamis/src/options.rs", source),
        ("crates/tamis/tests/it/main.rs", "Options { kept: 1, vague: 2 } // untested"),
    ]);
    let file = "crates/tamis/src/options.rs";
    assert_eq!(places(&options_have_docs_and_tests(&tree)), [(file, 5), (file, 7)]);
}

#[test]
fn a_statistic_has_a_test() {
    let source = "pub struct PartStatistics {\n    pub kept: u8,\n    pub untested: u8,\n}\npub struct Other {\n    pub x: u8,\n}\nnumbers! {\n    counters {\n        /// Text.\n        writes,\n        kept,\n    }\n}\n";
    let tree = Tree::of_samples(&[
        ("crates/tamis/src/observe/metrics.rs", source),
        ("crates/tamis/tests/it/main.rs", "assert_eq!(part.kept, 1); // untested"),
    ]);
    assert_eq!(
        places(&statistics_have_tests(&tree)),
        [("crates/tamis/src/observe/metrics.rs", 3), ("crates/tamis/src/observe/metrics.rs", 11)]
    );
}

#[test]
fn a_dependency_has_a_reason_and_a_user() {
    let root = "[workspace.dependencies]\na = \"1\" # for this\nb-c = \"1\"\nours = { path = \"ours\" }\n[profile.dev]\nx = 1";
    let tree = Tree::of_samples(&[
        ("Cargo.toml", root),
        (
            "ours/Cargo.toml",
            "[lints]\nworkspace = true\n[dependencies]\na.workspace = true\nb-c.workspace = true",
        ),
        ("ours/src/lib.rs", "use b_c::D;"),
    ]);
    let found = dependencies_have_reasons_and_users(&tree);
    assert_eq!(places(&found), [("Cargo.toml", 3), ("ours/Cargo.toml", 4)]);
}

#[test]
fn missing_files_are_named() {
    let tree = Tree::of_samples(&[("README.md", ""), ("CHANGELOG.md", "")]);
    let found = expected_files(&tree);
    assert!(found.iter().any(|finding| finding.path == "LICENSE-MIT"));
    assert!(!found.iter().any(|finding| finding.path == "README.md"));
}
