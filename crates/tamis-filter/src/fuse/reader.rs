//! Reads binary fuse filters in place: three fingerprints whose exclusive-or is that of the key.

use std::fmt;

use super::{SEGMENT_BITS_MAX, WIDTHS};
use crate::envelope::{self, Envelope};
use crate::{DecodeError, Filter, Probe};

/// A filter of [`crate::Family::Fuse`].
#[derive(Debug, Clone)]
pub struct FuseFilter<D> {
    bytes: D,
    envelope: Envelope,
    width: u8,
    segment_length: u32,
    segment_count_length: u32,
    fuse_seed: u64,
}

/// The finaliser of MurmurHash3.
#[inline]
const fn mix(digest: u64, seed: u64) -> u64 {
    let mut mixed = digest.wrapping_add(seed);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

impl<D: AsRef<[u8]>> FuseFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let [width, segment_bits, reserved @ ..] = envelope::parameter::<4>(&envelope.parameters, 0);
        let segment_count_length = u32::from_le_bytes(envelope::parameter(&envelope.parameters, 4));
        let fuse_seed = u64::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        if !WIDTHS.contains(&width) {
            return refuse("width", u64::from(width));
        }
        if segment_bits > SEGMENT_BITS_MAX {
            return refuse("segment_bits", u64::from(segment_bits));
        }
        if reserved != [0; 2] {
            return refuse("reserved", 1);
        }
        let segment_length = 1_u32 << segment_bits;
        let count = u64::from(segment_count_length) + 2 * u64::from(segment_length);
        let expected = if envelope.key_count == 0 { 0 } else { count * u64::from(width / 8) };
        if envelope.payload_bytes != expected {
            return refuse("payload_bytes", envelope.payload_bytes);
        }
        Ok(Self { bytes, envelope, width, segment_length, segment_count_length, fuse_seed })
    }

    /// The three positions of a mixed digest.
    #[inline]
    fn places(&self, mixed: u64) -> [u64; 3] {
        let mask = u64::from(self.segment_length) - 1;
        let first = ((u128::from(mixed) * u128::from(self.segment_count_length)) >> 64) as u64;
        let second = first + u64::from(self.segment_length);
        let third = second + u64::from(self.segment_length);
        [first, second ^ (mixed >> 18 & mask), third ^ (mixed & mask)]
    }

    #[inline]
    fn fingerprint(&self, payload: &[u8], place: u64) -> Option<u32> {
        let start = place as usize * usize::from(self.width / 8);
        let rest = payload.get(start..)?;
        match self.width {
            8 => rest.first().map(|byte| u32::from(*byte)),
            16 => rest.first_chunk().map(|bytes| u32::from(u16::from_le_bytes(*bytes))),
            _ => rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)),
        }
    }
}

impl<D: AsRef<[u8]>> Filter for FuseFilter<D> {
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        if self.envelope.key_count == 0 {
            return false;
        }
        probe.add_probes(1);
        let payload = envelope::payload(self.bytes.as_ref());
        let mixed = mix(probe.digest(self.envelope.seed), self.fuse_seed);
        let [first, second, third] = self.places(mixed).map(|place| self.fingerprint(payload, place));
        let (Some(first), Some(second), Some(third)) = (first, second, third) else { return true };
        let wanted = (mixed ^ (mixed >> 32)) as u32 & (u32::MAX >> (32 - self.width));
        first ^ second ^ third == wanted
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        let payload = envelope::payload(self.bytes.as_ref());
        let mixed = mix(probe.digest(self.envelope.seed), self.fuse_seed);
        for place in self.places(mixed) {
            tamis_bits::prefetch(payload, place as usize * usize::from(self.width / 8));
        }
    }

    fn key_count(&self) -> u64 {
        self.envelope.key_count
    }

    fn encoded_bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn predicted_fpr(&self) -> Option<f64> {
        Some(if self.envelope.key_count == 0 { 0.0 } else { (-f64::from(self.width)).exp2() })
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        write!(target, "fingerprints of {} bits, segments of {}", self.width, self.segment_length)
    }

    fn verify(&self) -> Result<(), DecodeError> {
        envelope::verify(&self.envelope, self.bytes.as_ref())
    }
}
