//! Sums over units are equal for all keys; the choice and the rates match the formulas.

use super::UnitProbes;
use crate::bloom::formula::standard_fpr;

#[test]
fn the_sum_over_the_first_units_differs_by_one_at_most() {
    for parts in [256, 300, 342, 511, 512, 700, 4096] {
        let probes = UnitProbes(parts);
        for digest in 0..256 {
            let mut sum = 0;
            for unit in 0..8 {
                let count = probes.of(digest, unit);
                assert!(count == parts / 256 || count == parts / 256 + 1);
                sum += count;
                let exact = f64::from(parts) * (unit + 1) as f64 / 256.0;
                assert!((f64::from(sum) - exact).abs() < 1.0, "{parts} {digest} {unit}");
            }
        }
    }
}

#[test]
fn units_of_two_bits_have_the_rate_of_one_filter_of_their_size() {
    let probes = UnitProbes::best(256.0, 6);
    assert_eq!(probes, UnitProbes(342), "4/3 bits");
    let rates = probes.rates(256.0);
    // Blocked lines have a slightly higher rate than scattered bits.
    assert!(rates[3] < standard_fpr(6.0, 4) * 1.02, "{rates:?}");
    assert!(rates[6] < standard_fpr(12.0, 8) * 1.04, "{rates:?}");
    assert!(rates.is_sorted_by(|left, right| left > right));
}

#[test]
fn whole_numbers_are_kept_if_fractions_save_nothing() {
    for bits_per_key in [3.0, 4.0, 6.0, 10.0] {
        assert!(UnitProbes::best(512.0 / bits_per_key, 4).is_whole(), "{bits_per_key}");
    }
    assert_eq!(UnitProbes::best(1e9, 4), UnitProbes::whole(1), "crowded lines");
}

#[test]
fn fields_with_no_bit_or_too_many_are_refused() {
    for (probe_count, probe_parts) in [(0, 0), (0, 200), (17, 0), (16, 1)] {
        assert_eq!(UnitProbes::from_fields(probe_count, probe_parts), None);
    }
    let probes = UnitProbes::from_fields(3, 77).expect("possible");
    assert_eq!(probes.fields(), [3, 77]);
}
