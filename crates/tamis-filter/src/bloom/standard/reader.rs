//! Reads standard Bloom filters in place; stops at the first bit that is not set.

use std::fmt;

use tamis_bits::kernel::Step;

use super::{PROBE_MAX, SCHEME_DOUBLE, place};
use crate::bloom::formula::standard_fpr;
use crate::envelope::{self, Envelope};
use crate::{DecodeError, Filter, Probe};

/// A filter of [`crate::Family::Standard`].
#[derive(Debug, Clone)]
pub struct StandardFilter<D> {
    bytes: D,
    envelope: Envelope,
    probe_count: u32,
    bit_count: u64,
}

impl<D: AsRef<[u8]>> StandardFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let [probe_count, scheme] = envelope::parameter(&envelope.parameters, 0);
        envelope::check_reserved(&envelope.parameters, 2)?;
        if !(1..=PROBE_MAX).contains(&u32::from(probe_count)) {
            return Err(DecodeError::Field { field: "probe_count", got: u64::from(probe_count) });
        }
        if scheme != SCHEME_DOUBLE {
            return Err(DecodeError::Field { field: "scheme", got: u64::from(scheme) });
        }
        if !envelope.payload_bytes.is_multiple_of(8)
            || (envelope.payload_bytes == 0) != (envelope.key_count == 0)
        {
            return Err(DecodeError::Field { field: "payload_bytes", got: envelope.payload_bytes });
        }
        let bit_count = envelope.payload_bytes.saturating_mul(8);
        Ok(Self { bytes, envelope, probe_count: u32::from(probe_count), bit_count })
    }

    #[inline]
    fn has_bit(&self, payload: &[u8], value: u64) -> bool {
        let place = place(value, self.bit_count);
        payload.get((place / 8) as usize).is_none_or(|byte| byte >> (place % 8) & 1 == 1)
    }
}

impl<D: AsRef<[u8]>> Filter for StandardFilter<D> {
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        if self.bit_count == 0 {
            return false;
        }
        probe.add_probes(1);
        let payload = envelope::payload(self.bytes.as_ref());
        let mut value = probe.digest(self.envelope.seed);
        let step = Step::Mixed.of(value);
        for _ in 0..self.probe_count {
            if !self.has_bit(payload, value) {
                return false;
            }
            value = value.wrapping_add(step);
        }
        true
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        let first = place(probe.digest(self.envelope.seed), self.bit_count);
        tamis_bits::prefetch(envelope::payload(self.bytes.as_ref()), (first / 8) as usize);
    }

    fn key_count(&self) -> u64 {
        self.envelope.key_count
    }

    fn encoded_bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn predicted_fpr(&self) -> Option<f64> {
        if self.bit_count == 0 {
            return Some(0.0);
        }
        Some(standard_fpr(
            self.bit_count as f64 / (self.envelope.key_count as f64).max(1.0),
            self.probe_count,
        ))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        write!(target, "{} bits, {} set by a key", self.bit_count, self.probe_count)
    }

    fn verify(&self) -> Result<(), DecodeError> {
        envelope::verify(&self.envelope, self.bytes.as_ref())
    }
}
