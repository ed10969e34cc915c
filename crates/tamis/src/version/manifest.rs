//! The manifest: a log of version edits (`docs/format/manifest.md`), its writer and its reader.
//!
//! 1. A manifest begins with edits that create the whole catalog. It becomes current when `CURRENT` names it.
//! 2. An edit counts once its record is appended and synced. After each sync follows an empty record, which is not synced
//!    and whose mark covers the edit: a bad bit in the last edit is then damage and not a torn tail.
//! 3. After a failed append, the partial edit is truncated and the truncation is synced before anything else is
//!    acknowledged: the edit did not happen, and must not be found later. Nothing more is written to the file; another
//!    manifest is begun. After a failed truncation or sync nothing is written at all.
//! 4. `CURRENT` is rewritten for each edit with information that is in no other file ([`VersionEdit::must_be_covered`]),
//!    before the edit is acknowledged: if the manifest was truncated before such an edit, its length shows it. If it was
//!    truncated before any other edit, it has the same entries, or its tables or log segments are missing, because they are
//!    deleted only after the edit.

use std::{path::Path, path::PathBuf, sync::Arc};

use tamis_vfs::{File, Folder};

use super::{
    current::Current,
    edit::VersionEdit,
    failure::Failure,
    header::{HEADER_BYTES, HeaderKind},
};
use crate::{
    coding::Decoder,
    error::{Error, Result},
    file_name::FileName,
    frame::{Frame, FrameReader, TornTail, file_bytes::FileBytes, put_frame},
    sync::sim_fault,
};

/// The first bytes: "TMmf".
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"TMmf");
/// The number of the manifest, and 0. The first record follows.
const HEADER: HeaderKind = HeaderKind { magic: MAGIC, version: 8, name: "manifest header" };

/// Appends edits to a manifest.
#[derive(Debug)]
pub(crate) struct ManifestWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    number: u64,
    length: u64,
    synced: u64,
    /// Length when it became current.
    first_bytes: u64,
}

impl ManifestWriter {
    /// Writes a manifest that begins with `edits` and makes it current.
    pub(crate) fn create(folder: &Folder, number: u64, edits: &[VersionEdit]) -> Result<Self, Failure> {
        let path = FileName::Manifest(number).path(folder);
        let written = Self::write_first(folder, path.clone(), number, edits);
        let written = written.and_then(|writer| {
            Current { manifest: number, manifest_bytes: writer.length }.switch(folder)?;
            Ok(writer)
        });
        if written.as_ref().is_err_and(|failure| !failure.is_fatal) {
            let _ = folder.remove(&path);
        }
        written
    }

    fn write_first(
        folder: &Folder,
        path: PathBuf,
        number: u64,
        edits: &[VersionEdit],
    ) -> Result<Self, Failure> {
        let mut bytes = HEADER.encode([number, 0]);
        for edit in edits {
            let offset = bytes.len() as u64;
            put_frame(&mut bytes, offset, 0, &edit.encode()).map_err(Failure::retryable)?;
        }
        let file =
            folder.create(&path).map_err(|error| Failure::retryable(Error::io("create", &path, error)))?;
        file.append(&bytes).map_err(|error| Failure::retryable(Error::io("append to", &path, error)))?;
        file.sync().map_err(|error| Failure::fatal(Error::io("sync", &path, error)))?;
        let length = bytes.len() as u64;
        Ok(Self { file, path, number, length, synced: length, first_bytes: length })
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the edits since it became current.
    pub(crate) const fn appended_bytes(&self) -> u64 {
        self.length - self.first_bytes
    }

    /// Length when it became current.
    pub(crate) const fn first_bytes(&self) -> u64 {
        self.first_bytes
    }

    /// Appends an edit, syncs it, and rewrites `CURRENT` if rule 4 requires it. Returns whether this file can take more
    /// edits.
    pub(crate) fn append(&mut self, folder: &Folder, edit: &VersionEdit) -> Result<bool, Failure> {
        let before = self.length;
        if let Err(error) = self.append_record(&edit.encode()) {
            return Err(self.cut_off(before, error));
        }
        if !sim_fault!("skip-manifest-sync") {
            self.file.sync().map_err(|error| Failure::fatal(Error::io("sync", &self.path, error)))?;
        }
        if edit.must_be_covered() {
            let current = Current { manifest: self.number, manifest_bytes: self.length };
            match current.switch(folder) {
                Err(failure) if failure.is_fatal => return Err(failure),
                Err(failure) => return Err(self.cut_off(before, failure.error)),
                Ok(()) => {}
            }
        }
        self.synced = self.length;
        Ok(self.append_record(&[]).is_ok())
    }

    /// Rule 3: truncates the file to its length before a failed edit.
    fn cut_off(&mut self, before: u64, error: Error) -> Failure {
        self.length = before;
        // Synced even if the truncation fails: the next process then sees what survives a power loss.
        let cut = self.file.truncate(self.length);
        match self.file.sync().and(cut) {
            Ok(()) => Failure::retryable(error),
            Err(source) => Failure::fatal(Error::io("truncate a failed edit of", &self.path, source)),
        }
    }

    fn append_record(&mut self, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, self.length, self.synced, payload)?;
        self.file.append(&bytes).map_err(|error| Error::io("append to", &self.path, error))?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

fn check_header(bytes: &[u8], file: &Path, number: u64) -> Result<()> {
    match HEADER.decode(bytes, file)? {
        [found, 0] if found == number => Ok(()),
        [found, _] => Err(HEADER.damage(file, 8, format!("manifest number {number}"), found.to_string())),
    }
}

/// Up to where a manifest was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManifestPosition {
    pub(crate) manifest: u64,
    pub(crate) offset: u64,
}

/// The edits of the current manifest with their offsets.
#[derive(Debug)]
pub(crate) struct ManifestContents {
    pub(crate) path: PathBuf,
    pub(crate) edits: Vec<(u64, VersionEdit)>,
    /// The file's length.
    pub(crate) bytes: u64,
    /// The torn tail that was left out: an edit that was never acknowledged.
    pub(crate) torn: Option<TornTail>,
}

impl ManifestContents {
    /// The end of the last edit of a manifest that was read completely.
    pub(super) fn position(&self, current: Current) -> ManifestPosition {
        let torn = self.torn.map_or(0, |torn| torn.bytes);
        ManifestPosition { manifest: current.manifest, offset: self.bytes - torn }
    }
}

/// Reads the whole manifest that `current` names.
///
/// # Errors
/// [`Error::MissingFile`], [`Error::Corruption`], [`Error::UnknownFormat`], [`Error::UnknownChange`], or the system's.
pub(crate) fn read(folder: &Folder, current: Current) -> Result<ManifestContents> {
    match read_prefix(folder, current) {
        (contents, None) => Ok(contents),
        (_, Some(fault)) => Err(fault),
    }
}

/// The edits that follow a position of the manifest, and the position after them. Ends at the first bytes that are no complete edit: the writer
/// may be appending it.
///
/// # Errors
/// Those of [`read`].
pub(super) fn read_from(
    folder: &Folder,
    from: ManifestPosition,
) -> Result<(Vec<VersionEdit>, ManifestPosition)> {
    let path = FileName::Manifest(from.manifest).path(folder);
    let source = FileBytes::open(folder, &path)?;
    let mut edits = Vec::new();
    let mut reader = FrameReader::new(&path, source, from.offset);
    while let Frame::Record(record) = reader.next_frame()? {
        let edit =
            VersionEdit::decode(reader.payload(record)?).map_err(|bad| bad.at(&path, record.offset))?;
        if !edit.is_empty() {
            edits.push(edit);
        }
    }
    Ok((edits, ManifestPosition { offset: reader.offset(), ..from }))
}

/// Reads the manifest that `current` names up to its first fault, which is returned too.
pub(crate) fn read_prefix(folder: &Folder, current: Current) -> (ManifestContents, Option<Error>) {
    let path = FileName::Manifest(current.manifest).path(folder);
    let mut contents = ManifestContents { path, edits: Vec::new(), bytes: 0, torn: None };
    let fault = read_into(&mut contents, folder, current).err();
    (contents, fault)
}

/// As [`read_prefix`], for a manifest of any name.
pub(crate) fn read_alone(path: &Path, bytes: &[u8]) -> (ManifestContents, Option<Error>) {
    let mut contents = ManifestContents { path: path.to_path_buf(), edits: Vec::new(), bytes: 0, torn: None };
    let current = Current { manifest: number_of(bytes).unwrap_or(0), manifest_bytes: 0 };
    let fault = decode_into(&mut contents, bytes, current).err();
    (contents, fault)
}

/// The number in the header of a manifest, which may be damaged.
pub(crate) fn number_of(bytes: &[u8]) -> Option<u64> {
    let mut fields = Decoder::new(bytes);
    let (_magic, _version) = (fields.take_u32()?, fields.take_u32()?);
    fields.take_u64()
}

fn read_into(contents: &mut ManifestContents, folder: &Folder, current: Current) -> Result<()> {
    let path = contents.path.as_path();
    let bytes = match folder.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let advice = "CURRENT names it: restore it from a copy, or run `tamis repair`";
            return Err(Error::MissingFile { path: path.to_path_buf(), advice });
        }
        Err(error) => return Err(Error::io("read", path, error)),
    };
    decode_into(contents, &bytes, current)
}

fn decode_into(contents: &mut ManifestContents, bytes: &[u8], current: Current) -> Result<()> {
    let path = contents.path.as_path();
    contents.bytes = bytes.len() as u64;
    check_header(bytes, path, current.manifest)?;
    let mut reader = FrameReader::new(path, bytes, HEADER_BYTES as u64).with_synced(current.manifest_bytes);
    while let Some(record) = reader.next_record()? {
        let payload = reader.payload(record)?;
        let edit = VersionEdit::decode(payload).map_err(|bad| bad.at(path, record.offset))?;
        if !edit.is_empty() {
            contents.edits.push((record.offset, edit));
        }
    }
    contents.torn = reader.torn_tail();
    Ok(())
}

#[cfg(test)]
mod tests;
