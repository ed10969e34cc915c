//! Numbers of the format stay as they are.

use super::mix64;

#[test]
fn the_numbers_after_zero_are_those_of_splitmix64() {
    assert_eq!(mix64(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(mix64(0, 1), 0x6e78_9e6a_a1b9_65f4);
}
