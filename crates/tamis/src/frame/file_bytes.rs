//! The bytes of a file of frames, read in pieces: only a piece, or one longer record, is in memory.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, File, Folder};

use super::FrameSource;
use crate::error::{Error, Result};

/// Bytes that are read at once. A longer record is read as a whole.
pub(crate) const PIECE_BYTES: u64 = 256 << 10;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct FileBytes {
    path: PathBuf,
    file: Arc<dyn File>,
    length: u64,
    /// The piece that is in memory, and its offset.
    start: u64,
    bytes: Vec<u8>,
}

impl FileBytes {
    /// Opens a file, with the length that it has now.
    ///
    /// # Errors
    /// [`Error::MissingFile`]; the system's.
    pub(crate) fn open(folder: &Folder, path: &Path) -> Result<Self> {
        let file = folder.open(path, Access::Buffered).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(path),
            _ => Error::io("open", path, error),
        })?;
        let length = file.length().map_err(|error| Error::io("measure", path, error))?;
        Ok(Self { path: path.to_path_buf(), file, length, start: 0, bytes: Vec::new() })
    }

    /// Only the bytes up to an offset.
    pub(crate) fn limited_to(mut self, length: u64) -> Self {
        self.length = self.length.min(length);
        self
    }

    /// Passes all bytes to `take`, in pieces.
    ///
    /// # Errors
    /// Those of the file system, and of `take`.
    pub(crate) fn for_each_piece(mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut offset = 0;
        while offset < self.length {
            let piece = self.bytes_at(offset, 1)?;
            offset += piece.len() as u64;
            take(piece)?;
        }
        Ok(())
    }
}

impl FrameSource for FileBytes {
    fn length_bytes(&self) -> u64 {
        self.length
    }

    fn bytes_at(&mut self, offset: u64, count: u64) -> Result<&[u8]> {
        let count = count.min(self.length.saturating_sub(offset));
        let is_there = offset >= self.start && offset + count <= self.start + self.bytes.len() as u64;
        if !is_there {
            let failed = |error| Error::io("read", &self.path, error);
            let length = count.max(PIECE_BYTES).min(self.length - offset);
            let length = usize::try_from(length).map_err(|_| failed(ErrorKind::OutOfMemory.into()))?;
            // A long record releases its memory with the next piece.
            self.bytes = Vec::new();
            self.bytes.resize(length, 0);
            self.file.read_at(offset, &mut self.bytes).map_err(failed)?;
            self.start = offset;
        }
        let first = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(first..).unwrap_or_default();
        Ok(if count == 0 { &[] } else { bytes })
    }
}

/// The error of a file of the log, or of a manifest, that does not exist.
pub(crate) fn missing(path: &Path) -> Error {
    let advice = "the store refers to it: restore it from a copy, or run `tamis repair`";
    Error::MissingFile { path: path.to_path_buf(), advice }
}
