//! The fast path and the general path return equal answers.

use super::*;
use crate::proteus::SetForm;

fn built(set: &KeySet, family: Family, design: &Design) -> AnyFilter<Vec<u8>> {
    let mut builder = ProteusBuilder::new(family, Prices::DEFAULT, SEED).with_design(design);
    builder.add_all(&Arc::new(set.clone())).expect("sorted");
    AnyFilter::open(builder.finish(bits_per_key(200.0), Samples::NONE).expect("fits")).expect("whole")
}

fn with_set(depth: u32, form: SetForm, prefix: u32) -> Design {
    Design { first: Stage::Set { depth, form }, prefix, layout: BloomLayout::Spread }
}

/// Queries near to keys and far from them, short and long, and points.
fn queries(values: &[u64]) -> Vec<(u64, u64)> {
    let mut state = 5;
    let mut queries = vec![(0, 0), (0, u64::MAX), (u64::MAX, u64::MAX), (7, 3)];
    for length in [0, 1, 30, 1 << 12, 1 << 30, 1 << 41] {
        for _ in 0..120 {
            let key = values[random(&mut state) as usize % values.len()];
            let distance = random(&mut state) >> (random(&mut state) % 64);
            for lower in [key, key.wrapping_add(distance), key.wrapping_sub(distance), random(&mut state)] {
                queries.push((lower, lower.saturating_add(length)));
            }
        }
    }
    queries
}

fn holds_key(sorted: &[u64], lower: u64, upper: u64) -> bool {
    sorted.partition_point(|key| *key < lower) < sorted.partition_point(|key| *key <= upper)
}

/// Answer and number of tests of a new query, and of one whose digests another filter has cached.
fn ask(filter: &AnyFilter<Vec<u8>>, before: &AnyFilter<Vec<u8>>, lower: u64, upper: u64) -> [(bool, u32); 2] {
    let digester = Digester::new(SEED);
    let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
    [None, Some(before)].map(|before| {
        if lower == upper {
            let probe = Probe::new(&lower, &digester);
            before.iter().for_each(|before| _ = before.may_contain(&probe));
            let steps = probe.probe_count();
            return (filter.may_contain(&probe), probe.probe_count() - steps);
        }
        let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
        before.iter().for_each(|before| _ = before.may_contain_range(&probe));
        let steps = probe.probe_count();
        (filter.may_contain_range(&probe), probe.probe_count() - steps)
    })
}

/// Uniform integers, and clustered ones.
fn even_and_crowded(state: &mut u64) -> [Vec<u64>; 2] {
    let even: Vec<u64> = (0..3000).map(|_| random(state)).collect();
    let crowded: Vec<u64> = (0..3000).map(|_| random(state) >> (random(state) % 50)).collect();
    [even, crowded].map(|mut values| {
        values.sort_unstable();
        values.dedup();
        values
    })
}

#[test]
fn all_forms_of_sets_of_integers_return_equal_answers() {
    let mut state = 9;
    for values in even_and_crowded(&mut state) {
        let set = integers(values.iter().copied());
        let bloom = Design { first: Stage::None, prefix: 47, layout: BloomLayout::Spread };
        let before = built(&set, Family::OnePrefixBloom, &bloom);
        for (depth, prefix) in [(14, 0), (14, 47), (22, 64), (64, 0)] {
            let forms = [SetForm::MarkedEliasFano, SetForm::EliasFano, SetForm::Trie, SetForm::Bitmap];
            let has_room = |form: &SetForm| *form != SetForm::Bitmap || depth < 20;
            let filters: Vec<_> = forms
                .into_iter()
                .filter(has_room)
                .map(|form| built(&set, Family::Proteus, &with_set(depth, form, prefix)))
                .collect();
            for (lower, upper) in queries(&values) {
                let is_there = holds_key(&values, lower, upper);
                let answers: Vec<_> =
                    filters.iter().map(|filter| ask(filter, &before, lower, upper)).collect();
                let [(answer, _), (later, _)] = answers[0];
                assert!(
                    answers.iter().flatten().all(|(other, _)| *other == answer),
                    "{lower}..={upper}: {answers:?}"
                );
                assert!((answer && later) || !is_there, "{lower}..={upper}");
                assert!(depth < 64 || answer == (is_there && lower <= upper), "{lower}..={upper}");
            }
        }
    }
}

#[test]
fn a_bloom_filter_returns_equal_answers_with_and_without_cached_digests() {
    let mut state = 3;
    let mut values: Vec<u64> = (0..2000).map(|_| random(&mut state)).collect();
    values.sort_unstable();
    let set = integers(values.iter().copied());
    for prefix in [1, 20, 33, 47, 56, 63, 64] {
        let design = Design { first: Stage::None, prefix, layout: BloomLayout::Spread };
        let filter = built(&set, Family::OnePrefixBloom, &design);
        for (lower, upper) in queries(&values) {
            let [fresh, later] = ask(&filter, &filter, lower, upper);
            assert_eq!(fresh, later, "{prefix} bits: {lower}..={upper}");
            let is_there = holds_key(&values, lower, upper);
            assert!(fresh.0 || !is_there, "{prefix} bits: {lower}..={upper}");
        }
    }
    // The filter has no keys of another length.
    let filter = built(
        &set,
        Family::OnePrefixBloom,
        &Design { first: Stage::None, prefix: 64, layout: BloomLayout::Spread },
    );
    let digester = Digester::new(SEED);
    for key in [&b""[..], b"1234567", b"123456789"] {
        assert!(!filter.may_contain(&Probe::new(key, &digester)));
        assert!(!filter.may_contain(&Probe::new(key, &digester)));
    }
}

/// Compares the answers with a probe and without one for all kinds of ranges between two bounds.
fn check_ranges(filter: &AnyFilter<Vec<u8>>, lower: &[u8], upper: &[u8]) {
    for range in ranges(lower, upper) {
        let answer = filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)));
        assert_eq!(answer, has_range(filter, range), "{range:?}");
    }
}

/// Compares the answers of queries with a probe and without one, and of the general path, for points and for ranges.
fn check_queries(filter: &AnyFilter<Vec<u8>>, queries: &[(u64, u64)], seed: u64) {
    let digester = Digester::new(seed);
    let bytes: Vec<_> =
        queries.iter().map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes())).collect();
    let ranges: Vec<_> = bytes.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let keys: Vec<&[u8]> = bytes.iter().map(|(lower, _)| &lower[..]).collect();
    let AnyFilter::Proteus(proteus) = filter else { panic!("of this module") };
    let general = proteus.without_fast_path();
    for key in &keys {
        let alone = filter.may_contain(&Probe::new(key, &digester));
        assert_eq!(
            general.may_contain(&Probe::new(key, &digester)),
            alone,
            "{key:?} of {}",
            design_of(filter)
        );
        assert_eq!(
            filter.may_contain(&Probe::new(key, &digester)),
            alone,
            "{key:?} of {}",
            design_of(filter)
        );
    }
    for range in &ranges {
        let alone = filter.may_contain_range(&RangeProbe::new(*range, &digester));
        let other = general.may_contain_range(&RangeProbe::new(*range, &digester));
        assert_eq!(other, alone, "{range:?} of {}", design_of(filter));
        assert_eq!(
            filter.may_contain_range(&RangeProbe::new(*range, &digester)),
            alone,
            "{range:?} of {}",
            design_of(filter)
        );
    }
}

#[test]
fn bloom_filters_return_the_answers_of_the_general_path() {
    let mut state = 4;
    let mut values: Vec<u64> = (0..2000).map(|_| random(&mut state)).collect();
    values.sort_unstable();
    let set = integers(values.iter().copied());
    let queries = queries(&values);
    let design = |prefix, layout| Design { first: Stage::None, prefix, layout };
    for prefix in [1, 9, 20, 27, 33, 47, 56, 60, 63, 64] {
        // Bits per prefix: 1, 3, 4, 5 and the most possible.
        let spread = [1.4, 5.0, 6.0, 7.0, 40.0].map(|bits| (bits, BloomLayout::Spread));
        for (bits, layout) in spread.into_iter().chain([(8.0, BloomLayout::Lines)]) {
            let mut builder = ProteusBuilder::new(Family::OnePrefixBloom, Prices::DEFAULT, SEED)
                .with_design(&design(prefix, layout));
            builder.add_all(&Arc::new(set.clone())).expect("sorted");
            let bytes = builder.finish(bits_per_key(bits), Samples::NONE).expect("fits");
            let filter = AnyFilter::open(bytes).expect("whole");
            check_queries(&filter, &queries, SEED);
            check_queries(&filter, &queries[..100], SEED + 1);
        }
    }
    // Other kinds of bounds, and other lengths.
    let filter = built(&set, Family::OnePrefixBloom, &design(47, BloomLayout::Spread));
    let (lower, upper) = (values[7].to_be_bytes(), values[9].to_be_bytes());
    for (lower, upper) in [(&lower[..], &upper[..]), (&lower[..3], &upper[..]), (&upper[..], &lower[..])] {
        check_ranges(&filter, lower, upper);
    }
}

#[test]
fn sets_return_the_answers_of_the_general_path() {
    let mut state = 8;
    for values in even_and_crowded(&mut state) {
        let set = integers(values.iter().copied());
        let queries = queries(&values);
        for (depth, prefix) in
            [(1, 0), (14, 0), (14, 47), (18, 60), (22, 64), (26, 47), (40, 0), (40, 47), (60, 63), (64, 0)]
        {
            for form in [SetForm::MarkedEliasFano, SetForm::EliasFano, SetForm::Bitmap, SetForm::Trie] {
                if form == SetForm::Bitmap && depth > 20 {
                    continue;
                }
                let filter = built(&set, Family::Proteus, &with_set(depth, form, prefix));
                check_queries(&filter, &queries, SEED);
                check_queries(&filter, &queries[..100], SEED + 1);
            }
        }
    }
    // Bloom filters with one to three bits per prefix after the set, or more.
    let values: Vec<u64> = (0..2000_u64).map(|number| number << 49 | random(&mut state) >> 16).collect();
    for bits in [6.0, 7.0, 8.0, 10.0, 14.0] {
        let design = with_set(16, SetForm::MarkedEliasFano, 47);
        let mut builder = ProteusBuilder::new(Family::Proteus, Prices::DEFAULT, SEED).with_design(&design);
        builder.add_all(&Arc::new(integers(values.iter().copied()))).expect("sorted");
        let bytes = builder.finish(bits_per_key(bits), Samples::NONE).expect("fits");
        check_queries(&AnyFilter::open(bytes).expect("whole"), &queries(&values), SEED);
    }
    // Other kinds of bounds, and keys and bounds of other lengths.
    let long: Vec<u64> = (0..3000).map(|_| random(&mut state)).collect();
    let short = key_set(long.iter().map(|value| (*value >> 32) as u32).map(u32::to_be_bytes));
    let digester = Digester::new(SEED);
    for set in [integers(long.iter().copied()), short] {
        let filter = built(&set, Family::Proteus, &with_set(14, SetForm::MarkedEliasFano, 30));
        let (lower, upper) = (set.get(7).expect("there"), set.get(9).expect("there"));
        for (lower, upper) in [(lower, upper), (&lower[..3], upper), (upper, lower), (lower, lower)] {
            check_ranges(&filter, lower, upper);
        }
        let near: Vec<Vec<u8>> = set.iter().map(|key| [key, b"x"].concat()).collect();
        assert!(set.iter().all(|key| filter.may_contain(&Probe::new(key, &digester))));
        assert!(!near.iter().any(|key| filter.may_contain(&Probe::new(key, &digester))));
    }
}

/// Damaged bytes lead to any answer but no panic.
#[test]
fn damaged_sets_do_not_panic() {
    let mut state = 6;
    let mut values: Vec<u64> = (0..1000).map(|_| random(&mut state)).collect();
    values.sort_unstable();
    let set = integers(values.iter().copied());
    let bytes: Vec<_> = queries(&values[..40])
        .into_iter()
        .take(200)
        .map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes()))
        .collect();
    let keys: Vec<&[u8]> = bytes.iter().map(|(lower, _)| &lower[..]).collect();
    let ranges: Vec<_> = bytes.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let digester = Digester::new(SEED);
    let mut builder = ProteusBuilder::new(Family::Proteus, Prices::DEFAULT, SEED).with_design(&with_set(
        18,
        SetForm::MarkedEliasFano,
        47,
    ));
    builder.add_all(&Arc::new(set)).expect("sorted");
    let whole = builder.finish(bits_per_key(200.0), Samples::NONE).expect("fits");
    let mut opened = 0;
    for offset in (0..whole.len()).step_by(5) {
        for byte in [0, 1, 0x55, 0xff] {
            let mut damaged = whole.clone();
            let rest = damaged.get_mut(offset..).unwrap_or_default();
            let length = rest.len().min(1 + offset % 9);
            rest[..length].fill(byte);
            if let Ok(filter) = AnyFilter::open(damaged) {
                opened += 1;
                keys.iter().for_each(|key| _ = filter.may_contain(&Probe::new(key, &digester)));
                ranges.iter().for_each(|range| _ = has_range(&filter, *range));
                keys.iter().for_each(|key| _ = filter.may_contain(&Probe::new(key, &digester)));
                ranges
                    .iter()
                    .for_each(|range| _ = filter.may_contain_range(&RangeProbe::new(*range, &digester)));
            }
        }
    }
    assert!(opened > 1000, "{opened}");
}

/// Bounds around a key: itself, cut, longer, and with another last byte.
fn bounds_near(key: &[u8]) -> Vec<Vec<u8>> {
    let other_end = |by: i8| {
        let mut bytes = key.to_vec();
        bytes.iter_mut().next_back().into_iter().for_each(|last| *last = last.wrapping_add_signed(by));
        bytes
    };
    let cut = [3, 7, 10].map(|length| key[..length.min(key.len())].to_vec());
    let longer = [[key, &[0]].concat(), [key, &[0xff, 1]].concat()];
    cut.into_iter().chain(longer).chain([key.to_vec(), other_end(1), other_end(-1)]).collect()
}

#[test]
fn strings_have_the_answers_of_the_general_path() {
    let mut state = 12;
    let mut key = |length: usize| -> Vec<u8> {
        (0..length).map(|_| [0, 1, 0x30, 0xff][(random(&mut state) % 4) as usize]).collect()
    };
    let one_length: Vec<Vec<u8>> = (0..300).map(|_| key(12)).collect();
    let several: Vec<Vec<u8>> = (0..300).map(|index| key(index % 19)).collect();
    for keys in [one_length, several] {
        let set = key_set(&keys);
        for layout in [BloomLayout::Spread, BloomLayout::Lines] {
            for prefix in [3, 16, 17, 63, 64, 65, 90, 95, 96, 128, 140, WHOLE_KEYS] {
                let design = Design { first: Stage::None, prefix, layout };
                let filter = built_by(
                    ProteusBuilder::new(Family::OnePrefixBloom, Prices::DEFAULT, SEED).with_design(&design),
                    &set,
                    9.0,
                    &[],
                );
                keys.iter().step_by(11).for_each(|key| check_strings(&filter, &set, key));
            }
        }
    }
}

/// Compares answers and tests of the two paths for points and ranges around a key, under the seed of the filter and under another one.
fn check_strings(filter: &AnyFilter<Vec<u8>>, set: &KeySet, key: &[u8]) {
    let AnyFilter::Proteus(fast) = filter else { panic!("of this module") };
    let general = fast.without_fast_path();
    let near = bounds_near(key);
    for digester in [Digester::new(SEED), Digester::new(SEED + 1)] {
        for point in &near {
            let [answer, other] = [fast, &general].map(|filter| {
                let probe = Probe::new(point, &digester);
                filter.prefetch(&probe);
                (filter.may_contain(&probe), probe.probe_count())
            });
            assert_eq!(answer, other, "{point:?} of {}", design_of(filter));
        }
        let pairs = near.iter().flat_map(|lower| near.iter().map(move |upper| (lower, upper)));
        for range in pairs.flat_map(|(lower, upper)| ranges(lower, upper)) {
            let [answer, other] = [fast, &general].map(|filter| {
                let probe = RangeProbe::new(range, &digester);
                (filter.may_contain_range(&probe), probe.probe_count())
            });
            assert_eq!(answer, other, "{range:?} of {}", design_of(filter));
            assert!(answer.0 || !set.has_key_in(&range), "{range:?} of {}", design_of(filter));
        }
    }
}
