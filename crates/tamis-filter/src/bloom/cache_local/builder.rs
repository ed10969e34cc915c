//! Builds cache-local Bloom filters: keeps the digests, sets the bits when the budget is known.

use tamis_bits::{kernel, line};

use crate::bloom::digests::DigestKeeper;
use crate::bloom::{PROBES, lines};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::spec::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, Samples};

/// Builder of [`Family::CacheLocal`]. Parameter `probes`.
#[derive(Debug)]
pub struct CacheLocalBuilder {
    keys: DigestKeeper,
    probe_count: Option<u32>,
}

impl CacheLocalBuilder {
    /// A builder whose digests have this seed, with the number of bits per key chosen by the budget.
    pub fn new(seed: u64) -> Self {
        Self { keys: DigestKeeper::new(seed), probe_count: None }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        let probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish(PROBES)?;
        Ok(Self { keys: DigestKeeper::new(seed), probe_count })
    }
}

impl FilterBuilder for CacheLocalBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.keys.add(key)
    }

    fn key_count(&self) -> u64 {
        self.keys.key_count()
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::CacheLocal.name())?;
        let digests = self.keys.digests();
        let line_count = lines::line_count(digests.len() as u64, bits_per_key);
        let mut filter = lines::empty_filter(line_count.saturating_mul(line::LINE_BYTES as u64))?;

        let keys_per_line = digests.len() as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| lines::best_probe_count(keys_per_line));
        if let Some(payload) = filter.get_mut(ENVELOPE_BYTES..) {
            kernel::lines_insert(payload, line_count, digests, probe_count);
        }
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        Envelope::new(Family::CacheLocal, self.keys.seed(), self.keys.key_count(), parameters)
            .seal(&mut filter);
        Ok(filter)
    }
}
