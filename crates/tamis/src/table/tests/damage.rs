//! Every byte of a small table is flipped: an error that names the file, or the right answers.

use super::*;

fn read_all(table: &Arc<TableReader>) -> Result<Vec<Entry>> {
    let mut cursor = table.cursor();
    cursor.seek_first()?;
    let mut entries = Vec::new();
    while cursor.is_valid() {
        entries.push(at(&cursor).unwrap());
        cursor.next()?;
    }
    Ok(entries)
}

fn check_error(error: &Error) {
    match error {
        Error::Corruption(damage) => assert!(damage.file.ends_with("000001.table"), "{error}"),
        Error::UnknownFormat { file, .. } => assert!(file.ends_with("000001.table")),
        other => panic!("{other}"),
    }
}

fn small_table() -> Vec<Entry> {
    let mut random = Random::new(3);
    let mut entries = Vec::new();
    for n in 0..120_u64 {
        let value: Vec<u8> = (0..random.below(150)).map(|_| random.next() as u8 & 3).collect();
        let kind = if n % 5 == 0 { Kind::Tombstone } else { Kind::Put };
        entries.push((format!("key/{:03}", n / 2).into_bytes(), 1000 - n, kind, value));
    }
    sorted(entries)
}

#[test]
fn any_flipped_byte_is_an_error_or_the_right_answer() {
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
                    Ok(answers) => assert!(answers == entries, "wrong answer at byte {position}"),
                    Err(error) => check_error(&error),
                }
            }
        }
    }
}

#[test]
fn any_cut_is_an_error() {
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

/// The bytes of a table of one block, changed behind the checksum.
fn forged(change: impl FnOnce(&mut [u8]), offset: usize, end: usize) -> Arc<dyn Vfs> {
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &small_table()[..5]);
    let mut bytes = vfs.read(Path::new("/db/000001.table")).unwrap();
    change(&mut bytes[offset..end]);
    let sum = crate::coding::checksum(offset as u64, &bytes[offset + 8..end]);
    bytes[offset..offset + 8].copy_from_slice(&sum.to_le_bytes());
    let vfs = memory();
    vfs.create(Path::new("/db/000001.table")).unwrap().append(&bytes).unwrap();
    vfs
}

#[test]
fn an_entry_of_an_unknown_kind_is_refused_and_never_passed_over() {
    // Block header 16, content header 16, heads, then offsets: the first one tells where the first entry begins.
    let vfs = forged(
        |block| {
            let count = usize::from(block[16]);
            let entry = usize::from(u16::from_le_bytes([block[32 + 4 * count], block[33 + 4 * count]]));
            block[16 + entry] = 4;
        },
        0,
        4096,
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

#[test]
fn nonsense_behind_a_right_checksum_is_an_error_and_never_a_panic() {
    for position in 8..700 {
        for flip in [1, 0x80, 0xFF] {
            let vfs = forged(|block| block[position] ^= flip, 0, 4096);
            let table = TableReader::open(&environment(&vfs, Access::Mapped), 1, None).unwrap();
            let _ = read_all(&table);
            table.verify();
            let mut cursor = table.cursor();
            for entry in small_table() {
                let _ = table.get(&entry.0, entry.1, &mut ReadCost::default());
                let _ = cursor.seek(&entry.0, entry.1);
                let _ = cursor.seek_back(&entry.0, true);
            }
            // The index lies behind the only block.
            let vfs = forged(
                |section| section[8 + position % (section.len() - 8)] ^= flip,
                4096,
                4096 + 64 + index_bytes(),
            );
            if let Ok(table) = TableReader::open(&environment(&vfs, Access::Mapped), 1, None) {
                let _ = read_all(&table);
                table.verify();
                let mut cursor = table.cursor();
                for entry in small_table() {
                    let _ = table.get(&entry.0, entry.1, &mut ReadCost::default());
                    let _ = cursor.seek_back(&entry.0, false);
                }
            }
        }
    }
}

/// The length of the index of the forged table, as its header tells.
fn index_bytes() -> usize {
    let vfs = memory();
    write(&vfs, 1, options(Compression::None, 4096), &small_table()[..5]);
    let bytes = vfs.read(Path::new("/db/000001.table")).unwrap();
    usize::from(u16::from_le_bytes([bytes[4096 + 8], bytes[4096 + 9]]))
}
