//! Shares of the popular items compared with the definition, and the positions of the scrambled ones.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{ScrambledZipfian, Zipfian, ZipfianComposite, fnv_hash, zeta};
use crate::SplitMix64;

const DRAWS: usize = 400_000;

fn counts(item_count: usize, mut draw: impl FnMut(&mut SplitMix64) -> u64) -> Vec<usize> {
    let mut random = SplitMix64::new(9);
    let mut counts = vec![0; item_count];
    for _ in 0..DRAWS {
        counts[draw(&mut random) as usize] += 1;
    }
    counts
}

#[test]
fn popular_items_have_the_share_of_the_definition() {
    let zipf = Zipfian::new(1000);
    let counts = counts(1000, |random| zipf.draw(random));
    for item in [0, 1] {
        let expected = (item as f64 + 1.0).powf(-0.99) / zeta(1000);
        let got = counts[item] as f64 / DRAWS as f64;
        assert!((got / expected - 1.0).abs() < 0.02, "item {item}: {got} against {expected}");
    }
    // The formula is an approximation from the third item on; over a decade of ranks it is within a few percent.
    let expected: f64 = (10..100).map(|rank: u32| f64::from(rank + 1).powf(-0.99)).sum::<f64>() / zeta(1000);
    let got = counts[10..100].iter().sum::<usize>() as f64 / DRAWS as f64;
    assert!((got / expected - 1.0).abs() < 0.05, "ranks 10 to 99: {got} against {expected}");
}

#[test]
fn scrambling_moves_the_popular_items_and_keeps_their_share() {
    let zipf = ScrambledZipfian::new(1000);
    let counts = counts(1000, |random| zipf.draw(random));
    let top = (fnv_hash(0) % 1000) as usize;
    assert_eq!(counts.iter().max(), Some(&counts[top]));
    let share = counts[top] as f64 / DRAWS as f64;
    assert!((0.037..0.041).contains(&share), "share of the most popular item: {share}");
}

#[test]
fn distributions_of_few_items_stay_in_range() {
    let mut random = SplitMix64::new(1);
    for item_count in [0, 1, 2, 3] {
        let (plain, scrambled) = (Zipfian::new(item_count), ScrambledZipfian::new(item_count));
        for _ in 0..1000 {
            assert!(plain.draw(&mut random) < item_count.max(1));
            assert!(scrambled.draw(&mut random) < item_count.max(1));
        }
    }
}

#[test]
fn composites_have_zipfian_prefixes_and_uniform_rests() {
    let composite = ZipfianComposite::new(1000);
    let (mut prefixes, mut rests) = (vec![0; 1000], vec![0; 16]);
    let mut random = SplitMix64::new(9);
    for _ in 0..DRAWS {
        let number = composite.draw(&mut random);
        prefixes[(number >> 16) as usize] += 1;
        rests[(number >> 12 & 15) as usize] += 1;
    }
    let got = f64::from(prefixes[0]) / DRAWS as f64;
    assert!((got * zeta(1000) - 1.0).abs() < 0.02, "{got}");
    for count in rests {
        assert!((f64::from(count) * 16.0 / DRAWS as f64 - 1.0).abs() < 0.03, "{count}");
    }
}
