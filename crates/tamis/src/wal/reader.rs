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
//!    the file are no bad part: they are room that the writer had allocated. If the next segment's header is bad, it is unknown whether
//!    the segment was to end at its bad part, or was abandoned: then this header is the damage. The name of the first needed segment is
//!    durable before another segment follows it: if the lowest existing segment continues one that is needed and missing,
//!    that is damage. So is a missing or shorter segment of which the manifest says that it was synced ([`KnownLog`]).
//!
//! The reader writes nothing; the header of the next segment makes the end of the valid part permanent ([`crate::wal`],
//! rule 3). Dropped segments are deleted only after that header and the segment that it continues are durable: otherwise a
//! second crash could leave the end of the chain without its beginning.
//!
//! [`salvage`] takes the same steps and continues after damage: it records the fault and reads the next segment. So it
//! reports every fault and returns all that can be read.
//!
//! Cost: each needed segment is read once, in pieces: of its bytes, only a piece or one longer record is in memory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tamis_vfs::{DirEntry, Folder};

use crate::{
    batch::{BatchEntry, entries},
    error::{Error, Result},
    file_name::FileName,
    frame::{
        BadFrame, Frame, FrameReader, FrameSource as _, Record,
        file_bytes::{FileBytes, missing},
        proves_synced,
    },
    key::Sequence,
    store::open_report::WalTruncation,
    wal::{
        format::{HEADER_BYTES, SegmentHeader, segment_seed},
        writer::SegmentEnd,
    },
};

/// The facts about a log that the manifest has.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownLog {
    pub(crate) database_id: u64,
    /// Segments below this number are not needed; they may be missing.
    pub(crate) first_needed: u64,
    /// Lengths up to which needed segments were synced once, by number: each of these segments exists and has that many bytes.
    pub(crate) synced: BTreeMap<u64, u64>,
}

/// A segment with the length that it had when it was found.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
    /// It is read up to here.
    limit: u64,
    folder: Folder,
}

impl LogFile {
    /// Opens it to be read in pieces.
    ///
    /// # Errors
    /// [`Error::MissingFile`]; the system's.
    pub(crate) fn open(&self) -> Result<FileBytes> {
        Ok(FileBytes::open(&self.folder, &self.path)?.limited_to(self.limit))
    }
}

/// The segments of a log at one moment.
#[derive(Debug)]
pub(crate) struct LogFiles {
    folder: Folder,
    known: KnownLog,
    /// The needed segments in the order of their numbers.
    segments: Vec<LogFile>,
    obsolete: Vec<u64>,
}

/// The entries of the folder.
pub(super) fn list(folder: &Folder) -> Result<Vec<DirEntry>> {
    folder.list(folder.path()).map_err(|error| Error::io("list", folder.path(), error))
}

impl LogFiles {
    /// The segments in a folder whose log is not being written.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find(folder: &Folder, known: KnownLog) -> Result<Self> {
        Ok(Self::among(&list(folder)?, folder, known))
    }

    /// As [`LogFiles::find`], among the entries of the folder.
    pub(crate) fn among(entries: &[DirEntry], folder: &Folder, known: KnownLog) -> Self {
        let found = entries.iter().filter(|entry| !entry.is_dir).filter_map(|entry| {
            let Some(FileName::Log(number)) = FileName::parse(&entry.name) else { return None };
            Some((number, entry.length))
        });
        Self::of_segments(found, folder, known)
    }

    /// The segments of a log that another process may be writing. A list that is made meanwhile may have a segment without an earlier one, and old lengths: a second
    /// list has what the first one lacks, and segments are read up to the lengths that they have then.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of_live_log(folder: &Folder, known: KnownLog) -> Result<Self> {
        let mut files = Self::find(folder, known.clone())?;
        let again = Self::find(folder, known)?;
        let is_new = |segment: &LogFile| !files.segments.iter().any(|other| other.number == segment.number);
        let new: Vec<LogFile> = again.segments.into_iter().filter(is_new).collect();
        files.segments.extend(new);
        files.segments.sort_unstable_by_key(|segment| segment.number);
        files.segments.iter_mut().for_each(|segment| segment.limit = u64::MAX);
        Ok(files)
    }

    /// The segments of a log that is being written, as its writer knows them: their numbers and the lengths of their valid parts. Later
    /// appends do not change the result of a read.
    pub(crate) fn of_open_log(segments: &[SegmentEnd], folder: &Folder, known: KnownLog) -> Self {
        let written = segments.iter().map(|end| (end.number, end.bytes));
        let synced = written.clone().filter(|(number, _)| *number >= known.first_needed).collect();
        Self::of_segments(written, folder, KnownLog { synced, ..known })
    }

    fn of_segments(found: impl Iterator<Item = (u64, u64)>, folder: &Folder, known: KnownLog) -> Self {
        let (mut segments, mut obsolete) = (Vec::new(), Vec::new());
        for (number, length) in found {
            if number < known.first_needed {
                obsolete.push(number);
                continue;
            }
            let path = FileName::Log(number).path(folder);
            segments.push(LogFile { number, path, length, limit: length, folder: folder.clone() });
        }
        segments.sort_unstable_by_key(|segment: &LogFile| segment.number);
        Self { folder: folder.clone(), known, segments, obsolete }
    }

    /// All existing segments, for a caller that does not know which are needed. That the oldest one continues a missing one
    /// is no fault then.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn find_all(folder: &Folder, database_id: u64) -> Result<Self> {
        let mut files = Self::find(folder, KnownLog { database_id, ..KnownLog::default() })?;
        files.known.first_needed = files.segments.first().map_or(0, |segment| segment.number);
        Ok(files)
    }

    /// The segments that were synced and are missing.
    fn lost_segments(&self) -> impl Iterator<Item = u64> {
        let is_there = |number: &u64| self.segments.binary_search_by_key(number, |s| s.number).is_ok();
        self.known.synced.keys().copied().filter(move |number| !is_there(number))
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

/// The place of a record in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// Receives each entry with the place of its record.
type OnEntry<'a> = &'a mut dyn FnMut(BatchEntry<'_>, RecordPlace) -> Result<()>;

/// Calls `on_entry` with every entry of the log, oldest first, and the place of its record.
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
    on_entry: &mut dyn FnMut(BatchEntry<'_>, RecordPlace),
) -> (ReplayReport, Vec<Error>) {
    let replay = Replay { files, report: ReplayReport::default(), faults: Some(Vec::new()) };
    let all = replay.run(&mut |entry, place| {
        on_entry(entry, place);
        Ok(())
    });
    all.unwrap_or_else(|error| (ReplayReport::default(), vec![error]))
}

/// Replay ended before the end of the log.
struct Torn;

/// A bad part that was synced.
enum Damage {
    Here(Error),
    /// The next header is damaged, and may have said that the segment ends at the bad part, or is no part of the log: the header is the first fault
    /// that is certain.
    HereOrNext(Error),
}

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
        segment_seed(self.files.known.database_id, number)
    }

    fn read_header(&self, segment: &LogFile) -> Result<Option<SegmentHeader>> {
        let mut bytes = segment.open()?.limited_to(HEADER_BYTES);
        let KnownLog { database_id, first_needed, .. } = self.files.known;
        let header = bytes.bytes_at(0, HEADER_BYTES)?;
        SegmentHeader::decode(header, &segment.path, database_id, segment.number, first_needed)
    }

    /// Step 2: the segments of the log, oldest first.
    fn find_chain(&mut self) -> Result<Vec<Member<'a>>> {
        let files = self.files;
        self.report.obsolete.extend_from_slice(&files.obsolete);
        for lost in files.lost_segments() {
            self.record_fault::<()>(missing(&FileName::Log(lost).path(&files.folder)))?;
        }
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
                    if header.is_none() && files.known.synced.contains_key(&number) {
                        let BadFrame { offset, expected, got } = bad_header(segment.length);
                        let what = "log segment header";
                        let lost = Error::corruption(&segment.path, offset, what, expected, got);
                        self.record_fault::<()>(lost)?;
                        continue;
                    }
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
        let Some(gap) = named.filter(|named| *named >= self.files.known.first_needed) else { return Ok(()) };
        if self.files.known.synced.contains_key(&gap) {
            // It is recorded as lost.
            return Ok(());
        }
        let oldest_first: Vec<_> = chain.iter().rev().copied().collect();
        let is_known = self.files.begins_after(gap)
            || oldest_first.iter().any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        if is_known || self.is_synced(&oldest_first)? {
            let path = FileName::Log(gap).path(&self.files.folder);
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
            if proves_synced(&mut segment.open()?, self.seed(segment.number), 0, 0)? {
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
        let bytes = member.segment.open()?;
        let file_bytes = bytes.length_bytes();
        // If the next segment is missing, the next header is about that one.
        let next = later.first().and_then(|next| next.header).filter(|next| next.previous == number);
        let (limit, next_known) =
            next.map_or((file_bytes, 0), |next| (next.previous_bytes, next.previous_synced));
        let known = self.files.known.synced.get(&number).copied().unwrap_or(0).max(next_known);
        let start = if member.header.is_some() { HEADER_BYTES } else { 0 };
        let mut reader = FrameReader::new(path, bytes.limited_to(limit), start)
            .with_seed(self.seed(number))
            .with_synced(known);
        let bad = loop {
            if member.header.is_none() {
                break Some(bad_header(file_bytes));
            }
            match reader.next_frame()? {
                Frame::Record(record) => self.replay_record((path, number), &mut reader, record, on_entry)?,
                Frame::End if reader.offset() == limit && reader.synced() <= limit => break None,
                Frame::End => break Some(short_segment(reader.offset(), limit.max(reader.synced()))),
                Frame::Bad(bad) => break Some(bad),
            }
        };
        let (offset, synced) = (reader.offset(), reader.synced());
        drop(reader);
        let end = SegmentEnd { number, bytes: offset, synced };
        let Some(bad) = bad else {
            self.report.segments.push(end);
            return Ok(None);
        };
        // A lost header of the next segment does not hide that this one is whole.
        let is_end = member.header.is_some()
            && next.is_none()
            && synced <= offset
            && member.segment.open()?.is_zero_from(offset)?;
        if is_end {
            // Room that the writer had allocated: it never had a record.
            self.report.segments.push(end);
            return Ok(None);
        }
        match self.damage(bad, member, synced, later)? {
            Some(Damage::Here(error)) => return Err(error),
            Some(Damage::HereOrNext(error)) => {
                if let Some(faults) = &mut self.faults {
                    faults.push(error);
                }
                self.report.segments.extend(member.header.map(|_| end));
                return Ok(None);
            }
            None => {}
        }
        if member.header.is_none() {
            self.drop_segment(member.segment);
        } else {
            self.report.segments.push(end);
            self.report.truncations.push(WalTruncation {
                file: path.to_path_buf(),
                offset,
                bytes: file_bytes - offset,
            });
        }
        Ok(Some(Torn))
    }

    /// Step 4: the damage, if the bad part was synced.
    fn damage(
        &self,
        bad: BadFrame,
        member: Member<'a>,
        synced: u64,
        later: &[Member<'a>],
    ) -> Result<Option<Damage>> {
        let LogFile { number, path, .. } = member.segment;
        let is_known_here = synced > bad.offset
            || proves_synced(&mut member.segment.open()?, self.seed(*number), bad.offset, bad.offset)?;
        // The next header is about this segment (`synced` includes it); the headers after it are about later ones.
        let is_named =
            || later.iter().skip(1).any(|later| later.header.is_some_and(|h| h.previous_synced > 0));
        if !is_known_here && !is_named() && !self.is_synced(later)? {
            return Ok(None);
        }
        let what = if member.header.is_none() { "log segment header" } else { "log record" };
        let error = Error::corruption(path, bad.offset, what, bad.expected, bad.got);
        let is_next_bad = later.first().is_some_and(|next| next.header.is_none());
        let is_unclear = !is_known_here && is_next_bad;
        Ok(Some(if is_unclear { Damage::HereOrNext(error) } else { Damage::Here(error) }))
    }

    fn replay_record(
        &mut self,
        (path, segment): (&Path, u64),
        reader: &mut FrameReader<'_, FileBytes>,
        record: Record,
        on_entry: OnEntry<'_>,
    ) -> Result<()> {
        let place = RecordPlace { segment, offset: record.offset };
        for entry in entries(reader.payload(record)?) {
            let entry = entry.map_err(|damage| damage.at(path, record.offset))?;
            self.report.entries += 1;
            let first = self.report.first_sequence;
            self.report.first_sequence =
                if first == 0 { entry.logged_at } else { first.min(entry.logged_at) };
            self.report.last_sequence = self.report.last_sequence.max(entry.logged_at);
            on_entry(entry, place)?;
        }
        self.report.records += 1;
        Ok(())
    }
}

fn bad_header(file_bytes: u64) -> BadFrame {
    let got =
        if file_bytes < HEADER_BYTES { format!("{file_bytes} bytes") } else { "other bytes".to_owned() };
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
