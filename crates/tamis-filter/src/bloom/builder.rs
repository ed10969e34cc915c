//! Builds cache-local Bloom filters: keeps the digests (8 bytes a key), sets the bits when the budget is known.

use tamis_bits::{kernel, line};

use super::formula::blocked_fpr;
use crate::build::KeyOrder;
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::spec::Parameters;
use crate::{Budget, BuildError, Digester, Family, FilterBuilder, Samples};

/// Bits that a key sets in one round of the vector form.
const ROUND_PROBES: u32 = 8;

/// A bit more must lower the rate to this share.
const PROBE_GAIN: f64 = 0.99;

/// A second round must lower the rate to this share of the best of one round.
const SECOND_ROUND_GAIN: f64 = 0.9;

/// Builder of [`Family::CacheLocal`].
#[derive(Debug)]
pub struct CacheLocalBuilder {
    digester: Digester,
    order: KeyOrder,
    digests: Vec<u64>,
    probe_count: Option<u32>,
}

impl CacheLocalBuilder {
    /// A builder whose digests have this seed, with the number of bits per key chosen by the budget.
    pub fn new(seed: u64) -> Self {
        Self {
            digester: Digester::new(seed),
            order: KeyOrder::default(),
            digests: Vec::new(),
            probe_count: None,
        }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let mut builder = Self::new(seed);
        let is_possible = |count: &u32| (1..=line::LINE_PROBE_MAX).contains(count);
        builder.probe_count = parameters.take(super::PROBES, "1 to 16 bits set by a key", is_possible)?;
        parameters.finish(super::PROBES)?;
        Ok(builder)
    }
}

impl FilterBuilder for CacheLocalBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.order.accept(key)? {
            self.digests.push(self.digester.digest(key));
        }
        Ok(())
    }

    fn key_count(&self) -> u64 {
        self.order.count()
    }

    fn memory_bytes(&self) -> usize {
        self.digests.capacity() * 8
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::CacheLocal.name())?;
        let line_count = line_count(self.digests.len() as u64, bits_per_key);
        let payload_bytes = line_count.saturating_mul(line::LINE_BYTES as u64);
        let max_bytes = isize::MAX as u64 - ENVELOPE_BYTES as u64;
        let too_large = BuildError::TooLarge { needed_bytes: payload_bytes, max_bytes };
        let total = usize::try_from(payload_bytes.min(max_bytes + 1) + ENVELOPE_BYTES as u64);
        let total = total.ok().filter(|total| *total <= isize::MAX as usize).ok_or(too_large.clone())?;
        let mut filter = Vec::new();
        filter.try_reserve_exact(total).map_err(|_| too_large)?;
        filter.resize(total, 0);

        let keys_per_line = self.digests.len() as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| best_probe_count(keys_per_line));
        if let Some(lines) = filter.get_mut(ENVELOPE_BYTES..) {
            kernel::lines_insert(lines, line_count, &self.digests, probe_count);
        }
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        let envelope = Envelope {
            family: Family::CacheLocal as u16,
            seed: self.digester.seed(),
            payload_bytes: 0,
            key_count: self.order.count(),
            payload_checksum: 0,
            parameters,
        };
        envelope.seal(&mut filter);
        Ok(filter)
    }
}

/// Lines of a budget, rounded up: at most 63 bytes above it.
fn line_count(key_count: u64, bits_per_key: f64) -> u64 {
    (key_count as f64 * bits_per_key / (line::LINE_BYTES * 8) as f64).ceil() as u64
}

/// The number of bits beyond which another one hardly lowers the rate; above one round only where that pays.
pub(crate) fn best_probe_count(keys_per_line: f64) -> u32 {
    let fpr = |count: u32| blocked_fpr((line::LINE_BYTES * 8) as f64, keys_per_line, count);
    let climb =
        |from: u32, to: u32| (from..to).find(|count| fpr(count + 1) > fpr(*count) * PROBE_GAIN).unwrap_or(to);
    let one_round = climb(1, ROUND_PROBES);
    if one_round < ROUND_PROBES {
        return one_round;
    }
    let two_rounds = climb(ROUND_PROBES, line::LINE_PROBE_MAX);
    if fpr(two_rounds) < fpr(one_round) * SECOND_ROUND_GAIN { two_rounds } else { one_round }
}

#[cfg(test)]
mod tests;
