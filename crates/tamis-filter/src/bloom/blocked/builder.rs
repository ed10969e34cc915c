//! Builds blocked Bloom filters: sets the bits of the digests when the budget is known.

use tamis_bits::line;

use crate::bloom::{DigestBuilder, DigestFamily, DigestKeeper, PROBES, lines};
use crate::envelope::{Envelope, PARAMETER_BYTES};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family};

/// Builder of [`Family::BlockedBloom`]. Parameter `probes`; without it the budget determines the number of bits that a
/// key sets.
pub type BlockedBloomBuilder = DigestBuilder<BlockedBloom>;

/// Parameters of the family.
#[derive(Debug, Default)]
pub struct BlockedBloom {
    probe_count: Option<u32>,
}

impl BlockedBloomBuilder {
    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        let probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish(PROBES)?;
        Ok(Self::with_family(BlockedBloom { probe_count }, seed))
    }
}

impl DigestFamily for BlockedBloom {
    fn encode(&self, keys: &DigestKeeper, budget: Budget) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::BlockedBloom.name())?;
        let digest_count = keys.len();
        let line_count = lines::line_count(digest_count as u64, bits_per_key);
        let keys_per_line = digest_count as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| lines::best_probe_count(keys_per_line));
        let mut filter =
            lines::filled_filter(line_count.saturating_mul(line::LINE_BYTES as u64), |payload| {
                keys.for_each_part(|digests| lines::insert(payload, digests, probe_count));
            })?;
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        Envelope::new(Family::BlockedBloom, keys.seed(), keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
