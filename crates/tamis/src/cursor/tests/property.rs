//! Random operations on random sources against sorted maps, injected failures, and the number of comparisons.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tamis_workload::SplitMix64;

use super::vec_cursor::{Counts, Entry, VecCursor, VecRun};
use crate::{
    cursor::{Cursor, bounded::KeyRange, merge::MergeCursor, run::RunCursor, visible::VisibleCursor},
    key::{BoundKind, Kind, ReadPoint, Sequence, compare_entries},
    memtable::{ChunkPool, Memtable},
};

/// Few different keys: some short, some that share their first eight bytes.
fn random_key(random: &mut SplitMix64, key_count: usize) -> Vec<u8> {
    let number = random.index(key_count);
    let shared: &[u8] = if number.is_multiple_of(3) { b"sharedhead" } else { b"" };
    [shared, &[b'a' + (number % 26) as u8], &vec![0; number / 26]].concat()
}

fn random_entries(random: &mut SplitMix64, entry_count: usize, key_count: usize) -> Vec<Entry> {
    (1..=entry_count as u64)
        .map(|sequence| {
            let kind = if random.index(3) == 0 { Kind::Tombstone } else { Kind::Put };
            let value = if kind == Kind::Put { sequence.to_string().into_bytes() } else { Vec::new() };
            Entry { key: random_key(random, key_count), sequence, kind, value }
        })
        .collect()
}

fn random_bound(random: &mut SplitMix64, key_count: usize) -> Bound<Vec<u8>> {
    match random.index(4) {
        0 => Bound::Included(random_key(random, key_count)),
        1 => Bound::Excluded(random_key(random, key_count)),
        _ => Bound::Unbounded,
    }
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|left, right| compare_entries((&left.key, left.sequence), (&right.key, right.sequence)));
    entries
}

fn at(cursor: &impl Cursor) -> Option<Entry> {
    cursor.is_valid().then(|| Entry {
        key: cursor.key().to_vec(),
        sequence: cursor.sequence(),
        kind: cursor.kind(),
        value: cursor.value().to_vec(),
    })
}

/// Moves at random and compares each position with the sorted entries.
fn check_walk(
    cursor: &mut impl Cursor,
    entries: &[Entry],
    random: &mut SplitMix64,
    key_count: usize,
    seed: u64,
) {
    let mut position: Option<usize> = None;
    for step in 0..300 {
        let op = (random.index(12), position);
        match op {
            (0, _) => {
                cursor.seek_first().expect("memory");
                position = Some(0);
            }
            (1, _) => {
                cursor.seek_last().expect("memory");
                position = entries.len().checked_sub(1);
            }
            (2, _) => {
                let (key, sequence) =
                    (random_key(random, key_count), random.index(entries.len() + 2) as Sequence);
                cursor.seek(&key, sequence).expect("memory");
                let is_before =
                    |entry: &Entry| compare_entries((&entry.key, entry.sequence), (&key, sequence)).is_lt();
                position = Some(entries.partition_point(is_before));
            }
            (3, _) => {
                let (key, kind) = (random_key(random, key_count), BoundKind::drawn(random.index(2)));
                cursor.seek_for_prev(&key, kind).expect("memory");
                let is_before = |entry: &Entry| kind.is_within(&entry.key, &key);
                position = entries.partition_point(is_before).checked_sub(1);
            }
            (4..8, Some(current)) => {
                cursor.next().expect("memory");
                position = Some(current + 1);
            }
            (_, Some(current)) => {
                cursor.prev().expect("memory");
                position = current.checked_sub(1);
            }
            _ => {}
        }
        position = position.filter(|&position| position < entries.len());
        let expected = position.and_then(|position| entries.get(position)).cloned();
        assert_eq!(at(cursor), expected, "seed {seed} step {step} position {position:?} {op:?}");
    }
}

#[test]
fn a_merge_returns_the_entries_of_all_sources_in_order() {
    for seed in 0..if cfg!(miri) { 3 } else { 300 } {
        let mut random = SplitMix64::new(seed);
        let (source_count, key_count) = (random.index(9), 1 + random.index(60));
        let entry_count = if source_count == 0 { 0 } else { random.index(120) };
        let entries = random_entries(&mut random, entry_count, key_count);
        let mut sources = vec![Vec::new(); source_count];
        for entry in &entries {
            if let Some(source) = sources.get_mut(random.index(source_count)) {
                source.push(entry.clone());
            }
        }
        let counts = Arc::new(Counts::default());
        let cursors = sources.into_iter().map(|source| VecCursor::new(source, &counts)).collect();
        check_walk(&mut MergeCursor::new(cursors), &sorted(entries), &mut random, key_count, seed);
    }
}

#[test]
fn a_run_returns_the_entries_of_its_tables_in_order() {
    for seed in 0..if cfg!(miri) { 3 } else { 300 } {
        let mut random = SplitMix64::new(seed);
        let (key_count, entry_count) = (1 + random.index(60), random.index(120));
        let entries = sorted(random_entries(&mut random, entry_count, key_count));
        // Tables are split anywhere, also between the versions of a key.
        let mut tables: Vec<Vec<Entry>> = Vec::new();
        for entry in &entries {
            match tables.last_mut() {
                Some(table) if random.index(8) != 0 => table.push(entry.clone()),
                _ => tables.push(vec![entry.clone()]),
            }
        }
        let mut cursor = RunCursor::new(VecRun { tables, counts: Arc::default() });
        check_walk(&mut cursor, &entries, &mut random, key_count, seed);
    }
}

/// The entries that a reader must see: the newest versions at the snapshot, without deleted keys, in the range.
fn visible_model(entries: &[Entry], snapshot: Sequence, range: &KeyRange) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut newest: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.sequence <= snapshot) {
        let slot = newest.entry(&entry.key).or_insert(entry);
        if entry.sequence > slot.sequence {
            *slot = entry;
        }
    }
    newest
        .into_values()
        .filter(|entry| entry.kind == Kind::Put && !range.is_below(&entry.key) && !range.is_above(&entry.key))
        .map(|entry| (entry.key.clone(), entry.value.clone()))
        .collect()
}

fn visible_at<C: Cursor>(cursor: &VisibleCursor<C, Box<KeyRange>>) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.is_valid().then(|| {
        assert_eq!(cursor.value(), &*cursor.value_slice());
        (cursor.key().to_vec(), cursor.value().to_vec())
    })
}

/// Moves at random; `disturb` is called between the steps.
fn check_visible_walk<C: Cursor>(
    cursor: &mut VisibleCursor<C, Box<KeyRange>>,
    model: &[(Vec<u8>, Vec<u8>)],
    random: &mut SplitMix64,
    key_count: usize,
    seed: u64,
    mut disturb: impl FnMut(&mut SplitMix64),
) {
    let mut position: Option<usize> = None;
    for step in 0..300 {
        disturb(random);
        match (random.index(12), position) {
            (0, _) => {
                cursor.seek_first().expect("memory");
                position = Some(0);
            }
            (1, _) => {
                cursor.seek_last().expect("memory");
                position = model.len().checked_sub(1);
            }
            (2, _) => {
                let key = random_key(random, key_count);
                cursor.seek(&key).expect("memory");
                position = Some(model.partition_point(|(other, _)| *other < key));
            }
            (3, _) => {
                let (key, kind) = (random_key(random, key_count), BoundKind::drawn(random.index(2)));
                cursor.seek_for_prev(&key, kind).expect("memory");
                let count = model.partition_point(|(other, _)| kind.is_within(other, &key));
                position = count.checked_sub(1);
            }
            (4..8, Some(current)) => {
                cursor.next().expect("memory");
                position = Some(current + 1);
            }
            (_, Some(current)) => {
                cursor.prev().expect("memory");
                position = current.checked_sub(1);
            }
            _ => {}
        }
        position = position.filter(|&position| position < model.len());
        let expected = position.and_then(|position| model.get(position)).cloned();
        assert_eq!(visible_at(cursor), expected, "seed {seed} step {step}");
    }
}

#[test]
fn the_newest_version_at_the_snapshot_is_visible_and_deleted_keys_are_not() {
    for seed in 0..if cfg!(miri) { 3 } else { 600 } {
        let mut random = SplitMix64::new(seed);
        let (source_count, entry_count) = (1 + random.index(5), random.index(200));
        // Few keys, so that they have more versions than are stepped over.
        let key_count = if seed % 2 == 0 { 1 + random.index(6) } else { 1 + random.index(60) };
        let entries = random_entries(&mut random, entry_count, key_count);
        let mut sources = vec![Vec::new(); source_count];
        for entry in &entries {
            if let Some(source) = sources.get_mut(random.index(source_count)) {
                source.push(entry.clone());
            }
        }
        let snapshot = random.index(entry_count + 2) as Sequence;
        let range = KeyRange {
            lower: random_bound(&mut random, key_count),
            upper: random_bound(&mut random, key_count),
        };
        let model = visible_model(&entries, snapshot, &range);
        let counts = Arc::new(Counts::default());
        let cursors = sources.into_iter().map(|source| VecCursor::new(source, &counts)).collect();
        let mut cursor =
            VisibleCursor::new(MergeCursor::new(cursors), ReadPoint::at(snapshot), Box::new(range));
        check_visible_walk(&mut cursor, &model, &mut random, key_count, seed, |_| {});
    }
}

#[test]
fn entries_inserted_during_a_scan_are_not_visible_to_its_snapshot() {
    for seed in 0..if cfg!(miri) { 2 } else { 200 } {
        let mut random = SplitMix64::new(seed);
        let (key_count, entry_count) = (1 + random.index(40), 1 + random.index(100));
        let entries = random_entries(&mut random, entry_count, key_count);
        let pool = ChunkPool::new();
        let memtables = [Memtable::new(&pool), Memtable::new(&pool), Memtable::new(&pool)];
        let insert = |random: &mut SplitMix64, entry: &Entry| {
            if let Some(memtable) = memtables.get(random.index(memtables.len())) {
                memtable.insert(&entry.key, entry.sequence, entry.kind, &entry.value);
            }
        };
        for entry in &entries {
            insert(&mut random, entry);
        }
        let snapshot = entry_count as Sequence;
        let model = visible_model(&entries, snapshot, &KeyRange::ALL);
        let cursors = memtables.iter().map(Memtable::cursor).collect();
        let mut cursor =
            VisibleCursor::new(MergeCursor::new(cursors), ReadPoint::at(snapshot), Box::new(KeyRange::ALL));
        let mut sequence = snapshot;
        check_visible_walk(&mut cursor, &model, &mut random, key_count, seed, |random| {
            sequence += 1;
            let key = random_key(random, key_count + 5);
            insert(random, &Entry { key, sequence, kind: Kind::Put, value: b"late".to_vec() });
        });
    }
}

#[test]
fn after_an_error_a_cursor_is_not_valid_until_the_next_seek() {
    let counts = Arc::new(Counts::default());
    let mut random = SplitMix64::new(5);
    let entries = random_entries(&mut random, 60, 20);
    let model = visible_model(&entries, 60, &KeyRange::ALL);
    let parts = entries.chunks(20).map(|part| VecCursor::new(part.to_vec(), &counts)).collect();
    let mut cursor = VisibleCursor::new(MergeCursor::new(parts), ReadPoint::at(60), Box::new(KeyRange::ALL));
    for moves_left in 1..120 {
        counts.moves_left.store(moves_left, Relaxed);
        let walked = (|| {
            cursor.seek_first()?;
            while cursor.is_valid() {
                cursor.next()?;
            }
            cursor.seek_last()?;
            while cursor.is_valid() {
                cursor.prev()?;
            }
            cursor.seek_first()
        })();
        if counts.moves_left.load(Relaxed) == 0 {
            assert!(walked.is_err(), "an error of a source was lost after {moves_left} moves");
            assert!(!cursor.is_valid(), "{moves_left}");
        }
        counts.moves_left.store(0, Relaxed);
        cursor.seek_first().expect("healed");
        assert_eq!(visible_at(&cursor), model.first().cloned());
    }
}

#[test]
fn a_step_compares_once_while_the_same_source_is_least() {
    // All keys share their first eight bytes, so that each comparison reads two keys.
    let entry = |number: u64| Entry {
        key: format!("sharedhead{number:05}").into_bytes(),
        sequence: 1,
        kind: Kind::Put,
        value: Vec::new(),
    };
    let counts = Arc::new(Counts::default());
    let keys_per_step = |cursor: &mut MergeCursor<VecCursor>, step_count: u64| {
        let before = counts.keys.load(Relaxed);
        for _ in 0..step_count {
            cursor.next().expect("memory");
        }
        (counts.keys.load(Relaxed) - before) as f64 / step_count as f64
    };
    // Eight sources with long stretches: two keys for the comparison, one for the first eight bytes.
    let parts =
        (0..8).map(|part| VecCursor::new((part * 1000..part * 1000 + 1000).map(entry).collect(), &counts));
    let mut cursor = MergeCursor::new(parts.collect());
    cursor.seek_first().expect("memory");
    let keys = keys_per_step(&mut cursor, 900);
    assert!(keys < 3.1, "{keys}");

    // Alternating sources: three matches with two keys each, one for the first eight bytes, and one match more to find that
    // another one leads.
    let parts = (0..8)
        .map(|part| VecCursor::new((0..1000).map(|number| entry(number * 8 + part)).collect(), &counts));
    let mut cursor = MergeCursor::new(parts.collect());
    cursor.seek_first().expect("memory");
    let keys = keys_per_step(&mut cursor, 7000);
    assert!(keys < 7.1, "{keys}");

    // One source: the first eight bytes only.
    let mut cursor = MergeCursor::new(vec![VecCursor::new((0..1000).map(entry).collect(), &counts)]);
    cursor.seek_first().expect("memory");
    let keys = keys_per_step(&mut cursor, 900);
    assert!(keys < 1.1, "{keys}");
}

#[test]
fn equal_entries_in_several_sources_are_all_returned() {
    let entry = |key: &str| Entry { key: key.into(), sequence: 1, kind: Kind::Put, value: b"v".to_vec() };
    let counts = Arc::new(Counts::default());
    let source = || VecCursor::new(vec![entry("a"), entry("b")], &counts);
    let mut cursor = MergeCursor::new(vec![source(), source(), source()]);
    let mut all = Vec::new();
    cursor.seek_first().expect("memory");
    while let Some(entry) = at(&cursor) {
        all.push((entry.key, Reverse(entry.sequence)));
        cursor.next().expect("memory");
    }
    assert_eq!(all.len(), 6);
    assert!(all.is_sorted());
    cursor.seek(b"b", 1).expect("memory");
    cursor.prev().expect("memory");
    assert_eq!(cursor.key(), b"a");
    cursor.next().expect("memory");
    assert_eq!(cursor.key(), b"b");
}

#[test]
fn a_change_of_direction_skips_entries_inserted_in_between() {
    let pool = ChunkPool::new();
    let memtables = [Memtable::new(&pool), Memtable::new(&pool)];
    let [left, right] = &memtables;
    left.insert(b"a", 1, Kind::Put, b"");
    left.insert(b"k", 2, Kind::Put, b"");
    right.insert(b"z", 3, Kind::Put, b"");
    let mut cursor = MergeCursor::new(memtables.iter().map(Memtable::cursor).collect());
    cursor.seek(b"k", 2).expect("memory");
    right.insert(b"m", 4, Kind::Put, b"");
    // The right source moves back from z to m, which is still after k.
    cursor.prev().expect("memory");
    assert_eq!(cursor.key(), b"a");
    cursor.next().expect("memory");
    assert_eq!(cursor.key(), b"k");
    cursor.next().expect("memory");
    assert_eq!(cursor.key(), b"m");
}
