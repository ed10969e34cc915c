//! Combining the results of threads.

use super::*;

/// The next pass assumes that all items below the end exist.
#[test]
fn inserted_end_is_that_of_the_slowest_thread() {
    let of = |inserted_end| Outcome { inserted_end, ..Outcome::default() };
    assert_eq!(of(12).join(of(9)).inserted_end, 9);
    assert_eq!(of(9).join(of(12)).inserted_end, 9);
    assert_eq!(of(12).join(of(0)).inserted_end, 0, "only the earlier items are certain");
}
