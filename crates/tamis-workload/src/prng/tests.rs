//! The generator compared with its published numbers.

use super::SplitMix64;

#[test]
fn seed_42_gives_the_published_numbers() {
    let numbers: Vec<u64> = SplitMix64::new(42).take(4).collect();
    assert_eq!(
        numbers,
        [
            13_679_457_532_755_275_413,
            2_949_826_092_126_892_291,
            5_139_283_748_462_763_858,
            6_349_198_060_258_255_764
        ]
    );
}

#[test]
fn doubles_stay_in_their_interval() {
    let mut random = SplitMix64::new(1);
    for _ in 0..100_000 {
        assert!((0.0..1.0).contains(&random.unit()));
        let above = random.unit_above_zero();
        assert!(above > 0.0 && above <= 1.0);
    }
}

#[test]
fn a_bound_of_zero_draws_from_all_numbers() {
    assert_eq!(SplitMix64::new(42).below(0), 13_679_457_532_755_275_413);
    assert_eq!(SplitMix64::new(42).below(1), 0);
}
