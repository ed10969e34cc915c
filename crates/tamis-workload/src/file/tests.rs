//! Files are read back as written, and every defect is reported with its offset.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::{
    FileError, ValueReader, key_set_name, operations_name, read_keys, read_ranges, write_keys,
    write_line_ranges, write_lines, write_operations, write_ranges,
};
use crate::KeySet;

fn keys_file(keys: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_keys(&mut bytes, keys).unwrap();
    bytes
}

#[test]
fn written_files_are_read_back() {
    assert_eq!(read_keys(&*keys_file(&[1, 5, u64::MAX])).unwrap(), [1, 5, u64::MAX]);
    assert_eq!(read_keys(&*keys_file(&[])).unwrap(), []);
    let mut bytes = Vec::new();
    write_ranges(&mut bytes, &[(9, 9), (1, 4)]).unwrap();
    assert_eq!(bytes[..16], [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(read_ranges(&*bytes).unwrap(), [(9, 9), (1, 4)]);
}

#[test]
fn every_truncation_is_reported_with_the_length_of_the_file() {
    let bytes = keys_file(&[1, 2, 3]);
    for length in 0..bytes.len() {
        let error = read_keys(&bytes[..length]).unwrap_err();
        assert!(error.to_string().contains(&format!("cut at offset {length}")), "{length}: {error}");
    }
}

#[test]
fn foreign_files_are_refused_without_allocation() {
    let error = read_keys(b"name,size\n/usr/bin/true,35208\n".as_slice()).unwrap_err();
    assert!(matches!(error, FileError::NotAscending { .. } | FileError::Cut { .. }), "{error}");
    assert!(read_keys([0xFF; 64].as_slice()).is_err());
}

#[test]
fn bytes_after_the_last_value_are_refused() {
    let mut bytes = keys_file(&[1, 2]);
    bytes.push(0);
    assert!(matches!(read_keys(&*bytes), Err(FileError::TooLong { offset: 24, count: 2 })));
    let reader = ValueReader::new(&*bytes).unwrap();
    assert!(matches!(reader.check_length(25), Err(FileError::TooLong { offset: 24, .. })));
    assert!(matches!(reader.check_length(23), Err(FileError::Cut { length: 23, count: 2 })));
    assert!(reader.check_length(24).is_ok());
}

#[test]
fn order_and_pairs_are_checked() {
    assert!(matches!(
        read_keys(&*keys_file(&[1, 7, 7])),
        Err(FileError::NotAscending { offset: 24, value: 7, before: 7 })
    ));
    assert!(matches!(
        read_ranges(&*keys_file(&[1, 2, 9, 8])),
        Err(FileError::Reversed { offset: 24, left: 9, right: 8 })
    ));
    assert!(matches!(read_ranges(&*keys_file(&[1])), Err(FileError::OddCount { count: 1 })));
}

#[test]
fn reading_ends_at_the_first_fault() {
    let bytes = keys_file(&[1, 2, 3]);
    let mut reader = ValueReader::new(&bytes[..30]).unwrap();
    assert_eq!((reader.next().unwrap().unwrap(), reader.next().unwrap().unwrap()), (1, 2));
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

#[test]
fn names_are_the_published_ones() {
    assert_eq!(key_set_name(KeySet::Uniform, 1_000_000, 42), "uniform_n1m_s42");
    assert_eq!(key_set_name(KeySet::Gaps, 1500, 7), "gaps_n1500_s7");
}

#[test]
fn operations_and_text_are_lines() {
    let workload: crate::Workload = "ycsb-e".parse().unwrap();
    let mut text = Vec::new();
    write_operations(&mut text, workload.operations(100, 50, 7)).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 50);
    for line in text.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        match parts.as_slice() {
            ["scan", key, limit] => {
                assert!(key.len() == 16 && (1..=100).contains(&limit.parse::<u32>().unwrap()))
            }
            ["insert", key] => assert_eq!(key.len(), 16),
            other => panic!("{other:?}"),
        }
    }
    let mut text = Vec::new();
    let ranges: crate::Workload = "empty-near".parse().unwrap();
    write_operations(&mut text, ranges.operations(100, 1, 7)).unwrap();
    assert!(text.starts_with(b"range\t") && text.len() == 6 + 16 + 1 + 16 + 1);
    assert_eq!(operations_name(&workload, 1_000_000, 500, 7), "ycsb-e_n1m_o500_s7");

    let mut text = Vec::new();
    write_lines(&mut text, ["a", "b"]).unwrap();
    write_line_ranges(&mut text, &[(b"c".to_vec(), b"d".to_vec())]).unwrap();
    assert_eq!(text, b"a\nb\nc\td\n");
}
