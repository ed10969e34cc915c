//! Views at their limits: sections that a reader does not know, one key with a million versions, long keys, many runs, a full page index.

use super::{
    model::{check, with_segments},
    *,
};
use crate::{
    coding::checksum,
    table::{
        format::{
            DIRECTORY_RECORD_LENGTH, SECTION_ALIGNMENT, SECTION_HEADER_LENGTH, SECTION_PASSABLE, SectionKind,
            VIEW_VERSION,
        },
        section::{put_directory_and_footer, put_section},
    },
    view::{
        check::check_view,
        checksums::{directory_of, records_of},
        format::VIEW_MAGIC,
        index::PageRecord,
        index_builder::IndexBuilder,
        key_bits::{difference, infix},
        writer::{KeyHead, RunSummary, ViewWriter},
    },
};

/// The view with another section behind the others, of a number that need not be a kind.
fn with_section(bytes: &[u8], kind: u32, flags: u32) -> Vec<u8> {
    let mut records = records_of(bytes);
    let mut target = bytes[..directory_of(bytes).0].to_vec();
    let offset = target.len() as u64;
    records.push(put_section(&mut target, offset, SectionKind::Filter, flags, b"of a later version"));
    target.resize(target.len().next_multiple_of(SECTION_ALIGNMENT), 0);
    let offset = target.len() as u64;
    put_directory_and_footer(&mut target, offset, VIEW_MAGIC, VIEW_VERSION, &records, None);
    let last_record = directory_of(&target).0 + SECTION_HEADER_LENGTH + 2 * DIRECTORY_RECORD_LENGTH;
    target[last_record..last_record + 4].copy_from_slice(&kind.to_le_bytes());
    let (start, length) = directory_of(&target);
    let sum = checksum(start as u64, &target[start + 8..start + length]);
    target[start..start + 8].copy_from_slice(&sum.to_le_bytes());
    target
}

#[test]
fn an_unknown_section_is_refused_unless_it_may_be_ignored() {
    let mut random = SplitMix64::new(1);
    let runs = distribute(&mut random, 3, (0..300_u64).map(|n| n.to_be_bytes().to_vec()));
    let sample = Sample::new(options(), runs);
    let bytes = build(options(), &sample.runs).unwrap();
    // 2 is a kind of tables, and no kind of views.
    for kind in [2, 14, 400] {
        let view = open(&with_section(&bytes, kind, SECTION_PASSABLE)).unwrap();
        assert!(check_view(&view, &sample.runs).unwrap().is_empty());
        let refused = open(&with_section(&bytes, kind, 0)).unwrap_err();
        assert!(matches!(&refused, Error::UnknownFormat { found, .. } if *found == kind), "{refused}");
    }
}

#[test]
fn one_key_may_have_a_million_versions() {
    const COUNT: u64 = 1_000_000;
    let mut runs = vec![Vec::new(); 3];
    for sequence in 1..=COUNT {
        runs[(sequence % 3) as usize].push((b"many".to_vec(), sequence, Kind::Put, Vec::new()));
    }
    runs[0].push((b"a".to_vec(), COUNT + 1, Kind::Put, Vec::new()));
    runs[1].push((b"z".to_vec(), COUNT + 2, Kind::Tombstone, Vec::new()));
    let sample = Sample::new(options(), runs);
    assert_eq!((sample.view.key_count(), sample.view.live_count()), (3, 2));
    assert!(sample.view.file_bytes() < 3 * COUNT, "{} bytes", sample.view.file_bytes());
    let mut scan = sample.scan(COUNT / 2);
    sample.take_read_count();
    scan.seek(b"many").unwrap();
    assert_eq!(scan.entry().sequence(), COUNT / 2);
    let mut newest = sample.scan(SEQUENCE_MAX);
    newest.seek_first().unwrap();
    newest.next().unwrap();
    assert_eq!(at(newest.entry()).unwrap().1, COUNT);
    newest.next().unwrap();
    assert!(!newest.is_valid(), "the last key is deleted");
    newest.seek_last().unwrap();
    assert_eq!(at(newest.entry()).unwrap().1, COUNT);
    assert!(sample.take_read_count() < 40);
    let mut cursor = sample.cursor();
    cursor.seek(b"many", 3).unwrap();
    assert_eq!(at(&cursor).unwrap().1, 3);
    (0..3).for_each(|_| cursor.next().unwrap());
    assert_eq!(cursor.key(), b"z");
}

/// Short keys; keys of 64 KiB that share all but the last bytes, of many runs, whose pages have the most segments. The page index is
/// left out: it is a part of each open view.
#[test]
fn a_builder_takes_at_most_10_mib_besides_the_page_index() {
    const LIMIT: u64 = 10 << 20;
    for (run_count, key_bytes, key_count) in [(9, 16, 200_000_u64), (64, 64 << 10, 3_000)] {
        let summary = |id| RunSummary { id, largest_sequence: 1, entry_count: key_count };
        let mut sink = |_: &[u8]| Ok(());
        let mut writer =
            ViewWriter::new(options(), (0..run_count).map(summary).collect(), &mut sink).unwrap();
        let (mut last, mut peak) = (Vec::new(), 0);
        for number in 0..key_count {
            let mut key = vec![b'k'; key_bytes - 8];
            key.extend_from_slice(&number.to_be_bytes());
            let difference = difference(&last, &key).unwrap_or_default();
            let head = KeyHead { difference, infix: infix(&key, difference) };
            writer.begin_key(head, Some(&key)).unwrap();
            writer.add_newest((number % run_count) as usize, Kind::Put);
            peak = peak.max(writer.memory_bytes());
            last = key;
        }
        drop(writer);
        assert!(peak <= LIMIT, "{peak} bytes");
    }
}

#[test]
fn all_keys_may_be_equal_and_runs_may_have_one_entry() {
    for segment_size in [16, 32, 64] {
        for run_count in [1, 2, 63, 64, 300] {
            let runs = (0..run_count as u64).map(|n| vec![(b"k".to_vec(), n + 1, Kind::Put, vec![n as u8])]);
            let sample = Sample::new(with_segments(segment_size), runs.collect());
            check(&sample, &mut SplitMix64::new(9), 30);
            assert!(check_view(&sample.view, &sample.runs).unwrap().is_empty());
        }
    }
}

#[test]
fn pages_are_found_among_separators_with_equal_first_bytes() {
    let mut random = SplitMix64::new(4);
    let groups = ["A: a long name", "B: a long name", "B: a long name, and more"];
    let keys = groups.iter().flat_map(|group| (0..3_000).map(move |n| format!("{group}{n:05}").into_bytes()));
    let sample = Sample::new(with_segments(16), distribute(&mut random, 3, keys));
    assert!(sample.view.page_count() > 30, "{} pages", sample.view.page_count());
    check(&sample, &mut random, 300);
}

/// Separators above the limit of their ends are refused when they are added.
#[test]
fn a_page_index_of_too_long_separators_is_refused() {
    let page = PageRecord { checksum: 0, length: 1, entry_count: 1, live_count: 1 };
    for (limit, is_refused) in [(299, true), (300, false)] {
        let mut index = IndexBuilder::new().with_separator_bytes_max(limit);
        // The first page has an empty separator.
        let added = (0..4_u8).try_for_each(|number| index.add(page, &[0], Some(&[number; 100])));
        assert_eq!(added.is_err(), is_refused);
    }
}
