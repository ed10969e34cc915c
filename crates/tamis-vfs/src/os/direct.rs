//! A file that is written past the page cache (Linux).
//!
//! Writing through the page cache costs a copy into pages that must be found first, and a sync that then waits for all of them;
//! a program that reads directly has no use for those pages. So appends whose place and length are multiples of
//! 4,096 bytes are copied into aligned memory (kept while the file is open, [`PIECE_BYTES`]) and written from there.
//!
//! 1. An append with another length, or any behind it, goes through the page cache: the flag is taken off the file first, and stays off.
//!    The system keeps both ways in agreement.
//! 2. A file system that refuses direct writes is written through the page cache from the first append on.
//! 3. Durable is what was appended before a sync, as everywhere: a direct write may lie in the disk's own memory, and the length of
//!    the file in the system's.

use std::{
    fs,
    io::{self, ErrorKind},
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::WriteFile;
use crate::{DIRECT_ALIGNMENT_BYTES, File};

/// Bytes written at once.
const PIECE_BYTES: usize = 2 << 20;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct DirectFile {
    /// What goes through the page cache goes this way; both share the end.
    inner: WriteFile,
    is_direct: AtomicBool,
    /// Memory from which is written, with room to begin at an aligned address; empty before the first append.
    memory: Mutex<Vec<u8>>,
}

impl DirectFile {
    /// A new, empty file.
    pub(super) fn new(file: fs::File) -> Self {
        let is_direct = set_direct(&file, true).is_ok();
        let inner = WriteFile::new(file, false);
        Self { inner, is_direct: AtomicBool::new(is_direct), memory: Mutex::default() }
    }

    /// On through the page cache.
    fn leave_direct(&self) -> io::Result<()> {
        if self.is_direct.swap(false, Ordering::AcqRel) {
            *self.memory.lock() = Vec::new();
            set_direct(&self.inner.file, false)?;
        }
        Ok(())
    }

    /// Writes a part of `bytes`, which is a whole number of pages, and gives what is left.
    fn append_piece<'a>(&self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let mut memory = self.memory.lock();
        if memory.is_empty() {
            memory.resize(PIECE_BYTES + DIRECT_ALIGNMENT_BYTES, 0);
        }
        let start = memory.as_ptr().align_offset(DIRECT_ALIGNMENT_BYTES).min(DIRECT_ALIGNMENT_BYTES);
        let (piece, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES));
        let target = memory.get_mut(start..start + piece.len()).ok_or(ErrorKind::OutOfMemory)?;
        target.copy_from_slice(piece);
        self.inner.append(target)?;
        Ok(rest)
    }
}

/// Whether reads and writes of the file go past the page cache from now on.
fn set_direct(file: &fs::File, is_direct: bool) -> io::Result<()> {
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_direct);
    Ok(rustix::fs::fcntl_setfl(file, flags)?)
}

impl File for DirectFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        // Reading back is rare, and any place and length may be asked for.
        self.leave_direct()?;
        self.inner.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let is_whole = rest.len().is_multiple_of(DIRECT_ALIGNMENT_BYTES)
                && self.inner.end.load(Ordering::Acquire).is_multiple_of(DIRECT_ALIGNMENT_BYTES as u64);
            if !is_whole {
                self.leave_direct()?;
            }
            if !self.is_direct.load(Ordering::Acquire) {
                return self.inner.append(rest);
            }
            let before = self.inner.end.load(Ordering::Acquire);
            match self.append_piece(rest) {
                Ok(left) => rest = left,
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    // The file system takes the flag and no direct write, or not of this size.
                    self.leave_direct()?;
                    let written = self.inner.end.load(Ordering::Acquire) - before;
                    rest = rest.get(written as usize..).unwrap_or_default();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        if !self.is_direct.load(Ordering::Acquire) {
            self.inner.will_need(offset, length);
        }
    }
}
