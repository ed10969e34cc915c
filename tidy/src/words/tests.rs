//! Declared names are checked, names of other crates are not.

use super::{findings_in, qualifiers_last};
use crate::{Tree, vocabulary::Vocabulary};

/// The identifiers that a rule reports in one source.
fn reported(findings: Vec<crate::Finding>) -> Vec<String> {
    let messages = findings.into_iter().map(|finding| finding.message);
    messages.map(|message| message.split('`').nth(1).unwrap_or_default().to_owned()).collect()
}

fn names(source: &str, path: &str) -> Vec<String> {
    let tree = Tree::of_samples(&[(path, source)]);
    let table = "[parts of names]\nzig => zag\ncold in crates/tamis/src/table => warm\n";
    let vocabulary = Vocabulary::parse(table).expect("the table is valid");
    reported(tree.files().flat_map(|file| findings_in(&vocabulary, file)).collect())
}

#[test]
fn parts_of_declared_names_are_found() {
    let source =
        "struct ZigReader { zig: u64 }\nfn open_zig(my_zig: usize) { let mut zig = PathBuf::new(); }";
    assert_eq!(names(source, "crates/tamis/src/a.rs"), ["ZigReader", "zig", "my_zig", "open_zig", "zig"]);
}

#[test]
fn names_of_other_crates_and_longer_words_are_not_found() {
    let source =
        "// the zig\nuse std::zig::ZigReader; fn f(path: Zigzag) { path.zig(\"zig\"); zig::<u8>(a.zig); }";
    assert_eq!(names(source, "crates/tamis/src/a.rs"), [""; 0]);
}

#[test]
fn an_entry_may_be_limited_to_a_folder() {
    assert_eq!(names("struct Cold { zig: u64 }", "crates/tamis/src/table/a.rs"), ["Cold", "zig"]);
    assert_eq!(names("struct Cold { zig: u64 }", "crates/tamis/src/wal/a.rs"), ["zig"]);
}

#[test]
fn qualifiers_of_values_are_last() {
    let source = "const MAX_LEVEL: usize = 1; fn max_of(num_blocks: u8) { let level_max = 1; let max = 2; }";
    let tree = Tree::of_samples(&[("a.rs", source)]);
    assert_eq!(reported(qualifiers_last(&tree)), ["MAX_LEVEL", "num_blocks"]);
}
