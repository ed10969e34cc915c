//! The straight ways of `quick.rs` give the answers, and count the steps, of the long ones.

use super::*;
use crate::proteus::{Design, SetForm};

fn built(set: &KeySet, family: Family, design: &Design) -> AnyFilter<Vec<u8>> {
    let mut builder = ProteusBuilder::new(family, Prices::DEFAULT, SEED).with_design(design);
    builder.add_all(&Arc::new(set.clone())).expect("sorted");
    AnyFilter::open(builder.finish(bits_per_key(200.0), Samples::NONE).expect("fits")).expect("whole")
}

fn with_set(depth: u32, form: SetForm, prefix: u32) -> Design {
    Design { first: Stage::Set { depth, form }, prefix, layout: BloomLayout::Spread }
}

/// Queries near and far from keys, short and longer, points among them.
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

/// Answer and steps of a fresh query, and of one whose digests another filter has asked for.
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

#[test]
fn sets_of_integers_answer_alike_in_all_forms() {
    let mut state = 9;
    let even: Vec<u64> = (0..3000).map(|_| random(&mut state)).collect();
    let crowded: Vec<u64> = (0..3000).map(|_| random(&mut state) >> (random(&mut state) % 50)).collect();
    for mut values in [even, crowded] {
        values.sort_unstable();
        values.dedup();
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
fn a_bloom_filter_answers_a_fresh_query_as_it_does_a_later_one() {
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
    // Keys of another length are none of these keys.
    let filter = built(
        &set,
        Family::OnePrefixBloom,
        &Design { first: Stage::None, prefix: 64, layout: BloomLayout::Spread },
    );
    let digester = Digester::new(SEED);
    for key in [&b""[..], b"1234567", b"123456789"] {
        assert!(!filter.may_contain(&Probe::new(key, &digester)));
    }
}
