//! The header of an elastic filter: its units, their positions, and the lookup of a key in some of them.

use std::fmt;
use std::ops::Range;

use tamis_bits::{kernel, line};

use super::{DIRECTORY_BYTES, UNITS_MAX};
use crate::bloom::formula::blocked_fpr;
use crate::bloom::lines;
use crate::envelope::{self, ENVELOPE_BYTES, Envelope, payload_checksum};
use crate::{DecodeError, Family, Probe, mix64};

/// An absent key seldom passes more units.
const PREFETCHED_UNITS: usize = 2;

/// Contents of the first [`ElasticHeader::BYTES`] of an elastic filter.
#[derive(Debug, Clone)]
pub struct ElasticHeader {
    envelope: Envelope,
    unit_count: u32,
    /// Bits that a key sets in each unit.
    probe_count: u32,
    line_count: u64,
    checksums: [u64; UNITS_MAX as usize],
}

impl ElasticHeader {
    /// Bytes to read before any unit.
    pub const BYTES: usize = ENVELOPE_BYTES + DIRECTORY_BYTES;

    /// Reads the front of a filter of `total_bytes` in total. Fewer than [`ElasticHeader::BYTES`] suffice if the
    /// filter is shorter.
    pub fn parse(front: &[u8], total_bytes: u64) -> Result<Self, DecodeError> {
        let envelope = Envelope::parse(front, total_bytes)?;
        if envelope.family != Family::Elastic as u16 {
            return Err(DecodeError::Family { got: envelope.family });
        }
        Self::from_envelope(envelope, front)
    }

    pub(super) fn from_envelope(envelope: Envelope, front: &[u8]) -> Result<Self, DecodeError> {
        let [unit_count, probe_count, reserved @ ..] = envelope::parameter::<8>(&envelope.parameters, 0);
        let line_count = u64::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        if u32::from(unit_count) > UNITS_MAX || (unit_count == 0) != (line_count == 0) {
            return refuse("unit_count", u64::from(unit_count));
        }
        if !lines::is_possible_probe_count(u32::from(probe_count)) {
            return refuse("probe_count", u64::from(probe_count));
        }
        if reserved != [0; 6] {
            return refuse("reserved", 1);
        }
        let unit_bytes = line_count.checked_mul(line::LINE_BYTES as u64);
        let units_bytes = unit_bytes.and_then(|bytes| bytes.checked_mul(u64::from(unit_count)));
        let directory_bytes = if unit_count == 0 { 0 } else { DIRECTORY_BYTES };
        if units_bytes.and_then(|bytes| bytes.checked_add(directory_bytes as u64))
            != Some(envelope.payload_bytes)
        {
            return refuse("payload_bytes", envelope.payload_bytes);
        }
        let (directory, _) = envelope::payload(front).as_chunks::<8>();
        if unit_count > 0 && directory.len() < UNITS_MAX as usize {
            let (expected, got) = (Self::BYTES as u64, front.len() as u64);
            return Err(DecodeError::Length { expected, got });
        }
        let mut checksums = [0; UNITS_MAX as usize];
        for (checksum, bytes) in checksums.iter_mut().zip(directory).take(usize::from(unit_count)) {
            *checksum = u64::from_le_bytes(*bytes);
        }
        let (unit_count, probe_count) = (u32::from(unit_count), u32::from(probe_count));
        Ok(Self { envelope, unit_count, probe_count, line_count, checksums })
    }

    /// Number of units on disk.
    pub const fn unit_count(&self) -> u32 {
        self.unit_count
    }

    /// Bytes of each unit.
    pub const fn unit_bytes(&self) -> u64 {
        self.line_count * line::LINE_BYTES as u64
    }

    /// Position of a unit within the encoded filter.
    pub fn unit_range(&self, unit: u32) -> Option<Range<u64>> {
        let start = Self::BYTES as u64 + self.unit_bytes() * u64::from(unit);
        (unit < self.unit_count).then(|| start..start + self.unit_bytes())
    }

    /// The rate of one unit: the factor by which each unit lowers the rate.
    pub fn unit_fpr(&self) -> f64 {
        self.fpr(1)
    }

    /// Checks the length and checksum of a unit.
    pub fn check_unit(&self, unit: u32, bytes: &[u8]) -> Result<(), DecodeError> {
        if bytes.len() as u64 != self.unit_bytes() {
            return Err(DecodeError::Length { expected: self.unit_bytes(), got: bytes.len() as u64 });
        }
        let known = self.checksums.get(unit as usize).filter(|_| unit < self.unit_count);
        let expected = *known.ok_or(DecodeError::Field { field: "unit", got: u64::from(unit) })?;
        let got = payload_checksum(self.envelope.seed.wrapping_add(u64::from(unit)), bytes);
        if got == expected { Ok(()) } else { Err(DecodeError::Checksum { part: "unit", expected, got }) }
    }

    pub(super) const fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Whether all given units, with their numbers, may contain the key; their bytes are those of
    /// [`ElasticHeader::check_unit`]. Costs one digest; without a unit it abstains and costs none.
    #[inline]
    pub fn ask(&self, probe: &Probe<'_>, units: impl Iterator<Item = (u64, impl AsRef<[u8]>)>) -> bool {
        if self.envelope.key_count == 0 {
            return false;
        }
        let mut units = units.peekable();
        if units.peek().is_none() {
            return true;
        }
        let digest = probe.digest(self.envelope.seed);
        units.into_iter().all(|(number, unit)| {
            probe.add_probes(1);
            kernel::may_contain(unit.as_ref(), self.line_count, mix64(digest, number), self.probe_count)
        })
    }

    /// Prefetches the lines of the first of these units, before [`ElasticHeader::ask`].
    #[inline]
    pub fn prefetch(&self, probe: &Probe<'_>, units: impl Iterator<Item = (u64, impl AsRef<[u8]>)>) {
        if self.envelope.key_count == 0 {
            return;
        }
        for (number, unit) in units.take(PREFETCHED_UNITS) {
            let digest = mix64(probe.digest(self.envelope.seed), number);
            line::prefetch_line(unit.as_ref(), self.line_count, digest);
        }
    }

    /// The combined rate of a number of units.
    pub fn fpr(&self, unit_count: u32) -> f64 {
        if self.envelope.key_count == 0 {
            return 0.0;
        }
        let keys_per_line = self.envelope.key_count as f64 / (self.line_count as f64).max(1.0);
        blocked_fpr(lines::LINE_BITS, keys_per_line, self.probe_count).powi(unit_count.cast_signed())
    }

    /// The design and the number of units in memory, for people.
    pub fn design(&self, target: &mut dyn fmt::Write, loaded_count: u32) -> fmt::Result {
        write!(
            target,
            "{loaded_count} of {} units of {} lines of 512 bits, {} bits set by a key in each",
            self.unit_count, self.line_count, self.probe_count
        )
    }
}

#[cfg(test)]
mod tests;
