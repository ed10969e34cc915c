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
