//! Splitting lines into words; conflicts of transactions.

use super::*;
use crate::bytes::Format;

#[test]
fn lines_are_split_like_in_a_posix_shell() {
    let cases: [(&str, &[&str]); 7] = [
        ("", &[]),
        ("  get\tapple ", &["get", "apple"]),
        ("put 'a b' \"c d\"", &["put", "a b", "c d"]),
        (r#"put a\ b "say \"hi\"" 'back\slash'"#, &["put", "a b", "say \"hi\"", "back\\slash"]),
        ("put a ''", &["put", "a", ""]),
        ("put a'b'\"c\"d", &["put", "abcd"]),
        ("put \u{fc} \u{e9}", &["put", "\u{fc}", "\u{e9}"]),
    ];
    for (line, expected) in cases {
        assert_eq!(split_words(line).expect(line), expected, "{line}");
    }
    for line in ["put 'a", "put \"a", "put a\\"] {
        assert!(split_words(line).is_err(), "{line}");
    }
}

#[test]
fn a_conflict_is_reported_and_ends_the_transaction() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(folder.path()).expect("a new store");
    let keyspace = db.default_keyspace();
    let formats = Formats { key_format: Format::Text, value_format: Format::Text };
    let mut shell = Shell { db, keyspace, formats, transaction: None };
    let run = |shell: &mut Shell, line: &str| shell.run_line(line, &mut Vec::new()).map(drop);
    let succeeds = |result: Result<(), Failure>| assert!(result.is_ok());
    for line in ["begin", "count --prefix a", "put b 2"] {
        succeeds(run(&mut shell, line));
    }
    // Another thread of the process.
    shell.keyspace.put("a", "1").expect("a write");
    let message = run(&mut shell, "commit").err().and_then(|failure| failure.message()).unwrap_or_default();
    assert!(message.contains("has changed") && message.contains("keyspace \"default\""), "{message}");
    assert_eq!(shell.prompt(), "default> ");
    assert!(run(&mut shell, "get b").is_err() && run(&mut shell, "get a").is_ok());
}
