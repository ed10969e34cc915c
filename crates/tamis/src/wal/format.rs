//! The header of a log segment (`docs/format/wal.md`, "Segment header").

use std::path::Path;

use crate::{
    coding::{CHECKSUM_BYTES, Decoder, checksum, put_u32, put_u64},
    error::{Error, Result},
};

/// The first bytes of a segment: "TMwl".
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"TMwl");
/// The version that this program reads and writes.
const VERSION: u32 = 2;
/// Bytes of the header, in every version.
pub(crate) const HEADER_BYTES: u64 = 64;

/// The header of a segment, which also describes the segment before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) database_id: u64,
    pub(crate) number: u64,
    /// The segment that this one continues; 0 if there is none.
    pub(crate) previous: u64,
    /// Length of the valid part of the previous segment; bytes after it are not part of the log.
    pub(crate) previous_bytes: u64,
    /// The offset up to which the previous segment was known to be synced when this header was written.
    pub(crate) previous_synced: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize);
        put_u32(&mut bytes, MAGIC);
        put_u32(&mut bytes, VERSION);
        for field in
            [self.database_id, self.number, self.previous, self.previous_bytes, self.previous_synced, 0]
        {
            put_u64(&mut bytes, field);
        }
        let sum = checksum(0, &bytes);
        put_u64(&mut bytes, sum);
        bytes
    }

    /// The header at the front of `bytes`; `None` if it is torn or damaged, which the reader decides. Also `None` if it is
    /// that of a segment below `first_needed`: the file was recycled, and the new header did not reach the disk.
    ///
    /// # Errors
    /// A valid header of another version, another database, or another number.
    pub(crate) fn decode(
        bytes: &[u8],
        file: &Path,
        database_id: u64,
        number: u64,
        first_needed: u64,
    ) -> Result<Option<Self>> {
        let mut decoder = Decoder::new(bytes);
        let (Some(covered), Some(sum)) =
            (decoder.take(HEADER_BYTES as usize - CHECKSUM_BYTES), decoder.take_u64())
        else {
            return Ok(None);
        };
        if checksum(0, covered) != sum {
            return Ok(None);
        }
        let mut fields = Decoder::new(covered);
        let (Some(MAGIC), Some(version)) = (fields.take_u32(), fields.take_u32()) else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(Error::UnknownFormat { file: file.to_path_buf(), found: version, known: VERSION });
        }
        let mut next = || fields.take_u64().unwrap_or_default();
        let header = Self {
            database_id: next(),
            number: next(),
            previous: next(),
            previous_bytes: next(),
            previous_synced: next(),
        };
        let reserved = next();
        let refuse = |offset, expected: String, got: u64| {
            Err(Error::corruption(file, offset, "log segment header", expected, got.to_string()))
        };
        if header.database_id != database_id {
            return refuse(8, format!("database id {database_id}"), header.database_id);
        }
        if header.number < number.min(first_needed) {
            return Ok(None);
        }
        if header.number != number {
            return refuse(16, format!("segment number {number}"), header.number);
        }
        if header.previous >= number {
            return refuse(24, format!("a previous segment below {number}"), header.previous);
        }
        if header.previous != 0 && header.previous_bytes < HEADER_BYTES {
            return refuse(32, format!("at least {HEADER_BYTES} bytes"), header.previous_bytes);
        }
        if header.previous_synced > header.previous_bytes {
            return refuse(40, format!("at most {}", header.previous_bytes), header.previous_synced);
        }
        if reserved != 0 {
            return refuse(48, "0 (reserved)".to_owned(), reserved);
        }
        Ok(Some(header))
    }
}

/// The database and the number in the header of a segment, if the header is valid.
pub(crate) fn identity_of(segment: &[u8]) -> Option<(u64, u64)> {
    let mut source = Decoder::new(segment);
    let (covered, sum) = (source.take(HEADER_BYTES as usize - CHECKSUM_BYTES)?, source.take_u64()?);
    let mut fields = Decoder::new(covered);
    // They have the same offsets in every version.
    let (magic, _version) = (fields.take_u32()?, fields.take_u32()?);
    let identity = (fields.take_u64()?, fields.take_u64()?);
    (magic == MAGIC && sum == checksum(0, covered)).then_some(identity)
}

/// As [`identity_of`], only the database.
pub(crate) fn database_id_of(segment: &[u8]) -> Option<u64> {
    identity_of(segment).map(|(id, _)| id)
}

/// The seed of the record checksums of a segment: a record of another segment or database is not valid here.
pub(crate) fn segment_seed(database_id: u64, number: u64) -> u64 {
    checksum(number, &database_id.to_le_bytes())
}

#[cfg(test)]
mod tests;
