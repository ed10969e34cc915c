#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_number_has_one_place() {
    for count in [1, 2, 3, 7, 64, 100, 1000, 4097] {
        let permutation = Permutation::new(count, 5);
        let numbers: BTreeSet<u64> = (0..count).map(|place| permutation.at(place)).collect();
        assert!(numbers.into_iter().eq(0..count), "{count}");
    }
    assert_eq!(Permutation::new(0, 5).at(7), 0);
}

#[test]
fn neighbouring_places_have_numbers_far_apart() {
    let count = 100_000;
    let permutation = Permutation::new(count, 1);
    let numbers: Vec<u64> = (0..1000).map(|place| permutation.at(place)).collect();
    // A tenth of the numbers is in each tenth of the range.
    for tenth in 0..10 {
        let in_tenth = numbers.iter().filter(|number| *number * 10 / count == tenth).count();
        assert!((60..140).contains(&in_tenth), "{tenth}: {in_tenth}");
    }
    let ascents = numbers.windows(2).filter(|pair| pair.first().unwrap() < pair.get(1).unwrap()).count();
    assert!((440..560).contains(&ascents), "{ascents}");
    let other = Permutation::new(count, 2);
    assert!((0..1000).filter(|&place| other.at(place) == permutation.at(place)).count() < 10);
}
