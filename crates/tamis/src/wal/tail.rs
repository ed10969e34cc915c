//! Reads the records that a writer has appended to the log since a reader last looked.
//!
//! The reader stops before the first bytes that are no complete record: the writer may be appending it. It continues in the next segment when that says
//! that it continues the last one where the reader stands. In any other case (the segment is gone, the next one begins earlier, because a record was
//! refused, or later, because a record is damaged) a full replay decides.

use std::path::Path;

use tamis_vfs::Folder;

use super::{
    format::{HEADER_BYTES, SegmentHeader, segment_seed},
    reader::{RecordPlace, list},
    writer::SegmentEnd,
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    frame::{Frame, FrameReader, FrameSource as _, file_bytes::FileBytes},
};

/// The step after a record.
pub(crate) enum AfterRecord {
    Continue,
    /// The end: the record was read.
    Stop,
    /// The end: the record will be read again.
    Leave,
}

/// Calls `on_record` with the payload, the place and the file of each record behind the end of `log`, the segments that were read, and moves this end
/// behind the record. Returns whether the log continues there: `false` if only a replay can tell.
///
/// # Errors
/// Those of `on_record`; the system's.
pub(crate) fn read_tail(
    folder: &Folder,
    database_id: u64,
    log: &mut Vec<SegmentEnd>,
    mut on_record: impl FnMut(&[u8], RecordPlace, &Path) -> Result<AfterRecord>,
) -> Result<bool> {
    // The segment after the last one, once it exists.
    let mut next: Option<SegmentHeader> = None;
    while let Some(end) = log.last_mut() {
        let path = FileName::Log(end.number).path(folder);
        let limit = next.map_or(u64::MAX, |next| next.previous_bytes);
        let source = match FileBytes::open(folder, &path) {
            Err(Error::MissingFile { .. }) => return Ok(false),
            opened => opened?.limited_to(limit),
        };
        let mut reader =
            FrameReader::new(&path, source, end.bytes).with_seed(segment_seed(database_id, end.number));
        while let Frame::Record(record) = reader.next_frame()? {
            let place = RecordPlace { segment: end.number, offset: record.offset };
            let after = on_record(reader.payload(record)?, place, &path)?;
            if matches!(after, AfterRecord::Leave) {
                return Ok(true);
            }
            end.bytes = record.end;
            if matches!(after, AfterRecord::Stop) {
                return Ok(true);
            }
        }
        let Some(SegmentHeader { number, .. }) = next else {
            // The writer may have appended records before it began another segment: they are read before that one.
            next = next_segment(folder, database_id, end.number)?;
            match next {
                None => return Ok(true),
                Some(next) if next.previous_bytes < end.bytes => return Ok(false),
                Some(_) => continue,
            }
        };
        if end.bytes != limit {
            return Ok(false);
        }
        log.push(SegmentEnd { number, bytes: HEADER_BYTES, synced: 0 });
        next = None;
    }
    Ok(false)
}

/// The segment that continues segment `number`.
fn next_segment(folder: &Folder, database_id: u64, number: u64) -> Result<Option<SegmentHeader>> {
    for entry in list(folder)? {
        let Some(FileName::Log(later)) = FileName::parse(&entry.name).filter(|_| !entry.is_dir) else {
            continue;
        };
        if later <= number {
            continue;
        }
        let path = FileName::Log(later).path(folder);
        let mut source = match FileBytes::open(folder, &path) {
            // It was abandoned.
            Err(Error::MissingFile { .. }) => continue,
            opened => opened?.limited_to(HEADER_BYTES),
        };
        let header =
            SegmentHeader::decode(source.bytes_at(0, HEADER_BYTES)?, &path, database_id, later, later)?;
        if let Some(header) = header.filter(|header| header.previous == number) {
            return Ok(Some(header));
        }
    }
    Ok(None)
}
