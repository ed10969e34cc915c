//! Framing of records in logs: length, synced mark, checksum; shared by the write-ahead log and the manifest.
//!
//! `docs/format/directory.md` ("Records") defines the bytes. A frame lies anywhere in its file, at the end of the frame before it:
//!
//! ```text
//! magic u32 | length u32 | synced u64 | checksum u64 | payload (length bytes)
//! ```
//!
//! 1. The checksum is seeded with the frame's offset (plus a seed of the file), and covers the header before it and the
//!    payload: a frame that is read at another place or in another file is bad.
//! 2. `synced` says up to which offset this file was known to survive the machine when the frame was written. It is a
//!    statement about the past and stays true whatever happens to the file later.
//! 3. A bad frame is *damage* when any later frame's mark lies above its offset (it had been synced, so it was whole
//!    once), and a *torn tail* otherwise: nobody was told that it is durable.
//!
//! Cost: reading checks each byte once and copies none. Only after a bad frame is the rest searched for later frames;
//! a candidate's checksum is computed only where its mark would prove something, and at most
//! [`SEARCH_FACTOR`] times the file is checked, so that hostile bytes can't make the search quadratic.

use std::path::Path;

use crate::{
    coding::{Decoder, checksum, put_u32, put_u64},
    error::{Error, Result},
};

/// The first bytes of every frame: "TMrc".
const MAGIC: u32 = u32::from_le_bytes(*b"TMrc");
/// Bytes of the header before its checksum.
const COVERED_BYTES: usize = 16;
/// Bytes of a frame besides its payload.
pub(crate) const FRAME_HEADER_BYTES: usize = 24;
/// The longest payload.
pub(crate) const FRAME_PAYLOAD_MAX: u64 = u32::MAX as u64;
/// How many times the rest of a file may be checked while it is searched for later frames.
const SEARCH_FACTOR: u64 = 8;

/// Appends the frame of `payload` to `target`, for a file without a seed. `offset` is where the frame will stand.
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
    debug_assert!(synced <= offset, "a mark never lies above its own frame");
    let total: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let length =
        u32::try_from(total).map_err(|_| Error::BatchTooLarge { length: total, limit: FRAME_PAYLOAD_MAX })?;
    target.reserve(FRAME_HEADER_BYTES + length as usize);
    let start = target.len();
    put_u32(target, MAGIC);
    put_u32(target, length);
    put_u64(target, synced);
    put_u64(target, 0);
    for part in parts {
        target.extend_from_slice(part);
    }
    let (_, frame) = target.split_at_mut(start);
    let (header, rest) = frame.split_at_mut(COVERED_BYTES);
    let (field, payload) = rest.split_at_mut(FRAME_HEADER_BYTES - COVERED_BYTES);
    field.copy_from_slice(&frame_checksum(seed, offset, header, payload).to_le_bytes());
    Ok(())
}

/// Writes the frames that stand one behind the other in `bytes` anew for another place: the first at `offset` of a file
/// with this seed of which nothing is synced. Their payloads stay as they are.
pub(crate) fn move_frames(bytes: &mut [u8], seed: u64, mut offset: u64) {
    let mut rest = bytes;
    while rest.len() >= FRAME_HEADER_BYTES {
        let (header, behind) = rest.split_at_mut(COVERED_BYTES);
        let (field, behind) = behind.split_at_mut(FRAME_HEADER_BYTES - COVERED_BYTES);
        let (length_field, mark) = header.split_at_mut(8);
        mark.fill(0);
        let mut decoder = Decoder::new(length_field);
        let (_, length) = (decoder.take_u32(), decoder.take_u32());
        let length = length.map_or(0, |length| length as usize).min(behind.len());
        let (payload, next) = behind.split_at_mut(length);
        field.copy_from_slice(&frame_checksum(seed, offset, header, payload).to_le_bytes());
        offset += (FRAME_HEADER_BYTES + length) as u64;
        rest = next;
    }
}

/// The header's own checksum seeds that of the payload, so that neither has to be copied beside the other.
fn frame_checksum(seed: u64, offset: u64, header: &[u8], payload: &[u8]) -> u64 {
    checksum(checksum(seed.wrapping_add(offset), header), payload)
}

/// A frame as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Where the frame stands.
    pub(crate) offset: u64,
    /// Up to where the file was synced when the frame was written.
    pub(crate) synced: u64,
    pub(crate) payload: &'a [u8],
}

impl Record<'_> {
    /// The offset behind the frame.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + (FRAME_HEADER_BYTES + self.payload.len()) as u64
    }
}

/// Why the bytes at an offset are no frame.
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

    /// The error that says that this frame is damage.
    pub(crate) fn damage(self, file: &Path) -> Error {
        Error::corruption(file, self.offset, "record", self.expected, self.got)
    }
}

/// What stands at a reader's offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Record(Record<'a>),
    /// The file ends behind a whole frame.
    End,
    Bad(BadFrame),
}

/// A torn end that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// Where the torn frame begins; the file is valid up to here.
    pub(crate) offset: u64,
    /// Bytes from there to the end of the file.
    pub(crate) bytes: u64,
}

/// Reads the frames of a whole file one after the other.
#[derive(Debug, Clone)]
pub(crate) struct FrameReader<'a> {
    file: &'a Path,
    bytes: &'a [u8],
    seed: u64,
    offset: u64,
    /// The greatest mark seen or told.
    synced: u64,
    torn: Option<TornTail>,
}

impl<'a> FrameReader<'a> {
    /// A reader over the whole file's `bytes` whose first frame stands at `start`.
    pub(crate) const fn new(file: &'a Path, bytes: &'a [u8], start: u64) -> Self {
        Self { file, bytes, seed: 0, offset: start, synced: 0, torn: None }
    }

    /// Names the seed with which the file's frames were written.
    pub(crate) const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Tells that the file is known, from elsewhere, to have been synced up to `offset`.
    pub(crate) fn with_synced(mut self, offset: u64) -> Self {
        self.synced = self.synced.max(offset);
        self
    }

    /// Where the next frame is expected: behind the last whole one.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The greatest synced mark seen or told.
    pub(crate) const fn synced(&self) -> u64 {
        self.synced
    }

    /// The torn end, once [`FrameReader::next_record`] gave `None` because of one.
    pub(crate) const fn torn_tail(&self) -> Option<TornTail> {
        self.torn
    }

    /// What stands at the offset, without judging a bad frame. Moves behind a whole frame.
    pub(crate) fn next_frame(&mut self) -> Frame<'a> {
        let frame = frame_at(self.bytes, self.seed, self.offset);
        if let Frame::Record(record) = &frame {
            self.offset = record.end();
            self.synced = self.synced.max(record.synced);
        }
        frame
    }

    /// The next record; `None` at the end, torn or not.
    ///
    /// # Errors
    /// [`Error::Corruption`] for a bad frame that had been synced (rule 3 above).
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'a>>> {
        match self.next_frame() {
            Frame::Record(record) => Ok(Some(record)),
            Frame::End if self.offset >= self.synced => Ok(None),
            Frame::End => Err(self.bad_end().damage(self.file)),
            Frame::Bad(bad) if self.is_damage(bad.offset) => Err(bad.damage(self.file)),
            Frame::Bad(_) => {
                let bytes = (self.bytes.len() as u64).saturating_sub(self.offset);
                self.torn = Some(TornTail { offset: self.offset, bytes });
                Ok(None)
            }
        }
    }

    /// Whether a bad frame at `offset` had been synced, as this file's own marks prove.
    pub(crate) fn is_damage(&self, offset: u64) -> bool {
        self.synced > offset || proves_synced(self.bytes, self.seed, offset.saturating_add(1), offset)
    }

    /// The file ends here, but frames were synced behind its end.
    pub(crate) fn bad_end(&self) -> BadFrame {
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

fn parse(rest: &[u8], seed: u64, offset: u64) -> Result<Record<'_>, BadFrame> {
    let header = rest.get(..COVERED_BYTES).unwrap_or_default();
    let mut decoder = Decoder::new(rest);
    let fields = (decoder.take_u32(), decoder.take_u32(), decoder.take_u64(), decoder.take_u64());
    let (Some(magic), Some(length), Some(synced), Some(sum)) = fields else {
        return Err(BadFrame::new(
            offset,
            format!("a header of {FRAME_HEADER_BYTES} bytes"),
            format!("{} bytes to the end of the file", rest.len()),
        ));
    };
    if magic != MAGIC {
        return Err(BadFrame::new(offset, format!("magic {MAGIC:#010x}"), format!("{magic:#010x}")));
    }
    if synced > offset {
        return Err(BadFrame::new(offset, "a synced mark at or below the offset", format!("mark {synced}")));
    }
    let left = decoder.rest().len();
    let Some(payload) = decoder.take(length as usize) else {
        return Err(BadFrame::new(offset, format!("a payload of {length} bytes"), format!("{left} bytes")));
    };
    let expected = frame_checksum(seed, offset, header, payload);
    if sum != expected {
        return Err(BadFrame::new(offset, format!("checksum {sum:#018x}"), format!("{expected:#018x}")));
    }
    Ok(Record { offset, synced, payload })
}

/// Whether any whole frame at or after `start` says that the file was synced to an offset greater than `above`.
///
/// Bytes that look like more frames than a log can hold count as proof: what can't be told is never thrown away.
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

/// The payload's length where the front of `rest` may be a frame whose mark lies above `above`.
fn candidate_length(rest: &[u8], offset: u64, above: u64) -> Option<u64> {
    let mut decoder = Decoder::new(rest);
    let is_magic = decoder.take_u32()? == MAGIC;
    let length = decoder.take_u32()?;
    let synced = decoder.take_u64()?;
    let fits = FRAME_HEADER_BYTES as u64 + u64::from(length) <= rest.len() as u64;
    (is_magic && synced > above && synced <= offset && fits).then_some(u64::from(length))
}

#[cfg(test)]
mod tests;
