//! Frames can be read back; every flipped bit and every truncation is either damage or a torn tail, as the marks prove.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::path::Path;

use super::*;

const START: u64 = 5;

/// A file of `START` foreign bytes and three frames; each but the first is marked synced up to its own offset.
fn file(seed: u64, is_synced: bool) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = vec![7; START as usize];
    let mut offsets = Vec::new();
    for payload in [&b"first"[..], b"", b"the third payload"] {
        let offset = bytes.len() as u64;
        let mark = if is_synced && !offsets.is_empty() { offset } else { 0 };
        put_frame_parts(&mut bytes, seed, offset, mark, &[payload]).unwrap();
        offsets.push(offset);
    }
    (bytes, offsets)
}

fn read(bytes: &[u8], seed: u64) -> Result<(Vec<Vec<u8>>, Option<TornTail>)> {
    let mut reader = FrameReader::new(Path::new("f"), bytes, START).with_seed(seed);
    let mut payloads = Vec::new();
    while let Some(record) = reader.next_record()? {
        payloads.push(reader.payload(record)?.to_vec());
    }
    Ok((payloads, reader.torn_tail()))
}

#[test]
fn frames_are_decoded_as_they_were_encoded() {
    for seed in [0, u64::MAX] {
        let (bytes, _) = file(seed, true);
        let (payloads, torn) = read(&bytes, seed).unwrap();
        assert_eq!(payloads, [b"first".to_vec(), Vec::new(), b"the third payload".to_vec()]);
        assert_eq!(torn, None);
    }
}

#[test]
fn parts_and_whole_payload_give_the_same_bytes() {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    put_frame(&mut whole, 99, 42, b"abcdef").unwrap();
    put_frame_parts(&mut parts, 0, 99, 42, &[b"ab", b"", b"cdef"]).unwrap();
    assert_eq!(whole, parts);
}

#[test]
fn a_flipped_bit_below_a_mark_is_damage_and_in_the_last_frame_a_torn_tail() {
    let (bytes, offsets) = file(3, true);
    for bit in START as usize * 8..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let at = (bit / 8) as u64;
        match read(&flipped, 3) {
            Err(Error::Corruption(found)) => {
                assert!(at < offsets[2], "bit {bit}: no mark covers the last frame");
                let expected = offsets.iter().rev().find(|offset| **offset <= at).unwrap();
                assert_eq!(found.offset, *expected, "bit {bit}");
            }
            Ok((payloads, torn)) => {
                assert!(at >= offsets[2], "bit {bit} was not detected");
                assert_eq!(payloads.len(), 2);
                assert_eq!(torn.unwrap().offset, offsets[2]);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn an_unsynced_bad_frame_is_a_torn_tail() {
    let (mut bytes, offsets) = file(0, false);
    bytes[offsets[1] as usize] ^= 1;
    let (payloads, torn) = read(&bytes, 0).unwrap();
    assert_eq!(payloads.len(), 1);
    assert_eq!(torn, Some(TornTail { offset: offsets[1], bytes: bytes.len() as u64 - offsets[1] }));
}

#[test]
fn every_truncation_keeps_the_frames_before_it() {
    let (bytes, offsets) = file(0, true);
    for length in START as usize..bytes.len() {
        let (payloads, torn) = read(&bytes[..length], 0).unwrap();
        let whole = offsets.iter().filter(|o| **o <= length as u64).count() - 1;
        assert_eq!(payloads.len(), whole, "length {length}");
        assert_eq!(torn.is_some(), !offsets.contains(&(length as u64)), "length {length}");
    }
}

#[test]
fn a_file_that_ends_before_its_synced_offset_is_damaged() {
    let (bytes, offsets) = file(0, false);
    let whole = &bytes[..offsets[2] as usize];
    let mut reader = FrameReader::new(Path::new("f"), whole, START).with_synced(offsets[2] + 1);
    assert!(reader.next_record().unwrap().is_some() && reader.next_record().unwrap().is_some());
    assert!(matches!(reader.next_record(), Err(Error::Corruption(c)) if c.offset == offsets[2]));
}

#[test]
fn a_frame_at_another_offset_or_with_another_seed_proves_nothing() {
    let (bytes, offsets) = file(1, true);
    assert!(proves_synced(&mut bytes.as_slice(), 1, START, START).unwrap());
    assert!(!proves_synced(&mut bytes.as_slice(), 2, START, START).unwrap());
    let mut moved = bytes.clone();
    moved.insert(offsets[1] as usize, 0);
    assert!(!proves_synced(&mut moved.as_slice(), 1, offsets[1], START).unwrap());
}

#[test]
fn hostile_candidates_end_the_search_early() {
    let mut candidate = Vec::new();
    put_u32(&mut candidate, MAGIC);
    put_u64(&mut candidate, 0);
    put_varint(&mut candidate, 1 << 19);
    put_varint(&mut candidate, 2);
    let bytes: Vec<u8> = candidate.iter().copied().cycle().take(1 << 20).collect();
    // Without the budget this would compute some 17 GB of checksums.
    assert!(proves_synced(&mut bytes.as_slice(), 0, 16, 1).unwrap());
}

#[test]
fn a_payload_that_does_not_fit_is_refused() {
    let part = vec![0; 1 << 28];
    let parts = [part.as_slice(); 16];
    let mut target = Vec::new();
    assert!(matches!(
        put_frame_parts(&mut target, 0, 0, 0, &parts),
        Err(Error::BatchTooLarge { length, limit: FRAME_PAYLOAD_MAX }) if length == 1 << 32
    ));
    assert!(target.is_empty());
}

#[test]
fn moved_frames_equal_frames_written_at_the_new_place() {
    let (bytes, offsets) = file(1, true);
    let moved = moved_frames(&bytes[START as usize..], 9, 1000);
    let mut expected = Vec::new();
    assert_eq!(offsets.len(), 3);
    for payload in [&b"first"[..], b"", b"the third payload"] {
        let offset = 1000 + expected.len() as u64;
        put_frame_parts(&mut expected, 9, offset, 0, &[payload]).unwrap();
    }
    assert_eq!(moved, expected);
}

#[test]
fn a_frame_costs_ten_bytes_while_nothing_is_synced_and_a_few_more_afterwards() {
    for (offset, mark, length, expected) in [
        (64, 0, 124, 10),
        (1 << 30, 0, 124, 10),
        (64, 0, 128, 11),
        (300, 200, 124, 14),
        (1 << 30, 64, 124, 18),
    ] {
        let mut bytes = Vec::new();
        put_frame_parts(&mut bytes, 1, offset, mark, &[&vec![7; length]]).unwrap();
        assert_eq!(bytes.len(), length + expected, "{offset} {mark} {length}");
        assert_eq!(frame_bytes(offset, mark, length as u64), bytes.len() as u64);
        assert_eq!(
            parse(&bytes, 1, offset, bytes.len() as u64).map(|record| (record.synced, record.end)),
            Ok((mark, offset + bytes.len() as u64))
        );
    }
}

#[test]
fn a_mark_of_zero_or_before_the_file_is_refused() {
    for distance in [100, 101] {
        let mut bytes = Vec::new();
        put_u32(&mut bytes, MAGIC);
        let mut covered = Vec::new();
        put_varint(&mut covered, 0);
        put_varint(&mut covered, distance);
        put_u64(&mut bytes, checksum(100, &covered));
        bytes.extend_from_slice(&covered);
        assert!(parse(&bytes, 0, 100, bytes.len() as u64).is_err());
        assert!(
            parse(&bytes, 0, distance + 1, bytes.len() as u64).is_err(),
            "the checksum is of another place"
        );
    }
}
