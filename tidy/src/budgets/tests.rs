//! Each budget, with a folder that keeps it and one that breaks it.

use super::{ROOM_MAX, is_number, line_finding};
use crate::Tree;

#[test]
fn a_folder_has_at_most_the_lines_of_its_budget_and_little_room() {
    let hundred = "\n".repeat(100);
    let tree = Tree::of_samples(&[("a/b.rs", &hundred), ("a/b/tests.rs", &hundred), ("ab/c.rs", &hundred)]);
    let said = |budget| line_finding(&tree, "a", budget).map(|finding| finding.message);
    assert_eq!((said(100), said(100 + ROOM_MAX)), (None, None));
    assert!(said(99).is_some_and(|message| message.contains("delete")));
    assert!(said(101 + ROOM_MAX).is_some_and(|message| message.contains("lower the budget to 100")));
    assert!(line_finding(&tree, "gone", 0).is_some_and(|finding| finding.message.contains("remove")));
}

#[test]
fn constants_of_numbers_count_and_others_do_not() {
    for line in
        ["const A: u64 = 1;", "    pub(crate) const A: f32 = 0.5;", "pub const A: Duration = Duration::ZERO;"]
    {
        assert!(is_number(line), "{line}");
    }
    for line in
        ["const A: &str = \"u64\";", "const fn a(b: u64) {}", "let a: u64 = 1;", "const A: [u8; 2] = [1, 2];"]
    {
        assert!(!is_number(line), "{line}");
    }
}
