//! The first bytes of keys: eight, or sixteen, as a word whose integer order is the order of the bytes; those that two keys share.
//!
//! `key_head(a) < key_head(b)` implies `a < b`. Equal heads imply only equal first eight bytes: shorter keys are
//! padded with zero bytes, so `"a"` and `"a\0"` have the same head, and the keys themselves decide.

/// The first eight bytes of `key`, big-endian, padded with zero bytes.
///
/// ```
/// use tamis_bits::key_head;
/// assert!(key_head(b"apple") < key_head(b"apricot"));
/// assert_eq!(key_head(b"a"), key_head(b"a\0"));
/// ```
#[inline]
#[must_use]
pub fn key_head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    // Overlapping pieces from both ends: a loop over the bytes would become a call.
    if let (Some(head), Some(tail)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let tail = u64::from(u32::from_be_bytes(*tail)) << (64 - 8 * key.len() as u32);
        return u64::from(u32::from_be_bytes(*head)) << 32 | tail;
    }
    let byte = |index: usize| key.get(index).map_or(0, |byte| u64::from(*byte));
    byte(0) << 56 | byte(1) << 48 | byte(2) << 40
}

/// The first sixteen bytes of `key`, as [`key_head`] returns the first eight.
///
/// ```
/// use tamis_bits::{key_head, long_key_head};
/// assert_eq!((long_key_head(b"strawberries") >> 64) as u64, key_head(b"strawberries"));
/// assert!(long_key_head(b"strawberries") < long_key_head(b"strawberry"));
/// ```
#[inline]
#[must_use]
pub fn long_key_head(key: &[u8]) -> u128 {
    if let Some(head) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let rest = key.get(8..).map_or(0, key_head);
    u128::from(key_head(key)) << 64 | u128::from(rest)
}

/// How many first bytes of two keys are equal.
///
/// ```
/// use tamis_bits::common_prefix_length;
/// assert_eq!(common_prefix_length(b"apple", b"apricot"), 2);
/// assert_eq!(common_prefix_length(b"app", b"apple"), 3);
/// ```
#[inline]
#[must_use]
pub fn common_prefix_length(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests;
