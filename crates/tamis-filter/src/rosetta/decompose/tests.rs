//! Dyadic intervals compared with brute force, and their mean numbers with the closed form.

use super::{dyadic, mean_counts};

fn intervals(lower: u64, upper: u64) -> Vec<(u64, u32)> {
    let mut intervals = Vec::new();
    dyadic(lower, upper, |node, level| intervals.push((node, level)));
    intervals
}

/// Aligned intervals inside the range whose parent is not, in order.
fn brute(lower: u64, upper: u64) -> Vec<(u64, u32)> {
    let is_inside = |node: u64, level: u32| node << level >= lower && ((node + 1) << level) - 1 <= upper;
    let mut found: Vec<(u64, u32)> = (0..8)
        .flat_map(|level| (0..=127_u64 >> level).map(move |node| (node, level)))
        .filter(|(node, level)| is_inside(*node, *level) && !is_inside(node >> 1, level + 1))
        .collect();
    found.sort_by_key(|(node, level)| node << level);
    found
}

#[test]
fn every_small_range_is_decomposed_into_the_largest_aligned_intervals() {
    for lower in 0..100 {
        for upper in lower..100 {
            assert_eq!(intervals(lower, upper), brute(lower, upper), "{lower} {upper}");
        }
    }
}

#[test]
fn the_smallest_and_largest_integers_do_not_overflow() {
    assert_eq!(intervals(0, u64::MAX), [(0, 64)]);
    assert_eq!(intervals(u64::MAX, u64::MAX), [(u64::MAX, 0)]);
    assert_eq!(intervals(1, u64::MAX).len(), 64);
    assert_eq!(intervals(1, u64::MAX - 1).len(), 126);
    assert_eq!(intervals(5, 4), []);
}

#[test]
fn mean_counts_equal_the_closed_form() {
    for size in [1_u64, 2, 3, 5, 8, 13, 16, 31, 32, 100] {
        let top = size.ilog2();
        let shifts = (0..1024).map(|lower| (lower, lower + size - 1, 1.0));
        let counts = mean_counts(shifts);
        for (level, count) in counts.iter().enumerate() {
            let expected = match (level as u32).cmp(&top) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => (size - (1 << top) + 1) as f64 / (1_u64 << top) as f64,
                std::cmp::Ordering::Greater => 0.0,
            };
            assert!((count - expected).abs() < 1e-9, "{size} {level}: {count} {expected}");
        }
    }
}
