//! Random tables of hostile keys compared with a sorted list.

use super::*;

fn check_all(table: &Arc<TableReader>, entries: &[Entry]) {
    assert!(table.verify().is_empty());
    let mut cursor = table.cursor();
    cursor.seek_first().unwrap();
    for entry in entries {
        assert_eq!(at(&cursor).as_ref(), Some(entry));
        cursor.next().unwrap();
    }
    assert_eq!(at(&cursor), None);
    cursor.seek_last().unwrap();
    for entry in entries.iter().rev() {
        assert_eq!(at(&cursor).as_ref(), Some(entry));
        cursor.prev().unwrap();
    }
    assert_eq!(at(&cursor), None);
    for number in (0..entries.len()).step_by(7).chain([entries.len()]) {
        let mut cursor = table.cursor();
        cursor.seek_number(number as u64).unwrap();
        assert_eq!(at(&cursor).as_ref(), entries.get(number));
    }
}

fn check_seeks(table: &Arc<TableReader>, entries: &[Entry], random: &mut SplitMix64) {
    let mut cursor = table.cursor();
    for _ in 0..1500 {
        let present = &entries[random.index(entries.len())];
        let (key, sequence) = match random.index(4) {
            0 => (hostile_key(random), random.next_u64() >> 8),
            1 => (present.0.clone(), SEQUENCE_MAX),
            2 => (present.0.clone(), present.1.saturating_add_signed(random.index(3) as i64 - 1)),
            _ => (present.0[..present.0.len() - 1].to_vec(), SEQUENCE_MAX),
        };
        let first =
            entries.partition_point(|entry| compare_entries((&entry.0, entry.1), (&key, sequence)).is_lt());
        cursor.seek(&key, sequence).unwrap();
        assert_eq!(at(&cursor).as_ref(), entries.get(first), "seek {key:?} {sequence}");
        if cursor.is_valid() && random.index(2) == 0 {
            cursor.prev().unwrap();
            assert_eq!(at(&cursor), first.checked_sub(1).map(|before| entries[before].clone()));
        }
        for kind in BoundKind::BOTH {
            let count = entries.partition_point(|entry| kind.is_within(&entry.0, &key));
            cursor.seek_for_prev(&key, kind).unwrap();
            assert_eq!(at(&cursor), count.checked_sub(1).map(|last| entries[last].clone()), "{key:?}");
            if cursor.is_valid() && random.index(2) == 0 {
                cursor.next().unwrap();
                assert_eq!(at(&cursor).as_ref(), entries.get(count));
            }
        }
        let found = table.get(&key, sequence, &mut ReadCost::default()).unwrap();
        let expected = entries.get(first).filter(|entry| entry.0 == key);
        assert_eq!(
            found.map(|found| (found.sequence, found.kind, found.value.to_vec())),
            expected.map(|entry| (entry.1, entry.2, entry.3.clone())),
            "get {key:?} {sequence}"
        );
    }
}

#[test]
fn a_table_returns_what_was_written() {
    for seed in 0..6 {
        let mut random = SplitMix64::new(seed);
        let entries = hostile_entries(&mut random, [3, 60, 400][seed as usize % 3]);
        let block_bytes = [4096, 16_384, 65_536][random.index(3)];
        for compression in COMPRESSIONS {
            let vfs = memory();
            write(&vfs, 7, options(compression, block_bytes), &entries);
            for access in ACCESSES {
                let table = TableReader::open(&environment(&vfs, access), 7, None).unwrap();
                check_all(&table, &entries);
                check_seeks(&table, &entries, &mut random);
            }
        }
    }
}

#[test]
fn one_key_with_versions_over_many_blocks_is_found_at_every_sequence() {
    let mut entries =
        vec![(b"a".to_vec(), 5, Kind::Put, Vec::new()), (b"z".to_vec(), 1, Kind::Put, Vec::new())];
    entries.extend((0..3000).map(|n| (b"k".to_vec(), 10 + 2 * n, Kind::Put, vec![1; 20])));
    let entries = sorted(entries);
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &entries);
    let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
    check_all(&table, &entries);
    for sequence in 0..6100 {
        let mut cost = ReadCost::default();
        let found = table.get(b"k", sequence, &mut cost).unwrap().map(|found| found.sequence);
        let expected = (sequence >= 10).then(|| (sequence / 2 * 2).min(10 + 2 * 2999));
        assert_eq!(found, expected);
        assert!(cost.blocks_read + cost.cache_hits <= 2);
    }
}

#[test]
fn a_value_of_many_mib_can_be_read() {
    let big: Vec<u8> = (0..9_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let entries = vec![
        (vec![b'a'; 65_535], 3, Kind::Put, vec![1]),
        (b"b".to_vec(), 2, Kind::Put, big),
        (b"c".to_vec(), 1, Kind::Put, vec![2]),
    ];
    for compression in COMPRESSIONS {
        let vfs = memory();
        write(&vfs, 1, options(compression, 4096), &entries);
        for access in ACCESSES {
            check_all(&TableReader::open(&environment(&vfs, access), 1, None).unwrap(), &entries);
        }
    }
}
