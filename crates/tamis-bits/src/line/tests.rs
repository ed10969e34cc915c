//! A line contains all inserted patterns.

use super::{LINE_BYTES, LINE_PROBE_MAX, contains, holds, insert, line_at, line_index};

#[test]
fn inserted_patterns_are_contained() {
    for probe_count in 0..=LINE_PROBE_MAX {
        let mut line = [0; LINE_BYTES];
        let patterns: Vec<u32> =
            (0..20u32).map(|index| index.wrapping_mul(0x1357_9bdf)).chain([0, u32::MAX]).collect();
        for pattern in &patterns {
            insert(&mut line, *pattern, probe_count);
        }
        assert!(patterns.iter().all(|pattern| contains(&line, *pattern, probe_count)));
    }
}

#[test]
fn both_line_queries_agree() {
    let mut line = [0; LINE_BYTES];
    let patterns = || (0..4000_u32).map(|index| index.wrapping_mul(0x1234_567b));
    patterns().take(90).for_each(|pattern| insert(&mut line, pattern, 3));
    for pattern in patterns() {
        assert_eq!(holds::<1>(&line, pattern), contains(&line, pattern, 1));
        assert_eq!(holds::<3>(&line, pattern), contains(&line, pattern, 3));
        assert_eq!(holds::<4>(&line, pattern), contains(&line, pattern, 4));
    }
}

#[test]
fn the_first_bit_of_a_pattern_is_its_top_nine_bits() {
    let mut line = [0; LINE_BYTES];
    insert(&mut line, 0x8000_0000, 1);
    assert_eq!(line.iter().position(|byte| *byte != 0), Some(32));
    assert_eq!(line[32], 1);
    assert!(!contains(&line, 0, 1));
}

#[test]
fn lines_are_chosen_over_the_whole_range() {
    assert_eq!(line_index(0, 10), 0);
    assert_eq!(line_index(u64::MAX, 10), 9);
    assert_eq!(line_index(u64::MAX, u64::MAX), u64::MAX - 1);
}

#[test]
fn a_line_outside_the_bytes_is_none() {
    assert!(line_at(&[0; 64], 1 << 40, u64::MAX).is_none());
    assert!(line_at(&[], 1, 1).is_none());
    assert!(line_at(&[0; 64], 1, u64::MAX).is_some());
}
