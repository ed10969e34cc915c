//! Long reads: the same results as without them, damage reported for the damaged block, and no unnecessary reads.

use std::ops::Range;

use tamis_filter::Direction::{self, Backward, Forward};
use tamis_vfs::{FaultVfs, OperationKind, RecordVfs, Rule};

use super::*;
use crate::table::read_ahead::{JOB_BYTES, Limits, SCAN_BYTES};

const BLOCK: u64 = 4096;
const TABLE: &str = "/db/000001.table";

/// About three entries per block. Values of many sizes make blocks of several pages, and one block is longer than any long
/// read.
fn mixed(count: u64) -> Vec<Entry> {
    let mut random = SplitMix64::new(21);
    let entries = (0..count).map(|number| {
        let length = match number {
            700 => 900_000,
            701 => 300_000,
            _ if random.index(40) == 0 => 4_000 + random.index(30_000),
            _ => 900 + random.index(300),
        };
        let value = (0..length).map(|_| random.next_u64() as u8 & 7).collect();
        (format!("key{number:08}").into_bytes(), number + 1, Kind::Put, value)
    });
    entries.collect()
}

/// This many blocks with `per_block` entries each.
fn even(blocks: u64, per_block: u64) -> Vec<Entry> {
    let length = (3_900 / per_block) as usize;
    let entry = |number: u64| {
        (format!("key{number:08}").into_bytes(), number + 1, Kind::Put, vec![number as u8; length - 24])
    };
    (0..blocks * per_block).map(entry).collect()
}

fn open(vfs: &Arc<dyn Vfs>, access: Access) -> Arc<TableReader> {
    TableReader::open(&environment(vfs, access), 1, None).unwrap()
}

/// Up to `count` entries from the current one on, and the error that ended it.
fn take(cursor: &mut TableCursor, count: usize, direction: Direction) -> (Vec<Entry>, Option<Error>) {
    let mut taken = Vec::new();
    while taken.len() < count
        && let Some(entry) = at(cursor)
    {
        taken.push(entry);
        if let Err(error) = cursor.step(direction) {
            return (taken, Some(error));
        }
    }
    (taken, None)
}

#[test]
fn scans_of_every_length_and_direction_are_equal_in_all_access_modes() {
    let entries = mixed(1_000);
    for compression in [Compression::None, Compression::Lz4] {
        let vfs = memory();
        write(&vfs, 1, options(compression, 4096), &entries);
        for access in ACCESSES {
            let mut random = SplitMix64::new(5);
            for length in (0..12).chain([25, 64, 200, 1_000]) {
                let table = open(&vfs, access);
                let start = random.index(entries.len());
                let mut cursor = table.cursor();
                cursor.seek(&entries[start].0, SEQUENCE_MAX).unwrap();
                let end = (start + length).min(entries.len());
                let (taken, error) = take(&mut cursor, length, Forward);
                assert!(error.is_none() && taken == entries[start..end], "{access:?} {start} {length}");
                // Backward over the blocks that were read, and on into others.
                let mut back = table.cursor();
                let from = entries[end - usize::from(end > 0)].0.clone();
                back.seek_for_prev(&from, BoundKind::Included).unwrap();
                let (mut taken, error) = take(&mut back, length + 5, Backward);
                taken.reverse();
                let first = end.saturating_sub(length + 5).min(end.saturating_sub(1));
                let expected = &entries[end.saturating_sub(taken.len())..end];
                assert!(error.is_none() && (end == 0 || taken == expected), "{access:?} {start} {length}");
                assert!(end == 0 || taken.len() == end - first, "{access:?} {start} {length}");
            }
            let mut job = open(&vfs, access).cursor_once();
            job.seek_first().unwrap();
            assert!(take(&mut job, usize::MAX, Forward).0 == entries, "{access:?}");
            assert!(open(&vfs, access).verify().is_empty());
        }
    }
}

#[test]
fn a_cursor_that_changes_direction_often_equals_the_list() {
    let entries = mixed(900);
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    for access in ACCESSES {
        let mut random = SplitMix64::new(8);
        let table = open(&vfs, access);
        for make in [TableReader::cursor, TableReader::cursor_once] {
            let mut cursor = make(&table);
            cursor.seek_first().unwrap();
            let mut place = 0_usize;
            for _ in 0..30 {
                let steps = random.index(120);
                let direction = if random.index(5) < 3 { Forward } else { Backward };
                for _ in 0..steps {
                    let next = if direction == Forward { place + 1 } else { place.wrapping_sub(1) };
                    if next >= entries.len() {
                        break;
                    }
                    place = next;
                    cursor.step(direction).unwrap();
                    assert!(at(&cursor).as_ref() == Some(&entries[place]), "{access:?} {place}");
                }
            }
        }
    }
}

#[test]
fn damage_in_a_long_read_is_an_error_of_the_damaged_block_only() {
    let per_block = 3;
    let entries = even(300, per_block);
    let sound = memory();
    write(&sound, 1, options(Compression::None, 4096), &entries);
    let mut bytes = sound.read(Path::new(TABLE)).unwrap();
    let damaged = 40_u64;
    bytes[(damaged * BLOCK) as usize + 900] ^= 1;
    let vfs = memory();
    vfs.create(Path::new(TABLE)).unwrap().append(&bytes).unwrap();
    let is_named = |error: &Error| matches!(error, Error::Corruption(damage) if damage.offset == damaged * BLOCK && damage.file.ends_with("000001.table"));
    let before = (damaged * per_block) as usize;
    let after = before + per_block as usize;
    for access in ACCESSES {
        let table = open(&vfs, access);
        for make in [TableReader::cursor, TableReader::cursor_once] {
            let mut cursor = make(&table);
            cursor.seek_first().unwrap();
            let (taken, error) = take(&mut cursor, usize::MAX, Forward);
            assert!(is_named(&error.unwrap()) && taken == entries[..before], "{access:?}");
            // The cursor continues after it.
            cursor.seek(&entries[after].0, SEQUENCE_MAX).unwrap();
            assert!(take(&mut cursor, usize::MAX, Forward).0 == entries[after..], "{access:?}");
            cursor.seek_last().unwrap();
            let (mut taken, error) = take(&mut cursor, usize::MAX, Backward);
            taken.reverse();
            assert!(is_named(&error.unwrap()) && taken == entries[after..], "{access:?}");
        }
        let faults = table.verify();
        assert!(faults.len() == 1 && is_named(&faults[0]), "{access:?} {faults:?}");
        let mut readable = Vec::new();
        let scrubbed = table.scrub(&mut |key, sequence, kind, value| {
            readable.push((key.to_vec(), sequence, kind, value.to_vec()));
            Ok(())
        });
        assert_eq!(scrubbed.unwrap().lost.len(), 1);
        assert!(readable == [&entries[..before], &entries[after..]].concat(), "{access:?}");
    }
}

#[test]
fn all_blocks_before_a_truncation_of_an_open_file_are_read() {
    let per_block = 3;
    let entries = even(300, per_block);
    let sound = memory();
    write(&sound, 1, options(Compression::None, 4096), &entries);
    let bytes = sound.read(Path::new(TABLE)).unwrap();
    for (access, cut) in [(Access::Buffered, 4096 * 100 + 77), (Access::Direct, 4096 * 100 + 77)] {
        for make in [TableReader::cursor, TableReader::cursor_once] {
            let vfs = memory();
            let file = vfs.create(Path::new(TABLE)).unwrap();
            file.append(&bytes).unwrap();
            let table = open(&vfs, access);
            file.truncate(cut).unwrap();
            let mut cursor = make(&table);
            cursor.seek_first().unwrap();
            let (taken, error) = take(&mut cursor, usize::MAX, Forward);
            assert!(taken == entries[..100 * per_block as usize], "{access:?}: {}", taken.len());
            let error = error.unwrap();
            assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("000001.table")), "{error}");
        }
    }
}

#[test]
fn a_failed_long_read_is_replaced_by_reads_of_single_blocks() {
    let entries = even(300, 3);
    let inner = memory();
    write(&inner, 1, options(Compression::None, 4096), &entries);
    for access in [Access::Buffered, Access::Direct] {
        for make in [TableReader::cursor, TableReader::cursor_once] {
            let faults = FaultVfs::new(Arc::clone(&inner));
            let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
            let table = open(&vfs, access);
            let mut cursor = make(&table);
            cursor.seek_first().unwrap();
            assert!(take(&mut cursor, 60, Forward).0 == entries[..60]);
            assert_eq!(at(&cursor).as_ref(), Some(&entries[60]));
            let rule = faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&[OperationKind::Read]));
            assert!(take(&mut cursor, usize::MAX, Forward).0 == entries[60..], "{access:?}");
            assert_eq!(faults.hit_count(rule), 1);
        }
    }
}

/// The reads of the table that `work` makes.
fn reads(
    vfs: &RecordVfs,
    access: Access,
    work: impl FnOnce(&Arc<TableReader>),
) -> (Vec<(u64, u64)>, ReadCost) {
    let environment = environment(&(Arc::new(vfs.clone()) as Arc<dyn Vfs>), access);
    let table = TableReader::open(&environment, 1, None).unwrap();
    vfs.reset();
    work(&table);
    let reads = vfs.operations().into_iter().filter(|operation| operation.kind == OperationKind::Read);
    let reads = reads.map(|read| (read.offset / BLOCK, read.length_bytes / BLOCK)).collect();
    let metrics = &environment.metrics;
    let cost = ReadCost {
        blocks_read: metrics.other_blocks_read.get(),
        bytes_read: metrics.bytes_read.get(),
        cache_hits: metrics.other_cache_hits.get(),
    };
    (reads, cost)
}

#[derive(Debug)]
struct Keys(Range<Vec<u8>>);

impl Limits for Keys {
    fn lower(&self) -> Option<&[u8]> {
        Some(&self.0.start)
    }

    fn upper(&self) -> Option<&[u8]> {
        Some(&self.0.end)
    }
}

#[test]
fn reads_grow_with_the_bytes_a_scan_used_and_a_job_reads_long_at_once() {
    let (blocks, per_block) = (1_000, 3);
    let entries = even(blocks, per_block);
    let inner = memory();
    write(&inner, 1, options(Compression::None, 4096), &entries);
    let vfs = RecordVfs::new(inner);
    let (scan_blocks, job_blocks) = (SCAN_BYTES / BLOCK, JOB_BYTES / BLOCK);
    for access in [Access::Buffered, Access::Direct] {
        let (alone, _) = reads(&vfs, access, |table| {
            table.get(&entries[500].0, SEQUENCE_MAX, &mut ReadCost::default()).unwrap().unwrap();
        });
        assert_eq!(alone, [(500 / per_block, 1)], "a point read reads its block only");
        let (short, cost) = reads(&vfs, access, |table| {
            let mut cursor = table.cursor();
            cursor.seek(&entries[30].0, SEQUENCE_MAX).unwrap();
            take(&mut cursor, 6, Forward);
        });
        // The step after the sixth entry needs a third block: two are read.
        assert_eq!(short, [(10, 1), (11, 1), (12, 2)]);
        assert_eq!((cost.blocks_read, cost.bytes_read), (3, 4 * BLOCK), "bytes read ahead are counted");
        let (forward, cost) = reads(&vfs, access, |table| {
            let mut cursor = table.cursor();
            cursor.seek_first().unwrap();
            take(&mut cursor, usize::MAX, Forward);
        });
        let lengths: Vec<_> = forward.iter().map(|read| read.1).collect();
        assert_eq!(lengths[..7], [1, 1, 2, 4, 8, 16, 32]);
        assert!(lengths[7..lengths.len() - 1].iter().all(|&length| length == scan_blocks), "{lengths:?}");
        assert_eq!((cost.blocks_read, cost.bytes_read), (blocks, blocks * BLOCK), "each block once");
        let (backward, cost) = reads(&vfs, access, |table| {
            let mut cursor = table.cursor();
            cursor.seek_last().unwrap();
            take(&mut cursor, usize::MAX, Backward);
        });
        assert_eq!(backward.iter().map(|read| read.1).collect::<Vec<_>>(), lengths);
        assert_eq!((cost.blocks_read, cost.bytes_read), (blocks, blocks * BLOCK));
        let (job, cost) = reads(&vfs, access, |table| {
            let mut cursor = table.cursor_once();
            cursor.seek_first().unwrap();
            take(&mut cursor, usize::MAX, Forward);
        });
        assert_eq!(job.len() as u64, blocks.div_ceil(job_blocks), "{job:?}");
        assert_eq!((cost.blocks_read, cost.bytes_read), (blocks, blocks * BLOCK));
        for (first, end) in [(0, 1_000), (7, 8), (100, 103), (100, 120), (500, 990), (990, 1_000)] {
            let keys = |block: u64| entries[(block * per_block) as usize].0.clone();
            let last = entries[(end * per_block) as usize - 1].0.clone();
            let limits: Arc<dyn Limits> = Arc::new(Keys(keys(first)..last));
            for direction in [Forward, Backward] {
                let (_, cost) = reads(&vfs, access, |table| {
                    let mut cursor = table.cursor_of_scan(Some(Arc::clone(&limits)), None);
                    match direction {
                        Forward => cursor.seek(limits.lower().unwrap(), SEQUENCE_MAX).unwrap(),
                        Backward => {
                            cursor.seek_for_prev(limits.upper().unwrap(), BoundKind::Included).unwrap()
                        }
                    }
                    let count = ((end - first) * per_block) as usize;
                    take(&mut cursor, count - 1, direction);
                    assert!(cursor.is_valid());
                });
                assert_eq!(cost.bytes_read, (end - first) * BLOCK, "nothing beyond a bound is read ahead");
            }
        }
    }
}

#[test]
fn cached_blocks_keep_reads_short() {
    let entries = even(600, 1);
    let inner = memory();
    write(&inner, 1, options(Compression::None, 4096), &entries);
    let vfs = RecordVfs::new(inner);
    let (_, cost) = reads(&vfs, Access::Buffered, |table| {
        for entry in entries.iter().skip(1).step_by(2) {
            table.get(&entry.0, SEQUENCE_MAX, &mut ReadCost::default()).unwrap().unwrap();
        }
        vfs.reset();
        let mut cursor = table.cursor();
        cursor.seek_first().unwrap();
        assert!(take(&mut cursor, usize::MAX, Forward).0 == entries);
    });
    assert_eq!((cost.blocks_read, cost.bytes_read, cost.cache_hits), (300, 300 * BLOCK, 300));
}
