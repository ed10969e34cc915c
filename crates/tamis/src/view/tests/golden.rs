//! Frozen bytes of version 1 of views. `TAMIS_REWRITE=1` rewrites them.

use tamis_vfs::OsVfs;

use super::*;

#[test]
fn a_view_is_written_and_read_as_its_golden_file() {
    let entry = |n: u64| {
        let kind = if n.is_multiple_of(9) { Kind::Tombstone } else { Kind::Put };
        (format!("golden/{:03}", n * 7 % 400).into_bytes(), n + 1, kind, vec![n as u8])
    };
    let mut runs = vec![Vec::new(); 3];
    (0..600).for_each(|n| runs[n as usize % 3].push(entry(n)));
    runs[1].extend((0..50).map(|n| (b"golden/many".to_vec(), 1_000 + n, Kind::Put, Vec::new())));
    let runs: Vec<_> = runs.into_iter().map(MemoryRun::new).collect();
    let written = build(options(), &runs).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/view");
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        let _ = OsVfs.remove(&path);
        OsVfs.create(&path).unwrap().append(&written).unwrap();
    }
    let frozen = OsVfs.read(&path).unwrap();
    assert!(written == frozen, "its bytes have changed");
    let view = open(&frozen).unwrap();
    let mut cursor = ViewCursor::new(&view, &runs.into()).unwrap();
    cursor.seek(b"golden/many", 1_020).unwrap();
    assert_eq!(at(&cursor), Some((b"golden/many".to_vec(), 1_020, Kind::Put, Vec::new())));
}
