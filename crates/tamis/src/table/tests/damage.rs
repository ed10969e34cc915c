//! Every byte of a small table is flipped: the result is an error that names the file, or the correct entries.

use super::{
    super::{
        inspect::sections_of,
        scrub::{Scrubbed, scrub_unreadable},
    },
    *,
};

fn check_error(error: &Error) {
    match error {
        Error::Corruption(damage) => assert!(damage.file.ends_with("000001.table"), "{error}"),
        Error::UnknownFormat { file, .. } => assert!(file.ends_with("000001.table")),
        other => panic!("{other}"),
    }
}

fn small_table() -> Vec<Entry> {
    let mut random = SplitMix64::new(3);
    let mut entries = Vec::new();
    for n in 0..120_u64 {
        let value: Vec<u8> = (0..random.index(150)).map(|_| random.next_u64() as u8 & 3).collect();
        let kind = if n % 5 == 0 { Kind::Tombstone } else { Kind::Put };
        entries.push((format!("key/{:03}", n / 2).into_bytes(), 1000 - n, kind, value));
    }
    sorted(entries)
}

#[test]
fn any_flipped_byte_is_an_error_or_has_no_effect() {
    let entries = small_table();
    for compression in [Compression::None, Compression::Lz4] {
        let vfs = memory();
        write(&vfs, 1, options(compression, 4096), &entries);
        let bytes = vfs.read(Path::new("/db/000001.table")).unwrap();
        for access in [Access::Mapped, Access::Buffered] {
            for position in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[position] ^= 1 << (position % 8);
                let vfs = memory();
                vfs.create(Path::new("/db/000001.table")).unwrap().append(&damaged).unwrap();
                let opened = TableReader::open(&environment(&vfs, access), 1, None);
                let answers = opened.and_then(|table| read_all(&table));
                match answers {
                    Ok(answers) => assert!(answers == entries, "wrong result at byte {position}"),
                    Err(error) => check_error(&error),
                }
            }
        }
    }
}

#[test]
fn any_truncation_is_an_error() {
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &small_table());
    let bytes = vfs.read(Path::new("/db/000001.table")).unwrap();
    for cut in (0..bytes.len()).step_by(64) {
        let vfs = memory();
        vfs.create(Path::new("/db/000001.table")).unwrap().append(&bytes[..cut]).unwrap();
        for access in ACCESSES {
            check_error(&TableReader::open(&environment(&vfs, access), 1, None).unwrap_err());
        }
    }
}

/// The bytes of a table of one block.
fn single_block() -> Vec<u8> {
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &small_table()[..5]);
    vfs.read(Path::new("/db/000001.table")).unwrap()
}

/// The end of its block, and the start and end of its index.
fn parts_of_single_block() -> (usize, usize, usize) {
    let bytes = single_block();
    let length_at = |offset: usize| usize::from(u16::from_le_bytes([bytes[offset], bytes[offset + 1]]));
    let block_end = 16 + length_at(8);
    let index = block_end.next_multiple_of(64);
    (block_end, index, index + 64 + length_at(index + 8))
}

/// That table, changed and with a new checksum.
fn forged(change: impl FnOnce(&mut [u8]), offset: usize, end: usize) -> Arc<dyn Vfs> {
    let mut bytes = single_block();
    change(&mut bytes[offset..end]);
    let sum = crate::coding::checksum(offset as u64, &bytes[offset + 8..end]);
    bytes[offset..offset + 8].copy_from_slice(&sum.to_le_bytes());
    let vfs = memory();
    vfs.create(Path::new("/db/000001.table")).unwrap().append(&bytes).unwrap();
    vfs
}

#[test]
fn an_entry_of_an_unknown_kind_is_refused_and_never_skipped() {
    // Block header 16, content header 16, heads, then offsets: the first one is the start of the first entry.
    let vfs = forged(
        |block| {
            let count = usize::from(block[16]);
            let entry = usize::from(u16::from_le_bytes([block[32 + 4 * count], block[33 + 4 * count]]));
            block[16 + entry] = 4;
        },
        0,
        parts_of_single_block().0,
    );
    for access in ACCESSES {
        let table = TableReader::open(&environment(&vfs, access), 1, None).unwrap();
        let is_refused = |error: Error| matches!(error, Error::UnknownEntryKind { kind: 4, offset: 0, .. });
        assert!(is_refused(read_all(&table).unwrap_err()));
        assert!(is_refused(table.verify().swap_remove(0)));
        let key = small_table()[0].0.clone();
        assert!(is_refused(table.get(&key, SEQUENCE_MAX, &mut ReadCost::default()).unwrap_err()));
    }
}

/// Readers compare no versions in a plain block.
#[test]
fn verify_finds_a_block_that_is_wrongly_plain() {
    // Block header 16, count 2, prefix length 2, width 1, flags.
    let vfs = forged(|block| block[21] |= 2, 0, parts_of_single_block().0);
    let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
    let faults = table.verify();
    assert!(matches!(&faults[..], [Error::Corruption(found)] if found.offset == 0), "{faults:?}");
}

#[test]
fn invalid_bytes_with_a_correct_checksum_are_an_error_and_never_a_panic() {
    let (block_end, index_start, index_end) = parts_of_single_block();
    for position in 8..700 {
        for flip in [1, 0x80, 0xFF] {
            let vfs = forged(|block| block[8 + (position - 8) % (block.len() - 8)] ^= flip, 0, block_end);
            let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
            let _ = read_all(&table);
            table.verify();
            let mut cursor = table.cursor();
            for entry in small_table() {
                let _ = table.get(&entry.0, entry.1, &mut ReadCost::default());
                let _ = cursor.seek(&entry.0, entry.1);
                let _ = cursor.seek_for_prev(&entry.0, BoundKind::Included);
            }
            // The index is after the only block.
            let vfs =
                forged(|section| section[8 + position % (section.len() - 8)] ^= flip, index_start, index_end);
            if let Ok(table) = TableReader::open(&environment(&vfs, Access::Mapped), 1, None) {
                let _ = read_all(&table);
                table.verify();
                let mut cursor = table.cursor();
                for entry in small_table() {
                    let _ = table.get(&entry.0, entry.1, &mut ReadCost::default());
                    let _ = cursor.seek_for_prev(&entry.0, BoundKind::Excluded);
                }
            }
        }
    }
}

/// A table of many blocks: its bytes, the offsets of its blocks, and the offsets of its sections by name.
fn large_table(compression: Compression) -> (Vec<u8>, Vec<usize>, Vec<(&'static str, usize)>) {
    let vfs = memory();
    write(&vfs, 1, options(compression, 8192), &hostile_entries(&mut SplitMix64::new(8), 1500));
    let path = Path::new("/db/000001.table");
    let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
    let blocks = table.blocks().unwrap().iter().map(|block| block.offset as usize).collect();
    let sections = sections_of(&vfs, path).unwrap();
    let sections = sections.iter().map(|section| (section.kind, section.offset as usize)).collect();
    (vfs.read(path).unwrap(), blocks, sections)
}

/// The result of verifying a table of these bytes, which can't be opened.
fn verified_parts_of(bytes: &[u8], access: Access) -> Scrubbed {
    let vfs = memory();
    vfs.create(Path::new("/db/000001.table")).unwrap().append(bytes).unwrap();
    let environment = environment(&vfs, access);
    let why = TableReader::open(&environment, 1, None).unwrap_err();
    scrub_unreadable(&environment, 1, why)
}

fn offsets_of(parts: &Scrubbed) -> Vec<usize> {
    let offset = |error: &Error| match error {
        Error::Corruption(found) => found.offset as usize,
        other => panic!("{other}"),
    };
    parts.faults.iter().map(offset).collect()
}

#[test]
fn all_parts_of_an_unreadable_table_are_verified() {
    for compression in COMPRESSIONS {
        let (bytes, blocks, sections) = large_table(compression);
        assert!(blocks.len() > 20);
        let section = |kind: &str| sections.iter().find(|(own, _)| *own == kind).unwrap().1;
        let footer = bytes.len() - 64;
        let directory = usize::from_le_bytes(*bytes[footer + 16..].first_chunk().unwrap());
        let check = |places: &[(usize, usize)]| {
            let mut damaged = bytes.clone();
            places.iter().for_each(|(part, within)| damaged[part + within] ^= 0x41);
            for access in ACCESSES {
                let parts = verified_parts_of(&damaged, access);
                let mut expected: Vec<usize> = places.iter().map(|(part, _)| *part).collect();
                expected.sort_unstable();
                assert_eq!(offsets_of(&parts), expected, "{compression:?} {access:?} {places:?}");
                assert_eq!(parts.bytes, bytes.len() as u64);
            }
        };
        let (index, filter) = ((section("index"), 99), (section("filter"), 70));
        let block = |number: usize, within: usize| {
            let length = blocks[number + 1] - blocks[number];
            (blocks[number], within % length)
        };
        // In the content, whose length is still in the header; and in the header.
        for within in [700, 13, 9] {
            check(&[index, filter, block(1, within)]);
            check(&[(footer, 20), block(0, within), block(7, within), filter]);
        }
        check(&[(directory, 80), block(3, 20), (section("filter"), 64), index]);
        check(&[(section("properties"), 70), block(2, 500), block(9, 14), filter]);
        check(&[index, (*blocks.last().unwrap(), 40)]);
        check(&[(footer, 3), index]);
        let whole = verified_parts_of(&[&bytes[..footer], &[0; 64]].concat(), Access::Mapped);
        assert_eq!(whole.entry_count, hostile_entries(&mut SplitMix64::new(8), 1500).len() as u64);
    }
    // Adjacent blocks of one size: the header of each gives its end.
    let (mut bytes, blocks, sections) = large_table(Compression::None);
    let plain = blocks.windows(3).position(|trio| trio[2] - trio[0] == 2 * 8192 && trio[0] > 0).unwrap();
    let index = sections[0].1;
    [blocks[plain] + 50, blocks[plain + 1] + 60, index + 70].iter().for_each(|&place| bytes[place] ^= 1);
    assert_eq!(
        offsets_of(&verified_parts_of(&bytes, Access::Mapped)),
        [blocks[plain], blocks[plain + 1], index]
    );
}

#[test]
fn the_search_for_readable_parts_ends_and_never_panics() {
    let mut random = SplitMix64::new(12);
    for compression in COMPRESSIONS {
        let (bytes, ..) = large_table(compression);
        let length = bytes.len();
        // As the sweeps of the store (CONTRIBUTING.md), all of them in CI.
        for _ in 0..if std::env::var_os("TAMIS_SWEEPS").is_some() { 20 } else { 4 } {
            let mut damaged = bytes.clone();
            damaged[length - 40] ^= 1;
            for _ in 0..random.index(60) {
                damaged[random.index(length)] = random.next_u64() as u8;
            }
            damaged.drain(..random.index(3) * random.index(5000));
            assert!(!verified_parts_of(&damaged, ACCESSES[random.index(3)]).faults.is_empty());
        }
    }
    // A header every 16 bytes, each of a block as long as the rest of the bytes.
    for compression in 0..3 {
        let mut bytes = vec![0x28; 1 << 16];
        let length = bytes.len();
        for (index, header) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            header[8..12].copy_from_slice(&((length - 16 * index).saturating_sub(80) as u32).to_le_bytes());
            header[12..16].copy_from_slice(&[1, compression, 0, 0]);
        }
        let parts = verified_parts_of(&bytes, Access::Mapped);
        assert!(parts.faults.len() > 1 && parts.entry_count == 0, "{parts:?}");
        if compression == 0 {
            let last =
                parts.faults.iter().map(ToString::to_string).find(|text| text.contains("not searched"));
            assert!(last.is_some(), "{:?}", parts.faults);
        }
    }
}
