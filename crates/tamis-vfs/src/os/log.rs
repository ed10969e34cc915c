//! A log's file: many small appends without a system call for each.
//!
//! Behind the end of what was appended the file has room: blocks that the file system has given to it, and a shared
//! mapping of them. An append copies its bytes there. They are in the page cache then, as after a `write`: they survive
//! the process, and a sync of the file brings them to the disk.
//!
//! 1. **No signal for a full disk.** Storing to a mapped page that the file system can not back ends the process. So
//!    blocks are reserved first (`fallocate`), then the pages are made ready for writing by a call that reports failure
//!    (`MADV_POPULATE_WRITE`), and only such pages are stored to. Where either fails, or the file system is none of those
//!    known to write reserved blocks in place ([`IN_PLACE`]), the file goes on with `write`, which gives the error of a full disk.
//! 2. **What a crash leaves.** The room is cut off when the file is truncated or dropped. A process that is killed leaves
//!    it: zero bytes behind the appended ones, at most [`WINDOW_BYTES_MAX`] or as many as a log held before it was used again. They are no part of the contents, and whoever reads the file
//!    has to know its end from the contents ([`crate::Vfs::create_log`]).
//! 3. **Used again.** A log that is not needed any more becomes an empty one by zeros over all it held ([`LogFile::reuse`]): its blocks
//!    and its pages in the cache serve as room. Pages that are new to the cache cost several times the copy of the records,
//!    blocks that are new to the file a change of the file system's own log at each sync.
//! 4. **Large appends** are written by `write`: there the copy costs more than the call. Both ways go through the same
//!    page cache.
//!
//! Cost: a copy and an uncontended lock per append; one call for each [`READY_BYTES`], four for each window.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{FileExt, MetadataExt},
    sync::atomic::Ordering,
};

use memmap2::{Advice, MmapMut, MmapOptions};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FsWord};

use super::WriteFile;
use crate::File;

#[cfg(test)]
mod tests;

/// Windows begin at multiples of it.
const PAGE_BYTES: u64 = 4096;
/// The first window of a file; each is twice as large as the one before.
const WINDOW_BYTES_MIN: u64 = 64 << 10;
/// The largest window.
const WINDOW_BYTES_MAX: u64 = 4 << 20;
/// Bytes that are zeroed by one call.
const ZEROED_BYTES: usize = 256 << 10;
/// Bytes that are made ready for writing at a time.
const READY_BYTES: usize = 128 << 10;
/// Appends from this size on are written.
const LARGE_BYTES: usize = 64 << 10;

/// File systems (by the number that `statfs` gives) that write reserved blocks where they are: ext4, XFS, tmpfs.
const IN_PLACE: [FsWord; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// See the head of this file.
#[derive(Debug)]
pub(super) struct LogFile {
    /// What is appended without room goes this way; both share the end.
    inner: WriteFile,
    room: Mutex<Room>,
}

#[derive(Debug)]
struct Room {
    /// The file's length: the end of what was appended, or more.
    length: u64,
    window: Option<Window>,
    /// Bytes of the next window; `None` where there are none any more.
    next_bytes: Option<u64>,
}

/// A mapped part of the file.
#[derive(Debug)]
struct Window {
    start: u64,
    mapping: MmapMut,
    /// So many of its bytes may be stored to.
    ready: usize,
}

impl LogFile {
    /// `file` is new and empty.
    pub(super) fn new(file: fs::File) -> Self {
        let is_in_place = rustix::fs::fstatfs(&file).is_ok_and(|status| IN_PLACE.contains(&status.f_type));
        let next_bytes = is_in_place.then_some(WINDOW_BYTES_MIN);
        let room = Mutex::new(Room { length: 0, window: None, next_bytes });
        Self { inner: WriteFile::new(file, false), room }
    }

    /// Makes a file empty whose former bytes become room; `None`, and nothing is done, where the file has no room or other names.
    pub(super) fn reuse(file: fs::File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        let log = Self::new(file);
        let is_alone = metadata.is_file() && metadata.nlink() == 1;
        let mut room = log.room.lock();
        if room.next_bytes.is_none() || !is_alone {
            return Ok(None);
        }
        room.length = metadata.len();
        // As much as the log took before, and not much more.
        let bytes = metadata.len().next_power_of_two();
        room.next_bytes = Some(bytes.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX));
        let zeros = vec![0; ZEROED_BYTES];
        let mut offset = 0;
        while offset < room.length {
            let count = zeros.len().min(usize::try_from(room.length - offset).unwrap_or(usize::MAX));
            log.inner.file.write_all_at(zeros.get(..count).unwrap_or_default(), offset)?;
            offset += count as u64;
        }
        drop(room);
        Ok(Some(log))
    }

    fn end(&self) -> u64 {
        self.inner.end.load(Ordering::Acquire)
    }

    fn write(&self, room: &mut Room, bytes: &[u8]) -> io::Result<()> {
        let result = self.inner.append(bytes);
        room.length = room.length.max(self.end());
        result
    }

    /// Goes on without room.
    fn leave_room(&self, room: &mut Room) -> io::Result<()> {
        room.next_bytes = None;
        self.cut(room, self.end())
    }

    fn cut(&self, room: &mut Room, length: u64) -> io::Result<()> {
        // First the mapping: its pages behind the end must not be there any more.
        room.window = None;
        self.inner.file.set_len(length)?;
        room.length = length;
        Ok(())
    }
}

impl Room {
    /// Bytes from `end` on that may be stored to, at least one; `None` where no room can be had.
    fn at(&mut self, file: &fs::File, end: u64) -> Option<&mut [u8]> {
        if !self.window.as_ref().is_some_and(|window| window.holds(end)) {
            self.window = None;
            let bytes = self.next_bytes?;
            self.window = Some(self.open_window(file, end / PAGE_BYTES * PAGE_BYTES, bytes).ok()?);
            self.next_bytes = Some((2 * bytes).min(WINDOW_BYTES_MAX));
        }
        self.window.as_mut()?.ready_at(end)
    }

    fn open_window(&mut self, file: &fs::File, start: u64, bytes: u64) -> io::Result<Window> {
        let length = start + bytes;
        if let Some(missing) = length.checked_sub(self.length).filter(|&missing| missing > 0) {
            rustix::fs::fallocate(file, FallocateFlags::empty(), self.length, missing)?;
            self.length = length;
        }
        let length = usize::try_from(bytes).map_err(|_| ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping is shared and writable, so its bytes change as the file does. All that touches them: this
        // handle, under the lock of its room, and readers of the file through calls of the system, which are not of this
        // memory. The folder's lock keeps other processes of ours away; the file is made new by `create_log` and mapped
        // nowhere else. It is not cut while it is mapped (`LogFile::cut`), and pages are backed before they are stored to (rule 1).
        let mapping = unsafe { MmapOptions::new().offset(start).len(length).map_mut(file) }?;
        Ok(Window { start, mapping, ready: 0 })
    }
}

impl Window {
    fn holds(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.start + self.mapping.len() as u64
    }

    fn ready_at(&mut self, offset: u64) -> Option<&mut [u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        while from >= self.ready {
            let length = READY_BYTES.min(self.mapping.len() - self.ready);
            self.mapping.advise_range(Advice::PopulateWrite, self.ready, length).ok()?;
            self.ready += length;
        }
        self.mapping.get_mut(from..self.ready)
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
        let mut room = self.room.lock();
        let mut rest = bytes;
        while !rest.is_empty() {
            if rest.len() >= LARGE_BYTES || room.next_bytes.is_none() {
                return self.write(&mut room, rest);
            }
            let end = self.end();
            let Some(target) = room.at(&self.inner.file, end) else {
                self.leave_room(&mut room)?;
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
        // Pages that were stored to through the mapping belong to the file as those that were written do.
        self.inner.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut room = self.room.lock();
        self.inner.check_cut(length)?;
        self.cut(&mut room, length)?;
        self.inner.end.store(length, Ordering::Release);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let end = self.end();
        let room = self.room.get_mut();
        room.window = None;
        if room.length > end {
            // What stays is zero bytes behind the end, as after a crash.
            let _ = self.inner.file.set_len(end);
        }
    }
}
