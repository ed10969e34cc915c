//! Lines of `leveldbutil dump`.

use super::*;

fn entry(key: &[u8], sequence: u64, value: Option<&[u8]>) -> Option<Entry> {
    Some(Entry { key: key.to_vec(), sequence, value: value.map(<[u8]>::to_vec) })
}

#[test]
fn lines_of_tables_and_logs_are_entries() {
    let mut sequence = None;
    let mut parsed = |line: &str| parse(line.as_bytes(), &mut sequence);
    for (line, expected) in [
        ("'fig' @ 7 : val => '3'", entry(b"fig", 7, Some(b"3"))),
        ("'fig' @ 8 : del => ''", entry(b"fig", 8, None)),
        ("'' @ 8 : val => ''", entry(b"", 8, Some(b""))),
        (r"'it's' @ 1 : val => ''a''", entry(b"it's", 1, Some(b"'a'"))),
        (r"'\x00\xff\x41\' @ 1 : val => '\\x0a'", entry(b"\0\xff\\x41\\", 1, Some(b"\\\n"))),
        ("--- offset 0; sequence 20", None),
        ("  put 'a' 'b'", entry(b"a", 20, Some(b"b"))),
        ("  put '' ''", entry(b"", 21, Some(b""))),
        ("  del 'it's'", entry(b"it's", 22, None)),
        ("--- offset 40; sequence 30", None),
        ("  del ' '", entry(b" ", 30, None)),
    ] {
        assert_eq!(parsed(line), Ok(expected), "{line}");
    }
}

#[test]
fn ambiguous_and_foreign_lines_are_errors() {
    for (line, text) in [
        ("'a' @ 1 : val => 'b' @ 2 : del => 'c'", "contains the text between both"),
        ("  put 'a' 'b' 'c'", "contains the text between both"),
        ("'a' @ 1 : 7 => ''", "not an entry"),
        ("'a' @ x : val => ''", "not an entry"),
        ("badkey 'a' => ''", "badkey"),
        ("iterator error: Corruption: block checksum mismatch", "block checksum mismatch"),
        ("corruption: 20 bytes; Corruption: checksum mismatch", "checksum mismatch"),
        ("  error: Corruption: bad WriteBatch Put", "bad WriteBatch Put"),
        ("--- offset 0; log record length 3 is too small", "too small"),
        ("--- offset 0; VersionEdit {", "MANIFEST"),
        ("", "not an entry"),
        ("'", "not an entry"),
    ] {
        let error = parse(line.as_bytes(), &mut Some(1)).expect_err(line);
        assert!(error.contains(text), "{line}: {error}");
    }
    let error = parse(b"  put 'a' 'b'", &mut None).expect_err("no header");
    assert!(error.contains("without the header"), "{error}");
}
