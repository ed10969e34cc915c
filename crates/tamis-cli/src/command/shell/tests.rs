//! Words of a line.

use super::*;

#[test]
fn words_are_parted_as_a_shell_does() {
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
        assert_eq!(words(line).expect(line), expected, "{line}");
    }
    for line in ["put 'a", "put \"a", "put a\\"] {
        assert!(words(line).is_err(), "{line}");
    }
}
