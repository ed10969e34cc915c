//! No false negatives: every family, hostile keys, all bounds.

use std::ops::Bound;

use tamis_filter::{
    AnyFilter, BuildError, Candidate, Digester, Direction, Filter, KeyRange, Probe, RangeProbe, Upper,
};

use crate::sets::{SEED, key_sets, next, specs, try_build};

/// Filters, with the digester of their seed and with one of another seed.
fn digesters() -> [Digester; 2] {
    [Digester::new(SEED), Digester::new(SEED + 1)]
}

#[test]
fn every_key_is_found() {
    for spec in specs() {
        for (name, keys) in key_sets() {
            for bits_per_key in [1.0, 10.0, 40.0] {
                let Some(bytes) = try_build(&spec, &keys, bits_per_key) else { continue };
                let filter = AnyFilter::open(bytes).unwrap();
                filter.verify().unwrap();
                for digester in digesters() {
                    for key in &keys {
                        assert!(filter.may_contain(&Probe::new(key, &digester)), "{spec:?} {name} {key:?}");
                        assert!(filter.may_contain(&Probe::new(key, &digester)), "{spec:?} {name} {key:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_empty_filter_rejects_everything() {
    for spec in specs() {
        let filter = AnyFilter::open(try_build(&spec, &[], 10.0).unwrap()).unwrap();
        let digester = Digester::new(SEED);
        assert!(!filter.may_contain(&Probe::new(b"", &digester)), "{spec:?}");
        assert!(!filter.may_contain(&Probe::new(b"", &digester)), "{spec:?}");
        for range in [KeyRange::ALL, KeyRange::prefix(b"a"), KeyRange::closed(b"a", b"c")] {
            assert!(!filter.may_contain_range(&RangeProbe::new(range, &digester)), "{spec:?} {range:?}");
            assert!(!filter.may_contain_range(&RangeProbe::new(range, &digester)), "{spec:?} {range:?}");
        }
        assert_eq!(filter.predicted_fpr(), Some(0.0), "{spec:?}");
        assert_eq!(filter.key_count(), 0);
    }
}

/// Bounds taken from the keys, from their neighbourhood and from elsewhere.
fn bounds(keys: &[Vec<u8>], state: &mut u64) -> Vec<Vec<u8>> {
    let mut bounds = vec![vec![], vec![0], vec![0xff; 9], u64::MAX.to_be_bytes().to_vec()];
    for _ in 0..25 {
        if keys.is_empty() {
            break;
        }
        let mut bound = keys[(next(state) % keys.len() as u64) as usize].clone();
        match next(state) % 4 {
            0 => bound.push((next(state) % 256) as u8),
            1 => drop(bound.pop()),
            2 => {
                if let Some(last) = bound.last_mut() {
                    *last = last.wrapping_add(1);
                }
            }
            _ => {}
        }
        bounds.push(bound);
    }
    bounds
}

pub(crate) fn check_range(
    filter: &AnyFilter<Vec<u8>>,
    digester: &Digester,
    keys: &[Vec<u8>],
    range: KeyRange<'_>,
    name: &str,
) {
    let inside: Vec<&Vec<u8>> = keys.iter().filter(|key| range.contains(key)).collect();
    let probe = RangeProbe::new(range, digester);
    let answer = filter.may_contain_range(&probe);
    assert_eq!(filter.may_contain_range(&RangeProbe::new(range, digester)), answer, "{name} {range:?}");
    assert!(answer || inside.is_empty(), "{name} {range:?}");
    assert!(!answer || !range.is_empty(), "{name} {range:?}");
    check_candidate(&filter.candidate(&probe, Direction::Forward), inside.first().copied(), true, name);
    check_candidate(&filter.candidate(&probe, Direction::Backward), inside.last().copied(), false, name);
    let above = KeyRange { lower: range.lower, upper: Upper::Open };
    let below = KeyRange { lower: Bound::Unbounded, upper: range.upper };
    check_candidate(
        &filter.candidate(&RangeProbe::new(above, digester), Direction::Forward),
        keys.iter().find(|key| above.contains(key)),
        true,
        name,
    );
    let greatest = keys.iter().rfind(|key| below.contains(key));
    let candidate = filter.candidate(&RangeProbe::new(below, digester), Direction::Backward);
    check_candidate(&candidate, greatest, false, name);
}

fn check_candidate(candidate: &Candidate, truth: Option<&Vec<u8>>, is_forward: bool, name: &str) {
    let Some(key) = truth else { return };
    match candidate {
        Candidate::Unknown => {}
        Candidate::Absent => panic!("{name}: {key:?} rejected"),
        Candidate::Bytes(bytes) if is_forward => assert!(bytes <= key, "{name} {bytes:?} {key:?}"),
        Candidate::Bytes(bytes) => assert!(key < bytes || key.starts_with(bytes), "{name} {bytes:?} {key:?}"),
    }
}

#[test]
fn no_range_with_a_key_is_rejected() {
    let mut state = 3;
    for spec in specs() {
        for (name, mut keys) in key_sets() {
            let Some(bytes) = try_build(&spec, &keys, 12.0) else { continue };
            let filter = AnyFilter::open(bytes).unwrap();
            keys.dedup();
            let bounds = bounds(&keys, &mut state);
            for digester in digesters() {
                check_range(&filter, &digester, &keys, KeyRange::ALL, name);
                for lower in &bounds {
                    check_range(&filter, &digester, &keys, KeyRange::prefix(lower), name);
                    check_range(&filter, &digester, &keys, KeyRange::point(lower), name);
                    let upper = &bounds[(next(&mut state) % bounds.len() as u64) as usize];
                    for lower in [Bound::Included(lower.as_slice()), Bound::Excluded(lower), Bound::Unbounded]
                    {
                        let uppers = [
                            Upper::Included(upper),
                            Upper::Excluded(upper),
                            Upper::Prefix(upper),
                            Upper::Open,
                        ];
                        for upper in uppers {
                            check_range(&filter, &digester, &keys, KeyRange { lower, upper }, name);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_filter_keeps_its_budget_and_reports_its_design() {
    for spec in specs() {
        for (name, mut keys) in key_sets() {
            for bits_per_key in [2.0, 10.0, 25.0] {
                let Some(bytes) = try_build(&spec, &keys, bits_per_key) else { continue };
                keys.dedup();
                let allowed = keys.len() as f64 * bits_per_key / 8.0 + 128.0;
                assert!(bytes.len() as f64 <= allowed, "{spec:?} {name}: {} bytes", bytes.len());
                let filter = AnyFilter::open(bytes.as_slice()).unwrap();
                assert_eq!(filter.encoded_bytes(), bytes.len() as u64);
                assert_eq!(filter.key_count(), keys.len() as u64);
                assert_eq!(filter.family(), spec.family());
                let mut design = String::new();
                filter.design(&mut design).unwrap();
                assert!(!design.is_empty() && !design.contains('\n'), "{design:?}");
                assert!(
                    filter.predicted_fpr().is_none_or(|rate| (0.0..=1.0).contains(&rate)),
                    "{spec:?} {name}"
                );
            }
        }
    }
}

#[test]
fn unsorted_keys_are_refused() {
    for spec in specs() {
        let mut builder = spec.builder(SEED).unwrap();
        builder.add(b"b").unwrap();
        builder.add(b"b").unwrap();
        assert_eq!(builder.add(b"a"), Err(BuildError::Unsorted { index: 1 }));
        assert_eq!(builder.key_count(), 1);
    }
}
