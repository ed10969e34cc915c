//! The first eight bytes of a key as a word whose integer order is the order of the bytes.
//!
//! `key_head(a) < key_head(b)` means `a < b`. Equal heads say only that the first eight bytes are equal where both
//! have them: shorter keys are filled up with zero bytes, so `"a"` and `"a\0"` share a head, and the keys themselves
//! decide.

/// The first eight bytes of `key`, big-endian, filled up with zero bytes.
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
    let mut head = [0; 8];
    for (target, source) in head.iter_mut().zip(key) {
        *target = *source;
    }
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests;
