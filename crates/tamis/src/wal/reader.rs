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
//!    up to the end of the file are no bad part: they are room that the writer had prepared.
//!
//! Nothing is written here; the header of the next segment makes the cut binding ([`crate::wal`], rule 3).
//!
//! Cost: each needed segment is read once, and is in memory as a whole while it is read.

use std::path::{Path, PathBuf};

use tamis_vfs::{Access, Vfs};

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

/// Where the segments of a log are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogFiles<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) database_id: u64,
    /// Segments below this number are not needed, as the manifest says; they may be gone.
    pub(crate) first_needed: u64,
    /// The numbers of all segments in the folder, in any order.
    pub(crate) numbers: &'a [u64],
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
    /// The greatest sequence number of an entry; 0 when there is none.
    pub(crate) last_sequence: Sequence,
    /// The segments that hold the entries, oldest first: [`crate::wal::writer::Log::create`] goes on from them.
    pub(crate) segments: Vec<SegmentEnd>,
    /// The torn tail, then each later segment that was dropped with it.
    pub(crate) cuts: Vec<Cut>,
    /// Segments that are no part of the log (not needed, abandoned, dropped). An open for writing may remove them at once.
    pub(crate) obsolete: Vec<u64>,
}

/// A segment of the chain; its header is `None` when it is torn or damaged.
#[derive(Debug, Clone, Copy)]
struct Member {
    number: u64,
    header: Option<SegmentHeader>,
}

/// Gives every entry of the log, oldest first, with the number of its segment, to `on_entry`.
///
/// # Errors
/// [`Error::Corruption`] for damage, with file and offset; [`Error::MissingFile`] for a gap in the chain;
/// [`Error::UnknownFormat`] and [`Error::UnknownEntryKind`] for a newer program's log; those of `on_entry`.
pub(crate) fn replay(
    vfs: &dyn Vfs,
    files: LogFiles<'_>,
    on_entry: &mut dyn FnMut(BatchEntry<'_>, u64) -> Result<()>,
) -> Result<ReplayReport> {
    let mut replay = Replay { vfs, files, report: ReplayReport::default() };
    let chain = replay.find_chain()?;
    for (index, member) in chain.iter().enumerate() {
        let later = chain.get(index + 1..).unwrap_or_default();
        if replay.read_segment(*member, later, on_entry)?.is_some() {
            for dropped in later {
                replay.drop_segment(dropped.number)?;
            }
            break;
        }
    }
    replay.report.obsolete.sort_unstable();
    Ok(replay.report)
}

/// Where replay ended before the end of the log.
struct Torn;

struct Replay<'a> {
    vfs: &'a dyn Vfs,
    files: LogFiles<'a>,
    report: ReplayReport,
}

impl Replay<'_> {
    fn path(&self, number: u64) -> PathBuf {
        FileName::Log(number).path(self.files.folder)
    }

    fn seed(&self, number: u64) -> u64 {
        segment_seed(self.files.database_id, number)
    }

    fn read(&self, number: u64) -> Result<Vec<u8>> {
        let path = self.path(number);
        self.vfs.read(&path).map_err(|error| Error::io("read", &path, error))
    }

    fn length(&self, number: u64) -> Result<u64> {
        let path = self.path(number);
        let file = self.vfs.open(&path, Access::Buffered).map_err(|error| Error::io("open", &path, error))?;
        file.length().map_err(|error| Error::io("measure", &path, error))
    }

    fn read_header(&self, number: u64) -> Result<Option<SegmentHeader>> {
        let path = self.path(number);
        let file = self.vfs.open(&path, Access::Buffered).map_err(|error| Error::io("open", &path, error))?;
        let length = file.length().map_err(|error| Error::io("measure", &path, error))?;
        let mut bytes = vec![0; length.min(HEADER_BYTES) as usize];
        file.read_at(0, &mut bytes).map_err(|error| Error::io("read", &path, error))?;
        SegmentHeader::decode(&bytes, &path, self.files.database_id, number)
    }

    /// Step 2: the segments of the log, oldest first.
    fn find_chain(&mut self) -> Result<Vec<Member>> {
        let mut numbers = self.files.numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let needed = numbers.partition_point(|number| *number < self.files.first_needed);
        let (unneeded, numbers) = numbers.split_at(needed);
        self.report.obsolete.extend_from_slice(unneeded);
        // Newest first until the end of this function.
        let mut chain: Vec<Member> = Vec::new();
        // What the lowest member names as its previous segment; `None` where any will do.
        let mut named: Option<u64> = None;
        for &number in numbers.iter().rev() {
            if named.is_some_and(|named| number > named) {
                self.report.obsolete.push(number);
                continue;
            }
            if named.is_some_and(|named| number < named) {
                self.drop_behind_gap(&mut chain, named)?;
            }
            let header = self.read_header(number)?;
            named = header.map(|header| header.previous);
            chain.push(Member { number, header });
        }
        if named.is_some_and(|named| named != 0 && numbers.first().is_none_or(|first| named < *first)) {
            self.drop_behind_gap(&mut chain, named)?;
        }
        chain.reverse();
        Ok(chain)
    }

    /// The segment `named` by the lowest member of `chain` (newest first) is not there: nothing, where it is not needed; an
    /// error, where it had been synced; otherwise the members were never durable, and are dropped.
    fn drop_behind_gap(&mut self, chain: &mut Vec<Member>, named: Option<u64>) -> Result<()> {
        let Some(missing) = named.filter(|named| *named >= self.files.first_needed) else { return Ok(()) };
        let oldest_first: Vec<_> = chain.iter().rev().copied().collect();
        let is_known = oldest_first.iter().any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        if is_known || self.is_synced(&oldest_first)? {
            return Err(Error::MissingFile {
                path: self.path(missing),
                advice: "a later log segment goes on from it; restore it from a copy",
            });
        }
        for member in oldest_first {
            self.drop_segment(member.number)?;
        }
        chain.clear();
        Ok(())
    }

    /// Whether any record of these segments says that its segment had been synced, and with it the log before.
    fn is_synced(&self, segments: &[Member]) -> Result<bool> {
        for segment in segments {
            if proves_synced(&self.read(segment.number)?, self.seed(segment.number), 0, 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reports a segment as left out.
    fn drop_segment(&mut self, number: u64) -> Result<()> {
        let bytes = self.length(number)?;
        if bytes > 0 {
            self.report.cuts.push(Cut { file: self.path(number), offset: 0, bytes });
        }
        self.report.obsolete.push(number);
        Ok(())
    }

    /// Step 3 for one segment; `later` are those behind it.
    fn read_segment(
        &mut self,
        member: Member,
        later: &[Member],
        on_entry: &mut dyn FnMut(BatchEntry<'_>, u64) -> Result<()>,
    ) -> Result<Option<Torn>> {
        let path = self.path(member.number);
        let bytes = self.read(member.number)?;
        let next = later.first().and_then(|next| next.header);
        let (limit, known) =
            next.map_or((bytes.len() as u64, 0), |next| (next.previous_bytes, next.previous_synced));
        let valid = usize::try_from(limit).ok().and_then(|limit| bytes.get(..limit)).unwrap_or(&bytes);
        let start = if member.header.is_some() { HEADER_BYTES } else { 0 };
        let mut reader =
            FrameReader::new(&path, valid, start).with_seed(self.seed(member.number)).with_synced(known);
        let bad = loop {
            if member.header.is_none() {
                break Some(bad_header(&bytes));
            }
            match reader.next_frame() {
                Frame::Record(record) => self.give(&path, member.number, record, on_entry)?,
                Frame::End if reader.offset() == limit => break None,
                Frame::End => break Some(short_segment(reader.offset(), limit)),
                Frame::Bad(bad) => break Some(bad),
            }
        };
        let offset = reader.offset();
        let Some(bad) = bad else {
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number: member.number, bytes: offset, synced });
            return Ok(None);
        };
        if self.is_damage(&bad, member, reader.synced(), &bytes, later)? {
            let what = if member.header.is_none() { "log segment header" } else { "log record" };
            return Err(Error::corruption(&path, bad.offset, what, bad.expected, bad.got));
        }
        let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
        if member.header.is_some() && next.is_none() && rest.iter().all(|&byte| byte == 0) {
            // Room that the writer had prepared: nothing was ever there.
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number: member.number, bytes: offset, synced });
            return Ok(None);
        }
        if member.header.is_none() {
            self.drop_segment(member.number)?;
        } else {
            let synced = reader.synced();
            self.report.segments.push(SegmentEnd { number: member.number, bytes: offset, synced });
            self.report.cuts.push(Cut { file: path, offset, bytes: bytes.len() as u64 - offset });
        }
        Ok(Some(Torn))
    }

    /// Step 4: whether the bad part had been synced.
    fn is_damage(
        &self,
        bad: &BadFrame,
        member: Member,
        synced: u64,
        bytes: &[u8],
        later: &[Member],
    ) -> Result<bool> {
        // The next header speaks of this segment (`synced` counts it); those behind it of later ones.
        let known = later.iter().skip(1).any(|member| member.header.is_some_and(|h| h.previous_synced > 0));
        Ok(synced > bad.offset
            || known
            || proves_synced(bytes, self.seed(member.number), bad.offset, bad.offset)
            || self.is_synced(later)?)
    }

    fn give(
        &mut self,
        path: &Path,
        number: u64,
        record: Record<'_>,
        on_entry: &mut dyn FnMut(BatchEntry<'_>, u64) -> Result<()>,
    ) -> Result<()> {
        for entry in entries(record.payload) {
            let entry = entry.map_err(|damage| damage.at(path, record.offset))?;
            self.report.entries += 1;
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
