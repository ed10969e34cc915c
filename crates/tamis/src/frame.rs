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
//! Cost: a reader checks each byte once and copies none. Only after a bad frame is the rest searched for later frames. The
//! checksum of a candidate is computed only if its mark would prove something, and at most [`SEARCH_FACTOR`] times the file
//! is checked, so that hostile bytes can't make the search quadratic.

use std::path::Path;

use crate::{
    coding::{Decoder, checksum, put_u32, put_u64, put_varint, varint_length},
    error::{Error, Result},
};

/// The first bytes of a marked frame: "TMrc".
const MAGIC: u32 = u32::from_le_bytes(*b"TMrc");
/// The first byte of a plain frame: "P". Not zero, the byte of preallocated room in a log.
const PLAIN: u8 = b'P';
/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 8;
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

/// A frame that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// The offset of the frame.
    pub(crate) offset: u64,
    /// The offset after it.
    pub(crate) end: u64,
    /// The offset up to which the file was synced when the frame was written.
    pub(crate) synced: u64,
    pub(crate) payload: &'a [u8],
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
pub(crate) enum Frame<'a> {
    Record(Record<'a>),
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
pub(crate) struct FrameReader<'a> {
    file: &'a Path,
    bytes: &'a [u8],
    seed: u64,
    offset: u64,
    /// The greatest known mark.
    synced: u64,
    torn: Option<TornTail>,
}

impl<'a> FrameReader<'a> {
    /// A reader over the `bytes` of a whole file whose first frame is at `start`.
    pub(crate) const fn new(file: &'a Path, bytes: &'a [u8], start: u64) -> Self {
        Self { file, bytes, seed: 0, offset: start, synced: 0, torn: None }
    }

    /// Sets the seed with which the file's frames were written.
    pub(crate) const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets an offset up to which the file is known, from elsewhere, to be synced.
    pub(crate) fn with_synced(mut self, offset: u64) -> Self {
        self.synced = self.synced.max(offset);
        self
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
    pub(crate) fn next_frame(&mut self) -> Frame<'a> {
        let frame = frame_at(self.bytes, self.seed, self.offset);
        if let Frame::Record(record) = &frame {
            self.offset = record.end;
            self.synced = self.synced.max(record.synced);
        }
        frame
    }

    /// The next record; `None` at the end, torn or not.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a bad frame that was synced (rule 3 above).
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'a>>> {
        match self.next_frame() {
            Frame::Record(record) => Ok(Some(record)),
            Frame::End if self.offset >= self.synced => Ok(None),
            Frame::End => Err(self.missing_frames().damage(self.file)),
            Frame::Bad(bad) if self.is_damage(bad.offset) => Err(bad.damage(self.file)),
            Frame::Bad(_) => {
                let bytes = (self.bytes.len() as u64).saturating_sub(self.offset);
                self.torn = Some(TornTail { offset: self.offset, bytes });
                Ok(None)
            }
        }
    }

    /// Whether a bad frame at `offset` was synced, as the marks in this file prove.
    pub(crate) fn is_damage(&self, offset: u64) -> bool {
        self.synced > offset || proves_synced(self.bytes, self.seed, offset.saturating_add(1), offset)
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

fn frame_at(bytes: &[u8], seed: u64, offset: u64) -> Frame<'_> {
    let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..));
    match rest {
        None => Frame::Bad(BadFrame::new(offset, "a record", "the end of the file")),
        Some([]) => Frame::End,
        Some(rest) => match parse(rest, seed, offset) {
            Ok(record) => Frame::Record(record),
            Err(bad) => Frame::Bad(bad),
        },
    }
}

/// The fields at the front of bytes that begin as a frame does.
struct Fields<'a> {
    sum: u64,
    length: u64,
    /// Bytes from the mark to the frame; `None` for a plain frame.
    distance: Option<u64>,
    /// Bytes after the fields.
    left: usize,
    /// `None` if there are fewer bytes than the length says.
    payload: Option<Payload<'a>>,
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
    let left = decoder.rest().len();
    let payload = usize::try_from(length).ok().and_then(|length| decoder.take(length));
    let payload = payload.and_then(|bytes| {
        let rest = decoder.rest();
        Some(Payload { bytes, covered: covered.get(..covered.len() - rest.len())?, rest })
    });
    Some(Fields { sum, length, distance, left, payload })
}

fn parse(rest: &[u8], seed: u64, offset: u64) -> Result<Record<'_>, BadFrame> {
    let Some(fields) = fields_of(rest) else {
        let first: Vec<String> = rest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        return Err(BadFrame::new(
            offset,
            "the header of a record",
            format!("{} with {} bytes to the end of the file", first.join(" "), rest.len()),
        ));
    };
    let Fields { sum, length, distance, left, payload } = fields;
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
        return Err(BadFrame::new(offset, format!("a payload of {length} bytes"), format!("{left} bytes")));
    };
    let expected = checksum(seed.wrapping_add(offset), payload.covered);
    if sum != expected {
        return Err(BadFrame::new(offset, format!("checksum {sum:#018x}"), format!("{expected:#018x}")));
    }
    let end = offset + (rest.len() - payload.rest.len()) as u64;
    Ok(Record { offset, end, synced, payload: payload.bytes })
}

/// Whether any valid frame at or after `start` says that the file was synced to an offset greater than `above`.
///
/// Bytes that look like more frames than a log can have count as proof: what can't be decided is not discarded.
pub(crate) fn proves_synced(bytes: &[u8], seed: u64, start: u64, above: u64) -> bool {
    let Some(mut rest) = usize::try_from(start).ok().and_then(|start| bytes.get(start..)) else {
        return false;
    };
    let mut budget = (rest.len() as u64).saturating_mul(SEARCH_FACTOR);
    let mut offset = start;
    let first = MAGIC.to_le_bytes()[0];
    while let Some(skipped) = rest.iter().position(|&byte| byte == first) {
        rest = rest.get(skipped..).unwrap_or_default();
        offset += skipped as u64;
        if let Some(length) = candidate_length(rest, offset, above) {
            if parse(rest, seed, offset).is_ok() {
                return true;
            }
            match budget.checked_sub(length) {
                Some(left) => budget = left,
                None => return true,
            }
        }
        rest = rest.get(1..).unwrap_or_default();
        offset += 1;
    }
    false
}

/// The payload's length if `rest` may begin with a frame whose mark is above `above`.
fn candidate_length(rest: &[u8], offset: u64, above: u64) -> Option<u64> {
    let fields = fields_of(rest)?;
    let synced = offset.checked_sub(fields.distance?)?;
    (synced > above && fields.payload.is_some()).then_some(fields.length)
}

#[cfg(test)]
mod tests;
