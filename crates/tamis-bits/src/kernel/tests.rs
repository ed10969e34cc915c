//! All forms of every kernel give the same answers, which equal the plain definition.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{Step, Steps, Task, portable, run};
use crate::line::{self, LINE_BYTES};

/// Miri runs the same tests on smaller inputs.
const IS_SLOW: bool = cfg!(miri);

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state ^ (*state >> 29)
}

#[test]
fn line_kernels_agree_with_the_plain_definition() {
    let mut state = 1;
    let digest_count = if IS_SLOW { 40 } else { 300 };
    for probe_count in (0..=16).step_by(if IS_SLOW { 5 } else { 1 }) {
        let digests: Vec<u64> = (0..2 * digest_count).map(|_| next(&mut state)).collect();
        // Of some filters the last lines are missing.
        for (line_count, present_count) in [(1_u64, 1), (2, 2), (7, 7), (5, 3)] {
            let mut expected = vec![0; present_count * LINE_BYTES];
            for digest in &digests[..20] {
                if let Some(line) = line::line_at_mut(&mut expected, line_count, *digest) {
                    line::insert(line, line::pattern(*digest), probe_count);
                }
            }
            let mut lines = vec![0; present_count * LINE_BYTES];
            super::lines_insert(&mut lines, line_count, &digests[..20], probe_count);
            assert_eq!(lines, expected);
            for digest in &digests {
                let line = line::line_at(&lines, line_count, *digest);
                let expected =
                    line.is_none_or(|line| line::contains(line, line::pattern(*digest), probe_count));
                assert_eq!(super::may_contain(&lines, line_count, *digest, probe_count), expected);
                assert_eq!(portable::may_contain(&lines, line_count, *digest, probe_count), expected);
                let Some(line) = line else { continue };
                assert_eq!(super::line_contains(line, line::pattern(*digest), probe_count), expected);
                assert_eq!(portable::line_contains(line, line::pattern(*digest), probe_count), expected);
            }
        }
    }
}

#[test]
fn separate_values_set_the_bits_of_lines() {
    let mut state = 5;
    for probe_count in (0..=16).step_by(if IS_SLOW { 5 } else { 1 }) {
        let digests: Vec<u64> = (0..50).map(|_| next(&mut state)).collect();
        let values: Vec<u64> = (0..50).map(|_| next(&mut state)).collect();
        let mut expected = vec![0; 3 * LINE_BYTES];
        for (digest, value) in digests.iter().zip(&values) {
            let line = line::line_at_mut(&mut expected, 3, *digest).expect("three lines");
            line::insert(line, *value as u32, probe_count);
        }
        let mut lines = vec![0; 3 * LINE_BYTES];
        super::lines_insert_values(&mut lines, 3, &digests, &values, probe_count);
        assert_eq!(lines, expected);
    }
}

#[test]
fn places_follow_each_other_by_the_step() {
    let mut state = 6;
    let cases = [0, 1, 2, 7, 16, 17, 33]
        .into_iter()
        .flat_map(|probe_count| [(Step::Mixed, probe_count), (Step::Halves, probe_count)]);
    for (step, probe_count) in cases {
        for value_count in [0, 1, 7, 8, 9, 40] {
            // The last ones are outside the bytes and skipped.
            for bit_count in [64, 800, 8 * 137, u64::from(u32::MAX), 1 << 40] {
                let values: Vec<u64> = (0..value_count).map(|_| next(&mut state)).collect();
                let mut expected = vec![0_u8; 137];
                for value in &values {
                    let between = match step {
                        Step::Mixed => crate::mix64(*value, 0) | 1,
                        Step::Halves => value.rotate_right(32),
                    };
                    for round in 0..u64::from(probe_count) {
                        let number = value.wrapping_add(between.wrapping_mul(round));
                        let place = ((u128::from(number) * u128::from(bit_count)) >> 64) as usize;
                        if let Some(byte) = expected.get_mut(place / 8) {
                            *byte |= 1 << (place % 8);
                        }
                    }
                }
                let mut bits = vec![0; 137];
                super::places_insert(&mut bits, bit_count, &values, probe_count, step);
                assert_eq!(bits, expected);
            }
        }
    }
}

#[test]
fn digests_of_missing_lines_are_not_rejected() {
    super::lines_insert(&mut [0; 64], 1 << 50, &[u64::MAX; 40], 8);
    assert!(super::may_contain(&[0; 64], 1 << 50, u64::MAX, 8) && super::may_contain(&[], 1, 1, 8));
}

#[test]
fn ranks_and_positions_in_a_line_are_inverse() {
    let mut state = 3;
    for round in 0..if IS_SLOW { 4 } else { 50 } {
        let mut line = [0; LINE_BYTES];
        for byte in &mut line {
            *byte = match round % 4 {
                0 => next(&mut state) as u8,
                1 => (next(&mut state) & next(&mut state) & next(&mut state)) as u8,
                2 => 0xff,
                _ => 0,
            };
        }
        let mut rank = 0;
        for position in 0..512u32 {
            assert_eq!(super::rank_in_line(&line, position), rank);
            assert_eq!(portable::rank_in_line(&line, position), rank);
            if line[position as usize / 8] >> (position % 8) & 1 == 1 {
                assert_eq!(super::select_in_line(&line, rank), position);
                assert_eq!(portable::select_in_line(&line, rank, 0), position);
                rank += 1;
            } else {
                assert_eq!(super::select_zero_in_line(&line, position - rank), position);
                assert_eq!(portable::select_in_line(&line, position - rank, u64::MAX), position);
            }
        }
        for beyond in [rank, 513, u32::MAX] {
            assert_eq!(super::select_in_line(&line, beyond), 512);
            assert_eq!(portable::select_in_line(&line, beyond, 0), 512);
        }
        for all in [512, 513, u32::MAX] {
            assert_eq!(super::rank_in_line(&line, all), rank);
            assert_eq!(portable::rank_in_line(&line, all), rank);
        }
    }
}

/// Runs the same steps in all forms.
struct AllSteps<'a> {
    bytes: &'a [u8; LINE_BYTES],
    byte: u8,
    word: u64,
    rank: u32,
}

impl Task for AllSteps<'_> {
    type Output = (u64, u64, u64, u64, u32);

    #[inline(always)]
    fn run<S: Steps>(self, steps: S) -> Self::Output {
        (
            steps.equal_mask(self.bytes, self.byte),
            steps.not_smaller_mask(self.bytes, self.byte),
            steps.nth_one(self.word, self.rank),
            if self.rank < self.word.count_ones().min(63) { steps.nth_run(self.word, self.rank) } else { 0 },
            self.word.count_ones(),
        )
    }
}

#[test]
fn steps_agree_with_their_definition_in_all_forms() {
    let mut state = 4;
    for round in 0..if IS_SLOW { 20 } else { 2000 } {
        let bytes: [u8; LINE_BYTES] = core::array::from_fn(|_| next(&mut state) as u8);
        let byte = if round % 2 == 0 { bytes[round % 64] } else { next(&mut state) as u8 };
        let word = match round % 7 {
            0 => 0,
            1 => u64::MAX,
            2 => next(&mut state) & next(&mut state),
            _ => next(&mut state),
        };
        let mask = |is_wanted: &dyn Fn(u8) -> bool| {
            (0..64).fold(0, |mask, index| mask | u64::from(is_wanted(bytes[index])) << index)
        };
        for rank in 0..64 {
            let position = (0..64).filter(|bit| word >> bit & 1 == 1).nth(rank as usize);
            let expected = (
                mask(&|candidate| candidate == byte),
                mask(&|candidate| candidate >= byte),
                position.map_or(0, |bit| 1 << bit),
                position.filter(|_| rank < 63).map_or(0, |bit| {
                    let behind = (bit + 1..64).find(|bit| word >> bit & 1 == 1);
                    (bit..behind.unwrap_or(64)).fold(0, |run, bit| run | 1 << bit)
                }),
                (0..64).map(|bit| (word >> bit & 1) as u32).sum(),
            );
            let task = || AllSteps { bytes: &bytes, byte, word, rank };
            assert_eq!(run(task()), expected);
            assert_eq!(task().run(portable::Portable), expected);
        }
    }
}
