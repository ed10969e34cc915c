//! The published values of each set, and properties of all counts.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::KeySet;

const COUNT: usize = 1_000_000;

#[test]
fn first_and_last_keys_are_the_published_ones() {
    for (set, first, last) in [
        (
            KeySet::Uniform,
            [19_650_993_293_534, 33_108_058_284_884, 49_028_750_291_622],
            18_446_724_461_148_163_808,
        ),
        (
            KeySet::Normal,
            [8_377_999_959_907_895_296, 8_400_222_778_791_489_536, 8_408_497_487_294_013_440],
            10_224_653_788_824_614_912,
        ),
        (KeySet::Gaps, [1_000_000_000_000, 1_000_000_001_686, 1_000_000_001_946], 1_001_024_179_665),
    ] {
        let keys = set.generate(COUNT, 42);
        assert_eq!(keys.len(), COUNT, "{set}");
        assert_eq!(keys[..3], first, "{set}");
        assert_eq!(keys[COUNT - 1], last, "{set}");
        assert!(keys.is_sorted_by(|left, right| left < right), "{set}");
    }
}

#[test]
fn any_count_is_generated() {
    for set in KeySet::ALL {
        for count in [0, 1, 2, 1000] {
            assert_eq!(set.generate(count, 7).len(), count, "{set}");
        }
    }
}

#[test]
fn the_error_of_an_unknown_name_lists_the_known_ones() {
    assert_eq!("gaps".parse(), Ok(KeySet::Gaps));
    let message = "zeta".parse::<KeySet>().map_err(|error| error.contains("uniform, normal, gaps, zipf"));
    assert_eq!(message, Err(true));
}

#[test]
fn zipf_gaps_have_the_shares_of_their_ranks() {
    let keys = KeySet::Zipf.generate(200_000, 42);
    assert!(keys.is_sorted_by(|left, right| left < right));
    let gaps: Vec<u64> = keys.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let zeta: f64 = (1..=1 << 20).map(|rank: u32| f64::from(rank).powf(-0.99)).sum();
    for gap in [1_u64, 2] {
        let got = gaps.iter().filter(|own| **own == gap).count() as f64 / gaps.len() as f64;
        let expected = (gap as f64).powf(-0.99) / zeta;
        assert!((got / expected - 1.0).abs() < 0.05, "gap {gap}: {got} against {expected}");
    }
    assert!(gaps.iter().any(|gap| *gap > 1 << 19) && gaps.iter().all(|gap| *gap <= 1 << 20));
}
