//! Invalid input: prices and caps, and lengths and keys beyond the limits of the format. Every filter that is built opens and
//! contains its keys.

use super::*;
use crate::key_set::PREFIX_BITS_MAX as BIT_COUNT_MAX;
use crate::proteus::SetForm;

/// Opens a filter, verifies its checksum, and checks its keys.
fn check_built(builder: ProteusBuilder, set: &KeySet, bits: f64, samples: &[KeyRange<'_>], text: &str) {
    let bytes = encoded_by(builder, set, bits, samples);
    assert!(bytes.len() as f64 <= set.len() as f64 * bits / 8.0 + 128.0, "{text}: {} bytes", bytes.len());
    let filter = AnyFilter::open(bytes).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.verify().expect("whole");
    let predicted = filter.predicted_fpr();
    assert!(predicted.is_none_or(|rate| (0.0..=1.0).contains(&rate)), "{text}: {predicted:?}");
    check_keys(&filter, set);
}

/// Short ranges and points near keys.
fn bounds_near(state: &mut u64, set: &KeySet, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut queries = Vec::new();
    while queries.len() < count {
        let mut lower = set.get(random(state) as usize % set.len()).expect("there").to_vec();
        if let Some(last) = lower.last_mut() {
            *last = last.wrapping_add(1 + (random(state) % 50) as u8);
        }
        let mut upper = lower.clone();
        if let Some(last) = upper.last_mut() {
            *last = last.saturating_add((random(state) % 3) as u8);
        }
        if !set.has_key_in(&KeyRange::closed(&lower, &upper)) {
            queries.push((lower, upper));
        }
    }
    queries
}

#[test]
fn invalid_prices_and_caps_lead_to_filters_that_open() {
    let mut state = 91;
    let strange =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -f64::MAX, f64::MAX, f64::MIN_POSITIVE, 0.0];
    let words = key_set((0..80).map(|_| (random(&mut state) as u16).to_be_bytes()));
    let text = |_| (0..1 + random(&mut state) % 3).map(|_| random(&mut state) as u8).collect::<Vec<u8>>();
    let texts = key_set((0..80).map(text).collect::<BTreeSet<_>>());
    let Prices { probe, read, .. } = Prices::DEFAULT;
    let pairs = strange.into_iter().flat_map(|price| [(price, read), (probe, price), (price, price)]);
    let pairs: Vec<(f64, f64)> = pairs.chain([(probe, read)]).collect();
    for set in [words, texts] {
        let bounds = bounds_near(&mut state, &set, 40);
        let samples = closed(&bounds);
        let model = Model::new(&set, Samples { queries: &samples });
        for ((probe, read), family) in pairs.iter().flat_map(|pair| FAMILIES.map(|family| (*pair, family))) {
            for probe_cap in [0, 1, Prices::PROBE_CAP_MAX + 1, u32::MAX] {
                let prices = Prices { probe, read, probe_cap };
                let text = format!("{family} {prices:?}");
                for samples in [&[][..], &samples] {
                    check_built(ProteusBuilder::new(family, prices, SEED), &set, 12.0, samples, &text);
                }
                let (design, prediction) = model.choose(family, bits_per_key(12.0), &prices).expect("budget");
                assert!((0.0..=1.0).contains(&prediction.fpr), "{text}: {design}: {prediction:?}");
            }
        }
    }
}

#[test]
fn invalid_caps_lead_to_filters_of_eight_byte_keys_that_open() {
    let mut state = 93;
    let set = integers((0..400).map(|_| random(&mut state)));
    let bounds = bounds_near(&mut state, &set, 40);
    let samples = closed(&bounds);
    for (family, probe_cap) in
        FAMILIES.into_iter().flat_map(|family| [0, 1, u32::MAX].map(|cap| (family, cap)))
    {
        let prices = Prices { probe_cap, ..Prices::DEFAULT };
        let text = format!("{family} {prices:?}");
        check_built(ProteusBuilder::new(family, prices, SEED), &set, 12.0, &samples, &text);
        check_built(ProteusBuilder::new(family, prices, SEED), &set, 12.0, &[], &text);
    }
}

/// Length of a key that is longer than the longest prefix.
const LONG: usize = 70_000;

/// Points and short ranges that differ from a long key after `at` bytes.
fn leaving(key: &[u8], places: &[usize]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bounds = places.iter().flat_map(|place| {
        [1, 40].map(|step| {
            let mut lower = key[..=*place].to_vec();
            lower[*place] = lower[*place].wrapping_add(step);
            let mut upper = lower.clone();
            upper.push(7);
            [(lower.clone(), lower), (upper[..=*place].to_vec(), upper)]
        })
    });
    bounds.flatten().collect()
}

#[test]
fn keys_longer_than_the_longest_prefix_lead_to_filters_that_open() {
    assert!(LONG as u32 * 8 > BIT_COUNT_MAX);
    let mut state = 97;
    let long = vec![b'x'; LONG];
    let mut other = long.clone();
    other[LONG - 5] = b'y';
    let short = |_| (0..1 + random(&mut state) % 12).map(|_| random(&mut state) as u8).collect::<Vec<u8>>();
    let short: Vec<Vec<u8>> = (0..60).map(short).collect();
    let alone = key_set([&long]);
    let pair = key_set([&long, &other]);
    let among = key_set(short.iter().chain([&long, &other]).collect::<BTreeSet<_>>());
    // Before, near and after the end of the longest prefix.
    let end = (BIT_COUNT_MAX / 8) as usize;
    for (set, places) in [
        (&alone, &[60_000, end - 1][..]),
        (&pair, &[end - 40, end - 2, end, LONG - 50]),
        (&among, &[60_000, 65_000, end - 40, end - 1]),
        (&among, &[end - 1, end, 66_000, LONG - 50]),
    ] {
        let bounds = leaving(&long, places);
        let samples = closed(&bounds);
        assert!(samples.iter().all(|range| !set.has_key_in(range)));
        for family in FAMILIES {
            for bits in [14.0, 1000.0] {
                let text = format!("{family} of {} keys, {places:?}", set.len());
                let builder = ProteusBuilder::new(family, Prices::DEFAULT, SEED);
                check_built(builder, set, bits, &samples, &text);
            }
        }
    }
    // Only long prefixes reject queries that differ from a key far from its start.
    let bounds = leaving(&long, &[60_000, 65_000, end - 40]);
    let samples = closed(&bounds);
    let builder = ProteusBuilder::new(Family::OnePrefixBloom, Prices::DEFAULT, SEED);
    let filter = built_by(builder, &among, 14.0, &samples);
    let prefix = parts_of(&filter).prefix;
    assert!(
        (end as u32 - 40) * 8 < prefix && (prefix <= BIT_COUNT_MAX || prefix == WHOLE_KEYS),
        "{prefix} bits"
    );
}

#[test]
fn lengths_beyond_the_longest_prefix_lead_to_filters_that_open() {
    let mut state = 101;
    let long = vec![b'x'; LONG];
    let short: Vec<Vec<u8>> = (0..20).map(|_| random(&mut state).to_be_bytes()[..5].to_vec()).collect();
    let sets =
        [key_set(short.iter().chain([&long]).collect::<BTreeSet<_>>()), key_set([&long]), key_set(&short)];
    let beyond = [BIT_COUNT_MAX + 1, LONG as u32 * 8, u32::MAX - 1];
    for (layout, prefix) in BloomLayout::ALL.into_iter().flat_map(|layout| {
        [40, BIT_COUNT_MAX].into_iter().chain(beyond).chain([WHOLE_KEYS]).map(move |prefix| (layout, prefix))
    }) {
        for depth in [0, 30, BIT_COUNT_MAX - 1, BIT_COUNT_MAX, BIT_COUNT_MAX + 1, LONG as u32 * 8 - 1] {
            for family in FAMILIES {
                let first = match (family, depth) {
                    (_, 0) | (Family::OnePrefixBloom, _) => Stage::None,
                    (Family::TwoPrefixBloom, _) => Stage::Bloom { depth, share: 0.5 },
                    _ => Stage::Set { depth, form: SetForm::Trie },
                };
                let design = Design { first, prefix, layout };
                for set in &sets {
                    let builder = ProteusBuilder::new(family, Prices::DEFAULT, SEED).with_design(&design);
                    check_built(
                        builder,
                        set,
                        1024.0,
                        &[],
                        &format!("{family} {design} of {} keys", set.len()),
                    );
                }
            }
        }
    }
}
