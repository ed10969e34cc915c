//! Replays the log at open: finds the chain of segments, judges each bad part, and gives every entry in order.
//!
//! Steps:
//!
//! 1. Read the headers. Segments below `first_needed` are not looked at.
//! 2. Walk the chain from the newest segment down, from each header to the one that it names. A segment that no later
//!    one names is passed over: it was abandoned when it could not be written.
//! 3. Read the segments upward and give their entries, up to the end or to the first bad part.
//! 4. A bad part (header, record, missing segment) is damage if anything proves that it had been synced: a mark in its
//!    own file above it, the next segment's header, or any mark in a later segment (a sync covers the whole log).
//!    Otherwise it is a torn tail: replay ends there, and later segments are dropped. All of that is reported. Zero bytes
//!    up to the end of the file are no bad part: they are room that the writer had prepared. The name of the first segment that is
//!    needed is durable before another one follows it: where the lowest segment that is there goes on from one that is needed and
//!    gone, that is damage.
//!
//! Nothing is written here; the header of the next segment makes the cut binding ([`crate::wal`], rule 3). Dropped segments go
//! only once that header and what it goes on from are durable: before, a second crash could leave the end of the chain without its
//! beginning.
//!
//! [`salvage`] takes the same steps and goes on after damage: it notes the fault and reads the next segment. So every fault is
//! named, and all that can be read is given.
//!
//! Cost: each needed segment is read once, and is in memory as a whole while it is read.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, File, Vfs};

use crate::{
    batch::{BatchEntry, entries},
    error::{Error, Result},
    file_name::FileName,
    frame::{BadFrame, Frame, FrameReader, Record, proves_synced},
    key::Sequence,
    wal::{
        format::{HEADER_BYTES, SegmentHeader, segment_seed},
        writer::SegmentEnd,
    },
};

/// A segment, held open, as long as it was when it was found.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
    file: Arc<dyn File>,
}

impl LogFile {
    /// The bytes of the whole segment.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        self.read_up_to(self.length)
    }

    fn read_up_to(&self, length: u64) -> Result<Vec<u8>> {
        let failed = |error| Error::io("read", &self.path, error);
        let length = usize::try_from(length.min(self.length));
        let mut bytes = vec![0; length.map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?];
        self.file.read_at(0, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

/// The segments of a log as they are at one moment: what is appended or removed later changes nothing of what is read.
#[derive(Debug)]
pub(crate) struct LogFiles {
    folder: PathBuf,
    database_id: u64,
    /// Segments below this number are not needed, as the manifest says; they may be gone.
    first_needed: u64,
    /// Those that are needed, in the order of their numbers.
    segments: Vec<LogFile>,
    obsolete: Vec<u64>,
}

impl LogFiles {
    /// The segments in a folder. While the log is written this is called under its lock, so that none ends within a record.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find(vfs: &dyn Vfs, folder: &Path, database_id: u64, first_needed: u64) -> Result<Self> {
        let entries = vfs.list(folder).map_err(|error| Error::io("list", folder, error))?;
        let mut files = Self {
            folder: folder.to_path_buf(),
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
            let path = folder.join(&entry.name);
            let open = vfs.open(&path, Access::Buffered);
            let file = open.map_err(|error| Error::io("open", &path, error))?;
            let length = file.length().map_err(|error| Error::io("measure", &path, error))?;
            files.segments.push(LogFile { number, path, length, file });
        }
        files.segments.sort_unstable_by_key(|segment| segment.number);
        Ok(files)
    }

    /// Tells where the valid parts of segments end: what the writer has prepared or failed to write behind them, and may yet take
    /// away, is not looked at.
    pub(crate) fn cut_to(&mut self, ends: &[(u64, u64)]) {
        for segment in &mut self.segments {
            if let Some((_, end)) = ends.iter().find(|(number, _)| *number == segment.number) {
                segment.length = segment.length.min(*end);
            }
        }
    }

    /// All segments that are there, for who does not know which are needed: that the oldest goes on from one that is gone is
    /// no fault then.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find_all(vfs: &dyn Vfs, folder: &Path, database_id: u64) -> Result<Self> {
        let mut files = Self::find(vfs, folder, database_id, 0)?;
        files.first_needed = files.segments.first().map_or(0, |segment| segment.number);
        Ok(files)
    }

    /// Whether nothing is there before a segment that is missing.
    fn begins_behind(&self, missing: u64) -> bool {
        self.segments.first().is_none_or(|segment| segment.number > missing)
    }

    /// Those that are needed, in the order of their numbers.
    pub(crate) fn segments(&self) -> &[LogFile] {
        &self.segments
    }
}

/// A torn part that replay left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) file: PathBuf,
    /// Where the valid part ends; 0 for a segment that was dropped as a whole.
    pub(crate) offset: u64,
    /// Bytes left out.
    pub(crate) bytes: u64,
}

/// What replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReplayReport {
    pub(crate) records: u64,
    pub(crate) entries: u64,
    /// The least sequence number of an entry; 0 when there is none.
    pub(crate) first_sequence: Sequence,
    /// The greatest sequence number of an entry; 0 when there is none.
    pub(crate) last_sequence: Sequence,
    /// The segments that hold the entries, oldest first: [`crate::wal::writer::Log::create`] goes on from them.
    pub(crate) segments: Vec<SegmentEnd>,
    /// The torn tail, then each later segment that was dropped with it.
    pub(crate) cuts: Vec<Cut>,
    /// Segments that are no part of the log (not needed, abandoned, dropped). An open for writing may remove those below
    /// `first_needed` at once, the others once the log that goes on is synced.
    pub(crate) obsolete: Vec<u64>,
}

/// A segment of the chain; its header is `None` when it is torn or damaged.
#[derive(Debug, Clone, Copy)]
struct Member<'a> {
    segment: &'a LogFile,
    header: Option<SegmentHeader>,
}

/// What is given each entry, with the number of its segment.
type OnEntry<'a> = &'a mut dyn FnMut(BatchEntry<'_>, u64) -> Result<()>;

/// Gives every entry of the log, oldest first, with the number of its segment, to `on_entry`.
///
/// # Errors
/// [`Error::Corruption`] for damage, with file and offset; [`Error::MissingFile`] for a gap in the chain;
/// [`Error::UnknownFormat`] and [`Error::UnknownEntryKind`] for another program's log; those of `on_entry`.
pub(crate) fn replay(files: &LogFiles, on_entry: OnEntry<'_>) -> Result<ReplayReport> {
    Replay { files, report: ReplayReport::default(), faults: None }.run(on_entry).map(|(report, _)| report)
}

/// As [`replay`], but goes on after each fault; gives all of them beside what was found.
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

/// Where replay ended before the end of the log.
struct Torn;

struct Replay<'a> {
    files: &'a LogFiles,
    report: ReplayReport,
    /// `None` where the first fault ends all.
    faults: Option<Vec<Error>>,
}

impl<'a> Replay<'a> {
    fn run(mut self, on_entry: OnEntry<'_>) -> Result<(ReplayReport, Vec<Error>)> {
        let chain = self.find_chain()?;
        for (index, member) in chain.iter().enumerate() {
            let later = chain.get(index + 1..).unwrap_or_default();
            let end = match self.read_segment(*member, later, on_entry) {
                Err(error) => self.note(error)?,
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

    /// Notes a fault where reading goes on after it.
    fn note<T>(&mut self, error: Error) -> Result<Option<T>> {
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
        // What the lowest member names as its previous segment; `None` where any will do.
        let mut named: Option<u64> = None;
        for segment in files.segments.iter().rev() {
            let number = segment.number;
            if named.is_some_and(|named| number > named) {
                self.report.obsolete.push(number);
                continue;
            }
            if named.is_some_and(|named| number < named) {
                self.drop_behind_gap(&mut chain, named)?;
            }
            match self.read_header(segment) {
                Ok(header) => {
                    named = header.map(|header| header.previous);
                    chain.push(Member { segment, header });
                }
                Err(error) => {
                    self.note::<()>(error)?;
                    named = None;
                }
            }
        }
        let first = files.segments.first().map(|segment| segment.number);
        if named.is_some_and(|named| named != 0 && first.is_none_or(|first| named < first)) {
            self.drop_behind_gap(&mut chain, named)?;
        }
        chain.reverse();
        Ok(chain)
    }

    /// The segment `named` by the lowest member of `chain` (newest first) is not there: nothing, where it is not needed; an
    /// error, where it is the first one or had been synced; otherwise the members were never durable, and are dropped.
    fn drop_behind_gap(&mut self, chain: &mut Vec<Member<'a>>, named: Option<u64>) -> Result<()> {
        let Some(missing) = named.filter(|named| *named >= self.files.first_needed) else { return Ok(()) };
        let oldest_first: Vec<_> = chain.iter().rev().copied().collect();
        let is_known = self.files.begins_behind(missing)
            || oldest_first.iter().any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        if is_known || self.is_synced(&oldest_first)? {
            let path = FileName::Log(missing).path(&self.files.folder);
            let advice = "a later log segment goes on from it; restore it from a copy, or run `tamis repair`";
            return self.note::<()>(Error::MissingFile { path, advice }).map(drop);
        }
        oldest_first.iter().for_each(|member| self.drop_segment(member.segment));
        chain.clear();
        Ok(())
    }

    /// Whether any record of these segments says that its segment had been synced, and with it the log before.
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
            self.report.cuts.push(Cut { file: segment.path.clone(), offset: 0, bytes: segment.length });
        }
        self.report.obsolete.push(segment.number);
    }

    /// Step 3 for one segment; `later` are those behind it.
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
                Frame::Record(record) => self.give(path, number, record, on_entry)?,
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
            // Room that the writer had prepared: nothing was ever there.
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number, bytes: offset, synced });
            return Ok(None);
        }
        if member.header.is_none() {
            self.drop_segment(member.segment);
        } else {
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number, bytes: offset, synced });
            self.report.cuts.push(Cut {
                file: path.to_path_buf(),
                offset,
                bytes: bytes.len() as u64 - offset,
            });
        }
        Ok(Some(Torn))
    }

    /// Step 4: whether the bad part had been synced.
    fn is_damage(
        &self,
        bad: &BadFrame,
        member: Member<'a>,
        synced: u64,
        bytes: &[u8],
        later: &[Member<'a>],
    ) -> Result<bool> {
        // The next header speaks of this segment (`synced` counts it); those behind it of later ones.
        let known = later.iter().skip(1).any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        Ok(synced > bad.offset
            || known
            || proves_synced(bytes, self.seed(member.segment.number), bad.offset, bad.offset)
            || self.is_synced(later)?)
    }

    fn give(&mut self, path: &Path, number: u64, record: Record<'_>, on_entry: OnEntry<'_>) -> Result<()> {
        for entry in entries(record.payload) {
            let entry = entry.map_err(|damage| damage.at(path, record.offset))?;
            self.report.entries += 1;
            let first = self.report.first_sequence;
            self.report.first_sequence = if first == 0 { entry.sequence } else { first.min(entry.sequence) };
            self.report.last_sequence = self.report.last_sequence.max(entry.sequence);
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
