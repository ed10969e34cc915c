//! Keys of one length and of several.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::key_bytes;
use crate::KeySet;

#[test]
fn the_common_length_of_keys_is_known() {
    let length = |set: &[&[u8]]| {
        let mut keys = KeySet::new();
        set.iter().for_each(|key| keys.push(key).unwrap());
        key_bytes(&keys)
    };
    assert_eq!(length(&[&[1; 8], &[2; 8]]), 8);
    assert_eq!(length(&[&[1; 8], &[2; 9]]), 0);
    assert_eq!(length(&[&[1; 3], &[2; 3]]), 3);
    assert_eq!(length(&[&[1; 3], &[2; 8]]), 0);
    assert_eq!(length(&[&[1; 8], &[2; 3], &[3; 3]]), 0);
}
