//! The order of heads never contradicts the order of keys.

use super::{key_head, long_key_head};

#[test]
fn heads_never_contradict_the_order_of_keys() {
    let parts: [&[u8]; 6] = [b"", b"\0", b"a", b"abcdefg", b"\xFF", b"\0\0\0\0\0\0\0\0"];
    let mut keys = Vec::new();
    for left in parts {
        for middle in parts {
            for right in parts {
                keys.push([left, middle, right].concat());
            }
        }
    }
    for left in &keys {
        for right in &keys {
            if key_head(left) < key_head(right) || long_key_head(left) < long_key_head(right) {
                assert!(left < right, "{left:?} {right:?}");
            }
        }
    }
}

#[test]
fn the_first_byte_is_most_significant_and_the_ninth_ignored() {
    assert_eq!(key_head(&[1]), 1 << 56);
    assert_eq!(key_head(&[0, 0, 0, 0, 0, 0, 0, 7, 9]), 7);
}

#[test]
fn a_long_head_is_the_first_sixteen_bytes_and_zeros() {
    let key: Vec<u8> = (1..=20).collect();
    for length in 0..=key.len() {
        let key = key.get(..length).expect("as long as that");
        let mut padded = [0; 16];
        padded.iter_mut().zip(key).for_each(|(target, byte)| *target = *byte);
        assert_eq!(long_key_head(key).to_be_bytes(), padded, "{length} bytes");
    }
}
