//! Scans at new and old snapshots compared with the visible entries of a sorted list.

use std::ops::Bound;

use super::{
    model::{target, with_segments},
    *,
};

/// The newest entry at or below the snapshot of each key.
fn versions(entries: &[Entry], snapshot: Sequence) -> Vec<Entry> {
    let mut found: Vec<Entry> = entries.iter().filter(|entry| entry.1 <= snapshot).cloned().collect();
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    found
}

fn check_moves(
    scan: &mut ViewScan<Arc<[MemoryRun]>>,
    snapshot: Sequence,
    visible: &[Entry],
    number: usize,
    random: &mut SplitMix64,
) {
    let mut number = number;
    for _ in 0..4 {
        assert_eq!(at(scan.entry()).as_ref(), visible.get(number));
        if !scan.is_valid() {
            return;
        }
        let sees_newest = scan.entry().view().shows_newest_at(snapshot);
        match random.index(if sees_newest { 3 } else { 2 }) {
            0 => {
                scan.next().unwrap();
                number += 1;
            }
            1 => {
                scan.prev().unwrap();
                number = number.wrapping_sub(1);
            }
            _ => {
                let count = random.index(60);
                let upper = visible[(number + random.index(90)).min(visible.len() - 1)].0.as_slice();
                let (bound, end) = match random.index(3) {
                    0 => (Bound::Unbounded, visible.len()),
                    1 => (Bound::Included(upper), count_before(visible, upper, BoundKind::Included)),
                    _ => (Bound::Excluded(upper), count_before(visible, upper, BoundKind::Excluded)),
                };
                let expected = count.min(end.saturating_sub(number + 1));
                assert_eq!(scan.skip_within(count as u64, bound).unwrap(), expected as u64);
                number += expected;
            }
        }
    }
}

fn check(sample: &Sample, snapshot: Sequence, random: &mut SplitMix64) {
    let versions = versions(&sample.entries, snapshot);
    let visible: Vec<Entry> = versions.iter().filter(|entry| entry.2 == Kind::Put).cloned().collect();
    let mut scan = sample.scan(snapshot);
    scan.seek_first().unwrap();
    check_moves(&mut scan, snapshot, &visible, 0, random);
    scan.seek_last().unwrap();
    check_moves(&mut scan, snapshot, &visible, visible.len().wrapping_sub(1), random);
    for _ in 0..60 {
        let (lower, _) = target(sample, random);
        scan.seek(&lower).unwrap();
        check_moves(
            &mut scan,
            snapshot,
            &visible,
            count_before(&visible, &lower, BoundKind::Excluded),
            random,
        );
        for kind in BoundKind::BOTH {
            scan.seek_for_prev(&lower, kind).unwrap();
            let last = count_before(&visible, &lower, kind).wrapping_sub(1);
            check_moves(&mut scan, snapshot, &visible, last, random);
        }
    }
}

#[test]
fn a_scan_sees_the_entries_of_its_snapshot() {
    for seed in 0..40 {
        let mut random = SplitMix64::new(seed);
        let entry_count = [0, 3, 60, 900][seed as usize % 4];
        let distinct: Vec<_> =
            (0..1 + random.index(entry_count + 1)).map(|_| hostile_key(&mut random)).collect();
        let mut pick = SplitMix64::new(seed + 1_000);
        let keys = (0..entry_count).map(|_| distinct[pick.index(distinct.len())].clone());
        let run_count = 1 + random.index(9);
        let runs = distribute(&mut random, run_count, keys);
        let sample = Sample::new(with_segments([16, 32, 64][random.index(3)]), runs);
        for snapshot in [SEQUENCE_MAX, entry_count as u64, entry_count as u64 / 2, 1, 0] {
            check(&sample, snapshot, &mut random);
        }
    }
}

#[test]
fn an_old_version_among_many_costs_few_reads() {
    let versions = (0..10_000).map(|_| b"many".to_vec());
    let keys = [b"a".to_vec(), b"z".to_vec()].into_iter().chain(versions);
    let runs = distribute(&mut SplitMix64::new(1), 4, keys).into_iter();
    let runs =
        runs.map(|run| run.into_iter().map(|(key, sequence, _, value)| (key, sequence, Kind::Put, value)));
    let sample = Sample::new(options(), runs.map(Iterator::collect).collect());
    for snapshot in (10..10_000).step_by(501) {
        let mut scan = sample.scan(snapshot);
        sample.take_read_count();
        scan.seek(b"many").unwrap();
        let expected = versions_of(&sample, b"many").find(|&sequence| sequence <= snapshot);
        assert_eq!(Some(scan.entry().sequence()), expected);
        scan.seek_last().unwrap();
        scan.prev().unwrap();
        assert!(sample.take_read_count() < 80);
    }
}

fn versions_of<'a>(sample: &'a Sample, key: &'a [u8]) -> impl Iterator<Item = Sequence> + 'a {
    sample.entries.iter().filter(move |entry| entry.0 == key).map(|entry| entry.1)
}
