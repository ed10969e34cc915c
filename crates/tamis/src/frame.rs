//! Framing of records in logs: length, synced mark, checksum. Shared by the write-ahead log and the manifest.
//!
//! `docs/format/directory.md` ("Records") defines the bytes. A frame can be anywhere in its file, at the end of the frame
//! before it:
//!
//! ```text
//! plain:   0x50 u8   | checksum u64 | length varint | payload (length bytes)
//! marked:  magic u32 | checksum u64 | length varint | distance varint | payload (length bytes)
//! ```
//!
//! 1. The checksum is seeded with the frame's offset (plus a seed of the file), and covers all bytes after it: a frame that
//!    is read at another place or in another file is bad.
//! 2. The mark of a marked frame is the offset up to which this file was known to be synced when the frame was written:
//!    `distance` bytes before the frame. It is a statement about the past and stays true regardless of later changes of the file
//!    later. A plain frame was written while no offset was known to be synced.
//! 3. A bad frame is *damage* if the mark of any later frame is above its offset (it was synced, so it was valid once), and
//!    a *torn tail* otherwise: its durability was never acknowledged. Only marked frames prove damage, so only they begin
//!    with four bytes by which a search finds them.
//!
//! A file is in memory, or read in pieces ([`FrameSource`]): then only a frame that is longer than a piece takes more memory.
//!
//! Cost: a reader checks each byte once and copies none. Only after a bad frame is the rest searched for later frames. The
//! checksum of a candidate is computed only if its mark would prove something, and at most [`SEARCH_FACTOR`] times the file
//! is checked, so that hostile bytes can't make the search quadratic.

pub(crate) mod file_bytes;

use std::path::Path;

use crate::{
    coding::{CHECKSUM_BYTES, Decoder, checksum, put_u32, put_u64, put_varint, varint_length},
    error::{Error, Result},
};

/// The first bytes of a marked frame: "TMrc".
const MAGIC: u32 = u32::from_le_bytes(*b"TMrc");
/// The first byte of a plain frame: "P". Not zero, the byte of preallocated room in a log.
const PLAIN: u8 = b'P';
/// The longest payload.
pub(crate) const FRAME_PAYLOAD_MAX: u64 = u32::MAX as u64;
/// How many times the rest of a file may be checked while it is searched for later frames.
const SEARCH_FACTOR: u64 = 8;

/// Appends the frame of `payload` to `target`, for a file without a seed. `offset` is the offset of the frame in the file.
///
/// # Errors
/// [`Error::BatchTooLarge`] for a payload that does not fit the frame's length.
pub(crate) fn put_frame(target: &mut Vec<u8>, offset: u64, synced: u64, payload: &[u8]) -> Result<()> {
    put_frame_parts(target, 0, offset, synced, &[payload])
}

/// As [`put_frame`], with the file's seed and a payload in parts.
pub(crate) fn put_frame_parts(
    target: &mut Vec<u8>,
    seed: u64,
    offset: u64,
    synced: u64,
    parts: &[&[u8]],
) -> Result<()> {
    debug_assert!(synced <= offset, "a mark is not above its own frame");
    let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
    if length > FRAME_PAYLOAD_MAX {
        return Err(Error::BatchTooLarge { length, limit: FRAME_PAYLOAD_MAX });
    }
    target.reserve(frame_bytes(offset, synced, length) as usize);
    if synced == 0 {
        target.push(PLAIN);
    } else {
        put_u32(target, MAGIC);
    }
    let field = target.len();
    put_u64(target, 0);
    put_varint(target, length);
    if synced > 0 {
        put_varint(target, offset - synced);
    }
    for part in parts {
        target.extend_from_slice(part);
    }
    if let Some((field, covered)) =
        target.get_mut(field..).and_then(|rest| rest.split_first_chunk_mut::<CHECKSUM_BYTES>())
    {
        *field = checksum(seed.wrapping_add(offset), covered).to_le_bytes();
    }
    Ok(())
}

/// Bytes of the frame at `offset` with this mark and a payload of this length.
pub(crate) const fn frame_bytes(offset: u64, synced: u64, length: u64) -> u64 {
    let own = if synced == 0 {
        size_of::<u8>() + varint_length(length)
    } else {
        size_of_val(&MAGIC) + varint_length(length) + varint_length(offset - synced)
    };
    (own + CHECKSUM_BYTES) as u64 + length
}

/// The consecutive frames in `bytes`, encoded again for another place: the first at `offset` of a file with this seed of
/// which nothing is synced. Their payloads are unchanged.
pub(crate) fn moved_frames(bytes: &[u8], seed: u64, offset: u64) -> Vec<u8> {
    let mut target = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(payload) = fields_of(rest).and_then(|fields| fields.payload) {
        let place = offset + target.len() as u64;
        // It was a payload before, so it is not too long.
        let _ = put_frame_parts(&mut target, seed, place, 0, &[payload.bytes]);
        rest = payload.rest;
    }
    target
}

/// The bytes of a file of frames.
pub(crate) trait FrameSource {
    /// The length of the file.
    fn length_bytes(&self) -> u64;

    /// The bytes from `offset` on: at least `count` of them, or all up to the end of the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn bytes_at(&mut self, offset: u64, count: u64) -> Result<&[u8]>;

    /// Whether the file has only zeros from `offset` on.
    ///
    /// # Errors
    /// Those of the file system.
    fn is_zero_from(&mut self, mut offset: u64) -> Result<bool> {
        while offset < self.length_bytes() {
            let bytes = self.bytes_at(offset, 1)?;
            if bytes.is_empty() || bytes.iter().any(|&byte| byte != 0) {
                return Ok(bytes.is_empty());
            }
            offset += bytes.len() as u64;
        }
        Ok(true)
    }
}

/// A file that is in memory.
impl FrameSource for &[u8] {
    fn length_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn bytes_at(&mut self, offset: u64, _count: u64) -> Result<&[u8]> {
        Ok(usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default())
    }
}

/// A frame that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The offset of the frame.
    pub(crate) offset: u64,
    /// The offset after it.
    pub(crate) end: u64,
    /// The offset up to which the file was synced when the frame was written.
    pub(crate) synced: u64,
    /// Bytes of the payload, at the end of the frame.
    payload_bytes: u64,
}

/// Why there is no valid frame at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadFrame {
    pub(crate) offset: u64,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl BadFrame {
    fn new(offset: u64, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { offset, expected: expected.into(), got: got.into() }
    }

    /// The error for a bad frame that is damage.
    pub(crate) fn damage(self, file: &Path) -> Error {
        Error::corruption(file, self.offset, "record", self.expected, self.got)
    }
}

/// The bytes at a reader's offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Record(Record),
    /// The file ends after a valid frame.
    End,
    Bad(BadFrame),
}

/// A torn tail that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// Offset of the torn frame; the file is valid up to here.
    pub(crate) offset: u64,
    /// Bytes from there to the end of the file.
    pub(crate) bytes: u64,
}

/// Reads the frames of a file in order.
#[derive(Debug, Clone)]
pub(crate) struct FrameReader<'a, S> {
    file: &'a Path,
    source: S,
    seed: u64,
    offset: u64,
    /// The greatest known mark.
    synced: u64,
    torn: Option<TornTail>,
}

impl<'a, S: FrameSource> FrameReader<'a, S> {
    /// A reader of a file whose first frame is at `start`.
    pub(crate) const fn new(file: &'a Path, source: S, start: u64) -> Self {
        Self { file, source, seed: 0, offset: start, synced: 0, torn: None }
    }

    /// Sets the seed with which the file's frames were written.
    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets an offset up to which the file is known, from elsewhere, to be synced.
    pub(crate) fn with_synced(self, offset: u64) -> Self {
        Self { synced: self.synced.max(offset), ..self }
    }

    /// Offset of the next frame: after the last valid one.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The greatest known synced mark.
    pub(crate) const fn synced(&self) -> u64 {
        self.synced
    }

    /// The torn tail, after [`FrameReader::next_record`] returned `None` because of one.
    pub(crate) const fn torn_tail(&self) -> Option<TornTail> {
        self.torn
    }

    /// Reads what is at the offset and moves after a valid frame. Does not decide whether a bad frame is damage.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn next_frame(&mut self) -> Result<Frame> {
        let frame = frame_at(&mut self.source, self.seed, self.offset)?;
        if let Frame::Record(record) = &frame {
            self.offset = record.end;
            self.synced = self.synced.max(record.synced);
        }
        Ok(frame)
    }

    /// The payload of a record that was just read.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn payload(&mut self, record: Record) -> Result<&[u8]> {
        let bytes = self.source.bytes_at(record.end - record.payload_bytes, record.payload_bytes)?;
        let count = usize::try_from(record.payload_bytes).unwrap_or(usize::MAX);
        Ok(bytes.get(..count).unwrap_or_default())
    }

    /// The next record; `None` at the end, torn or not.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a bad frame that was synced (rule 3 above); those of the source.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record>> {
        match self.next_frame()? {
            Frame::Record(record) => Ok(Some(record)),
            Frame::End if self.offset >= self.synced => Ok(None),
            Frame::End => Err(self.missing_frames().damage(self.file)),
            Frame::Bad(bad) if self.is_damage(bad.offset)? => Err(bad.damage(self.file)),
            Frame::Bad(_) => {
                let bytes = self.source.length_bytes().saturating_sub(self.offset);
                self.torn = Some(TornTail { offset: self.offset, bytes });
                Ok(None)
            }
        }
    }

    /// Whether a bad frame at `offset` was synced, as the marks in this file prove.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn is_damage(&mut self, offset: u64) -> Result<bool> {
        Ok(self.synced > offset
            || proves_synced(&mut self.source, self.seed, offset.saturating_add(1), offset)?)
    }

    /// The file ends here, but frames after its end were synced.
    pub(crate) fn missing_frames(&self) -> BadFrame {
        BadFrame::new(
            self.offset,
            format!("records up to offset {}", self.synced),
            "the end of the file".to_owned(),
        )
    }
}

/// The longest header of a frame.
const HEADER_BYTES_MAX: u64 = (size_of::<u32>() + CHECKSUM_BYTES + 5 + 10) as u64;

fn frame_at(source: &mut impl FrameSource, seed: u64, offset: u64) -> Result<Frame> {
    let left = match source.length_bytes().checked_sub(offset) {
        None => return Ok(Frame::Bad(BadFrame::new(offset, "a record", "the end of the file"))),
        Some(0) => return Ok(Frame::End),
        Some(left) => left,
    };
    let mut rest = source.bytes_at(offset, HEADER_BYTES_MAX)?;
    if let Some(needed) = fields_of(rest).map(|fields| fields.frame_bytes())
        && needed > rest.len() as u64
        && needed <= left
    {
        rest = source.bytes_at(offset, needed)?;
    }
    Ok(match parse(rest, seed, offset, left) {
        Ok(record) => Frame::Record(record),
        Err(bad) => Frame::Bad(bad),
    })
}

/// The fields at the front of bytes that begin as a frame does.
struct Fields<'a> {
    sum: u64,
    length: u64,
    /// Bytes from the mark to the frame; `None` for a plain frame.
    distance: Option<u64>,
    /// Bytes of the fields.
    header_bytes: usize,
    /// `None` if there are fewer bytes than the length says.
    payload: Option<Payload<'a>>,
}

impl Fields<'_> {
    const fn frame_bytes(&self) -> u64 {
        self.header_bytes as u64 + self.length
    }
}

struct Payload<'a> {
    bytes: &'a [u8],
    /// The bytes that the checksum covers.
    covered: &'a [u8],
    /// The bytes after the frame.
    rest: &'a [u8],
}

fn fields_of(rest: &[u8]) -> Option<Fields<'_>> {
    let mut decoder = Decoder::new(rest);
    let is_marked = rest.first() != Some(&PLAIN);
    let begins = if is_marked { decoder.take_u32()? == MAGIC } else { decoder.take_u8()? == PLAIN };
    let sum = decoder.take_u64().filter(|_| begins)?;
    let covered = decoder.rest();
    let length = decoder.take_varint().filter(|length| *length <= FRAME_PAYLOAD_MAX)?;
    let distance = if is_marked { Some(decoder.take_varint()?) } else { None };
    let header_bytes = rest.len() - decoder.rest().len();
    let payload = usize::try_from(length).ok().and_then(|length| decoder.take(length));
    let payload = payload.and_then(|bytes| {
        let rest = decoder.rest();
        Some(Payload { bytes, covered: covered.get(..covered.len() - rest.len())?, rest })
    });
    Some(Fields { sum, length, distance, header_bytes, payload })
}

/// The frame at the front of `rest`, which has the whole frame or all bytes up to the end of the file. From `offset` on, the file has
/// `left` bytes.
fn parse(rest: &[u8], seed: u64, offset: u64, left: u64) -> Result<Record, BadFrame> {
    let Some(fields) = fields_of(rest) else {
        let first: Vec<String> = rest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        return Err(BadFrame::new(
            offset,
            "the header of a record",
            format!("{} with {left} bytes to the end of the file", first.join(" ")),
        ));
    };
    let Fields { sum, length, distance, header_bytes, payload } = fields;
    let synced = match distance {
        None => 0,
        Some(distance) => match offset.checked_sub(distance) {
            Some(synced) if synced > 0 => synced,
            _ => {
                let expected = "a synced mark above 0 and at or below the offset";
                return Err(BadFrame::new(offset, expected, format!("one {distance} bytes before it")));
            }
        },
    };
    let Some(payload) = payload else {
        let got = format!("{} bytes", left.saturating_sub(header_bytes as u64));
        return Err(BadFrame::new(offset, format!("a payload of {length} bytes"), got));
    };
    let expected = checksum(seed.wrapping_add(offset), payload.covered);
    if sum != expected {
        return Err(BadFrame::new(offset, format!("checksum {sum:#018x}"), format!("{expected:#018x}")));
    }
    let end = offset + (rest.len() - payload.rest.len()) as u64;
    Ok(Record { offset, end, synced, payload_bytes: length })
}

/// Whether any valid frame at or after `start` says that the file was synced to an offset greater than `above`.
///
/// Bytes that look like more frames than a log can have count as proof: what can't be decided is not discarded.
///
/// # Errors
/// Those of the source.
pub(crate) fn proves_synced(
    source: &mut impl FrameSource,
    seed: u64,
    start: u64,
    above: u64,
) -> Result<bool> {
    let length = source.length_bytes();
    let mut budget = length.saturating_sub(start).saturating_mul(SEARCH_FACTOR);
    let mut offset = start;
    let first = MAGIC.to_le_bytes()[0];
    while offset < length {
        let bytes = source.bytes_at(offset, 1)?;
        let Some(skipped) = bytes.iter().position(|&byte| byte == first) else {
            offset += bytes.len().max(1) as u64;
            continue;
        };
        offset += skipped as u64;
        let rest = source.bytes_at(offset, HEADER_BYTES_MAX)?;
        if let Some((payload_bytes, frame_bytes)) = candidate(rest, offset, above, length - offset) {
            let rest = source.bytes_at(offset, frame_bytes)?;
            if parse(rest, seed, offset, length - offset).is_ok() {
                return Ok(true);
            }
            match budget.checked_sub(payload_bytes) {
                Some(left) => budget = left,
                None => return Ok(true),
            }
        }
        offset += 1;
    }
    Ok(false)
}

/// The bytes of the payload and of the frame, if `rest` may begin with a frame whose mark is above `above`, of a file with `left`
/// bytes from there on.
fn candidate(rest: &[u8], offset: u64, above: u64, left: u64) -> Option<(u64, u64)> {
    let fields = fields_of(rest)?;
    let synced = offset.checked_sub(fields.distance?)?;
    let frame_bytes = fields.frame_bytes();
    (synced > above && frame_bytes <= left).then_some((fields.length, frame_bytes))
}

#[cfg(test)]
mod tests;
