//! Common parts of the families of 512-bit lines: sizes, numbers of probes, the buffer.

use tamis_bits::{
    kernel,
    line::{LINE_BYTES, LINE_PROBE_MAX},
};

use super::formula::blocked_fpr;
use crate::BuildError;
use crate::envelope::ENVELOPE_BYTES;

/// Bits of a line.
pub(crate) const LINE_BITS: f64 = (LINE_BYTES * 8) as f64;

/// Bits that a key sets in one round of the vector code.
const ROUND_PROBES: u32 = 8;

/// Another bit must lower the rate to this share.
const PROBE_GAIN: f64 = 0.99;

/// A second round must lower the rate to this share of the best of one round.
const SECOND_ROUND_GAIN: f64 = 0.9;

/// Valid values of the `probes` parameter, for error messages.
pub(crate) const PROBES_EXPECTED: &str = "1 to 16 bits set by a key";

pub(crate) fn is_possible_probe_count(count: u32) -> bool {
    (1..=LINE_PROBE_MAX).contains(&count)
}

/// Lines of a budget, rounded up: at most 63 bytes above it.
pub(crate) fn line_count(key_count: u64, bits_per_key: f64) -> u64 {
    (key_count as f64 * bits_per_key / LINE_BITS).ceil() as u64
}

/// The number of bits beyond which another one hardly lowers the rate; a second round only if it pays off.
pub(crate) fn best_probe_count(keys_per_line: f64) -> u32 {
    let fpr = |count: u32| blocked_fpr(LINE_BITS, keys_per_line, count);
    let climb =
        |from: u32, to: u32| (from..to).find(|count| fpr(count + 1) > fpr(*count) * PROBE_GAIN).unwrap_or(to);
    let one_round = climb(1, ROUND_PROBES);
    if one_round < ROUND_PROBES {
        return one_round;
    }
    let two_rounds = climb(ROUND_PROBES, LINE_PROBE_MAX);
    if fpr(two_rounds) < fpr(one_round) * SECOND_ROUND_GAIN { two_rounds } else { one_round }
}

/// Sets `probe_count` bits per digest.
pub(crate) fn insert(lines: &mut [u8], digests: &[u64], probe_count: u32) {
    kernel::lines_insert(lines, (lines.len() / LINE_BYTES) as u64, digests, probe_count);
}

/// An envelope and a payload of zeros that `fill` fills. While `fill` runs, each line of the payload is one cache
/// line: the allocator does not align the buffer, so the payload is filled at the next aligned position and then
/// moved.
pub(crate) fn filled_filter(payload_bytes: u64, fill: impl FnOnce(&mut [u8])) -> Result<Vec<u8>, BuildError> {
    let mut filter = empty_filter(payload_bytes.saturating_add(LINE_BYTES as u64))?;
    let filter_bytes = filter.len() - LINE_BYTES;
    let start = filter.as_ptr().align_offset(LINE_BYTES) % LINE_BYTES;
    if let Some(payload) = filter.get_mut(start + ENVELOPE_BYTES..start + filter_bytes) {
        fill(payload);
    }
    filter.copy_within(start.., 0);
    filter.truncate(filter_bytes);
    Ok(filter)
}

/// An envelope and a payload of zeros.
pub(crate) fn empty_filter(payload_bytes: u64) -> Result<Vec<u8>, BuildError> {
    let bytes_max = isize::MAX as u64;
    let needed_bytes = payload_bytes.saturating_add(ENVELOPE_BYTES as u64);
    let too_large = BuildError::TooLarge { needed_bytes, bytes_max };
    if needed_bytes > bytes_max {
        return Err(too_large);
    }
    let mut filter = Vec::new();
    filter.try_reserve_exact(needed_bytes as usize).map_err(|_| too_large)?;
    filter.resize(needed_bytes as usize, 0);
    Ok(filter)
}

#[cfg(test)]
mod tests;
