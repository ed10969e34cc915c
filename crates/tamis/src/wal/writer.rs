//! Appends to the log. The commit leader owns the [`Log`] while it leads; nothing here is shared.
//!
//! 1. A record is encoded for its place after the pending frames in the process ([`Durability::Deferred`]). One write
//!    passes all pending frames to the operating system, in order.
//! 2. A failed append closes the segment after its last acknowledged record: the rest is truncated if possible, and the
//!    next segment's header has the length of the valid part in any case. The failed record is dropped and its writer gets
//!    the error. Deferred records before it are kept and written to the next segment. Each later append tries to begin that
//!    segment, so writes continue as soon as there is space. The header of that segment is synced before a write in it is acknowledged:
//!    otherwise a crash could lose it with these writes, and bring the failed record back.
//! 3. A failed sync (of a segment or of the folder) is fatal: it is unknown what is on disk. All later calls return
//!    [`Error::WritesRefused`] with the first cause.
//! 4. An obsolete segment that was filled quickly becomes the next segment ([`Log::take_obsolete`], [`RecycledSegment`]):
//!    an append is several times as fast if the system already has pages and blocks for it. Until the new bytes are on
//!    disk, the file may show the old segment's header and records: the reader recognizes both by their number.
//! 5. A sync makes earlier segments durable first, then the current one, then the names in the folder. Only then the synced
//!    mark of later records is raised.
//! 6. The reader reports a log without its first needed segment as damaged. So the name of that segment is durable before
//!    another segment follows it (here), and before the manifest calls it the first ([`Log::sync_names_up_to`]).
//!
//! Cost: an append copies the payload once; `Buffered` is one write, `Synced` one write and one sync.

use std::{
    collections::BTreeMap,
    fmt, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tamis_vfs::{Access, File, Folder};

use crate::{
    error::{Error, Result},
    file_name::FileName,
    frame::{moved_frames, put_frame_parts},
    options::{Durability, KeepChanges},
    store::{runtime::Clock, store_folder},
    sync::sim_fault,
    wal::format::{HEADER_BYTES, SegmentHeader, segment_seed},
};

/// A segment that took longer to fill is not recycled: the system has written its pages by then, and would write the zeros,
/// too.
const RECYCLED_AGE_MAX: Duration = Duration::from_secs(30);
/// Older segments whose handles are kept until a sync; those of other ones are opened again for it. It bounds the descriptors of a
/// log with many segments.
const OLDER_HANDLES_MAX: usize = 8;
/// The most bytes of [`Durability::Deferred`] records in the process, in a store.
pub(crate) const DEFERRED_BYTES_MAX: usize = 1 << 20;

/// The end of a segment that is no longer written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEnd {
    pub(crate) number: u64,
    /// Length of its valid part.
    pub(crate) bytes: u64,
    /// The offset up to which it is known to be synced.
    pub(crate) synced: u64,
}

/// The parameters of a log.
pub(crate) struct LogSetup {
    pub(crate) folder: Folder,
    pub(crate) database_id: u64,
    /// The maximum size of deferred records in the process.
    pub(crate) deferred_bytes_max: usize,
    /// How much of what no memtable needs stays for the change feed.
    pub(crate) keep_changes: KeepChanges,
    /// Allocates a file number that was never used in the folder, greater than all before.
    pub(crate) next_number: Box<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The current segment.
#[derive(Debug)]
struct OpenSegment {
    number: u64,
    seed: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    /// Bytes that were passed to the operating system.
    length: u64,
    synced: u64,
    /// The time at which it was begun.
    since: Duration,
}

/// An earlier segment, until [`Log::take_obsolete`] takes it.
#[derive(Debug)]
pub(crate) struct OlderSegment {
    end: SegmentEnd,
    is_durable: bool,
    /// Its handle, if this process wrote it and it is not durable yet.
    file: Option<Arc<dyn File>>,
    /// The times at which it was begun and closed, if this process wrote it.
    written: Option<(Duration, Duration)>,
}

/// An obsolete segment that is empty and will become the next one. It has the name of an obsolete file, so that an open
/// after a crash removes it. With its old name it would look like a lost segment if the manifest ends before the edit that
/// made it obsolete.
#[derive(Debug)]
pub(crate) struct RecycledSegment {
    path: PathBuf,
    file: Arc<dyn File>,
}

/// Segments that were taken out of the log, so that they are removed without its lock.
#[derive(Debug)]
pub(crate) struct ObsoleteSegments {
    segments: Vec<OlderSegment>,
    is_recycling_wanted: bool,
    recycled: Option<RecycledSegment>,
}

impl ObsoleteSegments {
    /// Recycles one of them if that is wanted and possible, and removes the others, oldest first.
    ///
    /// # Errors
    /// The system's; what could not be removed is left in `self`.
    pub(crate) fn remove(&mut self, folder: &Folder) -> Result<()> {
        while let Some(segment) = self.segments.first_mut() {
            let path = FileName::Log(segment.end.number).path(folder);
            // Dropping the handle truncates the allocated room after the segment, which must not happen to the recycled
            // file.
            segment.file = None;
            if self.is_recycling_wanted && segment.was_filled_quickly() {
                self.is_recycling_wanted = false;
                self.recycled = RecycledSegment::recycle(folder, &path, segment.end.number);
            }
            // The file may be gone even if its removal fails: no sync opens it any more.
            segment.is_durable = true;
            if let Err(error) = folder.remove(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(Error::io("remove", &path, error));
            }
            self.segments.remove(0);
        }
        Ok(())
    }
}

/// The writable end of the log; see the head of this file.
pub(crate) struct Log {
    setup: LogSetup,
    /// `None` after a failed append, until a new segment is begun.
    current: Option<OpenSegment>,
    /// Those that only the change feed needs ([`KeepChanges`]), in the order of their numbers.
    kept: Vec<OlderSegment>,
    /// In the order of their numbers.
    older: Vec<OlderSegment>,
    /// Whole frames that were not passed to the operating system yet.
    pending_frames: Vec<u8>,
    /// The time at which the first of them was appended.
    pending_since: Option<Duration>,
    recycled: Option<RecycledSegment>,
    /// Cloned by those that read segments without the log's lock: no segment is removed or recycled meanwhile.
    readers: Arc<()>,
    /// Whether the names of all segments are durable.
    is_folder_durable: bool,
    /// An append has failed whose record may be in its segment. No durable header excludes it yet.
    may_have_failed_record: bool,
    /// The first failed sync.
    background_error: Option<Arc<str>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Log")
            .field("current", &self.current)
            .field("older", &self.older)
            .field("pending_bytes", &self.pending_frames.len())
            .field("background_error", &self.background_error)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Begins a new segment after `previous`, the segments that replay kept (in order; none for a new database). Only the change feed needs those of `kept`.
    ///
    /// # Errors
    /// If the segment can't be created.
    pub(crate) fn create(setup: LogSetup, kept: &[SegmentEnd], previous: &[SegmentEnd]) -> Result<Self> {
        // Replayed bytes may be in the page cache only: all are synced again before the first sync counts.
        let older =
            |end: &SegmentEnd| OlderSegment { end: *end, is_durable: false, file: None, written: None };
        let mut log = Self {
            setup,
            current: None,
            kept: kept.iter().map(older).collect(),
            older: previous.iter().map(older).collect(),
            pending_frames: Vec::new(),
            pending_since: None,
            recycled: None,
            readers: Arc::new(()),
            is_folder_durable: false,
            may_have_failed_record: false,
            background_error: None,
        };
        log.begin_segment()?;
        Ok(log)
    }

    /// Makes the name of segment `number` durable, if only those up to `known` are.
    ///
    /// # Errors
    /// The system's; fatal.
    pub(crate) fn sync_names_up_to(&mut self, number: u64, known: u64) -> Result<()> {
        if number <= known { Ok(()) } else { self.sync_names() }
    }

    /// Appends one record whose payload is the concatenation of `parts`, and makes it and all before it as durable as
    /// requested. Returns the bytes that it takes in the log. `now` is the runtime's clock.
    ///
    /// # Errors
    /// The record is not in the log (a replay may find it if the disk kept it in spite of the error, and no later record was acknowledged). After a failed
    /// sync always [`Error::WritesRefused`].
    pub(crate) fn append(&mut self, parts: &[&[u8]], durability: Durability, now: Duration) -> Result<u64> {
        self.check_background_error()?;
        if durability == Durability::Synced {
            self.open_older()?;
        }
        let kept = self.pending_frames.len();
        let (seed, length, synced) =
            self.current.as_ref().map_or((0, HEADER_BYTES, 0), |s| (s.seed, s.length, s.synced));
        put_frame_parts(&mut self.pending_frames, seed, length + kept as u64, synced, parts)?;
        let bytes = (self.pending_frames.len() - kept) as u64;
        if durability == Durability::Deferred && self.pending_frames.len() <= self.setup.deferred_bytes_max {
            self.pending_since.get_or_insert(now);
            return Ok(bytes);
        }
        if let Err(error) = self.write_pending_frames() {
            // The frames before it may have been moved to a new segment, where frames are shorter. Its own frame had no
            // mark then, and its length is unchanged.
            self.pending_frames.truncate(self.pending_frames.len() - bytes as usize);
            return Err(error);
        }
        if durability == Durability::Synced {
            self.sync()?;
        }
        Ok(bytes)
    }

    /// Makes all appended records as durable as requested.
    ///
    /// # Errors
    /// Deferred records are kept if they can't be written; a failed sync is fatal.
    pub(crate) fn persist(&mut self, durability: Durability) -> Result<()> {
        self.check_background_error()?;
        match durability {
            Durability::Deferred => Ok(()),
            Durability::Buffered => self.write_pending_frames(),
            Durability::Synced => {
                self.open_older()?;
                self.write_pending_frames()?;
                self.sync()
            }
        }
    }

    /// Passes deferred records to the operating system; the scheduler calls it when [`Log::deferred_since`] is 100 ms ago.
    ///
    /// # Errors
    /// As [`Log::persist`].
    pub(crate) fn flush_deferred(&mut self) -> Result<()> {
        self.persist(Durability::Buffered)
    }

    /// The time at which the oldest pending record was appended.
    pub(crate) const fn deferred_since(&self) -> Option<Duration> {
        self.pending_since
    }

    /// Begins a new segment and returns its number: all records so far are in segments below it, all later ones in it or
    /// above. If the current segment has no records, its number is returned instead.
    ///
    /// # Errors
    /// If pending records can't be written, or the segment can't be created; the log is unchanged.
    pub(crate) fn rotate(&mut self) -> Result<u64> {
        self.check_background_error()?;
        self.write_pending_frames()?;
        match &self.current {
            Some(segment) if segment.length == HEADER_BYTES => Ok(segment.number),
            _ => self.begin_segment(),
        }
    }

    /// Syncs all and adds an empty record with a mark: from then on every flipped bit in the log is detected.
    ///
    /// # Errors
    /// As [`Log::persist`].
    pub(crate) fn close(&mut self) -> Result<()> {
        self.persist(Durability::Synced)?;
        if self.current.as_ref().is_some_and(|segment| segment.length > HEADER_BYTES) {
            // The mark may fail: without it only the last record is not proven.
            let _ = self.append(&[], Durability::Buffered, Duration::ZERO);
        }
        if let Some(recycled) = self.recycled.take() {
            recycled.remove(&self.setup.folder);
        }
        Ok(())
    }

    /// The number of the current segment, or of the last one while no new one can be begun.
    pub(crate) fn number(&self) -> u64 {
        let last = self.older.last().map_or(0, |segment| segment.end.number);
        self.current.as_ref().map_or(last, |segment| segment.number)
    }

    /// Bytes of the current segment, including pending frames.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |segment| segment.length) + self.pending_frames.len() as u64
    }

    /// Bytes of the whole log.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.older.iter().map(|segment| segment.end.bytes).sum::<u64>() + self.segment_bytes()
    }

    /// Number and bytes of each segment, oldest first.
    pub(crate) fn segments(&self) -> Vec<(u64, u64)> {
        let older = self.older.iter().map(|segment| (segment.end.number, segment.end.bytes));
        let current = self.current.as_ref().map(|segment| (segment.number, self.segment_bytes()));
        older.chain(current).collect()
    }

    /// The segments as the operating system has them, oldest first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = SegmentEnd> {
        let older = self.older.iter().map(|segment| segment.end);
        older.chain(self.current.as_ref().map(OpenSegment::end))
    }

    /// The segments of which a record was synced, by number, and the lengths of the synced parts. A segment without a record may be removed
    /// ([`Log::close_segment`]).
    pub(crate) fn synced_segments(&self) -> BTreeMap<u64, u64> {
        let least = if sim_fault!("record-empty-segments") { 0 } else { HEADER_BYTES };
        self.ends().filter(|end| end.synced > least).map(|end| (end.number, end.synced)).collect()
    }

    /// The error that every write returns since a sync failed.
    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background_error.as_ref().map(|cause| Error::WritesRefused { cause: Arc::clone(cause) })
    }

    /// Takes out the segments below `number`, after the manifest durably does not need them, but for those that the change feed keeps.
    /// [`ObsoleteSegments::remove`] removes them without the log's lock, and [`Log::put_back`] takes the result. The current segment is not taken, and
    /// none while segments are pinned.
    pub(crate) fn take_obsolete(&mut self, number: u64) -> ObsoleteSegments {
        let is_pinned = self.is_pinned();
        let obsolete = self.older.iter().take_while(|segment| segment.end.number < number).count();
        let count = if is_pinned { 0 } else { obsolete };
        self.kept.extend(self.older.drain(..count).map(|segment| OlderSegment { file: None, ..segment }));
        let mut bytes: u64 = self.kept.iter().map(|segment| segment.end.bytes).sum();
        let (keep, now) = (self.setup.keep_changes, self.setup.clock.now());
        let is_obsolete = |segment: &&OlderSegment| {
            let age = segment.written.map_or(now, |(_, closed)| now.saturating_sub(closed));
            let is_obsolete = !is_pinned && (bytes > keep.bytes || age > keep.time);
            bytes -= segment.end.bytes;
            is_obsolete
        };
        let count = self.kept.iter().take_while(is_obsolete).count();
        ObsoleteSegments {
            segments: self.kept.drain(..count).collect(),
            is_recycling_wanted: self.recycled.is_none(),
            recycled: None,
        }
    }

    /// The oldest segment that exists, whether a memtable or the change feed needs it.
    pub(crate) fn oldest(&self) -> u64 {
        self.kept.first().or(self.older.first()).map_or_else(|| self.number(), |segment| segment.end.number)
    }

    /// Takes the recycled segment, and the segments that could not be removed, to try them again.
    pub(crate) fn put_back(&mut self, obsolete: ObsoleteSegments) {
        self.kept.splice(..0, obsolete.segments);
        match obsolete.recycled {
            // Two jobs may each have recycled one.
            Some(second) if self.recycled.is_some() => second.remove(&self.setup.folder),
            recycled @ Some(_) => self.recycled = recycled,
            None => {}
        }
    }

    /// While this is alive, all segments that are in the log now stay.
    pub(crate) fn pin_segments(&self) -> Arc<()> {
        Arc::clone(&self.readers)
    }

    fn is_pinned(&self) -> bool {
        Arc::strong_count(&self.readers) > 1
    }

    fn check_background_error(&self) -> Result<()> {
        self.background_error().map_or(Ok(()), Err)
    }

    /// Makes a new segment the current one. On failure the log is unchanged.
    fn begin_segment(&mut self) -> Result<u64> {
        store_folder::check(&self.setup.folder)?;
        let number = (self.setup.next_number)();
        let path = FileName::Log(number).path(&self.setup.folder);
        let previous = match &self.current {
            Some(segment) => Some(segment.end()),
            None => self.older.last().map(|segment| segment.end),
        };
        let header = SegmentHeader {
            database_id: self.setup.database_id,
            number,
            previous: previous.map_or(0, |end| end.number),
            previous_bytes: previous.map_or(0, |end| end.bytes),
            previous_synced: previous.map_or(0, |end| end.synced),
        };
        let file = self.make_file(&path)?;
        self.is_folder_durable = false;
        let written = file.append(&header.encode()).map_err(|error| Error::io("append to", &path, error));
        let begun = written.and_then(|()| {
            if self.may_have_failed_record {
                file.sync().map_err(|error| Error::io("sync", &path, error))?;
            }
            if self.may_have_failed_record || previous.is_none() { self.sync_names() } else { Ok(()) }
        });
        if let Err(error) = begun {
            // If the file stays, it is ignored: no later segment names it as its previous one.
            let _ = self.setup.folder.remove(&path);
            return Err(error);
        }
        self.may_have_failed_record = false;
        let seed = segment_seed(self.setup.database_id, number);
        if !self.pending_frames.is_empty() {
            self.pending_frames = moved_frames(&self.pending_frames, seed, HEADER_BYTES);
        }
        let since = self.setup.clock.now();
        let segment = OpenSegment { number, seed, path, file, length: HEADER_BYTES, synced: 0, since };
        if let Some(left) = self.current.replace(segment) {
            self.older.push(left.into_older(since));
            self.close_older();
        }
        Ok(number)
    }

    /// An empty file of this name: the recycled segment if there is one.
    fn make_file(&mut self, path: &Path) -> Result<Arc<dyn File>> {
        if let Some(recycled) = self.recycled.take() {
            if self.setup.folder.rename(&recycled.path, path).is_ok() {
                return Ok(recycled.file);
            }
            // The file may have either name; a new one is created.
            let _ = self.setup.folder.remove(path);
            recycled.remove(&self.setup.folder);
        }
        self.setup.folder.create_log(path).map_err(|error| Error::io("create", path, error))
    }

    /// Passes pending frames to the operating system, in a new segment if necessary. On failure they stay pending.
    fn write_pending_frames(&mut self) -> Result<()> {
        if self.pending_frames.is_empty() {
            return Ok(());
        }
        if self.current.is_none() {
            self.begin_segment()?;
        }
        let Some(segment) = &mut self.current else { return Ok(()) };
        if let Err(error) = segment.file.append(&self.pending_frames) {
            let error = Error::io("append to", &segment.path, error);
            self.close_segment();
            return Err(error);
        }
        segment.length += self.pending_frames.len() as u64;
        self.pending_frames.clear();
        // The buffer of a large group is freed.
        self.pending_frames.shrink_to(4 << 20);
        self.pending_since = None;
        Ok(())
    }

    /// Closes the current segment after a failed append.
    fn close_segment(&mut self) {
        let Some(segment) = self.current.take() else { return };
        self.may_have_failed_record = true;
        if segment.length == HEADER_BYTES {
            // No record in it was acknowledged, and no segment will name it, whether it is removed (so that repeated
            // failures leave no files) or stays, because a reader has it.
            if !self.is_pinned() {
                let _ = self.setup.folder.remove(&segment.path);
            }
            return;
        }
        // May fail: the next header has the length of the valid part.
        let _ = segment.file.truncate(segment.length);
        let now = self.setup.clock.now();
        self.older.push(segment.into_older(now));
        self.close_older();
    }

    /// Makes all written records durable, in the order of rule 5. A failure is fatal.
    fn sync(&mut self) -> Result<()> {
        let result = store_folder::check(&self.setup.folder).and_then(|()| self.try_sync());
        self.record_failed_sync(result)
    }

    /// Makes the names of all segments durable. A failure is fatal.
    fn sync_names(&mut self) -> Result<()> {
        let result = self.try_sync_names();
        self.record_failed_sync(result)
    }

    fn record_failed_sync(&mut self, sync: Result<()>) -> Result<()> {
        sync.inspect_err(|error| self.background_error = Some(Arc::from(error.to_string())))
    }

    fn try_sync_names(&mut self) -> Result<()> {
        if !self.is_folder_durable {
            let folder = &self.setup.folder;
            folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
            self.is_folder_durable = true;
        }
        Ok(())
    }

    /// Opens the segments that the next sync needs and that have no handle. All but the last ones are synced here, because so many
    /// handles may not be available. A failure to open is not one of the sync, and happens before anything was appended: it
    /// changes nothing.
    fn open_older(&mut self) -> Result<()> {
        let is_closed = |segment: &&mut OlderSegment| !segment.is_durable && segment.file.is_none();
        let mut closed_count = self.older.iter_mut().filter(is_closed).count();
        let mut synced = Ok(());
        for segment in self.older.iter_mut().filter(is_closed) {
            let path = FileName::Log(segment.end.number).path(&self.setup.folder);
            let file = self.setup.folder.open(&path, Access::Buffered);
            let file = file.map_err(|error| Error::io("open", &path, error))?;
            if closed_count > OLDER_HANDLES_MAX {
                synced = file.sync().map_err(|error| Error::io("sync", &path, error));
                if synced.is_err() {
                    break;
                }
                segment.is_durable = true;
            } else {
                segment.file = Some(file);
            }
            closed_count -= 1;
        }
        self.record_failed_sync(synced)
    }

    /// Closes the handles of all older segments but the last ones.
    fn close_older(&mut self) {
        let with_handle = self.older.iter_mut().rev().filter(|segment| segment.file.is_some());
        with_handle.skip(OLDER_HANDLES_MAX).for_each(|segment| segment.file = None);
    }

    fn try_sync(&mut self) -> Result<()> {
        for segment in self.older.iter_mut().filter(|segment| !segment.is_durable) {
            let path = FileName::Log(segment.end.number).path(&self.setup.folder);
            if let Some(file) = mem::take(&mut segment.file) {
                file.sync().map_err(|error| Error::io("sync", &path, error))?;
            }
            segment.is_durable = true;
        }
        if let Some(segment) = self.current.as_ref().filter(|segment| segment.synced < segment.length) {
            segment.file.sync().map_err(|error| Error::io("sync", &segment.path, error))?;
        }
        self.try_sync_names()?;
        for segment in &mut self.older {
            segment.end.synced = segment.end.bytes;
        }
        if let Some(segment) = &mut self.current {
            segment.synced = segment.length;
        }
        Ok(())
    }
}

impl OpenSegment {
    const fn end(&self) -> SegmentEnd {
        SegmentEnd { number: self.number, bytes: self.length, synced: self.synced }
    }

    fn into_older(self, now: Duration) -> OlderSegment {
        let end = self.end();
        OlderSegment { end, is_durable: false, file: Some(self.file), written: Some((self.since, now)) }
    }
}

impl OlderSegment {
    fn was_filled_quickly(&self) -> bool {
        self.written.is_some_and(|(begun, left)| left.saturating_sub(begun) <= RECYCLED_AGE_MAX)
    }
}

impl RecycledSegment {
    /// Renames a segment and empties it; `None` if it can't be recycled, and then it is removed.
    fn recycle(folder: &Folder, old: &Path, number: u64) -> Option<Self> {
        let path = folder.path().join(format!("{}.obsolete", FileName::Log(number).name()));
        folder.rename(old, &path).ok()?;
        let file = folder.reuse_log(&path).ok().flatten();
        if file.is_none() {
            // If it stays, the next open removes it.
            let _ = folder.remove(&path);
        }
        file.map(|file| Self { path, file })
    }

    fn remove(self, folder: &Folder) {
        // If it stays, the next open removes it: the manifest does not need it.
        let _ = folder.remove(&self.path);
    }
}

#[cfg(test)]
mod tests;
