//! The order check agrees with a comparison of keys.

use super::KeyOrder;
use crate::BuildError;

#[test]
fn the_order_is_bytewise() {
    let parts: [&[u8]; 7] = [b"", b"\0", b"a", b"aaaaaaa", b"aaaaaaaa", b"\0\0\0\0\0\0\0\0", b"\xff"];
    let keys: Vec<Vec<u8>> =
        parts.iter().flat_map(|left| parts.map(|right| [left, right].concat())).collect();
    for first in &keys {
        for second in &keys {
            let mut order = KeyOrder::default();
            assert_eq!(order.accept(first), Ok(true));
            let expected = match second.cmp(first) {
                std::cmp::Ordering::Less => Err(BuildError::Unsorted { index: 1 }),
                std::cmp::Ordering::Equal => Ok(false),
                std::cmp::Ordering::Greater => Ok(true),
            };
            assert_eq!(order.accept(second), expected, "{first:?} {second:?}");
            assert_eq!(order.count(), if expected == Ok(true) { 2 } else { 1 });
        }
    }
}
