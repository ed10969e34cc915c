//! Keys keep their order and can be found.

use crate::{BuildError, KeyRange, KeySet};

#[test]
fn keys_keep_their_order_and_repeats_are_skipped() {
    let mut keys = KeySet::new();
    for key in ["", "", "a", "ab", "ab", "b"] {
        keys.push(key.as_bytes()).expect("keys are sorted");
    }
    assert_eq!(keys.iter().collect::<Vec<_>>(), [&b""[..], b"a", b"ab", b"b"]);
    assert_eq!(keys.push(b"aa"), Err(BuildError::Unsorted { index: 4 }));
    assert_eq!(keys.get(4), None);
}

#[test]
fn keys_of_one_length_take_no_memory_but_their_bytes() {
    let mut keys = KeySet::new();
    let key = |number: u32| number.to_be_bytes();
    (0..1_000).for_each(|number| keys.push(&key(number)).expect("keys are sorted"));
    assert_eq!(keys.memory_bytes(), 4 * 1_024);
    // From the first key of another length on, all are found as before.
    keys.push(b"long enough").expect("keys are sorted");
    keys.push(b"z").expect("keys are sorted");
    let expected = (0..1_000).map(|number| key(number).to_vec());
    let expected: Vec<Vec<u8>> = expected.chain([b"long enough".to_vec(), b"z".to_vec()]).collect();
    assert_eq!(keys.iter().collect::<Vec<_>>(), expected);
    assert_eq!((keys.len(), keys.get(1_002)), (1_002, None));
}

#[test]
fn a_range_reports_whether_it_contains_a_key() {
    let mut keys = KeySet::new();
    assert!(!keys.has_key_in(&KeyRange::ALL));
    for key in ["b", "d"] {
        keys.push(key.as_bytes()).expect("keys are sorted");
    }
    assert!(keys.has_key_in(&KeyRange::ALL));
    assert!(keys.has_key_in(&KeyRange::closed(b"a", b"b")));
    assert!(!keys.has_key_in(&KeyRange::closed(b"ba", b"c")));
    assert!(keys.has_key_in(&KeyRange::prefix(b"d")));
    assert!(!keys.has_key_in(&KeyRange::prefix(b"da")));
    assert!(!keys.has_key_in(&KeyRange::closed(b"e", b"z")));
    assert!(!keys.has_key_in(&KeyRange::closed(b"d", b"b")));
}

#[test]
fn heads_ignore_the_bytes_of_the_following_keys() {
    let mut keys = KeySet::new();
    let mut all: Vec<Vec<u8>> = (0..40_u8).map(|length| vec![length; usize::from(length)]).collect();
    all.extend((0..40).map(|zeros| [&[40][..], &vec![0; zeros], &[1]].concat()));
    all.sort();
    all.iter().for_each(|key| keys.push(key).expect("keys are sorted"));
    let heads: Vec<u128> = all.iter().map(|key| tamis_bits::long_key_head(key)).collect();
    assert_eq!(keys.heads().collect::<Vec<_>>(), heads);
    for length in [15, 16, 21] {
        let mut keys = KeySet::new();
        let all = (1..9).map(|byte| vec![byte; length]);
        all.clone().for_each(|key| keys.push(&key).expect("keys are sorted"));
        let heads: Vec<u128> = all.map(|key| tamis_bits::long_key_head(&key)).collect();
        assert_eq!(keys.heads().collect::<Vec<_>>(), heads, "{length} bytes");
    }
}
