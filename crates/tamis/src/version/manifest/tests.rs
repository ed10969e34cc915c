#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tamis_vfs::{MemVfs, Vfs as _};

use super::*;
use crate::{frame::frame_bytes, version::edit::Change};

const FOLDER: &str = "/db";
const NEWER: u32 = HEADER.version + 1;

/// An edit that need not be covered.
fn edit(keyspace: u64) -> VersionEdit {
    VersionEdit { changes: vec![Change::SetFlushedSequence { keyspace, partition: 1, sequence: 1 }] }
}

fn drop_of(keyspace: u64) -> VersionEdit {
    VersionEdit { changes: vec![Change::DropKeyspace { keyspace }] }
}

/// A manifest of one first edit and three more.
fn written() -> (MemVfs, Vec<u8>) {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    let folder = &folder_in(&vfs);
    let mut writer = ManifestWriter::create(folder, 3, &[edit(1)]).unwrap();
    for keyspace in 2..=4 {
        assert!(writer.append(folder, &edit(keyspace)).unwrap());
    }
    let bytes = vfs.read(&FileName::Manifest(3).path(Path::new(FOLDER))).unwrap();
    (vfs, bytes)
}

fn with_file(name: FileName, bytes: &[u8]) -> MemVfs {
    let (vfs, _) = written();
    let path = name.path(Path::new(FOLDER));
    vfs.remove(&path).unwrap();
    vfs.create(&path).unwrap().append(bytes).unwrap();
    vfs
}

fn folder_in(vfs: &MemVfs) -> Folder {
    Folder::open(vfs, Path::new(FOLDER)).unwrap()
}

fn read_all(vfs: &MemVfs) -> Result<(Vec<VersionEdit>, Option<TornTail>)> {
    let folder = &folder_in(vfs);
    let contents = read(folder, Current::read(folder)?)?;
    Ok((contents.edits.into_iter().map(|(_, edit)| edit).collect(), contents.torn))
}

fn all_edits() -> Vec<VersionEdit> {
    (1..=4).map(edit).collect()
}

#[test]
fn edits_are_read_in_the_order_of_their_writes() {
    let (vfs, _) = written();
    assert_eq!(read_all(&vfs).unwrap(), (all_edits(), None));
}

#[test]
fn every_flipped_bit_is_an_error_or_changes_nothing() {
    let (_, bytes) = written();
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            *flipped.get_mut(position).unwrap() ^= 1 << bit;
            if let Ok((edits, _)) = read_all(&with_file(FileName::Manifest(3), &flipped)) {
                assert_eq!(edits, all_edits(), "bit {bit} of byte {position}: an acknowledged edit was lost");
            }
        }
    }
}

#[test]
fn a_truncated_manifest_loses_only_unacknowledged_edits() {
    let (_, bytes) = written();
    let first = HEADER_BYTES as u64 + frame_bytes(HEADER_BYTES as u64, 0, edit(1).encode().len() as u64);
    let first = usize::try_from(first).unwrap();
    for length in 0..bytes.len() {
        let result = read_all(&with_file(FileName::Manifest(3), bytes.get(..length).unwrap()));
        match result {
            Ok((edits, _)) => {
                assert!(length >= first, "CURRENT says that {first} bytes are synced");
                assert_eq!(edits.as_slice(), all_edits().get(..edits.len()).unwrap());
            }
            Err(error) => assert!(length < first, "truncated to {length}: {error}"),
        }
    }
}

#[test]
fn every_flipped_bit_of_current_is_an_error() {
    let (vfs, _) = written();
    let bytes = vfs.read(&FileName::Current.path(Path::new(FOLDER))).unwrap();
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            *flipped.get_mut(position).unwrap() ^= 1 << bit;
            assert!(read_all(&with_file(FileName::Current, &flipped)).is_err());
        }
    }
    assert!(read_all(&with_file(FileName::Current, bytes.get(..20).unwrap())).is_err());
}

#[test]
fn a_missing_manifest_a_wrong_one_and_a_newer_format_are_different_errors() {
    let (vfs, bytes) = written();
    vfs.remove(&FileName::Manifest(3).path(Path::new(FOLDER))).unwrap();
    assert!(matches!(read_all(&vfs), Err(Error::MissingFile { .. })));
    let mut other = HEADER.encode([4, 0]);
    other.extend_from_slice(bytes.get(HEADER_BYTES..).unwrap());
    assert!(matches!(read_all(&with_file(FileName::Manifest(3), &other)), Err(Error::Corruption(_))));
    let newer = HeaderKind { version: NEWER, ..HEADER }.encode([3, 0]);
    let error = read_all(&with_file(FileName::Manifest(3), &newer)).unwrap_err();
    assert!(
        matches!(error, Error::UnknownFormat { found: NEWER, known, .. } if known == HEADER.version),
        "{error}"
    );
    vfs.remove(&FileName::Current.path(Path::new(FOLDER))).unwrap();
    assert!(matches!(read_all(&vfs), Err(Error::MissingFile { .. })));
}

/// An edit with information that is in no other file is covered by `CURRENT`: a truncation before its end is detected.
#[test]
fn a_manifest_truncated_before_a_covered_edit_is_damaged() {
    let (vfs, before) = written();
    let folder = &folder_in(&vfs);
    let mut writer = ManifestWriter::create(folder, 5, &[edit(1)]).unwrap();
    assert!(writer.append(folder, &edit(2)).unwrap());
    assert!(writer.append(folder, &drop_of(3)).unwrap());
    let covered = Current::read(folder).unwrap().manifest_bytes;
    assert!(writer.append(folder, &edit(4)).unwrap());
    let path = FileName::Manifest(5).path(folder);
    let bytes = vfs.read(&path).unwrap();
    assert!(covered > before.len() as u64 / 2 && covered < bytes.len() as u64);
    for length in 0..bytes.len() {
        vfs.remove(&path).unwrap();
        vfs.create(&path).unwrap().append(bytes.get(..length).unwrap()).unwrap();
        let is_detected = read_all(&vfs).is_err();
        assert_eq!(is_detected, (length as u64) < covered, "{length} of {}", bytes.len());
    }
}

/// The edits of the golden manifest: one of every kind, then the drop of the keyspace.
fn golden_edits() -> [VersionEdit; 2] {
    let mut changes = crate::version::edit::tests::every_change();
    changes.retain(|change| !matches!(change, Change::DropKeyspace { .. }));
    [VersionEdit { changes }, drop_of(1)]
}

/// A manifest with every kind of change.
#[test]
fn a_manifest_is_written_and_read_as_its_golden_file() {
    let [first, last] = golden_edits();
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    let mut writer = ManifestWriter::create(&folder_in(&vfs), 14, std::slice::from_ref(&first)).unwrap();
    assert!(writer.append(&folder_in(&vfs), &last).unwrap());
    for (name, file) in [("manifest", FileName::Manifest(14)), ("manifest_current", FileName::Current)] {
        let written = vfs.read(&file.path(Path::new(FOLDER))).unwrap();
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("TAMIS_REWRITE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert_eq!(written, golden, "{name} is not written as version {} was frozen", HEADER.version);
    }
    assert_eq!(read_all(&vfs).unwrap(), (vec![first, last], None));
}
