//! Every format parses its own output, and rejects other input with the reason.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use serde_json::json;

use super::Format;

#[test]
fn hex_and_numbers_round_trip() {
    assert_eq!(Format::Hex.parse(b"0x00fF").unwrap(), [0, 255]);
    assert_eq!(Format::Hex.show(&[0, 255]), "00ff");
    assert_eq!(Format::Hex.parse(b"").unwrap(), [0_u8; 0]);
    assert_eq!(Format::U64.parse(b"258").unwrap(), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(Format::U64.parse(b"0x102").unwrap(), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(Format::U64.show(&[0, 0, 0, 0, 0, 0, 1, 2]), "258");
    assert_eq!(Format::U64.show(&[1, 2]), "0x0102");
}

#[test]
fn errors_name_the_invalid_part() {
    assert!(Format::Hex.parse(b"abc").unwrap_err().contains("3 hexadecimal digits"));
    assert!(Format::Hex.parse(b"zz").unwrap_err().contains("'z'"));
    for text in [b"-1".as_slice(), b"1.5", b"", b"18446744073709551616", b"\xFF"] {
        assert!(Format::U64.parse(text).unwrap_err().contains("not a number"));
    }
}

#[test]
fn text_output_escapes_control_characters() {
    assert_eq!(Format::Text.show("gr\u{fc}n\t\u{1b}[2J\n".as_bytes()), "gr\u{fc}n\\x09\\x1b[2J\\x0a");
    assert_eq!(Format::Text.show(&[b'a', 0xC3, b'b', 0xFF]), "a\\xc3b\\xff");
}

#[test]
fn json_round_trips_exactly() {
    for bytes in [b"plain".as_slice(), b"", b"\x00\xFF", &[0, 0, 0, 0, 0, 0, 1, 2], b"\"\\"] {
        for format in [Format::Text, Format::Hex, Format::U64] {
            assert_eq!(format.parse_json(&format.json(bytes)).unwrap(), bytes, "{format:?}");
        }
    }
    assert_eq!(Format::U64.json(&u64::MAX.to_be_bytes()), json!(u64::MAX));
    assert_eq!(Format::Text.parse_json(&json!(17)).unwrap(), b"17");
    assert!(Format::Text.parse_json(&json!([1])).is_err());
    assert!(Format::Text.parse_json(&json!({ "hex": 1 })).is_err());
}
