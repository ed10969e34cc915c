#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis::Db;

use super::*;
use crate::scan::{Selection, scan};

const WHOLE: ChunkLimit = ChunkLimit { entry_count: usize::MAX, bytes: usize::MAX };

fn store(count: u32) -> (tempfile::TempDir, Db) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    for number in 0..count {
        db.put(number.to_be_bytes(), format!("value {number}")).unwrap();
    }
    (folder, db)
}

#[test]
fn chunks_contain_all_entries_in_both_directions() {
    let (_folder, db) = store(1_000);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut scan = scan(&db.default_keyspace(), None, &Selection::ALL, direction);
        let mut numbers = Vec::new();
        let mut columns = Columns::default();
        loop {
            columns.clear();
            let limit = ChunkLimit { entry_count: 64, bytes: 512 };
            let filled = columns.fill(&mut scan, direction, Parts::Both, limit).unwrap();
            assert_eq!(filled.entry_count, columns.keys.len());
            assert!(filled.entry_count <= 64 && columns.keys.bytes.len() < 512 + 4);
            for (key, value) in columns.keys.iter().zip(columns.values.iter()) {
                let number = u32::from_be_bytes(key.try_into().unwrap());
                assert_eq!(value, format!("value {number}").as_bytes());
                numbers.push(number);
            }
            if filled.is_finished {
                break;
            }
        }
        if direction == Direction::Backward {
            numbers.reverse();
        }
        assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_scan_of_keys_only_fills_no_values() {
    let (_folder, db) = store(10);
    let keyspace = db.default_keyspace();
    let mut columns = Columns::default();
    let mut keys = scan(&keyspace, None, &Selection::ALL, Direction::Forward);
    columns.fill(&mut keys, Direction::Forward, Parts::Keys, WHOLE).unwrap();
    assert_eq!((columns.keys.len(), columns.values.len()), (10, 0));
    assert_eq!(columns.keys.uniform_length(), Some(4));

    let mut values = scan(&keyspace, None, &Selection::Prefix(vec![0, 0, 0]), Direction::Forward);
    columns.clear();
    columns.fill(&mut values, Direction::Forward, Parts::Values, WHOLE).unwrap();
    assert_eq!((columns.keys.len(), columns.values.len()), (0, 10));
    assert_eq!(columns.values.get(3), b"value 3");
    assert_eq!(columns.values.get(10), b"");
}

#[test]
fn uniform_length_detects_equal_lengths() {
    let mut column = Column::default();
    assert_eq!(column.uniform_length(), None);
    column.push(b"ab");
    column.push(b"cd");
    assert_eq!(column.uniform_length(), Some(2));
    column.push(b"e");
    column.push(b"fgh");
    assert_eq!(column.uniform_length(), None);
}
