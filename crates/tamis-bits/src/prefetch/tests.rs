//! A prefetch changes nothing at any address.

use super::prefetch;

#[test]
fn prefetches_inside_and_outside_change_nothing() {
    let bytes = [7; 100];
    for offset in [0, 99, 100, usize::MAX] {
        prefetch(&bytes, offset);
        prefetch(&[], offset);
    }
    assert_eq!(bytes, [7; 100]);
}
