//! The formulas compared with published and computed values.

use super::{blocked_fpr, standard_best_k, standard_fpr};

fn assert_close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 0.01, "{got} is not {expected}");
}

#[test]
fn rates_of_lines() {
    for (bits_per_key, k, percent) in
        [(6.0, 4, 5.75), (8.0, 5, 2.31), (10.0, 6, 0.958), (12.0, 8, 0.407), (16.0, 9, 0.083)]
    {
        assert_close(blocked_fpr(512.0, 512.0 / bits_per_key, k) * 100.0, percent);
    }
    assert!(blocked_fpr(512.0, 0.0, 6) == 0.0);
    assert_close(blocked_fpr(512.0, 5000.0, 8), 1.0);
    assert_close(blocked_fpr(512.0, f64::MAX, 8), 1.0);
}

#[test]
fn rates_of_standard_filters() {
    for (bits_per_key, k, percent) in [(6.0, 4, 5.61), (10.0, 7, 0.819), (20.0, 14, 0.0067)] {
        assert_eq!(standard_best_k(bits_per_key, 64), k);
        assert_close(standard_fpr(bits_per_key, k) * 100.0, percent);
    }
    assert_eq!(standard_best_k(0.5, 64), 1);
    assert_eq!(standard_best_k(1000.0, 64), 64);
}
