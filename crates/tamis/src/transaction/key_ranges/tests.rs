use std::collections::BTreeSet;

use tamis_workload::SplitMix64;

use super::{BYTES_MAX, KeyRanges, Keys};

/// Keys of one byte from 1 to 255, and whether the set has them.
fn keys_of(ranges: &KeyRanges) -> BTreeSet<u8> {
    (1..=255).filter(|byte| ranges.has_key(&[*byte])).collect()
}

#[test]
fn a_set_has_the_keys_and_ranges_that_were_added() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let (mut ranges, mut model) = (KeyRanges::default(), BTreeSet::new());
        for _ in 0..random.below(40) {
            let lower = 1 + random.below(255) as u8;
            match random.below(6) {
                0..3 => {
                    ranges.add_key(&[lower]);
                    model.insert(lower);
                }
                3 => {
                    ranges.add_range(&[lower], &[]);
                    model.extend(lower..=255);
                }
                _ => {
                    let upper = lower.saturating_add(random.below(30) as u8);
                    ranges.add_range(&[lower], &[upper]);
                    model.extend(lower..upper);
                }
            }
        }
        assert_eq!(keys_of(&ranges), model, "seed {seed}");
        for _ in 0..50 {
            let lower = 1 + random.below(200) as u8;
            let upper = lower + 1 + random.below(50) as u8;
            let meets = model.range(lower..upper).next().is_some();
            assert_eq!(ranges.meets(&[lower], &[upper]), meets, "seed {seed}");
        }
        // Disjoint, in order.
        let mut end = Some(vec![]);
        for keys in ranges.iter() {
            let (lower, upper) = match keys {
                Keys::One(key) => (key, Some([key, &[0]].concat())),
                Keys::Range(lower, upper) => (lower, (!upper.is_empty()).then(|| upper.to_vec())),
            };
            assert!(end.is_some_and(|end| end.as_slice() <= lower), "seed {seed}");
            end = upper;
        }
    }
}

#[test]
fn a_key_at_the_excluded_bound_of_a_range_stays() {
    let mut ranges = KeyRanges::default();
    ranges.add_key(b"b");
    ranges.add_range(b"a", b"b");
    assert!(ranges.has_key(b"a") && ranges.has_key(b"b") && !ranges.has_key(b"c"));
    // A range that begins there is joined.
    ranges.add_range(b"c", b"d");
    ranges.add_range(b"bb", b"c");
    assert_eq!(ranges.iter().count(), 3);
}

#[test]
fn a_large_set_keeps_its_keys_in_bounded_memory() {
    let mut ranges = KeyRanges::default();
    for number in 0..100_000_u64 {
        ranges.add_key(&(number * 10).to_be_bytes());
    }
    assert!(ranges.bytes <= BYTES_MAX, "{} bytes", ranges.bytes);
    assert!((0..100_000_u64).all(|number| ranges.has_key(&(number * 10).to_be_bytes())));
    assert!(ranges.iter().count() > 1_000, "it is still a set of many ranges");
    assert!(!ranges.has_key(&2_000_000_u64.to_be_bytes()));
}
