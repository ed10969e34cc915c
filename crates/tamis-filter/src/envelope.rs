//! The 64 bytes in front of every encoded filter, defined in `docs/format/filter.md`.
//!
//! The payload begins at byte 64, so that its lines are cache lines if the filter is aligned to one. Opening checks
//! the header and its checksum and reads nothing else; [`verify`] reads the payload.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{DecodeError, Family};

/// Bytes before the payload.
pub const ENVELOPE_BYTES: usize = 64;

/// Bytes of a family's parameters in the envelope.
pub const PARAMETER_BYTES: usize = 16;

/// `TFLT`, read as a little-endian integer.
const MAGIC: u32 = u32::from_le_bytes(*b"TFLT");
const VERSION: u8 = 1;
/// Number of the digest function of `hash.rs`.
const DIGEST: u8 = 1;

/// Fields of the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Number of the family.
    pub family: u16,
    /// Seed of the digests in the filter.
    pub seed: u64,
    /// Bytes after the envelope.
    pub payload_bytes: u64,
    /// Distinct keys.
    pub key_count: u64,
    /// Checksum of the payload.
    pub payload_checksum: u64,
    /// Parameters of the family.
    pub parameters: [u8; PARAMETER_BYTES],
}

impl Envelope {
    /// An envelope to be sealed.
    pub fn new(family: Family, seed: u64, key_count: u64, parameters: [u8; PARAMETER_BYTES]) -> Self {
        Self { family: family as u16, seed, payload_bytes: 0, key_count, payload_checksum: 0, parameters }
    }

    /// Reads and checks the header; `total_bytes` is the length of the whole filter.
    pub fn parse(bytes: &[u8], total_bytes: u64) -> Result<Self, DecodeError> {
        let too_short = DecodeError::Length { expected: ENVELOPE_BYTES as u64, got: bytes.len() as u64 };
        let header = bytes.first_chunk::<ENVELOPE_BYTES>().ok_or(too_short)?;
        let magic = u32::from_le_bytes(parameter(header, 0));
        if magic != MAGIC {
            return Err(DecodeError::Magic { got: magic });
        }
        let [version, digest] = parameter(header, 4);
        if version != VERSION {
            return Err(DecodeError::Version { got: version, max: VERSION });
        }
        let expected = u64::from_le_bytes(parameter(header, 56));
        let got = header_checksum(header);
        if got != expected {
            return Err(DecodeError::Checksum { part: "header", expected, got });
        }
        if digest != DIGEST {
            return Err(DecodeError::Digest { got: digest });
        }
        let envelope = Self {
            family: u16::from_le_bytes(parameter(header, 6)),
            seed: u64::from_le_bytes(parameter(header, 8)),
            payload_bytes: u64::from_le_bytes(parameter(header, 16)),
            key_count: u64::from_le_bytes(parameter(header, 24)),
            payload_checksum: u64::from_le_bytes(parameter(header, 32)),
            parameters: parameter(header, 40),
        };
        let expected = envelope.payload_bytes.saturating_add(ENVELOPE_BYTES as u64);
        if expected != total_bytes {
            return Err(DecodeError::Length { expected, got: total_bytes });
        }
        Ok(envelope)
    }

    /// Writes the envelope into the first bytes of a filter with a complete payload. Computes payload length and
    /// checksum, regardless of the content of the fields.
    pub fn seal(mut self, filter: &mut [u8]) {
        let (header, payload) = filter.split_at_mut(ENVELOPE_BYTES);
        self.payload_bytes = payload.len() as u64;
        self.payload_checksum = payload_checksum(self.seed, payload);
        let fields: [&[u8]; 9] = [
            &MAGIC.to_le_bytes(),
            &[VERSION, DIGEST],
            &self.family.to_le_bytes(),
            &self.seed.to_le_bytes(),
            &self.payload_bytes.to_le_bytes(),
            &self.key_count.to_le_bytes(),
            &self.payload_checksum.to_le_bytes(),
            &self.parameters,
            &[0; 8],
        ];
        for (target, source) in header.iter_mut().zip(fields.iter().flat_map(|field| field.iter())) {
            *target = *source;
        }
        let checksum = header.first_chunk().map_or(0, header_checksum);
        for (target, source) in header.iter_mut().skip(56).zip(checksum.to_le_bytes()) {
            *target = source;
        }
    }
}

/// Bytes of a field of the header or of the parameters.
pub(crate) fn parameter<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let bytes = bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>());
    *bytes.expect("fields are within the header and the parameters")
}

/// Sets a field of the parameters.
pub(crate) fn set_parameter<const N: usize>(
    parameters: &mut [u8; PARAMETER_BYTES],
    offset: usize,
    field: [u8; N],
) {
    let target = parameters.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<N>());
    *target.expect("fields are within the 16 bytes of parameters") = field;
}

/// Instead of a predicted rate.
const NO_PREDICTION: f32 = -1.0;

/// Offset of the predicted rate in the parameters of the families that store one.
const PREDICTED_OFFSET: usize = 4;

/// The predicted rate in the parameters; `None` if the builder predicted none.
pub(crate) fn predicted_fpr(parameters: &[u8; PARAMETER_BYTES]) -> Result<Option<f64>, DecodeError> {
    let predicted = f32::from_le_bytes(parameter(parameters, PREDICTED_OFFSET));
    let is_rate = (0.0..=1.0).contains(&predicted);
    if !is_rate && predicted.to_bits() != NO_PREDICTION.to_bits() {
        return Err(DecodeError::Field { field: "predicted_fpr", got: u64::from(predicted.to_bits()) });
    }
    Ok(is_rate.then(|| f64::from(predicted)))
}

/// Sets the predicted rate.
pub(crate) fn set_predicted_fpr(parameters: &mut [u8; PARAMETER_BYTES], predicted: Option<f64>) {
    let predicted = predicted.map_or(NO_PREDICTION, |rate| rate.clamp(0.0, 1.0) as f32);
    set_parameter(parameters, PREDICTED_OFFSET, predicted.to_le_bytes());
}

/// Returns an error if parameters from `offset` on are not zero.
pub(crate) fn check_reserved(parameters: &[u8; PARAMETER_BYTES], offset: usize) -> Result<(), DecodeError> {
    let reserved = parameters.iter().skip(offset).find(|byte| **byte != 0);
    reserved.map_or(Ok(()), |byte| Err(DecodeError::Field { field: "reserved", got: u64::from(*byte) }))
}

/// Checks the checksum of the payload of a whole filter.
pub fn verify(envelope: &Envelope, filter: &[u8]) -> Result<(), DecodeError> {
    let got = payload_checksum(envelope.seed, payload(filter));
    if got == envelope.payload_checksum {
        Ok(())
    } else {
        Err(DecodeError::Checksum { part: "payload", expected: envelope.payload_checksum, got })
    }
}

/// The bytes after the envelope.
#[inline]
pub fn payload(filter: &[u8]) -> &[u8] {
    match filter.get(ENVELOPE_BYTES..) {
        Some(payload) => payload,
        None => nothing(),
    }
}

/// For bytes that have become shorter. A separate function, so that a query costs only a branch that is never taken.
#[cold]
#[inline(never)]
pub(crate) const fn nothing<T>() -> &'static [T] {
    &[]
}

pub(crate) fn payload_checksum(seed: u64, payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, seed)
}

fn header_checksum(header: &[u8; ENVELOPE_BYTES]) -> u64 {
    xxh3_64_with_seed(header.first_chunk::<56>().expect("a header has 64 bytes"), 0)
}

#[cfg(test)]
mod tests;
