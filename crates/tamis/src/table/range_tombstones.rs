//! The section of range tombstones of a table (`docs/format/table.md`, "Range tombstones").

use crate::{
    coding::{Decoder, put_bytes, put_varint},
    key::{KEY_LENGTH_MAX, SEQUENCE_MAX, Sequence},
    range_tombstone::{Fragment, Fragments},
};

/// The section's body.
pub(super) fn encode(fragments: &[Fragment]) -> Vec<u8> {
    let mut body = Vec::new();
    put_varint(&mut body, fragments.len() as u64);
    for fragment in fragments {
        put_bytes(&mut body, &fragment.lower);
        put_bytes(&mut body, &fragment.upper);
        put_varint(&mut body, fragment.sequences.len() as u64);
        let mut above = SEQUENCE_MAX;
        for &sequence in &fragment.sequences {
            put_varint(&mut body, above - sequence);
            above = sequence;
        }
    }
    body
}

/// `None` for bytes that [`encode`] does not write. `shift` is added to the sequence numbers.
pub(super) fn decode(body: &[u8], shift: Sequence) -> Option<Fragments> {
    let mut decoder = Decoder::new(body);
    let mut list = Vec::new();
    // Counts are not trusted: fragments are decoded while there are bytes.
    for _ in 0..decoder.take_varint()? {
        let lower = decoder.take_bytes().filter(|key| key.len() <= KEY_LENGTH_MAX)?.to_vec();
        let upper = decoder.take_bytes().filter(|key| key.len() <= KEY_LENGTH_MAX)?.to_vec();
        let mut sequences = Vec::new();
        let mut above = SEQUENCE_MAX;
        for _ in 0..decoder.take_varint()? {
            above = above.checked_sub(decoder.take_varint()?)?;
            sequences.push(above.checked_add(shift).filter(|&sequence| sequence <= SEQUENCE_MAX)?);
        }
        list.push(Fragment { lower, upper, sequences });
    }
    let fragments = Fragments::new(list)?;
    (decoder.is_empty() && !fragments.is_empty()).then_some(fragments)
}

#[cfg(test)]
mod tests;
