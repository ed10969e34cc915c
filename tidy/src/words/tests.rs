//! Declared names are read, names of others are not.

use super::{parts, qualifiers_last, refused_words};
use crate::Tree;

fn names(source: &str, path: &str, rule: fn(&Tree) -> Vec<crate::Finding>) -> Vec<String> {
    let tree = Tree::of_samples(&[(path, source)]);
    let messages = rule(&tree).into_iter().map(|finding| finding.message);
    messages.map(|message| message.split('`').nth(1).unwrap_or_default().to_owned()).collect()
}

#[test]
fn refused_words_in_declarations_are_found() {
    let source =
        "struct SstReader { seqno: u64 }\nfn open_journal(idx: usize) { let mut buf = PathBuf::new(); }";
    let found = names(source, "crates/tamis/src/a.rs", refused_words);
    assert_eq!(found, ["SstReader", "seqno", "open_journal", "idx", "buf"]);
}

#[test]
fn names_of_others_comments_and_literals_are_not() {
    let source = "// the journal\nuse std::io::BufReader; fn f(path: PathBuf) { path.seq(\"sst\"); ctx::<u8>(a.buf); }";
    assert_eq!(names(source, "crates/tamis/src/a.rs", refused_words), [""; 0]);
}

#[test]
fn some_words_are_refused_in_parts_of_the_engine_only() {
    let source = "struct Segment { timestamp: u64 }";
    assert_eq!(names(source, "crates/tamis/src/table/a.rs", refused_words), ["Segment", "timestamp"]);
    assert_eq!(names(source, "crates/tamis/src/wal/a.rs", refused_words), ["timestamp"]);
    assert_eq!(names(source, "crates/tamis-workload/src/events.rs", refused_words), [""; 0]);
}

#[test]
fn qualifiers_of_values_stand_last() {
    let source = "const MAX_LEVEL: usize = 1; fn max_of(num_blocks: u8) { let level_max = 1; let max = 2; }";
    assert_eq!(names(source, "a.rs", qualifiers_last), ["MAX_LEVEL", "num_blocks"]);
}

#[test]
fn names_split_into_words() {
    assert_eq!(parts("read_SeqNo2x"), ["read", "seq", "no2x"]);
    assert_eq!(parts("WAL_SST"), ["wal", "sst"]);
}
