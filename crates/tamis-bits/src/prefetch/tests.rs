//! A hint changes nothing, wherever it points.

use super::prefetch;

#[test]
fn hints_inside_and_outside_change_nothing() {
    let bytes = [7; 100];
    for offset in [0, 99, 100, usize::MAX] {
        prefetch(&bytes, offset);
        prefetch(&[], offset);
    }
    assert_eq!(bytes, [7; 100]);
}
