//! Reads prefix Bloom filters in place.

use std::fmt;

use tamis_bits::{kernel, line};

use super::PREFIXES_MAX;
use super::prefix_set::{PrefixSet, common_prefix};
use crate::bloom::formula::blocked_fpr;
use crate::bloom::lines;
use crate::envelope::{self, Envelope};
use crate::filter::envelope_methods;
use crate::{DecodeError, Filter, Probe, RangeProbe};

/// A filter of [`crate::Family::Prefix`].
#[derive(Debug, Clone)]
pub struct PrefixFilter<D> {
    bytes: D,
    envelope: Envelope,
    line_count: u64,
    prefix_count: u64,
    probe_count: u32,
    set: PrefixSet,
    /// The length of all prefixes in bits, if it is one of at most 64; otherwise 0.
    word_bits: u32,
}

impl<D: AsRef<[u8]>> PrefixFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let [probe_count, counts @ ..] = envelope::parameter::<4>(&envelope.parameters, 0);
        let prefix_count = u64::from_le_bytes(envelope::parameter(&envelope.parameters, 8));
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        if !lines::is_possible_probe_count(u32::from(probe_count)) {
            return refuse("probe_count", u64::from(probe_count));
        }
        if envelope::parameter::<4>(&envelope.parameters, 4) != [0; 4] {
            return refuse("reserved", 1);
        }
        let (set, line_bytes) = match PrefixSet::decode(envelope::payload(bytes.as_ref()), counts) {
            Some((set, lines)) if !set.is_empty() => (set, lines as u64),
            _ => {
                return refuse(
                    "prefix_set",
                    u64::from_le_bytes([counts[0], counts[1], counts[2], 0, 0, 0, 0, 0]),
                );
            }
        };
        let prefixes_max = envelope.key_count.checked_mul(set.per_key_max());
        let is_missing = prefix_count == 0 && envelope.key_count > 0 && !set.lengths.0.is_empty();
        if prefixes_max.is_some_and(|most| prefix_count > most) || is_missing {
            return refuse("prefix_count", prefix_count);
        }
        let line_count = line_bytes / line::LINE_BYTES as u64;
        let is_whole = line_bytes.is_multiple_of(line::LINE_BYTES as u64);
        if !is_whole || (line_count == 0) != (prefix_count == 0) {
            return refuse("payload_bytes", envelope.payload_bytes);
        }
        let probe_count = u32::from(probe_count);
        let word_bits = set.only_length().filter(|length| *length <= 8).map_or(0, |length| length as u32 * 8);
        Ok(Self { bytes, envelope, line_count, prefix_count, probe_count, set, word_bits })
    }

    fn has_digest(&self, digest: u64) -> bool {
        kernel::may_contain(envelope::payload(self.bytes.as_ref()), self.line_count, digest, self.probe_count)
    }

    /// The digest that decides whether the filter may contain a key; `None` if none does.
    #[inline]
    fn digest(&self, probe: &Probe<'_>) -> Option<u64> {
        if self.set.has_points {
            return Some(probe.digest(self.envelope.seed));
        }
        let length = self.set.longest_of_key(probe.key())?;
        Some(probe.prefix_digest(self.envelope.seed, length as u32 * 8))
    }

    #[inline(never)]
    fn set_may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        if self.envelope.key_count == 0 || probe.range().is_empty() {
            return false;
        }
        if let Some(point) = probe.point() {
            return self.may_contain(point);
        }
        let Some(length) = self.set.longest(common_prefix(probe.range())) else { return true };
        probe.add_probes(1);
        self.line_count > 0
            && self.has_digest(probe.lower_prefix_digest(self.envelope.seed, length as u32 * 8))
    }

    /// Whether one of the prefixes between two words may be in the filter, if they are few.
    fn has_word_between(&self, probe: &RangeProbe<'_>, lower: u64, upper: u64) -> bool {
        let shift = 64 - self.word_bits;
        let (first, last) = (lower >> shift, upper >> shift);
        last - first >= PREFIXES_MAX
            || (first..=last).any(|prefix| {
                probe.add_probes(1);
                self.has_digest(probe.word_prefix_digest(self.envelope.seed, prefix << shift, self.word_bits))
            })
    }
}

impl<D: AsRef<[u8]>> Filter for PrefixFilter<D> {
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        probe.add_probes(1);
        self.envelope.key_count > 0
            && self.digest(probe).is_none_or(|digest| self.line_count > 0 && self.has_digest(digest))
    }

    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        if self.word_bits == 0 {
            return self.set_may_contain_range(probe);
        }
        let Some((lower, upper)) = probe.range().word_bounds() else { return false };
        self.line_count > 0 && self.has_word_between(probe, lower, upper)
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        // The digest of another seed is not cached, so the probe would compute it twice.
        if self.envelope.seed == probe.digester().seed()
            && let Some(digest) = self.digest(probe)
        {
            line::prefetch_line(envelope::payload(self.bytes.as_ref()), self.line_count, digest);
        }
    }

    envelope_methods!(self, self.envelope);

    /// The rate for an absent prefix.
    fn predicted_fpr(&self) -> Option<f64> {
        if self.line_count == 0 {
            return Some(0.0);
        }
        let prefixes_per_line = self.prefix_count as f64 / self.line_count as f64;
        Some(blocked_fpr(lines::LINE_BITS, prefixes_per_line, self.probe_count))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        write!(
            target,
            "{} prefixes of {} in {} lines of 512 bits, {} bits set by a prefix",
            self.prefix_count, self.set, self.line_count, self.probe_count
        )
    }
}
