//! Tables.

use super::{between_markers, table::middle};

#[test]
fn what_stands_between_the_markers_is_replaced() {
    let page = "a\n<!-- begin main -->\nold\n<!-- end main -->\nb\n";
    let expected = "a\n<!-- begin main -->\n\nnew\n<!-- end main -->\nb\n";
    assert_eq!(between_markers(page, "main", "new").as_deref(), Some(expected));
    assert_eq!(between_markers(page, "other", "new"), None);
}

#[test]
fn the_middle_is_the_median() {
    let of = |values: &[f64]| middle(values.to_vec()).map(|middle| (middle.median, middle.spread));
    assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0)));
    assert_eq!(of(&[1.0, 3.0]), Some((2.0, 1.0)));
    assert_eq!(of(&[]), None);
}
