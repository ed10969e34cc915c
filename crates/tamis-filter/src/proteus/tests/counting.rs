//! The counts of the model, compared with brute force, and its predictions, compared with built filters.

use super::super::counts::sampled_trie_levels;
use super::*;
use crate::proteus::SetForm;
use crate::trie::LevelCounts;

fn keys_of(set: &KeySet) -> Keys {
    Keys::of(set)
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
        let keys = keys_of(&set);
        let counts = Counts::of(&keys, &[]);
        for bits in 0..=keys.bit_count() {
            let distinct: BTreeSet<Vec<bool>> = set.iter().map(|key| bit_list(key, bits as usize)).collect();
            assert_eq!(counts.prefixes.at(bits), distinct.len() as u64, "{bits} bits of {} keys", set.len());
        }
    }
}

#[test]
fn many_strings_are_counted_in_a_sample_of_them() {
    const COUNT: u64 = 400_000;
    let mut state = 7;
    // Dense groups and single keys, of one length and of several.
    let starts: Vec<u64> = (0..COUNT / 10).map(|_| random(&mut state) << 24).collect();
    let numbers = starts.iter().flat_map(|start| (0..10).map(move |step| start + step * step));
    for is_mixed in [false, true] {
        let set = key_set(numbers.clone().map(|number| {
            let mut key = number.to_be_bytes().to_vec();
            key.resize(if is_mixed && number % 3 == 0 { 11 } else { 12 }, b'k');
            key
        }));
        let keys = keys_of(&set);
        let (exact, estimated) = (Counts::of(&keys, &[]), Counts::estimated(&keys, &[]));
        for bits in 0..=keys.bit_count() {
            let ratio = estimated.prefixes.at(bits) as f64 / exact.prefixes.at(bits) as f64;
            let is_few = exact.prefixes.at(bits) < 10_000;
            assert!(is_few || (0.9..1.1).contains(&ratio), "{bits} bits, mixed: {is_mixed}: {ratio}");
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
        let keys = keys_of(&set);
        let counts = Counts::of(&keys, &[]);
        for depth in 1..=keys.bit_count() {
            let size = set_size(&keys, &counts, depth).expect("small");
            let filter = build(&format!("proteus:trie={depth}"), &set, 1000.0, &[]);
            assert_eq!(filter.encoded_bytes(), 128 + size.bytes, "depth {depth} of {} keys", set.len());
        }
    }
}

#[test]
fn a_sample_of_the_keys_finds_whether_a_trie_is_the_smallest_set() {
    const COUNT: u64 = 1 << 20;
    let mut state = 3;
    let mut starts: Vec<u64> = (0..COUNT / 500 + 100).map(|_| random(&mut state) << 20).collect();
    starts.sort_unstable();
    let runs = starts.iter().flat_map(|start| (0..500).map(move |key| start + key));
    let sets = [
        (integers((0..COUNT + 5000).map(|_| random(&mut state))), 40, SetForm::MarkedEliasFano),
        (integers(runs), 64, SetForm::Trie),
    ];
    for (set, depth, form) in sets {
        let keys = keys_of(&set);
        let Keys::Words(_, words) = &keys else { unreachable!("integers") };
        assert!(words.len() as u64 >= COUNT, "enough keys, so that only a part of them is counted");
        let counts = Counts::of(&keys, &[]);
        let labels = |levels: Vec<LevelCounts>| levels.iter().map(|level| level.labels).sum::<u64>() as f64;
        for depth in (4..=64).step_by(6) {
            let exact = labels(counts.trie_levels(&keys, depth));
            let sampled = sampled_trie_levels(words, depth, counts.prefixes.at(depth)).map(labels);
            // A sample of few prefixes is no estimate.
            let Some(sampled) = sampled else {
                assert!(counts.prefixes.at(depth) < COUNT / 2, "{depth} bits");
                continue;
            };
            assert!((sampled / exact - 1.0).abs() < 0.03, "{depth} bits: {sampled} labels, not {exact}");
        }
        assert_eq!(set_size(&keys, &counts, depth).map(|size| size.form), Some(form));
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
    assert_eq!(model.counts.queries.len(), 1500);
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
