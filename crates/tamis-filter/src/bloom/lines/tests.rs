//! Sizes and numbers of probes.

use super::{best_probe_count, empty_filter, line_count};
use crate::BuildError;

#[test]
fn probe_counts_grow_with_the_budget() {
    let of = |bits_per_key: f64| best_probe_count(512.0 / bits_per_key);
    assert_eq!([of(2.0), of(6.0), of(8.0), of(10.0), of(12.0), of(14.0)], [1, 4, 5, 6, 7, 8]);
    assert!(of(20.0) > 8);
    assert!(of(100.0) <= 16);
    assert!(of(0.001) >= 1);
}

#[test]
fn lines_are_rounded_up() {
    assert_eq!(line_count(0, 10.0), 0);
    assert_eq!(line_count(1, 0.001), 1);
    assert_eq!(line_count(512, 10.0), 10);
    assert_eq!(line_count(513, 10.0), 11);
}

#[test]
fn filters_beyond_memory_are_refused() {
    for bytes in [1 << 62, u64::MAX] {
        assert!(matches!(empty_filter(bytes), Err(BuildError::TooLarge { .. })));
    }
}
