//! Appends to the log. The commit leader owns the [`Log`] while it leads; nothing here is shared.
//!
//! 1. A record is framed where it will stand, behind what waits in the process ([`Durability::Deferred`]); one write
//!    gives all that waits to the operating system, in order.
//! 2. A failed append closes the segment behind its last acknowledged record: cutting the rest off is tried, and the
//!    next segment's header says where the valid part ends in any case. The record that failed is dropped (its writer
//!    gets the error); deferred records before it are kept, and go into the next segment. Each later append tries to
//!    begin that segment, so writes go on as soon as space returns.
//! 3. A failed sync (of a segment or of the folder) is final: what is on disk is not known any more. All later calls
//!    give [`Error::WritesRefused`] with the first cause.
//! 4. A segment that is not needed any more, and was filled quickly, becomes the next one ([`Log::take_obsolete`], [`RecycledSegment`]): to append where
//!    the system has pages and blocks already takes a fraction of the time. Until the disk has what was appended, it
//!    may show the old segment's header and records: the reader knows both by their number.
//! 5. A sync makes earlier segments durable first, then the current one, then the names in the folder; only then is
//!    the synced mark of later records raised.
//! 6. The reader takes a log that lacks the first segment that is needed for a damaged one. So that one's name is durable before
//!    another segment follows it (here), and before the manifest calls it the first ([`Log::keep_names`]).
//!
//! Cost: an append copies the payload once; `Buffered` is one write, `Synced` one write and one sync.

use std::{
    fmt, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tamis_vfs::{Access, File, Vfs};

use crate::{
    error::{Error, Result},
    file_name::FileName,
    frame::{moved_frames, put_frame_parts},
    options::Durability,
    runtime::Clock,
    wal::format::{HEADER_BYTES, SegmentHeader, segment_seed},
};

/// A segment that took longer to fill is not used again: the system has written its pages by then, and would write the zeros
/// too.
const REUSED_AGE_MAX: Duration = Duration::from_secs(30);
/// The buffer of a group is given back to the allocator above this size.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// A segment that is no longer written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEnd {
    pub(crate) number: u64,
    /// Where its valid part ends.
    pub(crate) bytes: u64,
    /// Up to where it is known to be synced.
    pub(crate) synced: u64,
}

/// What a log is made of.
pub(crate) struct LogSetup {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) folder: PathBuf,
    pub(crate) database_id: u64,
    /// [`crate::Options::deferred_bytes_max`].
    pub(crate) deferred_bytes_max: usize,
    /// Gives file numbers that were never used in the folder, each greater than the one before.
    pub(crate) next_number: Box<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The segment that is written.
#[derive(Debug)]
struct OpenSegment {
    number: u64,
    seed: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    /// Bytes given to the operating system.
    length: u64,
    synced: u64,
    /// When it was begun.
    since: Duration,
}

/// An earlier segment, kept until [`Log::take_obsolete`] takes it.
#[derive(Debug)]
pub(crate) struct OlderSegment {
    end: SegmentEnd,
    is_durable: bool,
    /// Its handle, where this process wrote it and it is not durable yet.
    file: Option<Arc<dyn File>>,
    /// When it was begun and left, where this process wrote it.
    written: Option<(Duration, Duration)>,
}

/// An old segment that is empty now and waits to become the next one, under the name of a file that is not needed: whoever opens
/// the database after a crash removes it. Under its old name it would pass for a segment that was lost, wherever the end of the manifest
/// is.
#[derive(Debug)]
pub(crate) struct RecycledSegment {
    path: PathBuf,
    file: Arc<dyn File>,
}

/// Segments that are not needed any more, taken out of the log so that they go without its lock.
#[derive(Debug)]
pub(crate) struct ObsoleteSegments {
    segments: Vec<OlderSegment>,
    is_recycling_wanted: bool,
    recycled: Option<RecycledSegment>,
}

impl ObsoleteSegments {
    /// Makes a spare of one of them where that is wanted and possible, and removes the others, oldest first.
    ///
    /// # Errors
    /// The system's; what could not be removed is left in `self`.
    pub(crate) fn remove(&mut self, vfs: &dyn Vfs, folder: &Path) -> Result<()> {
        while let Some(segment) = self.segments.first_mut() {
            let path = FileName::Log(segment.end.number).path(folder);
            // The handle cuts off the room behind the segment, which must not happen to what the file is next.
            segment.file = None;
            if self.is_recycling_wanted && segment.was_filled_quickly() {
                self.is_recycling_wanted = false;
                self.recycled = RecycledSegment::make(vfs, folder, &path, segment.end.number);
            }
            if let Err(error) = vfs.remove(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(Error::io("remove", &path, error));
            }
            self.segments.remove(0);
        }
        Ok(())
    }
}

/// The end of the log; see the head of this file.
pub(crate) struct Log {
    setup: LogSetup,
    /// `None` after a failed append, until a new segment can be begun.
    current: Option<OpenSegment>,
    /// In ascending order of their numbers.
    older: Vec<OlderSegment>,
    /// Whole frames that were not given to the operating system yet.
    pending_frames: Vec<u8>,
    /// When the first of them arrived.
    pending_since: Option<Duration>,
    recycled: Option<RecycledSegment>,
    /// Held by whoever reads segments without the log's lock: none is used again meanwhile.
    readers: Arc<()>,
    /// Whether the names of all segments survive the machine.
    is_folder_durable: bool,
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
    /// Begins a new segment behind `previous`, the segments that replay kept (in order; none for a new database).
    ///
    /// # Errors
    /// When the segment can't be made.
    pub(crate) fn create(setup: LogSetup, previous: &[SegmentEnd]) -> Result<Self> {
        // Replayed bytes may stand in the page cache only: all are synced again before the first sync counts.
        let older = previous.iter().map(|end| OlderSegment {
            end: *end,
            is_durable: false,
            file: None,
            written: None,
        });
        let mut log = Self {
            setup,
            current: None,
            older: older.collect(),
            pending_frames: Vec::new(),
            pending_since: None,
            recycled: None,
            readers: Arc::new(()),
            is_folder_durable: false,
            background_error: None,
        };
        log.begin_segment()?;
        Ok(log)
    }

    /// Makes the name of segment `number` survive the machine, where those up to `known` do so already.
    ///
    /// # Errors
    /// The system's; final.
    pub(crate) fn keep_names(&mut self, number: u64, known: u64) -> Result<()> {
        if number <= known { Ok(()) } else { self.sync_names() }
    }

    /// Appends one record whose payload is the concatenation of `parts`, and makes it and all before it as durable as
    /// asked; gives the bytes that it takes in the log. `now` is the runtime's clock.
    ///
    /// # Errors
    /// The record is not in the log (it may be found by a later replay where the disk kept it in spite of the error).
    /// After a failed sync: [`Error::WritesRefused`] for ever.
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
            // Those that waited before it may have been moved to a new segment, where frames are shorter; its own was not marked then, and
            // is as long as it was.
            self.pending_frames.truncate(self.pending_frames.len() - bytes as usize);
            return Err(error);
        }
        if durability == Durability::Synced {
            self.sync()?;
        }
        Ok(bytes)
    }

    /// Makes all that was appended as durable as asked.
    ///
    /// # Errors
    /// Deferred records are kept when they can't be written; a failed sync is final.
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

    /// Gives deferred records to the operating system; the scheduler calls it when [`Log::deferred_since`] is 100 ms ago.
    ///
    /// # Errors
    /// As [`Log::persist`].
    pub(crate) fn flush_deferred(&mut self) -> Result<()> {
        self.persist(Durability::Buffered)
    }

    /// When the oldest record that still waits in the process was appended.
    pub(crate) const fn deferred_since(&self) -> Option<Duration> {
        self.pending_since
    }

    /// Begins a new segment, and returns its number: all records so far lie in segments below it, all later ones in it
    /// or above. A segment without records is not left; its number is returned.
    ///
    /// # Errors
    /// When records still wait and can't be written, or the segment can't be made; the log goes on as it was.
    pub(crate) fn rotate(&mut self) -> Result<u64> {
        self.check_background_error()?;
        self.write_pending_frames()?;
        match &self.current {
            Some(segment) if segment.length == HEADER_BYTES => Ok(segment.number),
            _ => self.begin_segment(),
        }
    }

    /// Syncs all and adds an empty record that says so: from then on every flipped bit in what was written is noticed.
    ///
    /// # Errors
    /// As [`Log::persist`].
    pub(crate) fn close(&mut self) -> Result<()> {
        self.persist(Durability::Synced)?;
        if self.current.as_ref().is_some_and(|segment| segment.length > HEADER_BYTES) {
            // Nothing depends on the mark: without it the last record alone is unproven.
            let _ = self.append(&[], Durability::Buffered, Duration::ZERO);
        }
        if let Some(recycled) = self.recycled.take() {
            recycled.remove(&*self.setup.vfs);
        }
        Ok(())
    }

    /// The number of the segment that is written, or of the last one while a new one can't be begun.
    pub(crate) fn number(&self) -> u64 {
        let last = self.older.last().map_or(0, |segment| segment.end.number);
        self.current.as_ref().map_or(last, |segment| segment.number)
    }

    /// Bytes of the segment that is written, those that wait included.
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

    /// The error that every write gets since a sync failed.
    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background_error.as_ref().map(|cause| Error::WritesRefused { cause: Arc::clone(cause) })
    }

    /// Takes out the segments below `number`, after the manifest durably says that they are not needed: [`ObsoleteSegments::remove`]
    /// does the rest without the log's lock, [`Log::put_back`] takes what comes of it. The segment that is written stays.
    pub(crate) fn take_obsolete(&mut self, number: u64) -> ObsoleteSegments {
        let count = self.older.iter().take_while(|segment| segment.end.number < number).count();
        let is_recycling_wanted = self.recycled.is_none() && Arc::strong_count(&self.readers) == 1;
        ObsoleteSegments {
            segments: self.older.drain(..count).collect(),
            is_recycling_wanted,
            recycled: None,
        }
    }

    /// Takes the spare, and segments that could not be removed: they are tried again.
    pub(crate) fn put_back(&mut self, obsolete: ObsoleteSegments) {
        self.older.splice(..0, obsolete.segments);
        match obsolete.recycled {
            // Two jobs may each have made one.
            Some(second) if self.recycled.is_some() => second.remove(&*self.setup.vfs),
            recycled @ Some(_) => self.recycled = recycled,
            None => {}
        }
    }

    /// While it is held, no segment that is in the log now is used again.
    pub(crate) fn pin_segments(&self) -> Arc<()> {
        Arc::clone(&self.readers)
    }

    fn check_background_error(&self) -> Result<()> {
        self.background_error().map_or(Ok(()), Err)
    }

    /// Makes a new segment the current one. On failure the log stays as it was.
    fn begin_segment(&mut self) -> Result<u64> {
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
        let begun = written.and_then(|()| if previous.is_none() { self.sync_names() } else { Ok(()) });
        if let Err(error) = begun {
            // A file that stays in spite of this is passed over: no later segment names it as its previous one.
            let _ = self.setup.vfs.remove(&path);
            return Err(error);
        }
        let seed = segment_seed(self.setup.database_id, number);
        if !self.pending_frames.is_empty() {
            self.pending_frames = moved_frames(&self.pending_frames, seed, HEADER_BYTES);
        }
        let since = self.setup.clock.now();
        let segment = OpenSegment { number, seed, path, file, length: HEADER_BYTES, synced: 0, since };
        if let Some(left) = self.current.replace(segment) {
            self.older.push(left.into_older(since));
        }
        Ok(number)
    }

    /// An empty file of this name: the spare, where there is one.
    fn make_file(&mut self, path: &Path) -> Result<Arc<dyn File>> {
        if let Some(recycled) = self.recycled.take() {
            if self.setup.vfs.rename(&recycled.path, path).is_ok() {
                return Ok(recycled.file);
            }
            // It may stand under either name; a new file is made as if there had been none.
            let _ = self.setup.vfs.remove(path);
            recycled.remove(&*self.setup.vfs);
        }
        self.setup.vfs.create_log(path).map_err(|error| Error::io("create", path, error))
    }

    /// Gives what waits to the operating system, in a new segment if need be. On failure it goes on waiting.
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
        self.pending_frames.shrink_to(KEPT_BUFFER_BYTES);
        self.pending_since = None;
        Ok(())
    }

    /// Leaves the current segment after a failed append.
    fn close_segment(&mut self) {
        let Some(segment) = self.current.take() else { return };
        if segment.length == HEADER_BYTES {
            // Nothing was ever acknowledged in it, and no segment will name it, whether it goes (so that failing again and
            // again leaves no files) or stays.
            let _ = self.setup.vfs.remove(&segment.path);
            return;
        }
        // The next header says where the valid part ends, so that this may fail.
        let _ = segment.file.truncate(segment.length);
        let now = self.setup.clock.now();
        self.older.push(segment.into_older(now));
    }

    /// Makes all that was written survive the machine, in the order of rule 4. A failure is final.
    fn sync(&mut self) -> Result<()> {
        let result = self.try_sync();
        self.record_failed_sync(result)
    }

    /// Makes the names of all segments survive the machine. A failure is final.
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
            self.setup.vfs.sync_dir(folder).map_err(|error| Error::io("sync", folder, error))?;
            self.is_folder_durable = true;
        }
        Ok(())
    }

    /// Opens the segments of an earlier process that a sync will be about. A failure is none of the sync, and comes before
    /// anything was appended: it changes nothing.
    fn open_older(&mut self) -> Result<()> {
        let closed = |segment: &&mut OlderSegment| !segment.is_durable && segment.file.is_none();
        for segment in self.older.iter_mut().filter(closed) {
            let path = FileName::Log(segment.end.number).path(&self.setup.folder);
            let file = self.setup.vfs.open(&path, Access::Buffered);
            segment.file = Some(file.map_err(|error| Error::io("open", &path, error))?);
        }
        Ok(())
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
        self.written.is_some_and(|(begun, left)| left.saturating_sub(begun) <= REUSED_AGE_MAX)
    }
}

impl RecycledSegment {
    /// Takes the old name off a segment and empties it; none where it can't be used again: then it is removed.
    fn make(vfs: &dyn Vfs, folder: &Path, old: &Path, number: u64) -> Option<Self> {
        let path = folder.join(format!("{}.obsolete", FileName::Log(number).name()));
        vfs.rename(old, &path).ok()?;
        let file = vfs.reuse_log(&path).ok().flatten();
        if file.is_none() {
            // What stays is removed by the next open.
            let _ = vfs.remove(&path);
        }
        file.map(|file| Self { path, file })
    }

    fn remove(self, vfs: &dyn Vfs) {
        // What stays is removed by the next open: the manifest does not need it.
        let _ = vfs.remove(&self.path);
    }
}

#[cfg(test)]
mod tests;
