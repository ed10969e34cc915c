//! Builds prefix Bloom filters: 8 bytes per distinct prefix.

use tamis_bits::line;

use super::{BIT_COUNT_MAX, BITS_PER_PREFIX_MAX};
use crate::bloom::digests::DigestKeeper;
use crate::bloom::{PROBES, lines};
use crate::envelope::{Envelope, PARAMETER_BYTES, set_parameter};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, Samples};

/// Builder of [`Family::Prefix`]. Parameters `bytes` or `bits` (default: 4 bytes), and `probes`.
#[derive(Debug)]
pub struct PrefixBuilder {
    keys: DigestKeeper,
    bit_count: u32,
    probe_count: Option<u32>,
}

impl PrefixBuilder {
    /// A builder for prefixes of a number of bits (at most 524,280; more are cut to that).
    pub fn new(bit_count: u32, seed: u64) -> Self {
        Self { keys: DigestKeeper::new(seed), bit_count: bit_count.min(BIT_COUNT_MAX), probe_count: None }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let is_possible = |bytes: &u32| (1..=BIT_COUNT_MAX / 8).contains(bytes);
        let bytes = parameters.take("bytes", "1 to 65535 bytes", is_possible)?;
        let is_possible = |bits: &u32| (1..=BIT_COUNT_MAX).contains(bits);
        let bits = parameters.take("bits", "1 to 524280 bits", is_possible)?;
        if let (Some(bits), Some(_)) = (bits, bytes) {
            let (name, value, expected) = ("bits", bits.to_string(), "bits or bytes, not both");
            return Err(BuildError::Parameter { family: Family::Prefix.name(), name, value, expected });
        }
        let mut builder = Self::new(bits.unwrap_or_else(|| bytes.unwrap_or(4) * 8), seed);
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        builder.probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish("bytes, bits, probes")?;
        Ok(builder)
    }
}

impl FilterBuilder for PrefixBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.keys.add_prefix(key, self.bit_count)
    }

    fn key_count(&self) -> u64 {
        self.keys.key_count()
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Prefix.name())?;
        let prefix_count = self.keys.len();
        let line_count = lines::line_count(self.keys.key_count(), bits_per_key)
            .min(lines::line_count(prefix_count as u64, BITS_PER_PREFIX_MAX));
        let prefixes_per_line = prefix_count as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| lines::best_probe_count(prefixes_per_line));
        let mut filter =
            lines::filled_filter(line_count.saturating_mul(line::LINE_BYTES as u64), |payload| {
                self.keys.for_each_part(|digests| lines::insert(payload, digests, probe_count));
            })?;
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        set_parameter(&mut parameters, 4, self.bit_count.to_le_bytes());
        set_parameter(&mut parameters, 8, (prefix_count as u64).to_le_bytes());
        Envelope::new(Family::Prefix, self.keys.seed(), self.keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
