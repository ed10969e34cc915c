//! The first ranges are the published ones, empty ranges are empty, and others are not.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::{NoEmptyRange, QuerySet, RangeMax, non_empty_ranges};
use crate::KeySet;

#[test]
fn first_ranges_are_the_published_ones() {
    let keys = KeySet::Uniform.generate(1_000_000, 42);
    let first = |set: QuerySet| set.generate(KeySet::Uniform, &keys, 2, 43).unwrap();
    assert_eq!(
        first(QuerySet::Uniform(RangeMax::Point)),
        [
            (13_432_527_470_776_545_160, 13_432_527_470_776_545_160),
            (11_303_639_812_522_640_203, 11_303_639_812_522_640_203)
        ]
    );
    assert_eq!(
        first(QuerySet::Uniform(RangeMax::R32)),
        [
            (13_432_527_470_776_545_160, 13_432_527_470_776_545_179),
            (7_982_107_704_362_031_207, 7_982_107_704_362_031_224)
        ]
    );
    assert_eq!(
        first(QuerySet::Correlated(RangeMax::R32)),
        [
            (10_063_690_589_613_211_080, 10_063_690_589_613_211_103),
            (8_698_252_215_187_710_745, 8_698_252_215_187_710_756)
        ]
    );
    assert_eq!(
        first(QuerySet::Split),
        [
            (10_063_690_589_613_211_080, 10_063_690_589_613_211_103),
            (15_321_244_078_163_471_231, 15_321_244_079_045_680_621)
        ]
    );
    assert_eq!(
        non_empty_ranges(&keys, 2, 45),
        [
            (11_710_797_100_624_334_496, 11_710_797_100_624_334_496),
            (10_369_412_248_916_269_638, 10_369_412_248_916_269_655)
        ]
    );
}

#[test]
fn empty_ranges_contain_no_key_and_others_do() {
    for key_set in KeySet::ALL {
        let keys = key_set.generate(2000, 1);
        let holds = |left: u64, right: u64| keys.iter().any(|key| (left..=right).contains(key));
        for set in QuerySet::all() {
            if key_set == KeySet::Gaps && set.to_string().ends_with("r1m") {
                continue;
            }
            for (left, right) in set.generate(key_set, &keys, 200, 2).unwrap() {
                assert!(left <= right && !holds(left, right), "{key_set} {set} [{left}, {right}]");
            }
        }
        for (left, right) in non_empty_ranges(&keys, 200, 3) {
            assert!(holds(left, right), "{key_set} [{left}, {right}]");
        }
    }
}

#[test]
fn keys_without_room_cause_an_error_and_no_endless_loop() {
    let dense: Vec<u64> = (0..3000).collect();
    let set = QuerySet::Uniform(RangeMax::R32);
    assert_eq!(
        set.generate(KeySet::Gaps, &dense, 1, 1),
        Err(NoEmptyRange { set: set.to_string(), key_count: 3000 })
    );
    assert!(set.generate(KeySet::Gaps, &[], 1, 1).is_err());
    assert_eq!(non_empty_ranges(&[], 5, 1), []);
}

#[test]
fn file_names_are_parsed_as_they_were_written() {
    for set in QuerySet::all() {
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    for set in [QuerySet::Prefix(48), QuerySet::Mixed(RangeMax::R1024, 25)] {
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    for wrong in ["prefix_b0", "prefix_b65", "prefix_b", "mixed_r32_e101", "mixed_r7_e5", "mixed_r32"] {
        assert!(wrong.parse::<QuerySet>().is_err(), "{wrong}");
    }
    assert!("uniform_r7".parse::<QuerySet>().unwrap_err().contains("correlated_r1024"));
}

#[test]
fn prefixes_are_whole_and_mixes_have_their_share_of_empty_ranges() {
    for key_set in KeySet::ALL {
        let keys = key_set.generate(2000, 1);
        let holds = |(left, right): (u64, u64)| keys.iter().any(|key| (left..=right).contains(key));
        for bits in [56, 64] {
            for range in QuerySet::Prefix(bits).generate(key_set, &keys, 100, 2).unwrap() {
                let rest = u64::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                assert_eq!((range.0 & rest, range.1 - range.0), (0, rest), "{key_set}");
                assert!(!holds(range), "{key_set}");
            }
        }
        for percent in [0, 25, 99, 100] {
            let ranges = QuerySet::Mixed(RangeMax::R32, percent).generate(key_set, &keys, 1000, 2).unwrap();
            let empty = ranges.iter().filter(|range| !holds(**range)).count();
            assert_eq!(empty, 10 * usize::from(percent), "{key_set}");
        }
    }
}
