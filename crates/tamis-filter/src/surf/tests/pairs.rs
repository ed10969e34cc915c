//! Pairs of keys that share a kibibyte with each other, but not with other pairs, generated one by one: all keys take
//! gibibytes.

use super::{SEED, open};
use crate::surf::SurfBuilder;
use crate::{Budget, Digester, Family, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples};

const SHARED_BYTES: usize = 1024;

/// The bytes with which the keys of a pair begin.
fn begin(key: &mut Vec<u8>, pair: u64) {
    key.clear();
    key.extend_from_slice(&(pair << 40 | crate::mix64(pair, 1) >> 24).to_be_bytes());
    key.resize(SHARED_BYTES, (pair % 251) as u8);
}

fn with_last<T>(key: &mut Vec<u8>, last: u8, ask: impl FnOnce(&[u8]) -> T) -> T {
    key.push(last);
    let answer = ask(key);
    key.pop();
    answer
}

fn check_pairs(pair_count: u64) {
    let mut builder = SurfBuilder::new(Family::SurfBase, None, SEED);
    let mut key = Vec::new();
    let mut memory_max = 0;
    for pair in 0..pair_count {
        begin(&mut key, pair);
        for last in [b'a', b'b'] {
            with_last(&mut key, last, |key| builder.add(key)).unwrap();
        }
        if pair % 256 == 0 {
            memory_max = builder.memory_bytes().max(memory_max);
        }
    }
    let key_count = 2 * pair_count;
    // The limit that `FilterBuilder::memory_bytes` documents.
    let allowed = 36 * (16 * key_count as usize + (1 << 20)) + 256 * (SHARED_BYTES + 2);
    assert!(memory_max <= allowed, "{memory_max} bytes held");
    let filter = open(builder.finish(Budget::BY_PARAMETERS, Samples::NONE).unwrap());
    assert_eq!(filter.key_count(), key_count);
    let bits_per_key = filter.encoded_bytes() as f64 * 8.0 / key_count as f64;
    assert!(bits_per_key <= 64.0, "{bits_per_key} bits a key");
    let digester = Digester::new(SEED);
    let has_range = |range: KeyRange<'_>| filter.may_contain_range(&RangeProbe::new(range, &digester));
    for pair in (0..pair_count).step_by((pair_count / 5000) as usize) {
        begin(&mut key, pair);
        assert!(has_range(KeyRange::prefix(&key)), "{pair}");
        for last in [b'a', b'b'] {
            with_last(&mut key, last, |key| {
                assert!(filter.may_contain(&Probe::new(key, &digester)), "{pair}");
                assert!(has_range(KeyRange::point(key)), "{pair}");
            });
        }
    }
    // Absent pairs begin with other bytes.
    for pair in pair_count..pair_count + 100 {
        begin(&mut key, pair);
        assert!(!filter.may_contain(&Probe::new(&key, &digester)) && !has_range(KeyRange::prefix(&key)));
    }
}

#[test]
fn fifty_thousand_pairs_that_share_a_kibibyte_take_at_most_64_bits_per_key() {
    check_pairs(50_000);
}

#[test]
fn a_million_pairs_that_share_a_kibibyte_take_at_most_64_bits_per_key() {
    check_pairs(1_000_000);
}
