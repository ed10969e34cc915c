//! Log files on Linux: small appends without a system call each.
//!
//! After its end the file has preallocated space: reserved disk blocks and a shared mapping of them. An append
//! copies its bytes into the mapping. They are then in the page cache, as after `write`: they survive a crash
//! of the process, and a sync makes them durable.
//!
//! 1. **A full disk is an error and not a signal.** A store to a mapped page without a disk block ends the
//!    process. So blocks are reserved first (`fallocate`). Then the pages are made writable by a call that
//!    reports errors (`MADV_POPULATE_WRITE`). Appends store only to such pages. If a step fails, or the file
//!    system may move reserved blocks on write ([`IN_PLACE_FILE_SYSTEMS`] lists those that do not), the file
//!    uses `write`, which returns the error of a full disk.
//! 2. **State after a crash.** Truncating or dropping the file removes the preallocated space. A killed process
//!    leaves it: zero bytes after the appended bytes, at most [`WINDOW_BYTES_MAX`] or the former length of a
//!    reused log. They are not content; readers must find the end of the log from its content
//!    ([`crate::Vfs::create_log`]).
//! 3. **Reuse.** An obsolete log becomes empty by overwriting its content with zeros ([`LogFile::reuse`]). Its
//!    blocks and cached pages become preallocated space. New pages cost several times the copy of the records,
//!    and new blocks cost a transaction of the file system at each sync.
//! 4. **Large appends** use `write`, because copying them costs more than the call. Both paths use the same
//!    page cache.
//!
//! Cost: a copy and an uncontended lock per append, one call per [`POPULATED_BYTES`], and four calls per
//! window.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{FileExt, MetadataExt},
    sync::{Arc, atomic::Ordering},
};

use memmap2::{Advice, MmapMut, MmapOptions};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FsWord};

use super::WriteFile;
use crate::{File, Mapping};

#[cfg(test)]
mod tests;

/// Windows start at multiples of this.
const PAGE_BYTES: u64 = 4096;
/// The first window of a file. Each next window is twice as large.
const WINDOW_BYTES_MIN: u64 = 64 << 10;
/// The largest window.
const WINDOW_BYTES_MAX: u64 = 4 << 20;
/// Bytes zeroed by one call.
const ZEROED_BYTES: usize = 256 << 10;
/// Bytes made writable by one call.
const POPULATED_BYTES: usize = 128 << 10;
/// Appends of this size or more use `write`.
const LARGE_BYTES: usize = 64 << 10;

/// File systems, by their `statfs` number, that write reserved blocks in place: ext4, XFS, tmpfs.
const IN_PLACE_FILE_SYSTEMS: [FsWord; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// See the documentation of this module.
#[derive(Debug)]
pub(super) struct LogFile {
    /// Does the appends with `write`. Both use its end of the file.
    inner: WriteFile,
    preallocation: Mutex<Preallocation>,
}

#[derive(Debug)]
struct Preallocation {
    /// The file's length: the end of the content plus the preallocated bytes.
    length: u64,
    window: Option<Window>,
    /// Size of the next window; `None` if preallocation is disabled.
    next_bytes: Option<u64>,
}

/// A mapped part of the file.
#[derive(Debug)]
struct Window {
    start: u64,
    mapping: MmapMut,
    /// Bytes at the start of the window that may be stored to.
    populated: usize,
}

impl LogFile {
    /// Wraps a new, empty file.
    pub(super) fn new(file: fs::File) -> Self {
        let is_in_place =
            rustix::fs::fstatfs(&file).is_ok_and(|status| IN_PLACE_FILE_SYSTEMS.contains(&status.f_type));
        let next_bytes = is_in_place.then_some(WINDOW_BYTES_MIN);
        let preallocation = Mutex::new(Preallocation { length: 0, window: None, next_bytes });
        Self { inner: WriteFile::new(file, false), preallocation }
    }

    /// Makes a file empty and turns its bytes into preallocated space. Returns `None` without a change if the
    /// file system does not support preallocation or the file has another name.
    pub(super) fn reuse(file: fs::File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        let log = Self::new(file);
        let is_alone = metadata.is_file() && metadata.nlink() == 1;
        let mut preallocation = log.preallocation.lock();
        if preallocation.next_bytes.is_none() || !is_alone {
            return Ok(None);
        }
        preallocation.length = metadata.len();
        // About as many bytes as the log used before.
        let bytes = metadata.len().next_power_of_two();
        preallocation.next_bytes = Some(bytes.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX));
        let zeros = vec![0; ZEROED_BYTES];
        let mut offset = 0;
        while offset < preallocation.length {
            let count = zeros.len().min(usize::try_from(preallocation.length - offset).unwrap_or(usize::MAX));
            log.inner.file.write_all_at(zeros.get(..count).unwrap_or_default(), offset)?;
            offset += count as u64;
        }
        drop(preallocation);
        Ok(Some(log))
    }

    fn end(&self) -> u64 {
        self.inner.end.load(Ordering::Acquire)
    }

    fn write(&self, preallocation: &mut Preallocation, bytes: &[u8]) -> io::Result<()> {
        let result = self.inner.append(bytes);
        preallocation.length = preallocation.length.max(self.end());
        result
    }

    /// Disables preallocation and removes the preallocated bytes.
    fn disable_preallocation(&self, preallocation: &mut Preallocation) -> io::Result<()> {
        preallocation.next_bytes = None;
        self.set_length(preallocation, self.end())
    }

    fn set_length(&self, preallocation: &mut Preallocation, length: u64) -> io::Result<()> {
        // Unmaps first: no page after the new end may stay mapped.
        preallocation.window = None;
        self.inner.file.set_len(length)?;
        preallocation.length = length;
        Ok(())
    }
}

impl Preallocation {
    /// Bytes from `end` on that may be stored to, at least one; `None` if preallocation fails.
    fn writable_at(&mut self, file: &fs::File, end: u64) -> Option<&mut [u8]> {
        if !self.window.as_ref().is_some_and(|window| window.holds(end)) {
            self.window = None;
            let bytes = self.next_bytes?;
            self.window = Some(self.open_window(file, end / PAGE_BYTES * PAGE_BYTES, bytes).ok()?);
            self.next_bytes = Some((2 * bytes).min(WINDOW_BYTES_MAX));
        }
        self.window.as_mut()?.populated_at(end)
    }

    fn open_window(&mut self, file: &fs::File, start: u64, bytes: u64) -> io::Result<Window> {
        let length = start + bytes;
        if let Some(missing) = length.checked_sub(self.length).filter(|&missing| missing > 0) {
            rustix::fs::fallocate(file, FallocateFlags::empty(), self.length, missing)?;
            self.length = length;
        }
        let length = usize::try_from(bytes).map_err(|_| ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping is shared and writable, so its bytes change with the file. Only this handle
        // accesses the memory, under the lock of its preallocation; readers of the file use system calls. The
        // lock of the directory excludes other Tamis processes. `create_log` creates the file, and it is mapped
        // nowhere else. It is not shortened while it is mapped (`LogFile::set_length`), and pages are backed by
        // blocks before they are stored to (rule 1).
        let mapping = unsafe { MmapOptions::new().offset(start).len(length).map_mut(file) }?;
        Ok(Window { start, mapping, populated: 0 })
    }
}

impl Window {
    fn holds(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.start + self.mapping.len() as u64
    }

    fn populated_at(&mut self, offset: u64) -> Option<&mut [u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        while from >= self.populated {
            let length = POPULATED_BYTES.min(self.mapping.len() - self.populated);
            self.mapping.advise_range(Advice::PopulateWrite, self.populated, length).ok()?;
            self.populated += length;
        }
        self.mapping.get_mut(from..self.populated)
    }
}

impl File for LogFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if !buffer.is_empty() && end.is_none_or(|end| end > self.end()) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.inner.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut preallocation = self.preallocation.lock();
        let mut rest = bytes;
        while !rest.is_empty() {
            if rest.len() >= LARGE_BYTES || preallocation.next_bytes.is_none() {
                return self.write(&mut preallocation, rest);
            }
            let end = self.end();
            let Some(target) = preallocation.writable_at(&self.inner.file, end) else {
                self.disable_preallocation(&mut preallocation)?;
                continue;
            };
            let (now, later) = rest.split_at(rest.len().min(target.len()));
            if let Some(target) = target.get_mut(..now.len()) {
                target.copy_from_slice(now);
            }
            self.inner.end.store(end + now.len() as u64, Ordering::Release);
            rest = later;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // Pages stored to through the mapping are dirty pages of the file, like written ones.
        self.inner.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut preallocation = self.preallocation.lock();
        self.inner.check_truncation(length)?;
        self.set_length(&mut preallocation, length)?;
        self.inner.end.store(length, Ordering::Release);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let end = self.end();
        let preallocation = self.preallocation.get_mut();
        preallocation.window = None;
        if preallocation.length > end {
            // On an error, zero bytes stay after the end, as after a crash.
            let _ = self.inner.file.set_len(end);
        }
    }
}
