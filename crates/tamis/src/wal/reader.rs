//! Replays the log at open: finds the chain of segments, classifies each bad part, and returns every entry in order.
//!
//! Steps:
//!
//! 1. Read the headers. Segments below `first_needed` are ignored.
//! 2. Follow the chain from the newest segment down, from each header to the segment that it names. A segment that no later
//!    one names is skipped: it was abandoned when it could not be written.
//! 3. Read the segments upward and return their entries, up to the end or to the first bad part.
//! 4. A bad part (header, record, missing segment) is damage if anything proves that it was synced: a mark in its own file
//!    above it, the next segment's header, or any mark in a later segment (a sync covers the whole log). Otherwise it is a
//!    torn tail: replay ends there, later segments are dropped, and all of that is reported. Zero bytes up to the end of
//!    the file are no bad part: they are room that the writer had allocated. The name of the first needed segment is
//!    durable before another segment follows it: if the lowest existing segment continues one that is needed and missing,
//!    that is damage.
//!
//! The reader writes nothing; the header of the next segment makes the end of the valid part permanent ([`crate::wal`],
//! rule 3). Dropped segments are deleted only after that header and the segment that it continues are durable: otherwise a
//! second crash could leave the end of the chain without its beginning.
//!
//! [`salvage`] takes the same steps and continues after damage: it records the fault and reads the next segment. So it
//! reports every fault and returns all that can be read.
//!
//! Cost: each needed segment is read once, and is in memory as a whole while it is read.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, DirEntry, File, Folder};

use crate::{
    batch::{BatchEntry, entries},
    error::{Error, Result},
    file_name::FileName,
    frame::{BadFrame, Frame, FrameReader, Record, proves_synced},
    key::Sequence,
    open_report::WalTruncation,
    wal::{
        format::{HEADER_BYTES, SegmentHeader, segment_seed},
        writer::SegmentEnd,
    },
};

/// Segments that are open from when they are found until they are read: a store may remove them meanwhile, oldest first. It bounds
/// the descriptors of a log with many segments; the others are opened when they are read.
const OPEN_COUNT_MAX: usize = 8;

/// A segment with the length that it had when it was found.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
    folder: Folder,
    /// `None` if it is opened for each read.
    file: Option<Arc<dyn File>>,
}

impl LogFile {
    fn open(&self) -> Result<Arc<dyn File>> {
        self.folder.open(&self.path, Access::Buffered).map_err(|error| Error::io("open", &self.path, error))
    }

    /// The bytes of the whole segment.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        self.read_up_to(self.length)
    }

    fn read_up_to(&self, length: u64) -> Result<Vec<u8>> {
        let failed = |error| Error::io("read", &self.path, error);
        let length = usize::try_from(length.min(self.length));
        let mut bytes = vec![0; length.map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?];
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => self.open()?,
        };
        file.read_at(0, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

/// The segments of a log at one moment: later appends and removals do not change the result of a read.
#[derive(Debug)]
pub(crate) struct LogFiles {
    folder: Folder,
    database_id: u64,
    /// The manifest does not need segments below this number; they may be missing.
    first_needed: u64,
    /// The needed segments in the order of their numbers.
    segments: Vec<LogFile>,
    obsolete: Vec<u64>,
}

impl LogFiles {
    /// The segments in a folder. If the log is being written, the caller has its lock, so that no segment ends within a
    /// record.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find(folder: &Folder, database_id: u64, first_needed: u64) -> Result<Self> {
        let entries = folder.list(folder.path()).map_err(|error| Error::io("list", folder.path(), error))?;
        Self::among(&entries, folder, database_id, first_needed)
    }

    /// As [`LogFiles::find`], among the entries of the folder.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn among(
        entries: &[DirEntry],
        folder: &Folder,
        database_id: u64,
        first_needed: u64,
    ) -> Result<Self> {
        let mut files = Self {
            folder: folder.clone(),
            database_id,
            first_needed,
            segments: Vec::new(),
            obsolete: Vec::new(),
        };
        for entry in entries.iter().filter(|entry| !entry.is_dir) {
            let Some(FileName::Log(number)) = FileName::parse(&entry.name) else { continue };
            if number < first_needed {
                files.obsolete.push(number);
                continue;
            }
            let (path, folder) = (folder.path().join(&entry.name), folder.clone());
            files.segments.push(LogFile { number, path, length: entry.length, folder, file: None });
        }
        files.segments.sort_unstable_by_key(|segment| segment.number);
        for segment in files.segments.iter_mut().take(OPEN_COUNT_MAX) {
            let file = segment.open()?;
            segment.length = file.length().map_err(|error| Error::io("measure", &segment.path, error))?;
            segment.file = Some(file);
        }
        Ok(files)
    }

    /// Limits the segments to their valid parts: bytes after them, which the writer has allocated or failed to write and
    /// may remove, are ignored.
    pub(crate) fn limit_to(&mut self, ends: &[(u64, u64)]) {
        for segment in &mut self.segments {
            if let Some((_, end)) = ends.iter().find(|(number, _)| *number == segment.number) {
                segment.length = segment.length.min(*end);
            }
        }
    }

    /// All existing segments, for a caller that does not know which are needed. That the oldest one continues a missing one
    /// is no fault then.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find_all(folder: &Folder, database_id: u64) -> Result<Self> {
        let mut files = Self::find(folder, database_id, 0)?;
        files.first_needed = files.segments.first().map_or(0, |segment| segment.number);
        Ok(files)
    }

    /// Whether no segment exists before a missing one.
    fn begins_after(&self, missing: u64) -> bool {
        self.segments.first().is_none_or(|segment| segment.number > missing)
    }

    /// The needed segments in the order of their numbers.
    pub(crate) fn segments(&self) -> &[LogFile] {
        &self.segments
    }
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReplayReport {
    pub(crate) records: u64,
    pub(crate) entries: u64,
    /// The smallest sequence number at which an entry was logged; 0 if there is none.
    pub(crate) first_sequence: Sequence,
    /// The largest sequence number at which an entry was logged; 0 if there is none.
    pub(crate) last_sequence: Sequence,
    /// The segments with the entries, oldest first: [`crate::wal::writer::Log::create`] continues them.
    pub(crate) segments: Vec<SegmentEnd>,
    /// The torn tail, then each later segment that was dropped with it.
    pub(crate) truncations: Vec<WalTruncation>,
    /// Segments that are not part of the log (not needed, abandoned, dropped). An open for writing may remove those below
    /// `first_needed` at once, the others after the new log is synced.
    pub(crate) obsolete: Vec<u64>,
}

/// A segment of the chain; its header is `None` if it is torn or damaged.
#[derive(Debug, Clone, Copy)]
struct Member<'a> {
    segment: &'a LogFile,
    header: Option<SegmentHeader>,
}

/// Receives each entry with the number of its segment.
type OnEntry<'a> = &'a mut dyn FnMut(BatchEntry<'_>, u64) -> Result<()>;

/// Calls `on_entry` with every entry of the log, oldest first, and the number of its segment.
///
/// # Errors
/// [`Error::Corruption`] for damage, with file and offset; [`Error::MissingFile`] for a gap in the chain;
/// [`Error::UnknownFormat`] and [`Error::UnknownEntryKind`] for another program's log; those of `on_entry`.
pub(crate) fn replay(files: &LogFiles, on_entry: OnEntry<'_>) -> Result<ReplayReport> {
    Replay { files, report: ReplayReport::default(), faults: None }.run(on_entry).map(|(report, _)| report)
}

/// As [`replay`], but continues after each fault; returns all faults with the result.
pub(crate) fn salvage(
    files: &LogFiles,
    on_entry: &mut dyn FnMut(BatchEntry<'_>, u64),
) -> (ReplayReport, Vec<Error>) {
    let replay = Replay { files, report: ReplayReport::default(), faults: Some(Vec::new()) };
    let all = replay.run(&mut |entry, segment| {
        on_entry(entry, segment);
        Ok(())
    });
    all.unwrap_or_else(|error| (ReplayReport::default(), vec![error]))
}

/// Replay ended before the end of the log.
struct Torn;

struct Replay<'a> {
    files: &'a LogFiles,
    report: ReplayReport,
    /// `None` if the first fault ends the replay.
    faults: Option<Vec<Error>>,
}

impl<'a> Replay<'a> {
    fn run(mut self, on_entry: OnEntry<'_>) -> Result<(ReplayReport, Vec<Error>)> {
        let chain = self.find_chain()?;
        for (index, member) in chain.iter().enumerate() {
            let later = chain.get(index + 1..).unwrap_or_default();
            let end = match self.read_segment(*member, later, on_entry) {
                Err(error) => self.record_fault(error)?,
                Ok(end) => end,
            };
            if end.is_some() {
                later.iter().for_each(|dropped| self.drop_segment(dropped.segment));
                break;
            }
        }
        self.report.obsolete.sort_unstable();
        Ok((self.report, self.faults.unwrap_or_default()))
    }

    /// Records a fault if reading continues after it.
    fn record_fault<T>(&mut self, error: Error) -> Result<Option<T>> {
        match &mut self.faults {
            Some(faults) => {
                faults.push(error);
                Ok(None)
            }
            None => Err(error),
        }
    }

    fn seed(&self, number: u64) -> u64 {
        segment_seed(self.files.database_id, number)
    }

    fn read_header(&self, segment: &LogFile) -> Result<Option<SegmentHeader>> {
        let bytes = segment.read_up_to(HEADER_BYTES)?;
        let LogFiles { database_id, first_needed, .. } = *self.files;
        SegmentHeader::decode(&bytes, &segment.path, database_id, segment.number, first_needed)
    }

    /// Step 2: the segments of the log, oldest first.
    fn find_chain(&mut self) -> Result<Vec<Member<'a>>> {
        let files = self.files;
        self.report.obsolete.extend_from_slice(&files.obsolete);
        // Newest first until the end of this function.
        let mut chain: Vec<Member<'a>> = Vec::new();
        // The previous segment in the header of the lowest member; `None` if it is unknown.
        let mut named: Option<u64> = None;
        for segment in files.segments.iter().rev() {
            let number = segment.number;
            if named.is_some_and(|named| number > named) {
                self.report.obsolete.push(number);
                continue;
            }
            if named.is_some_and(|named| number < named) {
                self.drop_after_gap(&mut chain, named)?;
            }
            match self.read_header(segment) {
                Ok(header) => {
                    named = header.map(|header| header.previous);
                    chain.push(Member { segment, header });
                }
                Err(error) => {
                    self.record_fault::<()>(error)?;
                    named = None;
                }
            }
        }
        let first = files.segments.first().map(|segment| segment.number);
        if named.is_some_and(|named| named != 0 && first.is_none_or(|first| named < first)) {
            self.drop_after_gap(&mut chain, named)?;
        }
        chain.reverse();
        Ok(chain)
    }

    /// The segment `named` by the lowest member of `chain` (newest first) is missing. Nothing is wrong if it is not needed.
    /// It is an error if it is the first one or was synced. Otherwise the members were never durable, and are dropped.
    fn drop_after_gap(&mut self, chain: &mut Vec<Member<'a>>, named: Option<u64>) -> Result<()> {
        let Some(missing) = named.filter(|named| *named >= self.files.first_needed) else { return Ok(()) };
        let oldest_first: Vec<_> = chain.iter().rev().copied().collect();
        let is_known = self.files.begins_after(missing)
            || oldest_first.iter().any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        if is_known || self.is_synced(&oldest_first)? {
            let path = FileName::Log(missing).path(&self.files.folder);
            let advice = "a later log segment continues it: restore it from a copy, or run `tamis repair`";
            return self.record_fault::<()>(Error::MissingFile { path, advice }).map(drop);
        }
        oldest_first.iter().for_each(|member| self.drop_segment(member.segment));
        chain.clear();
        Ok(())
    }

    /// Whether any record of these segments says that its segment was synced, and with it the log before.
    fn is_synced(&self, segments: &[Member<'a>]) -> Result<bool> {
        for Member { segment, .. } in segments {
            if proves_synced(&segment.read()?, self.seed(segment.number), 0, 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reports a segment as left out.
    fn drop_segment(&mut self, segment: &LogFile) {
        if segment.length > 0 {
            self.report.truncations.push(WalTruncation {
                file: segment.path.clone(),
                offset: 0,
                bytes: segment.length,
            });
        }
        self.report.obsolete.push(segment.number);
    }

    /// Step 3 for one segment; `later` are the segments after it.
    fn read_segment(
        &mut self,
        member: Member<'a>,
        later: &[Member<'a>],
        on_entry: OnEntry<'_>,
    ) -> Result<Option<Torn>> {
        let LogFile { number, path, .. } = member.segment;
        let (number, path) = (*number, path.as_path());
        let bytes = member.segment.read()?;
        let next = later.first().and_then(|next| next.header);
        let (limit, known) =
            next.map_or((bytes.len() as u64, 0), |next| (next.previous_bytes, next.previous_synced));
        let valid = usize::try_from(limit).ok().and_then(|limit| bytes.get(..limit)).unwrap_or(&bytes);
        let start = if member.header.is_some() { HEADER_BYTES } else { 0 };
        let mut reader = FrameReader::new(path, valid, start).with_seed(self.seed(number)).with_synced(known);
        let bad = loop {
            if member.header.is_none() {
                break Some(bad_header(&bytes));
            }
            match reader.next_frame() {
                Frame::Record(record) => self.replay_record(path, number, record, on_entry)?,
                Frame::End if reader.offset() == limit => break None,
                Frame::End => break Some(short_segment(reader.offset(), limit)),
                Frame::Bad(bad) => break Some(bad),
            }
        };
        let offset = reader.offset();
        let Some(bad) = bad else {
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number, bytes: offset, synced });
            return Ok(None);
        };
        if self.is_damage(&bad, member, reader.synced(), &bytes, later)? {
            let what = if member.header.is_none() { "log segment header" } else { "log record" };
            return Err(Error::corruption(path, bad.offset, what, bad.expected, bad.got));
        }
        let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
        if member.header.is_some() && next.is_none() && rest.iter().all(|&byte| byte == 0) {
            // Room that the writer had allocated: it never had a record.
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number, bytes: offset, synced });
            return Ok(None);
        }
        if member.header.is_none() {
            self.drop_segment(member.segment);
        } else {
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number, bytes: offset, synced });
            self.report.truncations.push(WalTruncation {
                file: path.to_path_buf(),
                offset,
                bytes: bytes.len() as u64 - offset,
            });
        }
        Ok(Some(Torn))
    }

    /// Step 4: whether the bad part was synced.
    fn is_damage(
        &self,
        bad: &BadFrame,
        member: Member<'a>,
        synced: u64,
        bytes: &[u8],
        later: &[Member<'a>],
    ) -> Result<bool> {
        // The next header is about this segment (`synced` includes it); the headers after it are about later ones.
        let known = later.iter().skip(1).any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        Ok(synced > bad.offset
            || known
            || proves_synced(bytes, self.seed(member.segment.number), bad.offset, bad.offset)
            || self.is_synced(later)?)
    }

    fn replay_record(
        &mut self,
        path: &Path,
        number: u64,
        record: Record<'_>,
        on_entry: OnEntry<'_>,
    ) -> Result<()> {
        for entry in entries(record.payload) {
            let entry = entry.map_err(|damage| damage.at(path, record.offset))?;
            self.report.entries += 1;
            let first = self.report.first_sequence;
            self.report.first_sequence =
                if first == 0 { entry.logged_at } else { first.min(entry.logged_at) };
            self.report.last_sequence = self.report.last_sequence.max(entry.logged_at);
            on_entry(entry, number)?;
        }
        self.report.records += 1;
        Ok(())
    }
}

fn bad_header(bytes: &[u8]) -> BadFrame {
    let got = if (bytes.len() as u64) < HEADER_BYTES {
        format!("{} bytes", bytes.len())
    } else {
        "other bytes".to_owned()
    };
    BadFrame { offset: 0, expected: format!("a header of {HEADER_BYTES} bytes with a valid checksum"), got }
}

fn short_segment(offset: u64, limit: u64) -> BadFrame {
    BadFrame {
        offset,
        expected: format!("records up to offset {limit}"),
        got: "the end of the file".to_owned(),
    }
}

#[cfg(test)]
mod tests;
