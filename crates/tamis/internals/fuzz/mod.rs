//! Entry points to the decoders for the fuzz targets in `fuzz/`, with the feature `fuzz-internals`.
//!
//! Each function passes any bytes to one decoder, and panics only if the decoder breaks its contract: the result is an
//! error or a value that encodes to the same bytes, and the same bytes have the same result. Most inputs would fail at a
//! checksum, so the first byte can request that the input is put into valid frames and sections. The feature adds this
//! module and changes nothing else; programs have no use for it.

mod table;
mod view;

use std::path::Path;

use tamis_vfs::{Folder, MemVfs, Vfs};

use crate::{
    batch::{self, WriteBatch},
    frame::put_frame_parts,
    version::{
        edit::VersionEdit,
        prefix::read_longest,
        set::{Mode, VersionSet},
    },
    wal::{
        format::{SegmentHeader, segment_seed},
        reader::{KnownLog, LogFiles, replay, salvage},
    },
};

pub use table::table;
pub use view::view;

const FOLDER: &str = "/store";
const DATABASE_ID: u64 = 7;
const LOG_NUMBER: u64 = 3;

/// A file system with only these files.
fn files(contents: &[(&str, &[u8])]) -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(FOLDER)).expect("memory has folders");
    for (name, bytes) in contents {
        let file = vfs.create(&Path::new(FOLDER).join(name)).expect("the names are distinct");
        file.append(bytes).expect("memory takes bytes");
    }
    vfs
}

/// The folder of [`files`].
fn folder_in(vfs: &MemVfs) -> Folder {
    Folder::open(vfs, Path::new(FOLDER)).expect("memory has the folder")
}

/// Whether to put the rest of the input into valid frames or sections.
fn split_choice(data: &[u8]) -> (bool, &[u8]) {
    data.split_first().map_or((false, data), |(first, rest)| (first & 1 == 1, rest))
}

/// Splits an input into pieces; the first byte of each is its length.
fn pieces(mut data: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((&length, rest)) = data.split_first() {
        let (piece, rest) = rest.split_at_checked(usize::from(length)).unwrap_or((rest, &[]));
        found.push(piece);
        data = rest;
    }
    found
}

/// The payload of a log record: entries that can be written again, or an error.
pub fn batch(data: &[u8]) {
    let mut copy = WriteBatch::retaining();
    for entry in batch::entries(data).map_while(Result::ok) {
        copy.retain(entry).expect("an entry of a batch can be written to a batch");
    }
    let encoded = copy.assign_sequences(1).to_vec();
    assert_eq!(batch::entries(&encoded).filter(Result::is_ok).count(), copy.len());
}

/// A segment of the write-ahead log: the bytes as given, or pieces as valid records.
pub fn wal(data: &[u8]) {
    let (is_wrapped, rest) = split_choice(data);
    let bytes = if is_wrapped { segment_of_records(rest) } else { rest.to_vec() };
    let vfs = files(&[("000003.log", bytes.as_slice())]);
    let known = KnownLog { database_id: DATABASE_ID, first_needed: LOG_NUMBER, ..KnownLog::default() };
    let log = LogFiles::find(&folder_in(&vfs), known).expect("memory lists files");
    let read = || {
        let mut entry_count = 0_u64;
        let report = replay(&log, &mut |_, _| {
            entry_count += 1;
            Ok(())
        });
        let mut salvaged = 0_u64;
        let (found, faults) = salvage(&log, &mut |_, _| salvaged += 1);
        assert_eq!(report.is_err(), !faults.is_empty(), "salvage hides no fault");
        assert!(report.is_err() || (report.as_ref().ok() == Some(&found) && salvaged == entry_count));
        assert!(entry_count <= bytes.len() as u64, "an entry takes at least a byte");
        format!("{entry_count} {report:?}")
    };
    assert_eq!(read(), read(), "replay changes nothing");
}

fn segment_of_records(data: &[u8]) -> Vec<u8> {
    let header = SegmentHeader {
        database_id: DATABASE_ID,
        number: LOG_NUMBER,
        previous: 0,
        previous_bytes: 0,
        previous_synced: 0,
    };
    let mut bytes = header.encode();
    let seed = segment_seed(DATABASE_ID, LOG_NUMBER);
    for piece in pieces(data) {
        let offset = bytes.len() as u64;
        put_frame_parts(&mut bytes, seed, offset, 0, &[piece]).expect("pieces are short");
    }
    bytes
}

/// A version edit: an error, or an edit whose encoding decodes to the same edit.
pub fn edit(data: &[u8]) {
    if let Ok(edit) = VersionEdit::decode(data) {
        let again = VersionEdit::decode(&edit.encode()).expect("an encoded edit decodes");
        assert_eq!(format!("{edit:?}"), format!("{again:?}"));
    }
}

/// A manifest: the bytes as given, or pieces as valid records after those of an empty database. The result is a catalog
/// that breaks no invariant, or an error.
pub fn manifest(data: &[u8]) {
    let (is_wrapped, rest) = split_choice(data);
    let birth = folder_in(&files(&[]));
    VersionSet::create(&birth, &[], (DATABASE_ID, 1)).expect("memory takes files");
    let read = |name: &str| birth.read(&birth.path().join(name)).expect("a database has its files");
    let mut manifest = read("000001.manifest");
    if is_wrapped {
        for piece in pieces(rest) {
            let offset = manifest.len() as u64;
            put_frame_parts(&mut manifest, 0, offset, 0, &[piece]).expect("pieces are short");
        }
    } else {
        manifest = rest.to_vec();
    }
    let folder = &folder_in(&files(&[("CURRENT", &read("CURRENT")), ("000001.manifest", &manifest)]));
    let entries = folder.list(folder.path()).expect("memory lists files");
    let open = |mode| VersionSet::open(folder, &entries, mode).map(|(set, _)| format!("{:?}", set.catalog()));
    let (first, second) = (open(Mode::ReadOnly), open(Mode::ReadOnly));
    let prefix = read_longest(folder).expect("memory lists files");
    assert_eq!(prefix.is_whole, prefix.faults.is_empty(), "the fault that ends the prefix is reported");
    assert!(prefix.is_whole || first.is_err(), "a manifest that opens is readable to its end");
    assert_eq!(format!("{first:?}"), format!("{second:?}"), "reading changes nothing");
    if first.is_ok() {
        open(Mode::ReadWrite).expect("it opens for writing, too");
        open(Mode::ReadWrite).expect("and opens again");
    }
}
