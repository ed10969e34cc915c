//! Opening detects every damaged header byte, `verify` every damaged payload byte.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, verify};
use crate::DecodeError;

fn sealed() -> Vec<u8> {
    let mut filter = vec![7; ENVELOPE_BYTES + 100];
    let envelope = Envelope {
        family: 1,
        seed: 3,
        payload_bytes: 0,
        key_count: 5,
        payload_checksum: 0,
        parameters: [9; PARAMETER_BYTES],
    };
    envelope.seal(&mut filter);
    filter
}

fn parse(filter: &[u8]) -> Result<Envelope, DecodeError> {
    Envelope::parse(filter, filter.len() as u64)
}

#[test]
fn a_sealed_envelope_is_parsed() {
    let filter = sealed();
    let envelope = parse(&filter).expect("whole");
    assert_eq!((envelope.family, envelope.seed, envelope.key_count, envelope.payload_bytes), (1, 3, 5, 100));
    assert_eq!(envelope.parameters, [9; PARAMETER_BYTES]);
    verify(&envelope, &filter).expect("whole");
}

#[test]
fn each_flipped_byte_is_detected() {
    for offset in 0..sealed().len() {
        let mut filter = sealed();
        filter[offset] ^= 0x10;
        let opened = parse(&filter).and_then(|envelope| verify(&envelope, &filter));
        assert!(opened.is_err(), "byte {offset}");
        if offset < ENVELOPE_BYTES {
            assert!(parse(&filter).is_err(), "byte {offset}");
        }
    }
}

#[test]
fn another_length_is_refused() {
    let filter = sealed();
    for length in 0..filter.len() {
        assert!(matches!(parse(&filter[..length]), Err(DecodeError::Length { .. })), "{length}");
    }
    let longer = [filter.as_slice(), &[0]].concat();
    assert!(matches!(parse(&longer), Err(DecodeError::Length { .. })));
}
