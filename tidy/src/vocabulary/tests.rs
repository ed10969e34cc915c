//! Phrases are found in every kind of text, names only where they are identifiers.

use super::{Vocabulary, parts};
use crate::Tree;

const TABLE: &str = "
    # a comment
    [phrases]
    hop|hops in|over => jump
    green * eggs => ham
    Which => the noun
    [names]
    Frob => Widget
    old_name in src/a => new_name
    Kind::Left => Kind::Small
";

/// The lines and matches in one text.
fn found(path: &str, text: &str) -> Vec<(usize, String)> {
    let tree = Tree::of_samples(&[(path, text)]);
    let vocabulary = Vocabulary::parse(TABLE).expect("the table is valid");
    let findings = tree.files().flat_map(|file| vocabulary.findings(file));
    findings
        .map(|finding| (finding.line, finding.message.split('`').nth(1).unwrap_or_default().to_owned()))
        .collect()
}

fn matches(path: &str, text: &str) -> Vec<String> {
    found(path, text).into_iter().map(|(_, matched)| matched).collect()
}

#[test]
fn phrases_are_found_in_comments_literals_names_and_pages() {
    let source = "/// It hops in.\nfn it_hops_over() { panic!(\"Hop over\"); }\nstruct HopIn;";
    let expected = [(1, "hops in"), (2, "hops over"), (2, "Hop over"), (3, "Hop In")];
    assert_eq!(found("a.rs", source), expected.map(|(line, text)| (line, text.to_owned())));
    assert_eq!(matches("a.md", "Rabbits hop in."), ["hop in"]);
}

#[test]
fn phrases_continue_on_the_next_line_but_not_across_punctuation() {
    assert_eq!(matches("a.rs", "/// hops\n    /// in\n"), ["hops in"]);
    assert_eq!(matches("a.rs", "let a = \"it hops \\\n    over\";"), ["hops over"]);
    assert_eq!(matches("a.md", "> hops\n> in"), ["hops in"]);
    assert_eq!(matches("a.md", "hops, in; hops (over); hops-in\n\nhops\n\nin"), [""; 0]);
}

#[test]
fn parts_of_words_do_not_match() {
    assert_eq!(matches("a.md", "shop in, hops into, chops in, hop's over"), [""; 0]);
}

#[test]
fn a_star_in_a_pattern_matches_one_word() {
    assert_eq!(
        matches("a.md", "green boiled eggs, green eggs, green hard boiled eggs"),
        ["green boiled eggs"]
    );
}

#[test]
fn a_capital_in_a_pattern_is_the_start_of_a_sentence() {
    assert_eq!(found("a.md", "the one which\nWhich one"), [(2, "Which".to_owned())]);
}

#[test]
fn names_are_found_where_they_are_identifiers() {
    assert_eq!(matches("a.rs", "struct Frob; // Frob is a word, `Frob` is a name"), ["Frob", "Frob"]);
    assert_eq!(matches("a.rs", "struct Frobs; struct MyFrob; fn frob() {}"), [""; 0]);
    assert_eq!(matches("a.rs", "Kind::Left; OtherKind::Left; Kind::Lefty"), ["Kind::Left"]);
}

#[test]
fn names_may_be_limited_to_a_folder() {
    assert_eq!(matches("src/a/b.rs", "// old_name"), ["old_name"]);
    assert_eq!(matches("src/b.rs", "// old_name"), [""; 0]);
}

#[test]
fn a_table_with_a_wrong_line_is_refused() {
    assert!(Vocabulary::parse("[phrases]\nno arrow").is_err_and(|message| message.contains("no arrow")));
    assert!(Vocabulary::parse("[colors]\na => b").is_err_and(|message| message.contains("a => b")));
    assert!(Vocabulary::standard().is_ok());
}

#[test]
fn names_split_into_words() {
    assert_eq!(parts("read_SeqNo2x"), ["read", "seq", "no2x"]);
    assert_eq!(parts("WAL_SST"), ["wal", "sst"]);
}
