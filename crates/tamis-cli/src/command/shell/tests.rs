//! Splitting lines into words.

use super::*;

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
