//! The costs that views exist for: keys read per operation, bytes per entry.

use std::ops::Bound;

use super::*;

const COUNT: usize = 40_000;

/// Eight runs of keys of 16 bytes, all puts.
fn even_sample() -> Sample {
    let mut random = SplitMix64::new(11);
    let mut runs = vec![Vec::new(); 8];
    for (number, key) in even_keys(&mut random, COUNT).into_iter().enumerate() {
        runs[random.index(8)].push((key, number as u64 + 1, Kind::Put, vec![1; 4]));
    }
    Sample::new(options(), runs)
}

#[test]
fn a_seek_reads_one_key_and_a_step_one() {
    let sample = even_sample();
    let mut random = SplitMix64::new(5);
    let mut cursor = sample.cursor();
    sample.take_read_count();
    let seek_count = 4_000;
    for number in 0..seek_count {
        let key = match number % 2 {
            0 => sample.entries[random.index(COUNT)].0.clone(),
            _ => even_keys(&mut random, 1).remove(0),
        };
        cursor.seek(&key, SEQUENCE_MAX).unwrap();
    }
    let per_seek = sample.take_read_count() as f64 / f64::from(seek_count);
    assert!(per_seek <= 1.1, "{per_seek} keys per seek");
    cursor.seek_first().unwrap();
    sample.take_read_count();
    (1..COUNT).for_each(|_| cursor.next().unwrap());
    (1..COUNT).for_each(|_| cursor.prev().unwrap());
    assert!(sample.take_read_count() < 2 * COUNT as u64, "each step reads its entry and no other");
    let mut scan = sample.scan(SEQUENCE_MAX);
    scan.seek_first().unwrap();
    sample.take_read_count();
    assert_eq!(scan.skip_within(30_000, Bound::Unbounded).unwrap(), 30_000);
    assert_eq!(sample.take_read_count(), 1);
    assert_eq!(at(scan.entry()).as_ref(), Some(&sample.entries[30_000]));
}

#[test]
fn a_scan_reads_neither_old_versions_nor_tombstones() {
    let mut random = SplitMix64::new(7);
    let mut runs = vec![Vec::new(); 4];
    for n in 0..5_000_u64 {
        for version in 0..=random.index(4) as u64 {
            let kind = if n % 3 == 0 { Kind::Tombstone } else { Kind::Put };
            runs[random.index(4)].push((n.to_be_bytes().to_vec(), 10 * n + version + 1, kind, vec![0; 2]));
        }
    }
    let sample = Sample::new(options(), runs);
    let mut scan = sample.scan(SEQUENCE_MAX);
    sample.take_read_count();
    scan.seek_first().unwrap();
    let mut count = 0;
    while scan.is_valid() {
        count += 1;
        scan.next().unwrap();
    }
    assert_eq!((count, sample.view.live_count()), (3_333, 3_333));
    assert_eq!(sample.take_read_count(), 3_333);
    scan.seek_last().unwrap();
    while scan.is_valid() {
        scan.prev().unwrap();
    }
    assert!(sample.take_read_count() <= 3_333);
}

#[test]
fn an_entry_takes_at_most_3_25_bytes() {
    let sample = even_sample();
    let bytes = sample.view.file_bytes() as f64 / COUNT as f64;
    assert!(bytes <= 3.0, "{bytes} bytes an entry");
}
