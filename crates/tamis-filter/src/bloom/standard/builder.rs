//! Builds standard Bloom filters from the digests of the keys.

use tamis_bits::kernel::{self, Step};

use super::{PROBE_MAX, SCHEME_DOUBLE};
use crate::bloom::formula::standard_best_k;
use crate::bloom::{DigestBuilder, DigestFamily, DigestKeeper, PROBES, lines};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family};

/// Builder of [`Family::Standard`]. Parameter `probes`; without it the budget determines the number of bits that a key
/// sets.
pub type StandardBuilder = DigestBuilder<Standard>;

/// Parameters of the family.
#[derive(Debug, Default)]
pub struct Standard {
    probe_count: Option<u32>,
}

impl StandardBuilder {
    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let is_possible = |count: &u32| (1..=PROBE_MAX).contains(count);
        let probe_count = parameters.take(PROBES, "1 to 64 bits set by a key", is_possible)?;
        parameters.finish(PROBES)?;
        Ok(Self::with_family(Standard { probe_count }, seed))
    }
}

impl DigestFamily for Standard {
    fn encode(&self, keys: &DigestKeeper, budget: Budget) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Standard.name())?;
        let key_count = keys.key_count() as f64;
        let word_count = (key_count * bits_per_key / 64.0).ceil() as u64;
        let mut filter = lines::empty_filter(word_count.saturating_mul(8))?;
        let real_bits_per_key = word_count as f64 * 64.0 / key_count.max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| standard_best_k(real_bits_per_key, PROBE_MAX));
        if let Some(payload) = filter.get_mut(ENVELOPE_BYTES..) {
            let bit_count = payload.len() as u64 * 8;
            keys.for_each_part(|digests| {
                kernel::places_insert(payload, bit_count, digests, probe_count, Step::Mixed);
            });
        }
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        parameters[1] = SCHEME_DOUBLE;
        Envelope::new(Family::Standard, keys.seed(), keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
