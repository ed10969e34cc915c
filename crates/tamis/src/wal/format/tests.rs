//! Headers can be read back; headers of other segments, databases and versions are refused.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::*;

const HEADER: SegmentHeader =
    SegmentHeader { database_id: 7, number: 9, previous: 8, previous_bytes: 100, previous_synced: 64 };

fn decode(bytes: &[u8]) -> Result<Option<SegmentHeader>> {
    SegmentHeader::decode(bytes, Path::new("000009.log"), 7, 9, 0)
}

/// The header with a changed field and a correct checksum.
fn changed(offset: usize, value: u64) -> Vec<u8> {
    let mut bytes = HEADER.encode();
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    let sum = checksum(0, &bytes[..HEADER_BYTES as usize - CHECKSUM_BYTES]);
    bytes[HEADER_BYTES as usize - CHECKSUM_BYTES..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn a_header_is_decoded_as_it_was_encoded() {
    let bytes = HEADER.encode();
    assert_eq!(bytes.len() as u64, HEADER_BYTES);
    assert_eq!(decode(&bytes).unwrap(), Some(HEADER));
}

#[test]
fn torn_and_flipped_headers_are_not_decoded() {
    let bytes = HEADER.encode();
    for length in 0..bytes.len() {
        assert_eq!(decode(&bytes[..length]).unwrap(), None);
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode(&flipped).unwrap(), None, "bit {bit}");
    }
}

#[test]
fn a_newer_version_is_refused() {
    let bytes = changed(0, u64::from(MAGIC) | 3 << 32);
    assert!(matches!(decode(&bytes), Err(Error::UnknownFormat { found: 3, known: 2, .. })));
}

#[test]
fn foreign_fields_are_damage_at_their_offset() {
    for (offset, value) in [(8, 6), (16, 10), (24, 9), (32, 63), (40, 101), (48, 1)] {
        match decode(&changed(offset, value)) {
            Err(Error::Corruption(found)) => assert_eq!(found.offset, offset as u64),
            other => panic!("{offset}: {other:?}"),
        }
    }
}

#[test]
fn seeds_differ_by_database_and_number() {
    assert_ne!(segment_seed(1, 2), segment_seed(1, 3));
    assert_ne!(segment_seed(1, 2), segment_seed(2, 2));
}
