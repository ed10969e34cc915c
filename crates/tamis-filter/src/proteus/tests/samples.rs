//! The effect of samples: ignored queries, wide queries, and predictions without queries.

use super::*;
use crate::proteus::SetForm;

type Bounds = Vec<(Vec<u8>, Vec<u8>)>;

fn of_words(bounds: impl IntoIterator<Item = (u64, u64)>) -> Bounds {
    let bytes = |word: u64| word.to_be_bytes().to_vec();
    bounds.into_iter().map(|(lower, upper)| (bytes(lower), bytes(upper))).collect()
}

/// The share of queries that pass a filter.
fn rate(filter: &AnyFilter<Vec<u8>>, queries: &[KeyRange<'_>]) -> f64 {
    let positives = queries.iter().filter(|range| has_range(filter, **range)).count();
    positives as f64 / queries.len() as f64
}

/// The filter of a family for keys and a sample, its predicted rate, and its rate on the sample. Checks that it contains all keys.
fn built_for(family: Family, set: &KeySet, queries: &[KeyRange<'_>]) -> (AnyFilter<Vec<u8>>, f64, f64) {
    let filter = built_by(ProteusBuilder::new(family, Prices::DEFAULT, SEED), set, 12.0, queries);
    check_keys(&filter, set);
    let predicted = filter.predicted_fpr().expect("there is a sample");
    let measured = rate(&filter, queries);
    (filter, predicted, measured)
}

/// Integers, or integers followed by one to three letters.
fn key_sets(state: &mut u64) -> [KeySet; 2] {
    let values: Vec<u64> = (0..1500).map(|_| random(state)).collect();
    let strings = values.iter().map(|value| {
        let tail = &b"abc"[..1 + (value % 3) as usize];
        [&value.to_be_bytes()[..6], tail].concat()
    });
    [integers(values.iter().copied()), key_set(strings)]
}

#[test]
fn queries_that_are_not_empty_are_counted_and_ignored() {
    let mut state = 51;
    for set in key_sets(&mut state) {
        let mut empty = Bounds::new();
        while empty.len() < 300 {
            let key = set.get(random(&mut state) as usize % set.len()).expect("there").to_vec();
            let last = key.len() - 1;
            let [mut lower, mut upper] = [key.clone(), key];
            lower[last] = lower[last].wrapping_add(1);
            upper[last] = upper[last].saturating_add(3);
            lower[random(&mut state) as usize % last] ^= 1;
            upper[..last].copy_from_slice(&lower[..last]);
            if lower <= upper && !set.has_key_in(&KeyRange::closed(&lower, &upper)) {
                empty.push((lower, upper));
            }
        }
        let keys: Vec<&[u8]> = set.iter().collect();
        let holding = keys.windows(3).take(70).flat_map(|window| match window {
            [first, second, third] => [
                KeyRange::point(first),
                KeyRange::closed(first, third),
                KeyRange { lower: Bound::Excluded(*first), upper: Upper::Prefix(second) },
            ],
            _ => [KeyRange::ALL; 3],
        });
        // Ranges without any string.
        let reversed = empty
            .iter()
            .take(40)
            .map(|(lower, upper)| KeyRange { lower: Bound::Included(upper), upper: Upper::Excluded(lower) });
        let between = keys
            .iter()
            .take(30)
            .map(|key| KeyRange { lower: Bound::Excluded(*key), upper: Upper::Excluded(key) });
        let useful = closed(&empty);
        let mut mixed: Vec<KeyRange<'_>> = holding.chain(reversed).chain(between).collect();
        let left_out = mixed.len();
        assert_eq!(left_out, 210 + 40 + 30);
        for (number, range) in useful.iter().enumerate() {
            mixed.insert(number + number * left_out / useful.len(), *range);
        }
        let alone = Model::new(&set, Samples { queries: &useful });
        assert_eq!(alone.queries.len(), 300);
        let model = Model::new(&set, Samples { queries: &mixed });
        assert_eq!(model.queries.len(), 300);
        let budget = bits_per_key(12.0);
        for family in FAMILIES {
            let [chosen, expected] =
                [&model, &alone].map(|model| model.choose(family, budget, &Prices::DEFAULT).expect("budget"));
            assert_eq!(chosen, expected, "{family}");
        }
    }
}

/// Wide queries before all keys: they have more prefixes than the cap, unless prefixes are short.
#[test]
fn wide_queries_far_from_keys_lead_to_short_prefixes() {
    let mut state = 53;
    let values: Vec<u64> = (0..1000).map(|_| random(&mut state) | 1 << 63).collect();
    let set = integers(values.iter().copied());
    let mut number = || random(&mut state) >> 3;
    let wide = of_words((0..200).map(|_| (number(), (1 << 62) + number())));
    let texts = key_set(values.iter().map(|value| format!("p{:x}", value >> (value % 20))));
    let letters = ["c", "d", "ea", "faa"].iter().flat_map(|lower| {
        ["g", "ha", "i", "k", "kaa"].map(|upper| (lower.as_bytes().to_vec(), upper.as_bytes().to_vec()))
    });
    for (set, bounds) in [(set, wide), (texts, letters.collect())] {
        let queries = closed(&bounds);
        for family in FAMILIES {
            let (filter, predicted, measured) = built_for(family, &set, &queries);
            assert!(predicted < 0.05 && measured < 0.1, "{}: {predicted}, {measured}", design_of(&filter));
        }
    }
}

/// Wide queries that begin and end near keys: no prefix is short enough for Bloom filters alone.
#[test]
fn wide_queries_between_keys_lead_to_correct_filters() {
    let mut state = 57;
    let words = (0..500).map(|_| random(&mut state) % 5000);
    let words: BTreeSet<u64> = words.flat_map(|word| [word, u64::MAX - word]).collect();
    let wide = of_words((1..100).map(|step| (5000 + step, u64::MAX - 5000 - step)));
    let texts = words.iter().map(|word| match *word < 1 << 63 {
        true => format!("a/{word:04}"),
        false => format!("z/{:05}", 90_000 - (u64::MAX - word)),
    });
    let letters =
        (1..100).map(|step| (format!("a/5{step:03}").into_bytes(), format!("z/84{step:03}").into_bytes()));
    let sets = [(integers(words.iter().copied()), wide), (key_set(texts), letters.collect())];
    for (set, bounds) in sets {
        let queries = closed(&bounds);
        for range in &queries {
            assert!(!set.has_key_in(range), "{range:?}");
        }
        for family in FAMILIES {
            let (filter, predicted, measured) = built_for(family, &set, &queries);
            let text = format!("{}: measured {measured}, predicted {predicted}", design_of(&filter));
            assert!((predicted - measured).abs() < 0.03, "{text}");
            assert!(family == Family::Proteus || predicted == 1.0, "{text}");
        }
    }
}

#[test]
fn there_is_no_prediction_without_queries_or_for_designs_of_other_families() {
    let mut state = 59;
    let values: Vec<u64> = (0..1000).map(|_| random(&mut state)).collect();
    let set = integers(values.iter().copied());
    let design = |first, prefix| Design { first, prefix, layout: BloomLayout::Spread };
    let with_set = |depth, prefix| design(Stage::Set { depth, form: SetForm::Trie }, prefix);
    let pair = |depth, prefix| design(Stage::Bloom { depth, share: 0.5 }, prefix);
    let own = [
        (Family::Proteus, with_set(12, 0)),
        (Family::Proteus, with_set(12, 40)),
        (Family::Proteus, design(Stage::None, 40)),
        (Family::OnePrefixBloom, design(Stage::None, 40)),
        (Family::TwoPrefixBloom, pair(12, 40)),
    ];
    let others = [
        (Family::OnePrefixBloom, with_set(12, 0)),
        (Family::OnePrefixBloom, with_set(12, 40)),
        (Family::OnePrefixBloom, pair(12, 40)),
        (Family::TwoPrefixBloom, with_set(12, 0)),
        (Family::TwoPrefixBloom, with_set(12, 40)),
        (Family::Proteus, pair(12, 40)),
        // The second of two filters needs longer prefixes, and a set must fit.
        (Family::TwoPrefixBloom, pair(40, 40)),
        (Family::TwoPrefixBloom, pair(40, 12)),
        (Family::Proteus, with_set(60, 0)),
    ];
    let empty = of_words((0..200).map(|_| random(&mut state)).map(|word| (word, word.saturating_add(9))));
    let holding = of_words(values.iter().take(50).map(|value| (*value, *value)));
    let predict = |samples: &[KeyRange<'_>], (family, design): &(Family, Design)| {
        let model = Model::new(&set, Samples { queries: samples });
        model.predict(*family, design, bits_per_key(10.0), &Prices::DEFAULT).expect("budget")
    };
    for one in &own {
        let prediction = predict(&closed(&empty), one).expect("known");
        assert!((0.0..1.0).contains(&prediction.fpr) && prediction.cost > 0.0, "{one:?}: {prediction:?}");
        assert_eq!(predict(&[], one), None, "{one:?}");
        assert_eq!(predict(&closed(&holding), one), None, "{one:?}");
    }
    for one in &others {
        assert_eq!(predict(&closed(&empty), one), None, "{one:?}");
        assert_eq!(predict(&[], one), None, "{one:?}");
    }
}
