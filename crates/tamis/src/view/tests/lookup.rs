//! Lookups without cursors, compared with the list of all entries.

use std::ops::Bound;

use super::{
    model::{hostile_target, with_segments},
    *,
};

fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (seed, count, run_count) in [(1, 0, 1), (2, 30, 2), (3, 1_500, 5), (4, 1_500, 9)] {
        let mut random = SplitMix64::new(seed);
        let keys: Vec<_> = (0..count).map(|_| hostile_key(&mut random)).collect();
        let runs = distribute(&mut random, run_count, keys.into_iter());
        samples.push(Sample::new(with_segments(16), runs));
    }
    samples
}

#[test]
fn keys_are_counted_with_at_most_one_read_for_each_bound() {
    for sample in samples() {
        let mut random = SplitMix64::new(9);
        for _ in 0..1_000 {
            let mut bound = || match random.index(5) {
                0 => Bound::Unbounded,
                1 | 2 => Bound::Included(hostile_target(&sample, &mut random)),
                _ => Bound::Excluded(hostile_target(&sample, &mut random)),
            };
            let (lower, upper) = (bound(), bound());
            let mut read_count = 0;
            let mut read_key = |run: usize, ordinal: u64| {
                read_count += 1;
                Ok(sample.runs[run].entries[ordinal as usize].0.clone())
            };
            let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
            let count = sample.view.count_live(bounds, &mut read_key).unwrap();
            let mut last: &[u8] = &[];
            let expected = sample.entries.iter().filter(|(key, _, kind, _)| {
                let is_newest = key.as_slice() != last;
                last = key;
                let is_above = match &lower {
                    Bound::Unbounded => true,
                    Bound::Included(lower) => key >= lower,
                    Bound::Excluded(lower) => key > lower,
                };
                let is_below = match &upper {
                    Bound::Unbounded => true,
                    Bound::Included(upper) => key <= upper,
                    Bound::Excluded(upper) => key < upper,
                };
                is_newest && is_above && is_below && *kind == Kind::Put
            });
            assert_eq!(count, expected.count() as u64, "{lower:?} {upper:?}");
            assert!(read_count <= 2);
        }
    }
}
