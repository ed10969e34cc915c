//! Lists of keys and values of different lengths.

use super::{Cut, build, map_of};
use crate::trie::TrieIndex;

/// Values after the last key became `None` up to the next multiple of 64.
#[test]
fn get_many_changes_no_values_beyond_its_keys() {
    let map = map_of((0..300_u32).map(|number| number.to_string().into_bytes()));
    let index = TrieIndex::open(build(&map, Cut::Best)).unwrap();
    let strings: Vec<Vec<u8>> = (200..400_u32).map(|number| number.to_string().into_bytes()).collect();
    for key_count in [0, 1, 3, 64, 65, 150, 200] {
        for value_count in [0, 1, 2, 3, 64, 70, 128, 150, 300] {
            let keys: Vec<&[u8]> = strings[..key_count].iter().map(Vec::as_slice).collect();
            let mut values = vec![Some(&b"old"[..]); value_count];
            index.get_many(&keys, &mut values);
            for (number, value) in values.into_iter().enumerate() {
                let expected = keys.get(number).map_or(Some(&b"old"[..]), |key| index.get(key));
                assert_eq!(value, expected, "{number} of {value_count}, {key_count} keys");
            }
        }
    }
}
