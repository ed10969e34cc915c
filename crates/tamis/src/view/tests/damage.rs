//! Damaged views are refused when they are opened.

use super::*;
use crate::{
    table::format::SECTION_HEADER_LENGTH,
    view::{
        check::check_view,
        checksums::{correct_checksums, correct_section_checksums, page_count_of, sections},
        format::PAGE_HEADER_LENGTH,
    },
};

#[test]
fn each_flipped_byte_of_a_view_is_detected() {
    let mut random = SplitMix64::new(4);
    let keys: Vec<_> = (0..700).map(|_| hostile_key(&mut random)).collect();
    let runs = distribute(&mut random, 3, keys.into_iter());
    let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
    let bytes = build(options(), &runs).unwrap();
    for access in [Access::Mapped, Access::Buffered, Access::Direct] {
        assert!(open_with(&bytes, access).is_ok());
    }
    for offset in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << random.index(8);
        if let Ok(view) = open(&damaged) {
            // Bytes without a meaning, as in tables: between sections.
            assert_eq!(bytes[offset], 0, "flipped at {offset}");
            assert!(check_view(&view, &runs).unwrap().is_empty(), "flipped at {offset}");
        }
    }
}

#[test]
fn wrong_bytes_with_right_checksums_do_not_panic() {
    let mut random = SplitMix64::new(40);
    let keys: Vec<_> =
        (0..1_500).map(|n| if n % 9 == 0 { b"many".to_vec() } else { hostile_key(&mut random) }).collect();
    let runs = distribute(&mut random, 5, keys.into_iter());
    let sample = Sample::new(ViewOptions { segment_size: 16, ..options() }, runs);
    let bytes = build(*sample.view.options(), &sample.runs).unwrap();
    let page_count = page_count_of(&bytes);
    let [header, index] = sections(&bytes);
    let mut opened = 0;
    for round in 0..3_000 {
        let mut damaged = bytes.clone();
        let range = match round % 4 {
            0 => header.0 + SECTION_HEADER_LENGTH..header.0 + header.1,
            1 => index.0 + SECTION_HEADER_LENGTH..index.0 + index.1,
            _ => 0..header.0,
        };
        for _ in 0..=random.index(3) {
            damaged[range.start + random.index(range.len())] = random.next_u64() as u8;
        }
        match round % 4 {
            1 => correct_section_checksums(&mut damaged),
            _ => correct_checksums(&mut damaged, page_count),
        }
        let Ok(view) = open(&damaged) else { continue };
        let Ok(cursor) = ViewCursor::new(&view, &sample.runs) else { continue };
        opened += 1;
        use_damaged(&sample, &view, cursor, &mut random);
    }
    assert!(opened > 300, "{opened} damaged views were used");
}

/// Uses a view whose answers are wrong: each call returns.
fn use_damaged(
    sample: &Sample,
    view: &Arc<View>,
    mut cursor: ViewCursor<Arc<[MemoryRun]>>,
    random: &mut SplitMix64,
) {
    for _ in 0..5 {
        let (key, sequence, ..) = &sample.entries[random.index(sample.entries.len())];
        let _ = cursor.seek(key, *sequence);
        for _ in 0..random.index(40) {
            if cursor.is_valid() {
                let _ = if random.index(3) > 0 { cursor.next() } else { cursor.prev() };
            }
        }
        let _ = cursor.seek_for_prev(key, BoundKind::Included);
    }
    let mut scan = ViewScan::new(cursor, 500);
    let _ = scan.seek_last();
    let new = [(900, MemoryRun::new(vec![(hostile_key(random), 9_999, Kind::Put, Vec::new())]))];
    let _ = rebuild_view(ViewOwner::default(), view, &sample.runs, &new, &mut |_| Ok(()));
}

/// Two runs with entries in the first page, and a third one with one key behind them; tombstones in the first page.
fn three_runs() -> (Vec<u8>, Vec<MemoryRun>) {
    let mut runs = vec![Vec::new(); 3];
    for number in 0..700_u64 {
        let kind = if number % 5 == 0 { Kind::Tombstone } else { Kind::Put };
        runs[(number % 2) as usize].push((number.to_be_bytes().to_vec(), number + 1, kind, Vec::new()));
    }
    runs[2].push((b"z".to_vec(), 1_000, Kind::Put, Vec::new()));
    let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
    let bytes = build(options(), &runs).unwrap();
    assert!(page_count_of(&bytes) > 1 && open(&bytes).is_ok());
    (bytes, runs)
}

/// Planes of a page's first segment begin here; each has this many bytes.
fn first_plane(bytes: &[u8]) -> (usize, usize) {
    (PAGE_HEADER_LENGTH + usize::from(bytes[2]), options().segment_size / 8)
}

#[test]
fn a_selector_that_names_no_run_is_refused() {
    let (mut bytes, _) = three_runs();
    let (start, width) = first_plane(&bytes);
    assert_eq!((bytes[3], bytes[4]), (2, 1), "bits of selectors and kinds");
    // Run 3 of three.
    bytes[start] |= 1;
    bytes[start + width] |= 1;
    let page_count = page_count_of(&bytes);
    correct_checksums(&mut bytes, page_count);
    let refused = open(&bytes).unwrap_err();
    assert!(
        matches!(&refused, Error::Corruption(found) if found.what == "selector of a view page"),
        "{refused}"
    );
}

#[test]
fn an_operand_in_a_view_of_puts_and_tombstones_is_refused() {
    let (mut bytes, _) = three_runs();
    let (start, width) = first_plane(&bytes);
    let planes = &bytes[start + width..start + 2 * width];
    assert!(
        (bytes[3], bytes[4]) == (2, 1) && planes.iter().all(|&byte| byte == 0),
        "no entry of the last run"
    );
    // The second plane of the selectors becomes the first one of the kinds: tombstones become kind 2.
    (bytes[3], bytes[4]) = (1, 2);
    let page_count = page_count_of(&bytes);
    correct_checksums(&mut bytes, page_count);
    let refused = open(&bytes).unwrap_err();
    assert!(matches!(refused, Error::Corruption(_)), "{refused}");
}
