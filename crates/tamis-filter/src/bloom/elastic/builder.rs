//! Builds elastic Bloom filters: divides the budget into units of equal size.

use tamis_bits::line;

use super::{DIRECTORY_BYTES, UNIT_BITS, UNITS_MAX};
use crate::bloom::{DigestBuilder, DigestFamily, DigestKeeper, PROBES, lines};
use crate::envelope::{Envelope, PARAMETER_BYTES, payload_checksum, set_parameter};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family, mix64};

/// Builder of [`Family::Elastic`]. Parameters `units` (without it, of about three bits per key each) and `probes` (bits that a
/// key sets in a unit).
pub type ElasticBuilder = DigestBuilder<Elastic>;

/// Parameters of the family.
#[derive(Debug, Default)]
pub struct Elastic {
    unit_count: Option<u32>,
    probe_count: Option<u32>,
}

impl ElasticBuilder {
    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let is_possible = |count: &u32| (1..=UNITS_MAX).contains(count);
        let unit_count = parameters.take("units", "1 to 8 units", is_possible)?;
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        let probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish("units, probes")?;
        Ok(Self::with_family(Elastic { unit_count, probe_count }, seed))
    }
}

impl Elastic {
    /// Number of units, and lines per unit. The budget is rounded down to whole lines, since the directory takes one;
    /// without a line there are no units, and the filter abstains.
    fn units(&self, key_count: u64, bits_per_key: f64) -> (u32, u64) {
        let line_count = (key_count as f64 * bits_per_key / lines::LINE_BITS) as u64;
        let ideal = (bits_per_key / UNIT_BITS).round().clamp(1.0, f64::from(UNITS_MAX)) as u32;
        let unit_count = u64::from(self.unit_count.unwrap_or(ideal)).min(line_count);
        (unit_count as u32, line_count.checked_div(unit_count).unwrap_or(0))
    }
}

impl DigestFamily for Elastic {
    fn encode(&self, keys: &DigestKeeper, budget: Budget) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Elastic.name())?;
        let (unit_count, line_count) = self.units(keys.key_count(), bits_per_key);
        let unit_bytes = line_count.saturating_mul(line::LINE_BYTES as u64);
        let directory_bytes = if unit_count == 0 { 0 } else { DIRECTORY_BYTES as u64 };
        let payload_bytes = unit_bytes.saturating_mul(u64::from(unit_count)).saturating_add(directory_bytes);
        let keys_per_line = keys.len() as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| lines::best_probe_count(keys_per_line));

        let mut filter = lines::filled_filter(payload_bytes, |payload| {
            fill(payload, keys, probe_count, unit_bytes);
        })?;
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = unit_count as u8;
        parameters[1] = probe_count as u8;
        set_parameter(&mut parameters, 8, line_count.to_le_bytes());
        Envelope::new(Family::Elastic, keys.seed(), keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}

/// Sets the bits of all units and writes their checksums.
fn fill(payload: &mut [u8], keys: &DigestKeeper, probe_count: u32, unit_bytes: u64) {
    let Some((directory, units)) = payload.split_at_mut_checked(DIRECTORY_BYTES) else { return };
    let units = units.chunks_exact_mut(unit_bytes.max(1) as usize);
    let checksums = directory.as_chunks_mut::<8>().0.iter_mut();
    for ((number, unit), checksum) in (0_u64..).zip(units).zip(checksums) {
        let mut values = Vec::new();
        keys.for_each_part(|digests| {
            values.clear();
            values.extend(digests.iter().map(|digest| mix64(*digest, number)));
            lines::insert(unit, &values, probe_count);
        });
        *checksum = payload_checksum(keys.seed().wrapping_add(number), unit).to_le_bytes();
    }
}
