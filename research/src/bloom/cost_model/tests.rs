//! The model against the closed forms of the paper, and against simulated lookups.

use tamis_workload::SplitMix64;

use super::CostModel;

const MODEL: CostModel =
    CostModel { level_count: 5, size_ratio: 4, present: 0.5, fpr: 0.01, hash_ns: 200.0, read_ns: 10_000.0 };

#[test]
fn filter_count_equals_the_closed_form() {
    for level_count in [1, 2, 5, 7] {
        for size_ratio in [2, 4, 10] {
            let model = CostModel { level_count, size_ratio, ..MODEL };
            let (levels, ratio) = (f64::from(level_count), size_ratio as f64);
            // Equation 9.
            let found_above = model.present / (ratio - 1.0)
                * (1.0 - levels * (ratio - 1.0) / (ratio.powi(level_count.cast_signed()) - 1.0));
            assert!((model.filters() - (levels - found_above)).abs() < 1e-9, "{level_count} {size_ratio}");
        }
    }
}

#[test]
fn costs_equal_those_of_simulated_lookups() {
    let mut random = SplitMix64::new(7);
    let mut uniform = || random.next_u64() as f64 / u64::MAX as f64;
    let sizes = [1.0, 4.0, 16.0, 64.0, 256.0];
    let total: f64 = sizes.iter().sum();
    let (mut unshared, mut shared) = (0.0, 0.0);
    let count = 200_000;
    for _ in 0..count {
        let is_present = uniform() < MODEL.present;
        let mut place = uniform() * total;
        shared += MODEL.hash_ns;
        for size in sizes {
            unshared += MODEL.hash_ns;
            let is_here = is_present && place < size;
            place -= size;
            if is_here || uniform() < MODEL.fpr {
                unshared += MODEL.read_ns;
                shared += MODEL.read_ns;
            }
            if is_here {
                break;
            }
        }
    }
    for (drawn, modelled) in [(unshared, MODEL.unshared_ns()), (shared, MODEL.shared_ns())] {
        let drawn = drawn / f64::from(count);
        assert!((drawn / modelled - 1.0).abs() < 0.01, "{drawn} {modelled}");
    }
}

#[test]
fn the_share_of_hashing_grows_with_levels_and_with_faster_reads() {
    let share = |level_count, read_ns| CostModel { level_count, read_ns, ..MODEL }.hash_share_percent();
    assert!(share(7, 10_000.0) > share(2, 10_000.0));
    assert!(share(5, 100.0) > 90.0 && share(5, 1e6) < 1.0);
    assert!((share(5, 0.0) - 100.0).abs() < 1e-9);
}
