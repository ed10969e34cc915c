//! The allocation keeps the total, favours small levels, and is optimal compared with a grid.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{LevelLoad, allocate_bits, blocked_bloom_fpr};

fn levels(counts: &[u64]) -> Vec<LevelLoad> {
    counts.iter().map(|key_count| LevelLoad { key_count: *key_count, weight: 1.0 }).collect()
}

fn false_reads(levels: &[LevelLoad], bits: &[f64]) -> f64 {
    levels.iter().zip(bits).map(|(level, bits)| level.weight * blocked_bloom_fpr(*bits)).sum()
}

fn used_bits(levels: &[LevelLoad], bits: &[f64]) -> f64 {
    levels.iter().zip(bits).map(|(level, bits)| level.key_count as f64 * bits).sum()
}

#[test]
fn no_allocation_on_a_grid_is_better() {
    let levels = levels(&[1_000, 10_000, 100_000]);
    for bits_per_key in [1.0, 3.0, 6.0, 10.0] {
        let total = 111_000.0 * bits_per_key;
        let bits = allocate_bits(&levels, total);
        assert!((used_bits(&levels, &bits) / total - 1.0).abs() < 1e-6, "all memory is used");
        let ours = false_reads(&levels, &bits);
        for first in 0..64 {
            for second in 0..64 {
                let given = [f64::from(first) * 0.5, f64::from(second) * 0.5];
                let third = (total - given[0] * 1_000.0 - given[1] * 10_000.0) / 100_000.0;
                if third >= 0.0 {
                    let other = false_reads(&levels, &[given[0], given[1], third]);
                    assert!(
                        ours <= other * 1.005,
                        "{bits_per_key}: {ours} {bits:?}, better: {other} {given:?} {third}"
                    );
                }
            }
        }
        let even = false_reads(&levels, &[bits_per_key; 3]);
        assert!(ours < even * 0.9, "{bits_per_key}: {ours} {even}");
    }
}

#[test]
fn small_levels_get_more_bits_per_key() {
    let bits = allocate_bits(&levels(&[1_000, 10_000, 100_000, 1_000_000]), 5_000_000.0);
    assert!(bits.is_sorted_by(|left, right| left > right), "{bits:?}");
}

#[test]
fn levels_without_lookups_get_no_memory() {
    let mut levels = levels(&[1_000, 0, 1_000]);
    levels[0].weight = 0.0;
    let bits = allocate_bits(&levels, 10_000.0);
    assert_eq!(bits[..2], [0.0, 0.0]);
    assert!((bits[2] - 10.0).abs() < 1e-6);
}

#[test]
fn memory_beyond_the_use_of_filters_remains() {
    assert_eq!(allocate_bits(&levels(&[10]), f64::INFINITY), [super::LEVEL_BITS_MAX]);
    assert_eq!(allocate_bits(&levels(&[10]), 0.0), [0.0]);
    assert_eq!(allocate_bits(&[], 10.0), [0.0; 0]);
}
