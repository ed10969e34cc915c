//! The counts of the model, compared with brute force, and its predictions, compared with built filters.

use super::*;

fn counts_of(set: &KeySet) -> PrefixCounts {
    PrefixCounts::of_keys(set, set.bit_count())
}

#[test]
fn prefixes_are_counted_as_a_set_counts_them() {
    let mut state = 5;
    let clustered = (0..400).map(|_| random(&mut state) & 0xff00_00ff_0000_0fff);
    let mut sets = vec![integers(clustered), integers([]), integers([7])];
    sets.push(key_set((0..500).map(|_| {
        let length = random(&mut state) % 5;
        (0..length).map(|_| (random(&mut state) % 3) as u8 * 60).collect::<Vec<u8>>()
    })));
    // More keys than a block, in groups of four.
    sets.push(integers((0..2051).map(|_| random(&mut state))));
    for set in sets {
        let counts = counts_of(&set);
        for bits in 0..=set.bit_count() {
            let distinct: BTreeSet<Vec<bool>> = set.iter().map(|key| bit_list(key, bits as usize)).collect();
            assert_eq!(counts.at(bits), distinct.len() as u64, "{bits} bits of {} keys", set.len());
        }
    }
}

#[test]
fn sizes_of_sets_are_those_of_the_sets_that_are_built() {
    let mut state = 9;
    let outliers = (0..300).map(|key| key * 3).chain([1 << 40, u64::MAX]);
    let sets = [
        integers(outliers),
        integers((0..700).map(|_| random(&mut state))),
        key_set(
            (0..500).map(|_| random(&mut state).to_be_bytes()[..(random(&mut state) % 9) as usize].to_vec()),
        ),
        key_set([&b"a"[..], b"ab", &[b'x'; 40]]),
    ];
    for set in sets {
        let counts = counts_of(&set);
        for depth in 1..=set.bit_count() {
            let size = set_size(&set, &counts, depth).expect("small");
            let filter = build(&format!("proteus:trie={depth}"), &set, 1000.0, &[]);
            assert_eq!(filter.encoded_bytes(), 128 + size.bytes, "depth {depth} of {} keys", set.len());
        }
    }
}

/// The rate and the tests per query of every design of one-byte and two-byte keys, predicted and measured on the same queries.
#[test]
fn rates_are_predicted_for_every_design() {
    let mut state = 31;
    let keys: BTreeSet<u16> = (0..3000).map(|_| (random(&mut state) % 65536) as u16).collect();
    let set = key_set(keys.iter().map(|key| key.to_be_bytes()));
    let mut bounds: Vec<([u8; 2], [u8; 2])> = Vec::new();
    while bounds.len() < 1500 {
        let lower = random(&mut state) as u16;
        let upper = lower.saturating_add((random(&mut state) % [1, 8, 200][bounds.len() % 3]) as u16);
        if keys.range(lower..=upper).next().is_none() {
            bounds.push((lower.to_be_bytes(), upper.to_be_bytes()));
        }
    }
    let queries: Vec<KeyRange<'_>> =
        bounds.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let model = Model::new(&set, Samples { queries: &queries });
    assert_eq!(model.queries.len(), 1500);
    let prices = Prices { probe: 0.0, probe_cap: 64, ..Prices::DEFAULT };
    for family in [Family::Proteus, Family::OnePrefixBloom, Family::TwoPrefixBloom] {
        for (design, prediction) in model.designs(family, bits_per_key(9.0), &prices).expect("budget") {
            let mut builder = ProteusBuilder::new(family, prices, SEED).with_design(&design);
            builder.add_all(&Arc::new(set.clone())).expect("sorted");
            let bytes = builder.finish(bits_per_key(9.0), Samples::NONE).expect("fits");
            let filter = AnyFilter::open(bytes).expect("whole");
            let digester = Digester::new(SEED);
            let (mut positives, mut probes) = (0, 0);
            for range in &queries {
                let probe = RangeProbe::new(*range, &digester);
                positives += u32::from(filter.may_contain_range(&probe));
                assert!(probe.probe_count() <= 64, "{design}: more probes than the cap");
                probes += probe.probe_count();
            }
            let measured = f64::from(positives) / 1500.0;
            // The rate of a single filter of few bits varies around that of the formula.
            let slack = 0.04 + 0.1 * prediction.fpr.min(1.0 - prediction.fpr);
            assert!(
                (measured - prediction.fpr).abs() <= slack,
                "{family} {design}: measured {measured}, predicted {}",
                prediction.fpr
            );
            let asked = f64::from(probes) / 1500.0;
            assert!(
                asked <= prediction.probes * 1.3 + 1.1 && asked >= prediction.probes * 0.6 - 1.1,
                "{family} {design}: {asked} probes, predicted {}",
                prediction.probes
            );
        }
    }
}
