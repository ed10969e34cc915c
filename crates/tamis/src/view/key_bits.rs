//! Keys as strings of bits in which no key is a prefix of another (`docs/format/view.md`, "Bits of a key").
//!
//! A byte takes nine bits: a 1 and the byte. Behind a key there are 0 bits, so that a prefix of a key is less than the key in the
//! bit that follows it.

/// Bits of a byte of a key.
pub(super) const BITS_PER_BYTE: u32 = 9;
/// Bits of an infix.
pub(super) const INFIX_BITS: u32 = 8;

/// The nine bits at a byte's place.
#[inline]
fn symbol(key: &[u8], place: usize) -> u32 {
    key.get(place).map_or(0, |&byte| 0x100 | u32::from(byte))
}

/// The bit at a position.
#[inline]
pub(super) fn bit(key: &[u8], position: u32) -> bool {
    let within = position % BITS_PER_BYTE;
    symbol(key, (position / BITS_PER_BYTE) as usize) >> (BITS_PER_BYTE - 1 - within) & 1 == 1
}

/// The eight bits from a position on.
#[inline]
fn bits_from(key: &[u8], position: u32) -> u8 {
    let (place, within) = ((position / BITS_PER_BYTE) as usize, position % BITS_PER_BYTE);
    let both = symbol(key, place) << BITS_PER_BYTE | symbol(key, place + 1);
    (both >> (2 * BITS_PER_BYTE - INFIX_BITS - within)) as u8
}

/// The bits behind a difference.
#[inline]
pub(super) fn infix(key: &[u8], difference: u32) -> u8 {
    bits_from(key, difference + 1)
}

/// Position of the first bit in which two keys differ; `None` for equal keys. `shared` bytes are known to be equal.
#[inline]
pub(super) fn difference_from(shared: usize, left: &[u8], right: &[u8]) -> Option<u32> {
    let (left_rest, right_rest) = (left.get(shared..)?, right.get(shared..)?);
    let more = tamis_bits::common_prefix_length(left_rest, right_rest);
    let start = (shared + more) as u32 * BITS_PER_BYTE;
    match (left_rest.get(more), right_rest.get(more)) {
        (None, None) => None,
        (Some(left), Some(right)) => Some(start + 1 + (left ^ right).leading_zeros()),
        _ => Some(start),
    }
}

/// Position of the first bit in which two keys differ; `None` for equal keys.
pub(super) fn difference(left: &[u8], right: &[u8]) -> Option<u32> {
    difference_from(0, left, right)
}

/// The byte that has the bit at a position.
pub(super) const fn byte_of(position: u32) -> usize {
    (position / BITS_PER_BYTE) as usize
}

/// Where a key that is not below `anchor` differs from it: position of the bit, in which the key has 1; `None` if the key begins
/// with the anchor. Both are without their first `skipped` bytes, which are equal.
#[inline]
pub(super) fn divergence(skipped: usize, key: &[u8], anchor: &[u8]) -> Option<u32> {
    let shared = tamis_bits::common_prefix_length(key, anchor);
    let (left, right) = (key.get(shared), anchor.get(shared)?);
    let start = (skipped + shared) as u32 * BITS_PER_BYTE;
    Some(left.map_or(start, |left| start + 1 + (left ^ right).leading_zeros()))
}
