//! The chosen design: for different samples and prices, and without a sample.

use super::*;

fn scattered(count: u64) -> Vec<u64> {
    let mut state = 77;
    (0..count).map(|_| random(&mut state)).collect()
}

#[test]
fn samples_without_empty_queries_lead_to_the_default() {
    let values = scattered(3000);
    let set = integers(values.iter().copied());
    let positive: Vec<([u8; 8], [u8; 8])> =
        values.iter().take(100).map(|key| (key.to_be_bytes(), key.to_be_bytes())).collect();
    let reversed = [([9; 8], [1; 8])];
    for bounds in [&[][..], &positive, &reversed] {
        for family in ["proteus", "1pbf", "2pbf"] {
            let filter = build(family, &set, 12.0, &closed(bounds));
            let AnyFilter::Proteus(proteus) = &filter else { panic!("of this module") };
            let design = proteus.parts_design().expect("has keys");
            assert_eq!((design.first, design.prefix), (Stage::None, 64), "{family}");
            assert!(filter.predicted_fpr().expect("known") < 0.01);
        }
    }
    // If it fits, the set is better than any Bloom filter.
    let dense = integers(1000..4000);
    let filter = build("proteus", &dense, 12.0, &[]);
    for key in 0..5000_u64 {
        let answer = filter.may_contain(&Probe::new(&key.to_be_bytes(), &Digester::new(SEED)));
        assert_eq!(answer, (1000..4000).contains(&key));
    }
    let strings = key_set(["one", "two", "three"]);
    let filter = build("proteus", &strings, 60.0, &[]);
    let AnyFilter::Proteus(proteus) = &filter else { panic!("of this module") };
    assert_eq!(proteus.parts_design().map(|design| design.prefix), Some(WHOLE_KEYS));
}

#[test]
fn a_sample_of_one_repeated_query_or_of_everything_leads_to_a_correct_filter() {
    let values = scattered(2000);
    let set = integers(values.iter().copied());
    let query = (values[5] + 1).to_be_bytes();
    let same = vec![(query, query); 500];
    let wide = vec![([0; 8], [0xff; 8]); 10];
    let before = vec![([0; 8], [0; 8]); 3];
    for bounds in [&same, &wide, &before] {
        for family in ["proteus", "1pbf", "2pbf"] {
            let filter = build(family, &set, 10.0, &closed(bounds));
            values.iter().for_each(|key| {
                let bytes = key.to_be_bytes();
                assert!(has_range(&filter, KeyRange::point(&bytes)));
                assert!(has_range(&filter, KeyRange::closed(&[0; 8], &bytes)));
            });
        }
    }
}

#[test]
fn the_design_follows_the_queries_and_the_prices() {
    let values = scattered(20_000);
    let set = integers(values.iter().copied());
    let sorted: BTreeSet<u64> = values.iter().copied().collect();
    let mut state = 3;
    let mut sample = |make: &mut dyn FnMut(u64) -> (u64, u64)| {
        let mut bounds = Vec::new();
        while bounds.len() < 2000 {
            let (lower, upper) = make(random(&mut state));
            if lower <= upper && sorted.range(lower..=upper).next().is_none() {
                bounds.push((lower.to_be_bytes(), upper.to_be_bytes()));
            }
        }
        bounds
    };
    let far = sample(&mut |number| (number, number.saturating_add(1000)));
    let near = sample(&mut |number| {
        let lower = values[number as usize % values.len()].saturating_add(1 + (number >> 32) % 1000);
        (lower, lower.saturating_add(20))
    });
    let far_ranges = closed(&far);
    let model = Model::new(&set, Samples { queries: &far_ranges });
    let (design, prediction) =
        model.choose(Family::Proteus, bits_per_key(12.0), &Prices::DEFAULT).expect("budget");
    assert!(matches!(design.first, Stage::Set { .. }) && prediction.fpr < 0.005, "{design}: {prediction:?}");
    let near_ranges = closed(&near);
    let model = Model::new(&set, Samples { queries: &near_ranges });
    let free = Prices { probe: 0.0, ..Prices::DEFAULT };
    let (design, by_rate) = model.choose(Family::Proteus, bits_per_key(12.0), &free).expect("budget");
    assert!(design.first == Stage::None && design.prefix > 54, "{design}");
    // Expensive cache lines lead to fewer of them, at a higher rate.
    let dear = Prices { probe: 100.0, read: 1000.0, ..Prices::DEFAULT };
    let (dear_design, by_price) = model.choose(Family::Proteus, bits_per_key(12.0), &dear).expect("budget");
    assert_eq!(dear_design.layout, BloomLayout::Lines);
    assert!(by_price.fpr >= by_rate.fpr && by_price.probes <= by_rate.probes);
    let same = model.predict(Family::Proteus, &design, bits_per_key(12.0), &free).expect("budget");
    assert_eq!(same, Some(by_rate));
    // A small cap excludes long prefixes, and is respected.
    let capped = Prices { probe: 0.0, probe_cap: 3, ..Prices::DEFAULT };
    let (_, few) = model.choose(Family::Proteus, bits_per_key(12.0), &capped).expect("budget");
    assert!(few.probes <= 3.0 && few.fpr >= by_rate.fpr);
}

#[test]
fn filters_of_one_query_share_digests_of_prefixes() {
    let sets = [integers(scattered(500)), integers(scattered(700))];
    let filters = sets.each_ref().map(|set| build("1pbf:prefix=40", set, 10.0, &[]));
    let digester = Digester::new(SEED);
    let (lower, upper) = ([0x55; 8], [0x55, 0x55, 0x55, 0x55, 0x56, 0, 0, 0]);
    let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
    filters.iter().for_each(|filter| assert!(!filter.may_contain_range(&probe)));
    assert_eq!((probe.digest_count(), probe.probe_count()), (2, 4));
    let whole = sets.each_ref().map(|set| build("1pbf:prefix=64", set, 10.0, &[]));
    let point = Probe::new(&lower, &digester);
    whole.iter().for_each(|filter| assert!(!filter.may_contain(&point)));
    assert_eq!(point.digest_count(), 1, "a point costs its one digest");
}

#[test]
fn a_trie_can_have_two_deep_lone_keys() {
    // Two keys differ after 90 bytes, the others at once: two leaves have few explicit bits, the others hundreds.
    let mut keys: Vec<Vec<u8>> = vec![vec![b'm'; 110], vec![b'm'; 105], vec![b'z'; 110]];
    keys[1][90] = b'n';
    keys.extend((0..100_u8).map(|key| vec![key; 3]));
    let set = key_set(&keys);
    for depth in [1, 9, 700, 719, 721, 725, 760, 800] {
        let filter = build(&format!("proteus:trie={depth}"), &set, 1024.0, &[]);
        keys.iter().for_each(|key| assert!(has_range(&filter, KeyRange::point(key))));
        let mut close = vec![b'z'; 110];
        close[depth as usize / 16] ^= 2;
        assert!(!has_range(&filter, KeyRange::point(&close)) || depth < 9, "depth {depth}");
    }
}

#[test]
fn budgets_that_are_too_small_return_an_error_or_are_respected() {
    let set = integers(scattered(1000));
    let mut builder =
        "proteus:trie=40".parse::<FilterSpec>().expect("known").builder(SEED).expect("possible");
    builder.add_all(&Arc::new(set.clone())).expect("sorted");
    let refusal = builder.finish(bits_per_key(5.0), Samples::NONE).expect_err("too small");
    assert!(refusal.to_string().contains("needs at least"), "{refusal}");
    for bits in [0.01, 0.5, 3.0] {
        let filter = build("proteus", &set, bits, &[]);
        assert!(set.iter().all(|key| has_range(&filter, KeyRange::point(key))));
    }
    for wrong in ["proteus:trie=9,prefix=8", "2pbf:first=3", "proteus:probe-cap=1", "1pbf:layout=round"] {
        assert!(wrong.parse::<FilterSpec>().expect("known").builder(SEED).is_err(), "{wrong}");
    }
}
