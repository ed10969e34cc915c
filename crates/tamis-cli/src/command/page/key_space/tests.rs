//! Places of keys and tables on the map.

use super::*;

fn table(smallest: &str, largest: &str, bytes: u64) -> TableStatistics {
    let mut table = TableStatistics::default();
    (table.smallest_key, table.largest_key) = (smallest.into(), largest.into());
    (table.bytes, table.entry_count) = (bytes, 10);
    table
}

/// A run of three tables, the third one of a single key, below one that spans all of them.
fn overlapping() -> Vec<TableStatistics> {
    vec![table("a", "c", 10), table("m", "p", 30), table("x", "x", 20), table("a", "x", 60)]
}

#[test]
fn equal_widths_hold_equal_amounts_of_data() {
    let tables = [table("a", "c", 10), table("m", "p", 30), table("x", "z", 60)];
    let keys = KeySpace::new(&tables);
    let widths = tables.each_ref().map(|table| keys.span(table)).map(|span| (span.from, span.to));
    assert_eq!(widths, [(0.0, 0.1), (0.1, 0.4), (0.4, 1.0)]);
    // A key between tables is where the next one begins.
    assert_eq!((keys.place(b"d"), keys.place(b""), keys.place(b"zz")), (0.1, 0.0, 1.0));
    assert_eq!(keys.marks(), [(0.0, &b"a"[..]), (1.0, b"z")], "no key is near the middle");
    let halves = KeySpace::new(&[table("a", "c", 48), table("m", "p", 52)]);
    assert_eq!(halves.marks(), [(0.0, &b"a"[..]), (0.48, b"m"), (1.0, b"p")]);
}

#[test]
fn overlapping_tables_are_counted_where_they_overlap() {
    let tables = overlapping();
    let keys = KeySpace::new(&tables);
    let most = keys.depths().map(|(_, depth)| depth).max();
    assert_eq!(most, Some(2));
    // Gaps between the tables have the wide table only.
    assert!(keys.depths().any(|(_, depth)| depth == 1));
    let covered: f64 = keys.depths().map(|(span, _)| span.to - span.from).sum();
    assert!((covered - 1.0).abs() < 1e-9, "{covered}");
}

/// Symptom: a table over few cells was spread evenly over them, and small tables with the same range took a part of the map only.
#[test]
fn a_large_table_is_spread_by_the_distance_of_keys() {
    let tables =
        [table("k00001", "k99999", 1_000), table("k00007", "k49999", 1), table("k00003", "k99990", 1)];
    let keys = KeySpace::new(&tables);
    let spans = tables.each_ref().map(|table| keys.span(table)).map(|span| [span.from, span.to]);
    let outlier = [&tables[..], &[table("<", "<", 1)]].concat();
    let of_outlier = KeySpace::new(&outlier);
    let spans_of_outlier =
        tables.each_ref().map(|table| of_outlier.span(table)).map(|span| [span.from, span.to]);
    for (span, expected) in
        spans.iter().chain(&spans_of_outlier).zip([[0.0, 1.0], [0.0, 0.5], [0.0, 1.0]].repeat(2))
    {
        assert!(span.iter().zip(expected).all(|(got, want)| (got - want).abs() < 0.01), "{spans:?}");
    }
}

#[test]
fn a_keyspace_of_one_key_or_of_none_has_a_map() {
    let one = [table("k", "k", 5)];
    let keys = KeySpace::new(&one);
    assert_eq!(keys.span(&one[0]), Span { from: 0.0, to: 1.0 });
    let none = KeySpace::new(&[]);
    assert_eq!((none.depths().count(), none.prefix()), (0, None));
}

#[test]
fn keys_are_shown_without_their_shared_prefix_short_and_printable() {
    let keys = KeySpace::new(&[table("user-000001", "user-999999", 5)]);
    assert_eq!(keys.prefix().as_deref(), Some("user-"));
    assert_eq!(keys.shown(b"user-000001", 10), "..000001");
    assert_eq!(keys.shown(b"other", 3), "oth..");
    assert_eq!(shown(&[0, 255, 7]), "0x00ff07");
    assert_eq!(shown(b"a\x1b[31m"), "0x611b5b33316d");
    let long = shown("\u{fc}".repeat(100).as_bytes());
    assert_eq!(long, format!("{}..", "\u{fc}".repeat(SHOWN_MAX)));
}
