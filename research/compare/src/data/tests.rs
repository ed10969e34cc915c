//! Keys and values.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_threads_of_a_fill_partition_its_entries() {
    let all = |thread_count: u64| {
        let mut keys = BTreeSet::new();
        for thread in 0..thread_count {
            let mut entries = Entries::new(0..1001, true, thread, thread_count);
            while let Some((key, _)) = entries.advance() {
                assert!(keys.insert(*key));
            }
        }
        keys
    };
    assert_eq!(all(1), all(2));
    assert_eq!(all(1).len(), 1001);
}

#[test]
fn half_of_a_value_is_random() {
    let (one, other) = (value_of(1), value_of(2));
    assert_ne!(one.first_chunk::<50>(), other.first_chunk::<50>());
    assert_eq!(one.last_chunk::<50>(), other.last_chunk::<50>());
    assert_eq!(one, value_of(257));
}
