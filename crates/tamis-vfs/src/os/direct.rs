//! Files whose reads or writes bypass the page cache (Linux).
//!
//! A buffered write copies bytes into cached pages, which must be looked up first, and a sync waits for all of
//! them. A program that reads with direct I/O does not need these pages. So an append whose offset and length
//! are multiples of 4,096 bytes is copied into an aligned buffer ([`CHUNK_BYTES`], allocated once per file) and
//! written from there.
//!
//! 1. An append with another offset or length uses the page cache, and so do all later appends: the direct flag
//!    is removed first and never set again. The kernel keeps direct and cached data consistent.
//! 2. If the file system rejects direct writes, the file uses the page cache from the first append on.
//! 3. Direct writes also need a sync to be durable: the data may still be in the volatile cache of the disk,
//!    and the file length in the memory of the kernel.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::{ReadFile, WriteFile};
use crate::{DIRECT_ALIGNMENT_BYTES, File, Mapping, check_direct};

/// Bytes per write.
const CHUNK_BYTES: usize = 2 << 20;

/// See the documentation of this module.
#[derive(Debug)]
pub(super) struct DirectFile {
    /// Does the writes through the page cache. Both use its end of the file.
    inner: WriteFile,
    is_direct: AtomicBool,
    /// The aligned buffer, with space to start at an aligned address; empty before the first append.
    memory: Mutex<Vec<u8>>,
}

impl DirectFile {
    /// Wraps a new, empty file.
    pub(super) fn new(file: fs::File) -> Self {
        let is_direct = set_direct(&file, true).is_ok();
        let inner = WriteFile::new(file, false);
        Self { inner, is_direct: AtomicBool::new(is_direct), memory: Mutex::default() }
    }

    /// Switches to the page cache.
    fn disable_direct(&self) -> io::Result<()> {
        if self.is_direct.swap(false, Ordering::AcqRel) {
            *self.memory.lock() = Vec::new();
            set_direct(&self.inner.file, false)?;
        }
        Ok(())
    }

    /// Writes the first chunk of `bytes`, which must be a whole number of pages. Returns the remaining bytes.
    fn append_chunk<'a>(&self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let mut memory = self.memory.lock();
        if memory.is_empty() {
            memory.resize(CHUNK_BYTES + DIRECT_ALIGNMENT_BYTES, 0);
        }
        let start = memory.as_ptr().align_offset(DIRECT_ALIGNMENT_BYTES).min(DIRECT_ALIGNMENT_BYTES);
        let (piece, rest) = bytes.split_at(bytes.len().min(CHUNK_BYTES));
        let target = memory.get_mut(start..start + piece.len()).ok_or(ErrorKind::OutOfMemory)?;
        target.copy_from_slice(piece);
        self.inner.append(target)?;
        Ok(rest)
    }
}

/// Sets or removes the direct I/O flag of the file.
fn set_direct(file: &fs::File, is_direct: bool) -> io::Result<()> {
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_direct);
    Ok(rustix::fs::fcntl_setfl(file, flags)?)
}

impl File for DirectFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        // Reading back is rare, and may use any offset and length.
        self.disable_direct()?;
        self.inner.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let is_whole = rest.len().is_multiple_of(DIRECT_ALIGNMENT_BYTES)
                && self.inner.end.load(Ordering::Acquire).is_multiple_of(DIRECT_ALIGNMENT_BYTES as u64);
            if !is_whole {
                self.disable_direct()?;
            }
            if !self.is_direct.load(Ordering::Acquire) {
                return self.inner.append(rest);
            }
            let before = self.inner.end.load(Ordering::Acquire);
            match self.append_chunk(rest) {
                Ok(left) => rest = left,
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    // The file system accepts the flag but rejects direct writes, or rejects this size.
                    self.disable_direct()?;
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

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        if !self.is_direct.load(Ordering::Acquire) {
            self.inner.will_need(offset, length);
        }
    }
}

/// A file opened for direct reads. If its file system rejects them, it uses the page cache.
#[derive(Debug)]
pub(super) struct DirectReadFile {
    /// Does the reads through the page cache.
    inner: ReadFile,
    is_direct: AtomicBool,
}

impl DirectReadFile {
    /// Wraps a file that is open with the direct I/O flag.
    pub(super) fn new(file: fs::File) -> Self {
        Self { inner: ReadFile(file), is_direct: AtomicBool::new(true) }
    }

    /// Switches to the page cache. Some file systems accept a direct open but then reject direct reads.
    fn disable_direct(&self) -> io::Result<()> {
        set_direct(&self.inner.0, false)?;
        self.is_direct.store(false, Ordering::Release);
        Ok(())
    }
}

impl File for DirectReadFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if !self.is_direct.load(Ordering::Acquire) {
            return self.inner.read_at(offset, buffer);
        }
        check_direct(offset, buffer)?;
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.inner.0.read_at(rest, offset + done as u64) {
                // A direct read ends at an unaligned position only at the end of the file.
                Ok(count) if count == 0 || !count.is_multiple_of(DIRECT_ALIGNMENT_BYTES) => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    self.disable_direct()?;
                    return self.inner.read_at(offset, buffer);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.inner.append(bytes)
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

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        if !self.is_direct.load(Ordering::Acquire) {
            self.inner.will_need(offset, length);
        }
    }
}
