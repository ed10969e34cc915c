//! Rosettas compared with sets of keys: no false negatives, rates match the model, designs are near the best.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Bound;

use tamis_workload::{KeySet, QuerySet, RangeMax};

use super::layout::{BitLayout, FULL_DEPTH, Level, parse_directory};
use super::model::Share;
use super::{Prices, RosettaBuilder, RosettaFilter};
use crate::envelope::{self, Envelope};
use crate::{
    Budget, BuildError, Candidate, DecodeError, Digester, Direction, Filter, FilterBuilder, KeyRange, Probe,
    RangeProbe, Samples, Upper,
};

mod designs;

const SEED: u64 = 3;

pub(super) type Bounds = ([u8; 8], [u8; 8]);

pub(super) fn bytes(ranges: &[(u64, u64)]) -> Vec<Bounds> {
    ranges.iter().map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes())).collect()
}

pub(super) fn ranges(bounds: &[Bounds]) -> Vec<KeyRange<'_>> {
    bounds.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect()
}

pub(super) fn builder(keys: &[u64], prices: Prices) -> RosettaBuilder {
    let mut builder = RosettaBuilder::new(prices, SEED);
    keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).unwrap());
    builder
}

pub(super) fn open(bytes: Vec<u8>) -> RosettaFilter<Vec<u8>> {
    RosettaFilter::open(Envelope::parse(&bytes, bytes.len() as u64).unwrap(), bytes).unwrap()
}

pub(super) fn build(keys: &[u64], prices: Prices, bits: f64, sample: &[Bounds]) -> RosettaFilter<Vec<u8>> {
    let samples = ranges(sample);
    let budget = Budget::bits_per_key(bits).unwrap();
    open(builder(keys, prices).finish(budget, Samples { queries: &samples }).unwrap())
}

/// A filter with the given levels.
pub(super) fn with_levels(
    keys: &[u64],
    prices: Prices,
    bits: f64,
    levels: Vec<Share>,
) -> RosettaFilter<Vec<u8>> {
    let mut builder = builder(keys, prices);
    builder.set_plan(bits, levels);
    open(builder.finish(Budget::bits_per_key(bits).unwrap(), Samples::NONE).unwrap())
}

/// A filter of whole keys only.
fn single(keys: &[u64], bits: f64) -> RosettaFilter<Vec<u8>> {
    let level =
        Share { depth: 64, is_full: true, layout: BitLayout::Standard, bits: bits * keys.len() as f64 };
    with_levels(keys, Prices::default(), bits, vec![level])
}

/// Equal shares for whole keys and for the prefixes of five lengths above them.
fn ladder(bits: f64) -> Vec<Share> {
    let level = |depth| Share { depth, is_full: depth == 64, layout: BitLayout::Standard, bits: bits / 6.0 };
    (59..=64).map(level).collect()
}

pub(super) fn rate(filter: &RosettaFilter<Vec<u8>>, queries: &[Bounds]) -> f64 {
    rate_of(filter, &ranges(queries))
}

/// The share of ranges that pass.
pub(super) fn rate_of(filter: &RosettaFilter<Vec<u8>>, ranges: &[KeyRange<'_>]) -> f64 {
    let digester = Digester::new(SEED);
    let positive = |range: &&KeyRange<'_>| filter.may_contain_range(&RangeProbe::new(**range, &digester));
    ranges.iter().filter(positive).count() as f64 / ranges.len() as f64
}

/// Prices with free probes.
pub(super) fn rate_only() -> Prices {
    Prices { probe_ns: 0.0, ..Prices::default() }
}

pub(super) fn queries(set: QuerySet, keys: &[u64], count: usize, seed: u64) -> Vec<Bounds> {
    bytes(&set.generate(KeySet::Uniform, keys, count, seed).unwrap())
}

#[test]
fn predicted_rates_match_measured_rates() {
    let keys = KeySet::Uniform.generate(15_000, 1);
    let sets = [
        QuerySet::Uniform(RangeMax::Point),
        QuerySet::Uniform(RangeMax::R32),
        QuerySet::Correlated(RangeMax::R32),
        QuerySet::Correlated(RangeMax::R1024),
        QuerySet::Split,
    ];
    for set in sets {
        let (sample, asked) = (queries(set, &keys, 3000, 2), queries(set, &keys, 10_000, 3));
        for prices in [Prices::default(), rate_only()] {
            let filter = build(&keys, prices, 10.0, &sample);
            let (predicted, measured) = (filter.predicted_fpr().unwrap(), rate(&filter, &asked));
            // Four standard deviations of both counts, plus a tenth.
            let noise = 4.0 * (measured / 10_000.0 + predicted / 3000.0).sqrt();
            let apart = (predicted - measured).abs();
            assert!(apart < 0.1 * measured + noise, "{set} {prices:?}: {predicted} {measured}");
        }
    }
}

#[test]
fn predicted_rates_include_ranges_that_reach_the_probe_limit() {
    let keys = KeySet::Uniform.generate(15_000, 1);
    let set = QuerySet::Correlated(RangeMax::R1m);
    let (sample, asked) = (queries(set, &keys, 3000, 2), queries(set, &keys, 10_000, 3));
    for (bits, probe_cap) in [(20.0, 2048), (20.0, 300), (14.0, 100)] {
        let filter = build(&keys, Prices { probe_cap, ..rate_only() }, bits, &sample);
        let (predicted, measured) = (filter.predicted_fpr().unwrap(), rate(&filter, &asked));
        println!("{bits} {probe_cap}: {predicted} {measured}");
        assert!((predicted - measured).abs() < 0.1 * measured, "{probe_cap}: {predicted} {measured}");
    }
}

#[test]
fn points_have_the_rate_of_a_standard_bloom_filter() {
    let keys = KeySet::Uniform.generate(30_000, 1);
    let set = QuerySet::Uniform(RangeMax::Point);
    let filter = build(&keys, Prices::default(), 8.0, &queries(set, &keys, 1000, 2));
    let formula = crate::bloom::formula::standard_fpr(8.0, 6);
    let measured = rate(&filter, &queries(set, &keys, 300_000, 3));
    assert!((measured / formula - 1.0).abs() < 0.06, "{measured} {formula}");
    let mut design = String::new();
    filter.design(&mut design).unwrap();
    // 5 bits per key have a rate within 1 % of the minimum, which is that of 6.
    assert!(design.starts_with("keys 8.0") && design.ends_with("k5"), "{design}");
    // With more memory, one standard level is still the cheapest.
    let sample = queries(set, &keys, 1000, 2);
    for bits in [10.0, 12.0, 16.0, 20.0] {
        let filter = build(&keys, Prices::default(), bits, &sample);
        let mut design = String::new();
        filter.design(&mut design).unwrap();
        assert!(design.starts_with("keys") && !design.contains("lines"), "{bits}: {design}");
    }
}

#[test]
fn levels_add_up_to_the_budget() {
    let keys = KeySet::Gaps.generate(3000, 1);
    let sample = bytes(&QuerySet::Correlated(RangeMax::R32).generate(KeySet::Gaps, &keys, 500, 2).unwrap());
    let samples = ranges(&sample);
    for bits in [1.0, 9.7, 22.0] {
        let builder = builder(&keys, Prices::default());
        let total = bits * keys.len() as f64;
        let plan = builder.plan(total, Samples { queries: &samples });
        let sum: f64 = plan.shares.iter().map(|share| share.bits).sum();
        assert!((sum - total).abs() < 1.0, "{bits}: {sum} {total}");
        let budget = Budget::bits_per_key(bits).unwrap();
        let bytes = builder.finish(budget, Samples { queries: &samples }).unwrap();
        let used = bytes.len() as f64 - total / 8.0;
        assert!((0.0..=128.0).contains(&used), "{bits}: {used} bytes more");
    }
}

fn all_bounds(keys: &BTreeSet<u64>) -> Vec<u64> {
    let near = keys.iter().flat_map(|key| [key.wrapping_sub(1), *key, key.wrapping_add(1)]);
    near.chain([0, 1, u64::MAX - 1, u64::MAX, 1 << 63]).collect()
}

/// Whether the candidate of a range is not beyond its first key in the direction.
pub(super) fn check_bytes(candidate: &Candidate, key: &[u8], direction: Direction, what: impl Display) {
    let is_right = match (candidate, direction) {
        (Candidate::Absent, _) => false,
        (Candidate::Bytes(bytes), Direction::Forward) => bytes.as_slice() <= key,
        (Candidate::Bytes(bytes), Direction::Backward) => key < bytes.as_slice() || key.starts_with(bytes),
        (Candidate::Unknown, _) => true,
    };
    assert!(is_right, "{candidate:x?} skips {key:x?} {direction:?}: {what}");
}

fn check_candidate(candidate: &Candidate, truth: Option<u64>, is_forward: bool, what: &str) {
    let Some(key) = truth.map(u64::to_be_bytes) else { return };
    let direction = if is_forward { Direction::Forward } else { Direction::Backward };
    check_bytes(candidate, &key, direction, what);
}

#[test]
fn no_range_of_integers_has_a_false_negative() {
    let sets: [&[u64]; 5] =
        [&[0], &[u64::MAX], &[0, u64::MAX], &[5, 6, 7, 1000, 1001, 1 << 40], &[u64::MAX - 3, u64::MAX - 1]];
    for set in sets {
        for bits in [30.0, 300.0] {
            let keys: BTreeSet<u64> = set.iter().copied().collect();
            let total = bits * set.len() as f64;
            for filter in [
                build(set, Prices::default(), bits, &[]),
                single(set, bits),
                with_levels(set, Prices::default(), bits, ladder(total)),
            ] {
                no_false_negative(&keys, &filter);
            }
        }
    }
}

fn no_false_negative(keys: &BTreeSet<u64>, filter: &RosettaFilter<Vec<u8>>) {
    let digester = Digester::new(SEED);
    assert!(filter.may_contain_range(&RangeProbe::new(KeyRange::ALL, &digester)));
    let bounds = all_bounds(keys);
    for (lower, upper) in bounds.iter().flat_map(|lower| bounds.iter().map(move |upper| (*lower, *upper))) {
        let (low, high) = (lower.to_be_bytes(), upper.to_be_bytes());
        let lowers = [Bound::Included(&low[..]), Bound::Excluded(&low), Bound::Unbounded];
        let uppers = [Upper::Included(&high[..]), Upper::Excluded(&high), Upper::Open];
        for (lower, upper) in lowers.iter().flat_map(|lower| uppers.map(|upper| (*lower, upper))) {
            let range = KeyRange { lower, upper };
            let inside = || keys.iter().copied().filter(|key| range.contains(&key.to_be_bytes()));
            let probe = RangeProbe::new(range, &digester);
            let what = format!("{keys:?} {range:?}");
            assert!(filter.may_contain_range(&probe) || inside().next().is_none(), "{what}");
            let candidate = |direction| filter.candidate(&probe, direction);
            check_candidate(&candidate(Direction::Forward), inside().next(), true, &what);
            check_candidate(&candidate(Direction::Backward), inside().next_back(), false, &what);
        }
    }
}

#[test]
fn ranges_without_any_integer_are_rejected_without_a_probe() {
    let filter = build(&[5, 9], Prices::default(), 100.0, &[]);
    let digester = Digester::new(SEED);
    let max = u64::MAX.to_be_bytes();
    let zero = 0_u64.to_be_bytes();
    let nothing = [
        KeyRange { lower: Bound::Excluded(&max), upper: Upper::Open },
        KeyRange { lower: Bound::Unbounded, upper: Upper::Excluded(&zero) },
        KeyRange {
            lower: Bound::Included(&[0, 0, 0, 0, 0, 0, 0, 5, 1]),
            upper: Upper::Prefix(&[0, 0, 0, 0, 0, 0, 0, 5]),
        },
    ];
    for range in nothing {
        let probe = RangeProbe::new(range, &digester);
        assert!(!filter.may_contain_range(&probe), "{range:?}");
        assert_eq!(probe.probe_count(), 0);
    }
    assert!(!filter.may_contain(&Probe::new(b"short", &digester)), "no key has this length");
}

#[test]
fn a_range_never_exceeds_the_probe_limit() {
    let keys = KeySet::Uniform.generate(2000, 1);
    let digester = Digester::new(SEED);
    for probe_cap in [1, 7, 100, 2048] {
        let prices = Prices { probe_cap, ..Prices::default() };
        for filter in [build(&keys, prices, 12.0, &[]), with_levels(&keys, prices, 12.0, ladder(24_000.0))] {
            for width in (0..64).step_by(3) {
                let (lower, upper) = (123_u64.to_be_bytes(), (123 + (1_u64 << width)).to_be_bytes());
                let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
                filter.may_contain_range(&probe);
                assert!(probe.probe_count() <= probe_cap, "{width}");
                for direction in [Direction::Forward, Direction::Backward] {
                    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
                    filter.candidate(&probe, direction);
                    assert!(probe.probe_count() <= probe_cap, "{width} {direction:?}");
                }
            }
        }
    }
    // The single level has no nodes but keys: the limit is known before the first probe.
    let filter = single(&keys, 12.0);
    let (lower, upper) = (0_u64.to_be_bytes(), (1_u64 << 40).to_be_bytes());
    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
    assert!(filter.may_contain_range(&probe));
    assert_eq!(probe.probe_count(), 0);
}

#[test]
fn candidates_skip_rejected_nodes() {
    let keys: Vec<u64> = (0..500).map(|number| number << 16).collect();
    let digester = Digester::new(SEED);
    let filter = single(&keys, 40.0);
    let key = keys[100];
    let (lower, upper) = ((key - 300).to_be_bytes(), (key + 300).to_be_bytes());
    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
    let exact = Candidate::Bytes(key.to_be_bytes().to_vec());
    assert_eq!(filter.candidate(&probe, Direction::Backward), exact);
    assert_eq!(
        filter.candidate(&probe, Direction::Forward),
        Candidate::Bytes(key.to_be_bytes().to_vec().into_iter().take(6).collect()),
        "zeros at the end are left out"
    );
}

#[test]
fn one_node_above_a_whole_range_rejects_it() {
    let keys = KeySet::Uniform.generate(500, 1);
    let level = |depth, is_full, bits| Share { depth, is_full, layout: BitLayout::Standard, bits };
    let mut builder = builder(&keys, Prices::default());
    builder.set_plan(32.0, vec![level(30, false, 8000.0), level(64, true, 8000.0)]);
    let filter = open(builder.finish(Budget::bits_per_key(32.0).unwrap(), Samples::NONE).unwrap());
    let digester = Digester::new(SEED);
    let denied = |size: u64| {
        let probes = (0..200_u64).map(|number| {
            // Within one node of 30 bits.
            let lower = (number << 47) + (1 << 46);
            let bounds = [lower, lower + size - 1].map(u64::to_be_bytes);
            let probe = RangeProbe::new(KeyRange::closed(&bounds[0], &bounds[1]), &digester);
            (filter.may_contain_range(&probe), probe.probe_count(), probe.digest_count())
        });
        probes.filter(|probe| *probe == (false, 1, 1)).count()
    };
    // One node for any size: ranges of 2^32 keys have at least 64 of the smaller intervals.
    assert!(denied(2) > 190 && denied(1000) > 190 && denied(1 << 32) > 190, "{}", denied(1 << 32));
}

#[test]
fn the_price_of_a_probe_chooses_the_layout_of_a_level() {
    let keys = KeySet::Uniform.generate(5000, 1);
    let sample = queries(QuerySet::Uniform(RangeMax::Point), &keys, 500, 2);
    let design = |probe_ns| {
        let prices = Prices { probe_ns, ..Prices::default() };
        let filter = build(&keys, prices, 20.0, &sample);
        let mut design = String::new();
        filter.design(&mut design).unwrap();
        design
    };
    // A blocked level costs a point 6 ns more of reads and 0.6 lines less.
    assert!(!design(1.0).contains("in lines"), "{}", design(1.0));
    assert!(design(100.0).contains("in lines"), "{}", design(100.0));
}

#[test]
fn siblings_share_a_digest_and_a_line() {
    let digester = Digester::new(SEED);
    // A level of prefixes digests eight siblings at once.
    let keys = KeySet::Uniform.generate(500, 1);
    let level = Share { depth: 60, is_full: false, layout: BitLayout::Blocked, bits: 4000.0 };
    let mut builder = builder(&keys, Prices::default());
    builder.set_plan(14.0, vec![level]);
    let filter = open(builder.finish(Budget::bits_per_key(14.0).unwrap(), Samples::NONE).unwrap());
    let (lower, upper) = ((1_u64 << 20).to_be_bytes(), ((1_u64 << 20) + 16 * 32 - 1).to_be_bytes());
    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
    assert!(!filter.may_contain_range(&probe));
    assert_eq!((probe.probe_count(), probe.digest_count()), (32, 4));
}

#[test]
fn a_probe_with_another_seed_gets_the_same_answers() {
    let keys = KeySet::Uniform.generate(1000, 1);
    let sample = queries(QuerySet::Correlated(RangeMax::R32), &keys, 300, 2);
    let filter = build(&keys, Prices::default(), 12.0, &sample);
    let (own, other) = (Digester::new(SEED), Digester::new(SEED + 1));
    for range in ranges(&sample) {
        let answers =
            [&own, &other].map(|digester| filter.may_contain_range(&RangeProbe::new(range, digester)));
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn long_keys_of_several_lengths_are_found_and_absent_ranges_rejected() {
    let keys: Vec<Vec<u8>> = (0..2000_u32)
        .map(|number| {
            format!("a rather long common beginning/{number:05}{}", "x".repeat(number as usize % 3))
                .into_bytes()
        })
        .collect();
    let strangers: Vec<(Vec<u8>, Vec<u8>)> = (0..2000_u32)
        .map(|number| {
            let lower = format!("a rather long common beginning/{number:05}y");
            (lower.clone().into_bytes(), format!("{lower}zz").into_bytes())
        })
        .collect();
    let samples: Vec<KeyRange<'_>> =
        strangers.iter().step_by(2).map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let digester = Digester::new(SEED);
    let mut builder = RosettaBuilder::new(rate_only(), SEED);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    let filter =
        open(builder.finish(Budget::bits_per_key(14.0).unwrap(), Samples { queries: &samples }).unwrap());
    for key in &keys {
        assert!(filter.may_contain(&Probe::new(key, &digester)));
        for range in [KeyRange::prefix(key), KeyRange::closed(&key[..20], key), KeyRange::prefix(&key[..34])]
        {
            assert!(filter.may_contain_range(&RangeProbe::new(range, &digester)), "{range:?}");
        }
    }
    let positives = strangers
        .iter()
        .filter(|(lower, upper)| {
            filter.may_contain_range(&RangeProbe::new(KeyRange::closed(lower, upper), &digester))
        })
        .count();
    let mut design = String::new();
    filter.design(&mut design).unwrap();
    assert!(positives < 100, "{positives} of 2000: {design}");
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let refused = |text: &str| {
        let spec: crate::FilterSpec = text.parse().unwrap();
        spec.builder(SEED).map(drop).unwrap_err()
    };
    let wrong = [
        ("probe-cost", "-1"),
        ("probe-cost", "NaN"),
        ("read-cost", "1e13"),
        ("read-cost", "much"),
        ("probe-cap", "0"),
        ("probe-cap", "65537"),
    ];
    for (parameter, text) in wrong {
        let error = refused(&format!("rosetta:{parameter}={text}"));
        let is_reported = matches!(&error, BuildError::Parameter { name, value, .. } if *name == parameter && value == text);
        assert!(is_reported, "{error:?}");
    }
    let error = refused("rosetta:bits=3");
    assert!(matches!(&error, BuildError::UnknownParameter { name, .. } if name == "bits"), "{error:?}");
}

/// Changes bytes of a whole filter and corrects its checksums; returns the field that the reader refuses.
fn refusal(bytes: &[u8], change: impl Fn(&mut [u8], &mut [u8])) -> Option<&'static str> {
    let mut bytes = bytes.to_vec();
    let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
    change(&mut envelope.parameters, &mut bytes);
    envelope.seal(&mut bytes);
    let envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
    match RosettaFilter::open(envelope, bytes) {
        Err(DecodeError::Field { field, .. }) => Some(field),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[test]
fn every_field_out_of_range_is_refused_by_name() {
    let keys = KeySet::Uniform.generate(500, 1);
    let level = |depth, is_full, layout| Share { depth, is_full, layout, bits: 4000.0 };
    let mut builder = builder(&keys, Prices::default());
    let levels = vec![level(60, false, BitLayout::Blocked), level(64, true, BitLayout::Standard)];
    builder.set_plan(16.0, levels);
    let bytes = builder.finish(Budget::bits_per_key(16.0).unwrap(), Samples::NONE).unwrap();
    assert_eq!(refusal(&bytes, |_, _| {}), None);
    let parameters: [(usize, &[u8], &str); 8] = [
        (0, &[17], "level_count"),
        (0, &[3], "byte_count"),
        (1, &[1], "reserved"),
        (4, &2.0_f32.to_le_bytes(), "predicted_fpr"),
        (4, &f32::NAN.to_le_bytes(), "predicted_fpr"),
        (8, &0_u32.to_le_bytes(), "probe_cap"),
        (8, &65_537_u32.to_le_bytes(), "probe_cap"),
        (12, &[2], "search_cut"),
    ];
    for (offset, value, field) in parameters {
        let found = refusal(&bytes, |parameters, _| {
            parameters[offset..offset + value.len()].copy_from_slice(value);
        });
        // The entry of a third level would be bits of the second one.
        assert!(found == Some(field) || offset == 0 && found.is_some(), "{field}: {found:?}");
    }
    // In the entry of the blocked level, the last but one.
    let entries: [(usize, &[u8], &str); 12] = [
        (0, &0_u32.to_le_bytes(), "depth"),
        (0, &64_u32.to_le_bytes(), "depth"),
        (0, &65_u32.to_le_bytes(), "depth"),
        (0, &u32::MAX.to_le_bytes(), "depth"),
        (4, &[2], "layout"),
        (5, &[0], "probe_count"),
        (5, &[17], "probe_count"),
        (6, &[1], "reserved"),
        (8, &0_u64.to_le_bytes(), "byte_count"),
        (8, &(u64::MAX - 63).to_le_bytes(), "byte_count"),
        (16, &0_u64.to_le_bytes(), "prefix_count"),
        (16, &501_u64.to_le_bytes(), "prefix_count"),
    ];
    for (offset, value, field) in entries {
        let found = refusal(&bytes, |_, bytes| {
            let entry = bytes.len() - 48 + offset;
            bytes[entry..entry + value.len()].copy_from_slice(value);
        });
        assert_eq!(found, Some(field), "{offset} {value:?}");
    }
}

/// A filter of a former builder, which chose its levels by a formula.
#[test]
fn the_levels_of_a_frozen_filter_get_the_same_bytes() {
    const FROZEN: &[u8] = include_bytes!("../../tests/golden/v1/filter-rosetta-optimised");
    let former = Envelope::parse(FROZEN, FROZEN.len() as u64).unwrap();
    let payload = envelope::payload(FROZEN);
    let levels = parse_directory(payload, usize::from(former.parameters[0])).unwrap();
    let share = |level: &Level| Share {
        depth: level.depth,
        is_full: level.depth == FULL_DEPTH,
        layout: level.layout,
        bits: level.byte_count as f64 * 8.0,
    };
    let mut builder = RosettaBuilder::new(Prices::default(), former.seed);
    for number in 0..former.key_count {
        let key = format!("key {number:04}{}", "x".repeat(number as usize % 7));
        builder.add(key.as_bytes()).unwrap();
    }
    builder.set_plan(24.0, levels.iter().map(share).collect());
    let bytes = builder.finish(Budget::bits_per_key(24.0).unwrap(), Samples::NONE).unwrap();
    assert!(envelope::payload(&bytes) == payload, "{levels:?}");
}
