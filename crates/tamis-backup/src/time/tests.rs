use super::*;

#[test]
fn times_are_formatted_and_parsed() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T23:59:59Z", 951_868_799),
        ("2026-11-30T09:20:00Z", 1_796_030_400),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
    ] {
        assert_eq!(format(seconds * 1000), text);
        assert_eq!(parse(text), Some(seconds * 1000 + 999));
    }
    assert_eq!(parse("2026-11-30"), Some(1_796_083_199_999));
    assert_eq!(parse("2026-11-30 09:20"), Some(1_796_030_459_999));
    for text in
        ["", "7", "2026-13-01", "2026-02-29", "2026-1", "2026-11-30T25:00", "2026-11-30T", "0012-9f3a"]
    {
        assert_eq!(parse(text), None, "{text}");
    }
}
