//! Braces and words inside comments and literals are ignored; all others are found.

use super::{functions, mask, words};

#[test]
fn literals_and_comments_are_blanked_and_nothing_else() {
    let source =
        "let a = \"fn { \\\" }\"; // fn {\nlet b = '{'; /* { /* } */ } */ let c: &'static str = r#\"\"{\"#;";
    let masked = mask(source);
    assert_eq!(masked.len(), source.len());
    assert!(!masked.contains('{') && !masked.contains('}') && !masked.contains('"'), "{masked}");
    assert!(masked.contains("&'static str"), "{masked}");
    assert_eq!(masked.matches('\n').count(), 1);
}

#[test]
fn escaped_and_byte_characters_are_characters() {
    let masked = mask("x(b'\\'', '\\u{7f}', b'{', '\\\\', b\"}\", br\"\\\"); for<'a> y('a')");
    assert_eq!(masked.split_whitespace().collect::<String>(), "x(b,,b,,b,);for<'a>y()");
}

#[test]
fn words_are_returned_with_their_offsets() {
    let found: Vec<_> = words("fn a_b(x: u8)").collect();
    assert_eq!(found, [(0, "fn"), (3, "a_b"), (7, "x"), (10, "u8")]);
}

#[test]
fn functions_are_counted_from_fn_to_the_closing_brace() {
    let source =
        "trait T {\n fn a();\n fn b(f: fn(u8)) -> [u8; 3] {\n  if x {\n  }\n }\n}\nconst fn c() {}\n";
    let found: Vec<_> = functions(&mask(source)).into_iter().map(|f| (f.name, f.line_count)).collect();
    assert_eq!(found, [("b".to_owned(), 4), ("c".to_owned(), 1)]);
}
