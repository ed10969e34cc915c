//! What threads did together.

use super::*;

/// The next pass takes all items below the end for present.
#[test]
fn items_end_where_the_thread_is_that_came_least_far() {
    let of = |inserted_end| Outcome { inserted_end, ..Outcome::default() };
    assert_eq!(of(12).join(of(9)).inserted_end, 9);
    assert_eq!(of(9).join(of(12)).inserted_end, 9);
    assert_eq!(of(12).join(of(0)).inserted_end, 0, "nothing is certain but what was there before");
}
