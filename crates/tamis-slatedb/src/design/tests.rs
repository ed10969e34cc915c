use super::*;

#[test]
fn text_is_parsed_and_printed() {
    for text in [
        "auto@16",
        "auto@9.5",
        "blocked-bloom@10 proteus@12",
        "surf-real:bits=8",
        "prefix-bloom:bytes=4+8@14",
    ] {
        assert_eq!(text.parse::<Design>().expect(text).to_string(), text);
    }
    assert_eq!(" auto ".parse::<Design>().expect("the default").to_string(), "auto@16");
}

#[test]
fn impossible_designs_are_errors_that_name_the_part() {
    let cases = [
        ("auto@0", "a budget of 0 bits per key"),
        ("auto@many", "\"many\" is not a number"),
        ("bloomy@10", "no filter family is named \"bloomy\""),
        ("proteus", "needs a budget"),
        ("blocked-bloom@2000", "a budget of 2000 bits per key"),
        ("blocked-bloom:probes=99@10", "probes=99 is not possible"),
        ("blocked-bloom:colour=red@10", "no parameter \"colour\""),
        ("", "0 filters for each table"),
        (&"elastic@8 ".repeat(9), "9 filters for each table"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Design>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn point_filters_are_not_read_for_ranges() {
    let answers = |text: &str| text.parse::<Design>().expect(text).answers_ranges();
    assert!(!answers("blocked-bloom@10 elastic@8"));
    assert!(answers("blocked-bloom@10 rosetta@16"));
    assert!(answers("auto@12"));
}
