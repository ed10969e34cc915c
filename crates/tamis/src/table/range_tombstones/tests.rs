#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{decode, encode};
use crate::range_tombstone::{RangeTombstone, fragment};

fn body() -> Vec<u8> {
    let tombstones = [("a", "h", 7), ("c", "f", 9), ("x", "", 1)].map(|(lower, upper, sequence)| {
        RangeTombstone { lower: lower.into(), upper: upper.into(), sequence }
    });
    encode(fragment(tombstones, &[]).list())
}

#[test]
fn fragments_are_read_as_they_were_written() {
    let body = body();
    let fragments = decode(&body, 0).expect("whole bytes");
    assert_eq!(fragments.list().len(), 4);
    assert_eq!(fragments.sequence_at(b"d", 8), 7);
    assert_eq!(fragments.sequence_at(b"zzz", 8), 1);
    assert_eq!(encode(fragments.list()), body);
}

#[test]
fn damaged_bytes_are_refused_or_give_possible_fragments() {
    let body = body();
    for length in 0..body.len() {
        assert!(decode(&body[..length], 0).is_none(), "{length} bytes");
    }
    assert!(decode(&[&body[..], &[0]].concat(), 0).is_none());
    for index in 0..body.len() {
        for byte in 0..=255 {
            let mut damaged = body.clone();
            damaged[index] = byte;
            if let Some(fragments) = decode(&damaged, 0) {
                assert_eq!(decode(&encode(fragments.list()), 0), Some(fragments));
            }
        }
    }
    assert!(decode(&encode(&[]), 0).is_none(), "a section without fragments is not written");
}
