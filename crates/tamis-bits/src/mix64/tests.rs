//! Values that are part of the format do not change.

use super::mix64;

#[test]
fn the_sequence_from_zero_is_that_of_splitmix64() {
    assert_eq!(mix64(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(mix64(0, 1), 0x6e78_9e6a_a1b9_65f4);
}
