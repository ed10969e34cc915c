//! A query hashes once for any number of filters.

use super::{Probe, RangeProbe};
use crate::{Digester, KeyRange};

#[test]
fn a_point_is_hashed_once_and_only_on_demand() {
    let digester = Digester::new(1);
    let probe = Probe::new(b"key", &digester);
    assert_eq!(probe.digest_count(), 0);
    for _ in 0..10 {
        assert_eq!(probe.digest(1), digester.digest(b"key"));
    }
    assert_eq!(probe.digest_count(), 1);
}

#[test]
fn an_inline_digest_is_shared_by_all_filters_and_counted_once() {
    let digester = Digester::new(1);
    let keys: [&[u8]; 4] = [b"", b"key", b"sixteen bytes...", b"seventeen bytes.."];
    for key in keys {
        let probe = Probe::new(key, &digester);
        assert_eq!(probe.quick_digest(2), None, "of another seed");
        assert_eq!(probe.quick_digest(1), (key.len() <= 16).then(|| digester.digest(key)));
        assert_eq!(probe.digest_count(), u32::from(key.len() <= 16));
        assert_eq!(probe.digest(1), digester.digest(key));
        assert_eq!(probe.quick_digest(1), Some(digester.digest(key)));
        assert_eq!(probe.digest_count(), 1);
    }
}

#[test]
fn another_seed_costs_a_separate_digest() {
    let digester = Digester::new(1);
    let probe = Probe::new(b"key", &digester);
    assert_eq!(probe.digest(2), Digester::new(2).digest(b"key"));
    assert_eq!(probe.digest(1), digester.digest(b"key"));
    assert_eq!(probe.digest(2), Digester::new(2).digest(b"key"));
    assert_eq!(probe.digest_count(), 3);
}

#[test]
fn prefix_digests_of_a_range_are_cached() {
    let digester = Digester::new(1);
    let probe = RangeProbe::new(KeyRange::closed(b"abcdefgh", b"abcdefgz"), &digester);
    for bits in [8, 16, 64, 65] {
        for _ in 0..3 {
            assert_eq!(probe.lower_prefix_digest(1, bits), digester.prefix_digest(b"abcdefgh", bits));
        }
    }
    assert_eq!(probe.digest_count(), 4);
    assert_eq!(probe.lower_prefix_digest(2, 8), Digester::new(2).prefix_digest(b"abcdefgh", 8));
}

#[test]
fn a_range_of_one_key_shares_its_point_digest() {
    let digester = Digester::new(1);
    let probe = RangeProbe::new(KeyRange::point(b"key"), &digester);
    for _ in 0..3 {
        let point = probe.point().expect("one key");
        assert_eq!(point.digest(1), digester.digest(b"key"));
    }
    assert_eq!(probe.digest_count(), 1);
}

#[test]
fn prefix_digests_beyond_the_cache_are_computed_again() {
    let digester = Digester::new(1);
    let probe = RangeProbe::new(KeyRange::ALL, &digester);
    for round in 0..2 {
        for word in 0..1000u64 {
            let digest = probe.word_prefix_digest(1, word << 40, 24);
            assert_eq!(digest, digester.word_prefix_digest(word << 40, 24), "{round} {word}");
        }
    }
}

#[test]
fn a_point_caches_its_prefix_digest() {
    let digester = Digester::new(1);
    let probe = Probe::new(b"abcdefghijkl", &digester);
    for bits in [16, 70] {
        for _ in 0..3 {
            assert_eq!(probe.prefix_digest(1, bits), digester.prefix_digest(b"abcdefghijkl", bits));
        }
    }
    assert_eq!(probe.digest_count(), 2);
}
