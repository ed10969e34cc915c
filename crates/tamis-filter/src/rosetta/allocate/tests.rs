//! Allocations add up to the budget and meet the conditions of their optimum.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{LN2_SQUARED, first_cut, frequencies, optimised, single, variable};

/// Average numbers of intervals for ranges of a size over all alignments.
fn counts(size: u64) -> Vec<f64> {
    let top = size.ilog2();
    let last = (size - (1 << top) + 1) as f64 / (1_u64 << top) as f64;
    (0..top).map(|_| 1.0).chain([last]).collect()
}

fn rate(bits: f64, prefixes: f64) -> f64 {
    (-bits / prefixes * LN2_SQUARED).exp()
}

/// Budgets, with levels of equal size and with fewer prefixes in upper levels.
fn problems() -> Vec<(Vec<f64>, Vec<f64>, f64)> {
    let mut problems = Vec::new();
    for size in [1, 2, 16, 64, 1000, 4096] {
        for bits_per_key in [0.5, 4.0, 10.0, 22.0, 40.0] {
            let counts = counts(size);
            let equal = vec![1000.0; counts.len()];
            let fewer: Vec<f64> =
                (0..counts.len()).map(|level| 1000.0 * 0.8_f64.powi(level as i32)).collect();
            problems.push((counts.clone(), equal, bits_per_key * 1000.0));
            problems.push((counts, fewer, bits_per_key * 1000.0));
        }
    }
    problems
}

#[test]
fn all_allocations_add_up_to_the_budget() {
    for (counts, prefixes, bits) in problems() {
        let weights = frequencies(&counts);
        let all = [
            single(counts.len(), bits),
            first_cut(&prefixes, bits),
            optimised(&weights, &prefixes, bits),
            variable(&weights, &prefixes, bits),
        ];
        for shares in all {
            assert!(shares.iter().all(|share| *share >= 0.0), "{shares:?}");
            let sum: f64 = shares.iter().sum();
            assert!((sum - bits).abs() < 1e-6 * bits, "{shares:?} {bits}");
        }
    }
}

#[test]
fn frequencies_equal_the_closed_form() {
    for size in [1_u64, 2, 16, 1000] {
        let top = size.ilog2() as usize;
        for (level, frequency) in frequencies(&counts(size)).iter().enumerate() {
            let last = (size - (1 << top) + 1) as f64 / (1_u64 << top) as f64;
            assert!((frequency - ((top - level) as f64 + last)).abs() < 1e-9);
        }
    }
}

#[test]
fn levels_with_bits_have_equal_marginal_value_and_others_less() {
    for (counts, prefixes, bits) in problems() {
        let weights = frequencies(&counts);
        let shares = optimised(&weights, &prefixes, bits);
        let worth = |index: usize| weights[index] / prefixes[index] * rate(shares[index], prefixes[index]);
        let active: Vec<usize> = (0..shares.len()).filter(|index| shares[*index] > 1e-6).collect();
        let constant = worth(active[0]);
        for index in 0..shares.len() {
            if active.contains(&index) {
                assert!((worth(index) / constant - 1.0).abs() < 1e-6, "{shares:?}");
            } else {
                assert!(worth(index) <= constant * 1.000_001, "{shares:?}");
            }
        }
    }
}

#[test]
fn the_first_cut_gives_all_nodes_the_same_rate() {
    for (_, prefixes, bits) in problems() {
        let shares = first_cut(&prefixes, bits);
        let leaf = rate(shares[0], prefixes[0]);
        let mut node = leaf;
        for (share, prefixes) in shares.iter().zip(&prefixes).skip(1) {
            node = rate(*share, *prefixes) * (node + (1.0 - node) * node);
            assert!((node / leaf - 1.0).abs() < 1e-3, "{node} {leaf}");
        }
    }
}

#[test]
fn variable_levels_push_bits_down() {
    let weights = frequencies(&counts(64));
    let prefixes = vec![1.0; weights.len()];
    let (plain, pushed) = (optimised(&weights, &prefixes, 22.0), variable(&weights, &prefixes, 22.0));
    assert!(pushed[0] > plain[0], "{plain:?} {pushed:?}");
    // The values of the corrected formula for ranges of 64 keys and 22 bits per key.
    let total: f64 = plain.iter().sum();
    assert!((total - 22.0).abs() < 1e-9);
    assert!((plain[0] - 5.3).abs() < 0.5, "{plain:?}");
}
