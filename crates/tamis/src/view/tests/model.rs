//! Random views of hostile keys compared with a sorted list.

use super::*;

fn check_order(sample: &Sample) {
    let mut cursor = sample.cursor();
    cursor.seek_first().unwrap();
    for entry in &sample.entries {
        assert_eq!(at(&cursor).as_ref(), Some(entry));
        cursor.next().unwrap();
    }
    assert_eq!(at(&cursor), None);
    cursor.seek_last().unwrap();
    for entry in sample.entries.iter().rev() {
        assert_eq!(at(&cursor).as_ref(), Some(entry));
        cursor.prev().unwrap();
    }
    assert_eq!(at(&cursor), None);
}

/// A key near those of the sample.
pub(super) fn target(sample: &Sample, random: &mut SplitMix64) -> (Vec<u8>, Sequence) {
    if sample.entries.is_empty() {
        return (hostile_key(random), SEQUENCE_MAX);
    }
    let present = &sample.entries[random.index(sample.entries.len())];
    let mut key = present.0.clone();
    match random.index(7) {
        0 => return (hostile_key(random), SEQUENCE_MAX),
        1 => return (key, present.1.saturating_add_signed(random.index(3) as i64 - 1)),
        2 => key.truncate(key.len() - 1),
        3 => key.push([0, 0xFF][random.index(2)]),
        4 => {
            let place = random.index(key.len());
            key[place] = key[place].wrapping_add([1, 0xFF][random.index(2)]);
        }
        _ => {}
    }
    (key, SEQUENCE_MAX)
}

/// A key near those of the sample, without a sequence number.
pub(super) fn hostile_target(sample: &Sample, random: &mut SplitMix64) -> Vec<u8> {
    loop {
        let (key, _) = target(sample, random);
        if !key.is_empty() {
            return key;
        }
    }
}

fn check_seeks(sample: &Sample, mode: SearchMode, random: &mut SplitMix64, count: usize) {
    let mut cursor = sample.cursor().with_mode(mode);
    for _ in 0..count {
        let (key, sequence) = target(sample, random);
        let first = first_at(&sample.entries, &key, sequence);
        cursor.seek(&key, sequence).unwrap();
        assert_eq!(at(&cursor).as_ref(), sample.entries.get(first), "seek {key:?} {sequence} {mode:?}");
        check_moves(sample, &mut cursor, first, random);
        for kind in BoundKind::BOTH {
            let count = count_before(&sample.entries, &key, kind);
            cursor.seek_for_prev(&key, kind).unwrap();
            let expected = count.checked_sub(1);
            assert_eq!(at(&cursor).as_ref(), expected.map(|last| &sample.entries[last]), "{key:?} {kind:?}");
            check_moves(sample, &mut cursor, expected.unwrap_or(usize::MAX), random);
        }
    }
}

/// Moves in both directions from entry `number`.
fn check_moves(
    sample: &Sample,
    cursor: &mut ViewCursor<Arc<[MemoryRun]>>,
    number: usize,
    random: &mut SplitMix64,
) {
    let mut number = number;
    for _ in 0..random.index(4) {
        if !cursor.is_valid() {
            return;
        }
        if random.index(2) == 0 {
            cursor.prev().unwrap();
            number = number.wrapping_sub(1);
        } else {
            cursor.next().unwrap();
            number += 1;
        }
        assert_eq!(at(cursor).as_ref(), sample.entries.get(number));
    }
}

pub(super) fn check(sample: &Sample, random: &mut SplitMix64, count: usize) {
    check_order(sample);
    for mode in [SearchMode::Blind, SearchMode::Full, SearchMode::Partial] {
        check_seeks(sample, mode, random, count);
    }
}

pub(super) fn with_segments(segment_size: usize) -> ViewOptions {
    ViewOptions { segment_size, ..options() }
}

#[test]
fn a_view_of_hostile_keys_returns_what_a_merge_returns() {
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let run_count = [1, 2, 3, 8, 9, 63][random.index(6)];
        let entry_count = [0, 1, 5, 40, 300, 3_000][seed as usize % 6];
        // Few distinct keys have many versions.
        let distinct: Vec<_> =
            (0..1 + random.index(entry_count + 1)).map(|_| hostile_key(&mut random)).collect();
        let mut pick = SplitMix64::new(seed + 1_000);
        let keys = (0..entry_count).map(|_| distinct[pick.index(distinct.len())].clone());
        let runs = distribute(&mut random, run_count, keys);
        for segment_size in [16, 32, 64] {
            let sample = Sample::new(with_segments(segment_size), runs.clone());
            check(&sample, &mut random, 150);
        }
    }
}

#[test]
fn views_around_the_size_of_a_segment_are_whole() {
    for segment_size in [16, 32, 64] {
        for count in
            [segment_size - 1, segment_size, segment_size + 1, 2 * segment_size, 16 * segment_size + 1]
        {
            let mut random = SplitMix64::new(count as u64);
            let keys = (0..count as u64).map(|n| (n * 7).to_be_bytes().to_vec());
            let runs = distribute(&mut random, 4, keys);
            check(&Sample::new(with_segments(segment_size), runs), &mut random, 100);
        }
    }
}

#[test]
fn one_key_may_have_any_number_of_versions() {
    for (version_count, others) in [(16, 40), (17, 40), (33, 0), (5_000, 60), (20_000, 0)] {
        let mut random = SplitMix64::new(version_count);
        let many = (0..version_count).map(|_| b"k50".to_vec());
        let keys = many.chain((0..others).map(|n: u64| format!("k{n:02}").into_bytes()));
        let keys: Vec<_> = keys.collect();
        let runs = distribute(&mut random, 5, keys.into_iter());
        let sample = Sample::new(with_segments(16), runs);
        check(&sample, &mut random, if version_count > 1_000 { 20 } else { 200 });
    }
}

#[test]
fn runs_may_be_empty_and_many() {
    for run_count in [1, 63, 64, 300] {
        let mut random = SplitMix64::new(run_count as u64);
        let keys: Vec<_> = (0..2_000).map(|_| hostile_key(&mut random)).collect();
        let mut runs = distribute(&mut random, run_count, keys.into_iter());
        runs[0].clear();
        runs.push(Vec::new());
        check(&Sample::new(options(), runs), &mut random, 100);
    }
    check(&Sample::new(options(), Vec::new()), &mut SplitMix64::new(1), 3);
}

#[test]
fn keys_of_64_kib_that_share_63_kib_are_found() {
    let mut random = SplitMix64::new(5);
    let mut keys = Vec::new();
    for n in 0..200_u64 {
        let mut key = vec![b'x'; 63 << 10];
        key.extend_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        key.resize(65_535, n as u8);
        keys.push(key);
    }
    keys.extend((0..20_u64).map(|n| n.to_be_bytes().to_vec()));
    let runs = distribute(&mut random, 3, keys.into_iter());
    check(&Sample::new(with_segments(16), runs), &mut random, 40);
}

#[test]
fn tombstones_may_be_first_and_last() {
    let mut random = SplitMix64::new(9);
    let mut runs = distribute(&mut random, 3, (10..90_u64).map(|n| n.to_be_bytes().to_vec()));
    for (key, sequence) in [(0_u64, 200), (95, 201)] {
        runs[1].push((key.to_be_bytes().to_vec(), sequence, Kind::Tombstone, Vec::new()));
    }
    check(&Sample::new(options(), runs), &mut random, 200);
}

#[test]
fn a_view_that_exceeds_a_limit_is_refused_with_the_limit() {
    let refused = |options: ViewOptions, run_count: usize| {
        let runs = vec![MemoryRun::default(); run_count];
        build(options, &runs).unwrap_err().to_string()
    };
    assert!(refused(options(), 65_536).contains("65,535"));
    assert!(refused(ViewOptions { segment_size: 24, ..options() }, 1).contains("16, 32 or 64"));
}

#[test]
fn a_view_of_other_runs_is_refused() {
    let mut random = SplitMix64::new(3);
    let sample =
        Sample::new(options(), distribute(&mut random, 2, (0..50_u64).map(|n| n.to_be_bytes().to_vec())));
    let others: Arc<[MemoryRun]> = vec![sample.runs[1].clone(), MemoryRun::default()].into();
    assert!(matches!(ViewCursor::new(&sample.view, &others), Err(Error::Corruption(_))));
}
