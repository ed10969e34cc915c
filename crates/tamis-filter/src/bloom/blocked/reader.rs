//! Reads blocked Bloom filters in place: one line, one cache miss per key.

use std::fmt;

use tamis_bits::{kernel, line};

use crate::bloom::formula::blocked_fpr;
use crate::bloom::lines;
use crate::envelope::{self, ENVELOPE_BYTES, Envelope};
use crate::filter::envelope_methods;
use crate::{DecodeError, Filter, Probe};

/// Lines before the first of the payload.
const ENVELOPE_LINES: usize = ENVELOPE_BYTES / line::LINE_BYTES;
const _: () = assert!(ENVELOPE_LINES * line::LINE_BYTES == ENVELOPE_BYTES);

/// A filter of [`crate::Family::BlockedBloom`].
#[derive(Debug, Clone)]
pub struct BlockedBloomFilter<D> {
    bytes: D,
    envelope: Envelope,
    line_count: u64,
    probe_count: u32,
}

impl<D: AsRef<[u8]>> BlockedBloomFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let [probe_count] = envelope::parameter(&envelope.parameters, 0);
        envelope::check_reserved(&envelope.parameters, 1)?;
        if !lines::is_possible_probe_count(u32::from(probe_count)) {
            return Err(DecodeError::Field { field: "probe_count", got: u64::from(probe_count) });
        }
        let line_count = envelope.payload_bytes / line::LINE_BYTES as u64;
        if !envelope.payload_bytes.is_multiple_of(line::LINE_BYTES as u64)
            || (line_count == 0) != (envelope.key_count == 0)
        {
            return Err(DecodeError::Field { field: "payload_bytes", got: envelope.payload_bytes });
        }
        Ok(Self { bytes, envelope, line_count, probe_count: u32::from(probe_count) })
    }

    /// Whether the line of a digest has all its bits set; `true` if the line is outside the bytes.
    #[inline]
    fn holds(&self, digest: u64) -> bool {
        let (lines, _) = self.bytes.as_ref().as_chunks::<{ line::LINE_BYTES }>();
        let index = line::line_index(digest, self.line_count) as usize + ENVELOPE_LINES;
        lines
            .get(index)
            .is_none_or(|line| kernel::line_contains(line, line::pattern(digest), self.probe_count))
    }

    /// [`Filter::may_contain`] for a digest that is not cheap. A separate function, so that short keys need no stack
    /// frame.
    #[inline(never)]
    fn may_contain_long(&self, probe: &Probe<'_>) -> bool {
        self.holds(probe.digest(self.envelope.seed))
    }
}

impl<D: AsRef<[u8]>> Filter for BlockedBloomFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        if self.line_count == 0 {
            return false;
        }
        probe.add_probes(1);
        match probe.quick_digest(self.envelope.seed) {
            Some(digest) => self.holds(digest),
            None => self.may_contain_long(probe),
        }
    }

    #[inline]
    fn prefetch(&self, probe: &Probe<'_>) {
        let lines = envelope::payload(self.bytes.as_ref());
        line::prefetch_line(lines, self.line_count, probe.digest(self.envelope.seed));
    }

    envelope_methods!(self, self.envelope);

    fn predicted_fpr(&self) -> Option<f64> {
        if self.line_count == 0 {
            return Some(0.0);
        }
        let keys_per_line = self.envelope.key_count as f64 / self.line_count as f64;
        Some(blocked_fpr(lines::LINE_BITS, keys_per_line, self.probe_count))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        write!(target, "{} lines of 512 bits, {} bits set by a key", self.line_count, self.probe_count)
    }
}
