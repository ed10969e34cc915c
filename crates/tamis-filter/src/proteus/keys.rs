//! The prefixes of the keys of a filter under construction.

use crate::KeySet;
use crate::bit_string::{BitString, HEAD_BITS};

/// A prefix of keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Prefix<'a> {
    /// Of at most [`HEAD_BITS`] bits: in the top bits of a word whose other bits are zero.
    Head(u128),
    /// Of more bits: in whole bytes, the rest of the last one zero.
    Bytes(&'a [u8]),
}

/// The length of all byte strings; 0 for several lengths, for lengths that the format cannot store, and for integers.
pub(super) fn string_bytes(keys: &KeySet) -> u16 {
    let length = keys.common_length().filter(|length| *length > 8);
    length.and_then(|length| u16::try_from(length).ok()).unwrap_or(0)
}

/// Calls `take` with each distinct prefix of `bits` bits (at least 1), in order.
pub(super) fn for_each_prefix(keys: &KeySet, bits: u32, mut take: impl FnMut(Prefix<'_>)) {
    if bits <= HEAD_BITS {
        let mask = u128::MAX << (HEAD_BITS - bits);
        let mut before = None;
        for head in keys.heads().map(|head| head & mask) {
            if before.replace(head) != Some(head) {
                take(Prefix::Head(head));
            }
        }
        return;
    }
    let (mut prefix, mut before) = (vec![0; bits.div_ceil(8) as usize], Vec::new());
    for key in keys.iter() {
        BitString::key(key).write_prefix(bits, &mut prefix);
        if prefix != before {
            take(Prefix::Bytes(&prefix));
            before.clone_from(&prefix);
        }
    }
}
