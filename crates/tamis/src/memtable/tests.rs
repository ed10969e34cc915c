//! Tests of the memtable against a sorted map; levels, hints, memory, threads.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tamis_workload::SplitMix64;

use super::{ChunkPool, Memtable, height_of, node::HEIGHT_MAX};
use crate::{
    cursor::Cursor,
    key::{BoundKind, Kind, SEQUENCE_MAX, Sequence},
};

type Position = (Vec<u8>, Reverse<Sequence>);
type Content = (Kind, Vec<u8>);
type Owned = (Position, Content);
type Model = BTreeMap<Position, Content>;

/// Keys that share heads, are prefixes of each other, and have zero bytes.
fn random_key(random: &mut SplitMix64) -> Vec<u8> {
    let length = 1 + random.below(12) as usize;
    (0..length).map(|_| *[0, 1, b'a', 0xFF].get(random.below(4) as usize).unwrap_or(&0)).collect()
}

fn fill(seed: u64, entry_count: u64) -> (Arc<Memtable>, Model) {
    let (memtable, mut model, mut random) =
        (Memtable::new(&ChunkPool::new()), Model::new(), SplitMix64::new(seed));
    for sequence in 1..=entry_count {
        let key = random_key(&mut random);
        let kind = if random.below(4) == 0 { Kind::Tombstone } else { Kind::Put };
        let value = vec![sequence as u8; random.below(40) as usize];
        memtable.insert(&key, sequence, kind, &value);
        model.insert((key, Reverse(sequence)), (kind, value));
    }
    (memtable, model)
}

fn at(cursor: &impl Cursor) -> Option<Owned> {
    cursor.is_valid().then(|| {
        ((cursor.key().to_vec(), Reverse(cursor.sequence())), (cursor.kind(), cursor.value().to_vec()))
    })
}

fn owned((position, content): (&Position, &Content)) -> Owned {
    (position.clone(), content.clone())
}

#[test]
fn an_empty_memtable_has_nothing() {
    let memtable = Memtable::new(&ChunkPool::new());
    assert!(memtable.is_empty());
    assert_eq!(memtable.entry_count(), 0);
    assert_eq!(memtable.sequence_range(), None);
    assert_eq!(memtable.get(b"a", SEQUENCE_MAX), None);
    let mut cursor = memtable.cursor();
    assert!(!cursor.is_valid());
    cursor.seek_first().expect("memory");
    assert!(!cursor.is_valid());
    cursor.seek_last().expect("memory");
    assert!(!cursor.is_valid());
    cursor.seek(b"a", SEQUENCE_MAX).expect("memory");
    assert!(!cursor.is_valid());
    cursor.seek_for_prev(b"a", BoundKind::Included).expect("memory");
    assert!(!cursor.is_valid());
}

#[test]
fn get_finds_the_newest_version_not_above_the_sequence() {
    let memtable = Memtable::new(&ChunkPool::new());
    memtable.insert(b"key", 5, Kind::Put, b"five");
    memtable.insert(b"key", 9, Kind::Tombstone, b"");
    memtable.insert(b"key", 3, Kind::Put, b"three");
    memtable.insert(b"key\0", 4, Kind::Put, b"other");
    assert_eq!(memtable.get(b"key", 2), None);
    assert_eq!(memtable.get(b"key", 3), Some((Kind::Put, 3, b"three".as_slice())));
    assert_eq!(memtable.get(b"key", 8), Some((Kind::Put, 5, b"five".as_slice())));
    assert_eq!(memtable.get(b"key", SEQUENCE_MAX), Some((Kind::Tombstone, 9, b"".as_slice())));
    assert_eq!(memtable.get(b"ke", SEQUENCE_MAX), None);
    assert_eq!(memtable.sequence_range(), Some((3, 9)));
    assert_eq!(memtable.entry_count(), 4);
}

#[test]
fn entries_and_seeks_match_a_sorted_map() {
    for seed in 0..if cfg!(miri) { 2 } else { 20 } {
        let (memtable, model) = fill(seed, if cfg!(miri) { 100 } else { 2_000 });
        let mut cursor = memtable.cursor();
        cursor.seek_first().expect("memory");
        for entry in &model {
            assert_eq!(at(&cursor), Some(owned(entry)), "seed {seed}");
            cursor.next().expect("memory");
        }
        assert!(!cursor.is_valid());
        cursor.seek_last().expect("memory");
        for entry in model.iter().rev() {
            assert_eq!(at(&cursor), Some(owned(entry)), "seed {seed}");
            cursor.prev().expect("memory");
        }
        assert!(!cursor.is_valid());

        let mut random = SplitMix64::new(!seed);
        for _ in 0..if cfg!(miri) { 50 } else { 2_000 } {
            let (key, sequence) = (random_key(&mut random), random.below(2_100));
            let from = (key.clone(), Reverse(sequence));
            let expected = model.range(&from..).next().map(owned);
            cursor.seek(&key, sequence).expect("memory");
            assert_eq!(at(&cursor), expected, "seed {seed} seek {key:?} {sequence}");
            let found = expected.filter(|((found, _), _)| *found == key);
            let got = memtable.get(&key, sequence).map(|(kind, _, value)| (kind, value.to_vec()));
            assert_eq!(got, found.map(|(_, value)| value), "seed {seed} get {key:?} {sequence}");

            let kind = BoundKind::drawn(random.index(2));
            let limit = match kind {
                BoundKind::Included => (key.clone(), Reverse(0)),
                BoundKind::Excluded => (key.clone(), Reverse(u64::MAX)),
            };
            cursor.seek_for_prev(&key, kind).expect("memory");
            assert_eq!(at(&cursor), model.range(..=limit).next_back().map(owned), "seed {seed} back {key:?}");
        }
    }
}

/// Keys for a list that is sampled: uniform, with equal heads, always the same, or ascending.
fn key_of_many(random: &mut SplitMix64, step: u64) -> Vec<u8> {
    match random.below(8) {
        0..3 => random.next_u64().to_be_bytes().to_vec(),
        3..5 => format!("shared-head/{:05}", random.below(20_000)).into_bytes(),
        5 => b"one key".to_vec(),
        6 => (u64::MAX / 2 + step).to_be_bytes().to_vec(),
        _ => random_key(random),
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many entries")]
fn searches_that_begin_at_a_sample_match_a_sorted_map() {
    let (memtable, mut model, mut random) =
        (Memtable::new(&ChunkPool::new()), Model::new(), SplitMix64::new(11));
    for sequence in 1..=60_000 {
        let key = key_of_many(&mut random, sequence);
        memtable.insert(&key, sequence, Kind::Put, b"value");
        model.insert((key, Reverse(sequence)), (Kind::Put, b"value".to_vec()));
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first().expect("memory");
    for entry in &model {
        assert_eq!(at(&cursor), Some(owned(entry)));
        cursor.next().expect("memory");
    }
    for _ in 0..20_000 {
        let step = random.below(70_000);
        let (key, sequence) = (key_of_many(&mut random, step), random.below(61_000));
        let from = (key.clone(), Reverse(sequence));
        cursor.seek(&key, sequence).expect("memory");
        assert_eq!(at(&cursor), model.range(from..).next().map(owned), "seek {key:?} {sequence}");
        let before = (key.clone(), Reverse(u64::MAX));
        cursor.seek_for_prev(&key, BoundKind::Excluded).expect("memory");
        assert_eq!(at(&cursor), model.range(..before).next_back().map(owned), "back {key:?}");
    }
}

#[test]
fn mixed_steps_match_a_sorted_map() {
    let (memtable, model) = fill(7, if cfg!(miri) { 60 } else { 500 });
    let entries: Vec<Owned> = model.iter().map(owned).collect();
    let mut cursor = memtable.cursor();
    let (mut position, mut random) = (0, SplitMix64::new(77));
    cursor.seek_first().expect("memory");
    for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
        // Several steps in one direction, so that the nodes that `prev` remembers are all used, or dropped half used.
        let is_forward = random.below(2) == 0;
        for _ in 0..random.below(40) {
            if is_forward && position + 1 < entries.len() {
                cursor.next().expect("memory");
                position += 1;
            } else if !is_forward && position > 0 {
                cursor.prev().expect("memory");
                position -= 1;
            }
            assert_eq!(at(&cursor).as_ref(), entries.get(position));
        }
    }
}

#[test]
fn a_cursor_sees_later_inserts_before_and_after_it() {
    let memtable = Memtable::new(&ChunkPool::new());
    memtable.insert(b"m", 1, Kind::Put, b"");
    let mut cursor = memtable.cursor();
    cursor.seek_first().expect("memory");
    memtable.insert(b"n", 2, Kind::Put, b"");
    memtable.insert(b"l", 3, Kind::Put, b"");
    cursor.next().expect("memory");
    assert_eq!(cursor.key(), b"n");
    cursor.prev().expect("memory");
    cursor.prev().expect("memory");
    assert_eq!(cursor.key(), b"l");
}

#[test]
fn large_entries_waste_no_chunk_and_bytes_are_counted() {
    let memtable = Memtable::new(&ChunkPool::new());
    let empty_bytes = memtable.bytes();
    assert!(empty_bytes < 1024, "{empty_bytes}");
    let key = vec![7; 65_535];
    let value = vec![9; 3 << 20];
    memtable.insert(&key, 1, Kind::Put, &value);
    memtable.insert(b"small", 2, Kind::Put, b"value");
    assert_eq!(memtable.get(&key, 1), Some((Kind::Put, 1, value.as_slice())));
    assert_eq!(memtable.get(b"small", 2), Some((Kind::Put, 2, b"value".as_slice())));
    let bytes = memtable.bytes() - empty_bytes;
    let net = key.len() + value.len() + 10;
    assert!(bytes > net && bytes < net + 512, "{bytes}");
}

#[test]
fn half_of_the_nodes_reach_each_next_level() {
    let count = 1 << 16;
    let mut counts = [0_u64; HEIGHT_MAX + 1];
    for ordinal in 0..count {
        counts.iter_mut().take(height_of(ordinal) + 1).skip(1).for_each(|count| *count += 1);
    }
    for (level, &got) in counts.iter().enumerate().skip(1).take(10) {
        let expected = count >> (level - 1);
        assert!(got.abs_diff(expected) < expected / 4 + 16, "level {level}: {got} of {expected}");
    }
    assert!((0..1 << 20).all(|ordinal| (1..=HEIGHT_MAX).contains(&height_of(ordinal))));
}

#[test]
fn ascending_descending_and_interleaved_inserts_are_sorted() {
    let count = if cfg!(miri) { 50 } else { 5_000 };
    let orders: [fn(u64, u64) -> u64; 3] = [
        |index, _| index,
        |index, count| count - index,
        |index, count| if index % 2 == 0 { index } else { count * 4 - index },
    ];
    for order in orders {
        let memtable = Memtable::new(&ChunkPool::new());
        let mut keys: Vec<u64> = (0..count).map(|index| order(index, count)).collect();
        for (key, sequence) in keys.iter().zip(1..) {
            memtable.insert(&key.to_be_bytes(), sequence, Kind::Put, b"");
        }
        keys.sort_unstable();
        let mut cursor = memtable.cursor();
        cursor.seek_first().expect("memory");
        for key in keys {
            assert_eq!(cursor.key(), key.to_be_bytes());
            cursor.next().expect("memory");
        }
    }
}

#[test]
fn inserts_of_many_threads_are_all_found_in_order() {
    let (thread_count, per_thread) = if cfg!(miri) { (3_u64, 40) } else { (4, 20_000) };
    let memtable = Memtable::new(&ChunkPool::new());
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut cursor = memtable.cursor();
            loop {
                let is_last = is_done.load(Ordering::Acquire);
                cursor.seek_first().expect("memory");
                let (mut count, mut last) = (0, None);
                while cursor.is_valid() {
                    let entry = (cursor.key().to_vec(), Reverse(cursor.sequence()));
                    assert_eq!(cursor.value(), cursor.sequence().to_be_bytes());
                    assert!(last.is_none_or(|last| last < entry), "out of order at {entry:?}");
                    last = Some(entry);
                    count += 1;
                    cursor.next().expect("memory");
                }
                if is_last {
                    return count;
                }
            }
        });
        let writers: Vec<_> = (0..thread_count)
            .map(|thread| {
                let memtable = &memtable;
                scope.spawn(move || {
                    let mut random = SplitMix64::new(thread);
                    for index in 0..per_thread {
                        let sequence = 1 + index * thread_count + thread;
                        // Every second key ascends, so that threads use and overwrite hints.
                        let key = if index % 2 == 0 { index } else { random.below(per_thread) };
                        memtable.insert(&key.to_be_bytes(), sequence, Kind::Put, &sequence.to_be_bytes());
                        assert!(
                            memtable
                                .get(&key.to_be_bytes(), sequence)
                                .is_some_and(|found| found.1 == sequence)
                        );
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        is_done.store(true, Ordering::Release);
        assert_eq!(reader.join().expect("reader"), thread_count * per_thread);
    });
    assert_eq!(memtable.entry_count(), thread_count * per_thread);
    assert_eq!(memtable.sequence_range(), Some((1, thread_count * per_thread)));
}

#[test]
fn the_next_memtable_reuses_memory_and_the_pool_is_bounded() {
    let pool = ChunkPool::new();
    let fill = |first: u64| {
        let memtable = Memtable::new(&pool);
        for key in first..first + 1_000 {
            // 16 MB in chunks of 2 MiB, and allocations above a quarter of a chunk.
            memtable.insert(&key.to_be_bytes(), key + 1, Kind::Put, &[key as u8; 16_000]);
        }
        memtable.insert(b"large", 1, Kind::Put, &vec![7; 1 << 20]);
        memtable
    };
    let first = fill(0);
    assert_eq!(pool.free_count(), 0, "no chunk is free yet");
    let bytes = first.bytes();
    drop(first);
    let free = pool.free_count();
    // Miri takes all memory from the heap.
    assert_eq!(free > 0, !cfg!(miri), "{bytes} bytes were freed");
    let second = fill(5_000);
    assert_eq!(pool.free_count(), 0, "the second one is as large as the first");
    for key in 5_000..6_000_u64 {
        let found = second.get(&key.to_be_bytes(), u64::MAX >> 8);
        assert_eq!(
            found.map(|(_, _, value)| value),
            Some(&[key as u8; 16_000][..]),
            "earlier entries are not visible"
        );
    }
    let many: Vec<_> = (0..6).map(|index| fill(index * 10_000)).collect();
    drop((second, many));
    assert!(pool.free_count() <= 32, "{} chunks of 2 MiB are free", pool.free_count());
}

#[test]
fn entries_before_a_key_are_counted_approximately() {
    let memtable = Memtable::new(&ChunkPool::new());
    assert_eq!((memtable.count_before(b"any"), memtable.middle_key()), (0, None));
    let count = 100_000_u64;
    for number in 0..count {
        memtable.insert(&number.to_be_bytes(), number + 1, Kind::Put, b"");
    }
    for number in [0, 1, 20_000, 50_000, 99_999, count, u64::MAX] {
        let counted = memtable.count_before(&number.to_be_bytes());
        assert!(counted.abs_diff(number.min(count)) < 4_000, "{counted} before {number}");
    }
    let middle = memtable.middle_key().expect("there are many");
    let middle = u64::from_be_bytes(middle.try_into().expect("a number"));
    assert!(middle.abs_diff(count / 2) < 4_000, "{middle}");
}

#[test]
fn a_sample_estimates_the_entries_of_a_range_in_few_steps() {
    use std::ops::Bound::{self, Excluded, Included, Unbounded};

    use crate::observe::steps::{self, Step};

    let memtable = Memtable::new(&ChunkPool::new());
    let count = 1_u32 << 18;
    for number in 0..count {
        // In no order of the keys.
        let key = (number.wrapping_mul(0x9E37_79B1) % count).to_be_bytes();
        memtable.insert(&key, u64::from(number) + 1, Kind::Put, b"");
    }
    steps::take(Step::CountedNode);
    let estimate = |bounds: (Bound<&[u8]>, Bound<&[u8]>)| {
        let (entries, weight) = memtable.sample_within(bounds);
        let estimate = entries.count() as f64 * weight;
        let visited = steps::take(Step::CountedNode);
        assert!(visited <= 2_000, "{visited} nodes for {bounds:?}");
        estimate
    };
    assert!((estimate((Unbounded, Unbounded)) / f64::from(count) - 1.0).abs() < 0.2);
    for (lower, upper) in [(0, count / 2), (77, 200_000), (100_000, 101_000), (count - 3_000, count)] {
        let (from, to) = (lower.to_be_bytes(), upper.to_be_bytes());
        let found = estimate((Included(from.as_slice()), Excluded(to.as_slice())));
        let share = found / f64::from(upper - lower);
        assert!((0.75..1.25).contains(&share), "{found} of {lower} to {upper}");
    }
    let (from, to) = (1_000_u32.to_be_bytes(), 1_200_u32.to_be_bytes());
    assert_eq!(estimate((Included(&from[..]), Included(&to[..]))), 201.0, "few are counted");
    assert_eq!(estimate((Excluded(&from[..]), Excluded(&to[..]))), 199.0);
    assert_eq!(estimate((Included(&to[..]), Excluded(&from[..]))), 0.0);
    let empty = Memtable::new(&ChunkPool::new());
    assert_eq!(empty.sample_within((Unbounded, Unbounded)).0.count(), 0);
}
