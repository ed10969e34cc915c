//! Numbers of the format stay as they are.

use super::remix;

#[test]
fn the_numbers_after_zero_are_those_of_splitmix64() {
    assert_eq!(remix(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(remix(0, 1), 0x6e78_9e6a_a1b9_65f4);
}
