//! Strings and a sample: the chosen design has the predicted rate, and almost no other design is cheaper.

use super::*;
use crate::proteus::SetForm;

/// Letters, the first ones more frequent.
fn letters(state: &mut u64, count: u64) -> Vec<u8> {
    (0..count).map(|_| b'a' + (random(state) % 26 * (random(state) % 26) / 25) as u8).collect()
}

fn length(state: &mut u64, longest: u64) -> u64 {
    2 + random(state) % (longest - 1)
}

/// Strings of 2 to `longest` bytes, a third of them with one of a few prefixes.
fn texts(state: &mut u64, count: usize, longest: u64) -> KeySet {
    let beginnings: Vec<Vec<u8>> = (0..6).map(|_| letters(state, 3_u64.min(longest / 2))).collect();
    let text = |_| {
        let length = length(state, longest);
        let mut text = letters(state, length);
        if random(state).is_multiple_of(3) {
            let own = &beginnings[random(state) as usize % beginnings.len()];
            text.iter_mut().zip(own).for_each(|(target, source)| *target = *source);
        }
        text
    };
    key_set((0..count).map(text).collect::<BTreeSet<_>>())
}

/// The kinds of sample queries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mix {
    Near,
    Far,
    Both,
}

const MIXES: [Mix; 3] = [Mix::Near, Mix::Far, Mix::Both];

/// Bounds of empty queries: near a key, different after its last byte or at another byte, or anywhere; some are points.
fn queries(state: &mut u64, set: &KeySet, longest: u64, mix: Mix, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut queries = Vec::new();
    while queries.len() < count {
        let is_near = mix == Mix::Near || (mix == Mix::Both && queries.len() % 2 == 0);
        let mut lower = if is_near {
            set.get(random(state) as usize % set.len()).expect("there").to_vec()
        } else {
            let length = length(state, longest);
            letters(state, length)
        };
        let place = random(state) as usize % lower.len();
        match random(state) % 3 {
            0 if (lower.len() as u64) < longest => lower.push(b'A' + (random(state) % 26) as u8),
            _ => lower[place] = lower[place].wrapping_add(1 + (random(state) % 3) as u8),
        }
        let mut upper = lower.clone();
        match random(state) % 4 {
            0 => {}
            1 => upper.push(b'z'),
            _ => {
                let step = (random(state) % 20) as u8;
                upper.last_mut().into_iter().for_each(|last| *last = last.saturating_add(step));
            }
        }
        if !set.has_key_in(&KeyRange::closed(&lower, &upper)) {
            queries.push((lower, upper));
        }
    }
    queries
}

#[test]
fn the_chosen_filter_has_the_predicted_rate() {
    let mut state = 61;
    for longest in [6, 12, 40] {
        let set = texts(&mut state, 3000, longest);
        for mix in MIXES {
            let bounds = queries(&mut state, &set, longest, mix, 2000);
            let samples = closed(&bounds);
            let model = Model::new(&set, Samples { queries: &samples });
            assert_eq!(model.queries.len(), 2000);
            for family in FAMILIES {
                for bits in [8.0, 16.0] {
                    let (design, prediction) =
                        model.choose(family, bits_per_key(bits), &Prices::DEFAULT).expect("budget");
                    let builder = ProteusBuilder::new(family, Prices::DEFAULT, SEED);
                    let filter = built_by(builder, &set, bits, &samples);
                    let text = format!("{family} {mix:?} up to {longest} bytes: {design}");
                    assert!(filter.encoded_bytes() as f64 <= set.len() as f64 * bits / 8.0 + 128.0, "{text}");
                    let parts = parts_of(&filter);
                    let lengths = |design: &Design| (design.first.depth(), design.prefix);
                    assert_eq!(lengths(&parts), lengths(&design), "{text}");
                    assert_eq!(filter.predicted_fpr().map(|rate| rate as f32), Some(prediction.fpr as f32));
                    check_keys(&filter, &set);
                    let positives = samples.iter().filter(|range| has_range(&filter, **range)).count();
                    let measured = positives as f64 / samples.len() as f64;
                    assert!(
                        (measured - prediction.fpr).abs() <= 0.02,
                        "{text}: measured {measured}, predicted {}",
                        prediction.fpr
                    );
                }
            }
        }
    }
}

/// The least price of all designs of a family: each pair of lengths in each layout, for every `step`-th depth of a first stage.
fn least_cost(
    model: &Model<'_>,
    family: Family,
    budget: Budget,
    prices: &Prices,
    step: usize,
) -> (f64, Design) {
    let bits = model.bit_count();
    let mut least = (f64::INFINITY, Design { first: Stage::None, prefix: 0, layout: BloomLayout::Spread });
    let mut look = |first, prefix, layout| {
        let design = Design { first, prefix, layout };
        if let Some(prediction) = model.predict(family, &design, budget, prices).expect("budget")
            && prediction.cost < least.0
        {
            least = (prediction.cost, design);
        }
    };
    let form = SetForm::Trie;
    for layout in BloomLayout::ALL {
        for prefix in (1..=bits).chain([WHOLE_KEYS]) {
            look(Stage::None, prefix, layout);
        }
        for depth in (1..=bits).step_by(step) {
            match family {
                Family::OnePrefixBloom => {}
                Family::TwoPrefixBloom => {
                    for share in [0.3, 0.5, 0.7] {
                        let first = Stage::Bloom { depth, share };
                        (depth + 1..=bits).for_each(|prefix| look(first, prefix, layout));
                    }
                }
                _ => {
                    let first = Stage::Set { depth, form };
                    let prefixes = [0, WHOLE_KEYS].into_iter().chain(depth + 1..=bits);
                    prefixes.for_each(|prefix| look(first, prefix, layout));
                }
            }
        }
    }
    least
}

/// The inputs of a choice: length and number of keys, number of queries, bits per key, and prices.
struct Case {
    longest: u64,
    counts: (usize, usize),
    bits: f64,
    prices: Prices,
}

/// Compares the chosen designs with all designs; returns those that cost much more than the best.
fn bad_choices(family: Family, case: &Case) -> Vec<String> {
    let Case { longest, counts: (key_count, query_count), bits, prices } = case;
    let mut state = 67 + longest;
    let set = texts(&mut state, *key_count, *longest);
    let budget = bits_per_key(*bits);
    let mut bad = Vec::new();
    for mix in MIXES {
        let bounds = queries(&mut state, &set, *longest, mix, *query_count);
        let samples = closed(&bounds);
        let model = Model::new(&set, Samples { queries: &samples });
        let (design, prediction) = model.choose(family, budget, prices).expect("budget");
        let same = model.predict(family, &design, budget, prices).expect("budget").expect("fits");
        assert!((same.cost - prediction.cost).abs() <= 1e-6 * same.cost, "{design}: {same:?}");
        let step = if *longest > 9 && family != Family::OnePrefixBloom { 4 } else { 1 };
        let (least, best) = least_cost(&model, family, budget, prices, step);
        if prediction.cost > least * 1.05 {
            bad.push(format!(
                "{family}, {mix:?}, up to {longest} bytes, {bits} bits: {design} costs {:.1}, {best} {least:.1}",
                prediction.cost
            ));
        }
    }
    bad
}

#[test]
fn no_set_and_prefix_length_is_much_cheaper_than_the_chosen_design() {
    let prices = Prices::DEFAULT;
    for (longest, bits) in [(5, 6.0), (5, 14.0), (9, 20.0), (16, 20.0)] {
        let case = Case { longest, counts: (1000, 200), bits, prices };
        assert_eq!(bad_choices(Family::Proteus, &case), [""; 0]);
    }
}

#[test]
fn no_prefix_length_is_much_cheaper_than_the_chosen_design() {
    let prices = Prices::DEFAULT;
    for (longest, bits) in [(5, 6.0), (5, 14.0), (40, 6.0), (40, 14.0)] {
        let case = Case { longest, counts: (3000, 1000), bits, prices };
        assert_eq!(bad_choices(Family::OnePrefixBloom, &case), [""; 0]);
    }
}

#[test]
fn no_pair_of_prefix_lengths_is_much_cheaper_than_the_chosen_design() {
    let prices = Prices::DEFAULT;
    for (longest, bits) in [(4, 12.0), (7, 14.0), (16, 14.0)] {
        let case = Case { longest, counts: (1500, 100), bits, prices };
        assert_eq!(bad_choices(Family::TwoPrefixBloom, &case), [""; 0]);
    }
}

/// If a read costs ten lines, the price has many local minima, because it changes with each byte.
#[test]
fn no_design_is_much_cheaper_than_the_chosen_one_if_lines_are_expensive() {
    let prices = Prices { probe: 100.0, read: 1000.0, ..Prices::DEFAULT };
    let cases = [
        (Family::Proteus, 5, (1500, 300), 14.0),
        (Family::Proteus, 9, (1500, 150), 20.0),
        (Family::OnePrefixBloom, 5, (3000, 1000), 6.0),
        (Family::OnePrefixBloom, 40, (3000, 1000), 6.0),
        (Family::OnePrefixBloom, 40, (3000, 1000), 14.0),
        (Family::TwoPrefixBloom, 4, (1500, 100), 14.0),
        (Family::TwoPrefixBloom, 16, (1500, 100), 14.0),
    ];
    let bad = cases
        .map(|(family, longest, counts, bits)| bad_choices(family, &Case { longest, counts, bits, prices }));
    assert_eq!(bad.concat(), [""; 0]);
}
