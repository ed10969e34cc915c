//! Builds binary fuse filters from distinct digests.

use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Descriptor};

use super::WIDTHS;
use crate::bloom::{DigestBuilder, DigestFamily, DigestKeeper, empty_filter};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, set_parameter};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family};

/// Positions are 32 bits wide in the construction: the maximum number of keys.
const KEY_COUNT_MAX: usize = 1 << 30;

/// Bytes by which the size may exceed the budget, envelope included.
const SLACK_BYTES: f64 = 128.0;

/// Builder of [`Family::Fuse`]. Parameter `bits`: width of the fingerprints; without it the widest that fits the
/// budget.
pub type FuseBuilder = DigestBuilder<Fuse>;

/// Parameters of the family.
#[derive(Debug, Default)]
pub struct Fuse {
    width: Option<u8>,
}

/// The fingerprints as bytes, and the parameters of their positions.
type Parts = (Descriptor, Vec<u8>);

impl FuseBuilder {
    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let width =
            parameters.take("bits", "8, 16 or 32 bits of fingerprint", |bits| WIDTHS.contains(bits))?;
        parameters.finish("bits")?;
        Ok(Self::with_family(Fuse { width }, seed))
    }
}

/// The construction needs distinct digests: two keys with the same digest count as one.
fn distinct_digests(keys: &DigestKeeper) -> Result<Vec<u64>, BuildError> {
    let count = keys.len();
    if count > KEY_COUNT_MAX {
        // With the narrowest fingerprints: a byte and an eighth per key.
        let bytes = |count: usize| count as u64 + count as u64 / 8;
        let (needed_bytes, bytes_max) = (bytes(count), bytes(KEY_COUNT_MAX));
        return Err(BuildError::TooLarge { needed_bytes, bytes_max });
    }
    let mut digests = Vec::new();
    let needed_bytes = count as u64 * 8;
    let too_large = |_| BuildError::TooLarge { needed_bytes, bytes_max: isize::MAX as u64 };
    digests.try_reserve_exact(count).map_err(too_large)?;
    keys.for_each_part(|part| digests.extend_from_slice(part));
    digests.sort_unstable();
    digests.dedup();
    Ok(digests)
}

fn seal(keys: &DigestKeeper, width: u8, (descriptor, fingerprints): &Parts) -> Result<Vec<u8>, BuildError> {
    let mut filter = empty_filter(fingerprints.len() as u64)?;
    if let Some(payload) = filter.get_mut(ENVELOPE_BYTES..) {
        payload.copy_from_slice(fingerprints);
    }
    let mut parameters = [0; PARAMETER_BYTES];
    parameters[0] = width;
    parameters[1] = descriptor.segment_length.trailing_zeros() as u8;
    set_parameter(&mut parameters, 4, descriptor.segment_count_length.to_le_bytes());
    set_parameter(&mut parameters, 8, descriptor.seed.to_le_bytes());
    Envelope::new(Family::Fuse, keys.seed(), keys.key_count(), parameters).seal(&mut filter);
    Ok(filter)
}

fn construct(width: u8, digests: &[u64]) -> Result<Parts, BuildError> {
    let refused = |_| BuildError::Refused { family: Family::Fuse.name(), reason: "no arrangement was found" };
    Ok(match width {
        8 => {
            let built = BinaryFuse8::try_from(digests).map_err(refused)?;
            (built.descriptor, built.fingerprints.into_vec())
        }
        16 => {
            let built = BinaryFuse16::try_from(digests).map_err(refused)?;
            (built.descriptor, built.fingerprints.iter().flat_map(|print| print.to_le_bytes()).collect())
        }
        _ => {
            let built = BinaryFuse32::try_from(digests).map_err(refused)?;
            (built.descriptor, built.fingerprints.iter().flat_map(|print| print.to_le_bytes()).collect())
        }
    })
}

impl DigestFamily for Fuse {
    fn encode(&self, keys: &DigestKeeper, budget: Budget) -> Result<Vec<u8>, BuildError> {
        let digests = distinct_digests(keys)?;
        let key_count = keys.key_count() as f64;
        if digests.is_empty() {
            let mut filter = empty_filter(0)?;
            let mut parameters = [0; PARAMETER_BYTES];
            parameters[0] = WIDTHS[0];
            Envelope::new(Family::Fuse, keys.seed(), 0, parameters).seal(&mut filter);
            return Ok(filter);
        }
        let given = match (self.width, budget.as_bits_per_key()) {
            (Some(width), None) => return seal(keys, width, &construct(width, &digests)?),
            (_, None) => return Err(BuildError::BudgetMissing { family: Family::Fuse.name() }),
            (_, Some(given)) => given,
        };
        let allowed = given * key_count / 8.0 + SLACK_BYTES;
        // The number of keys determines the size: one build with the narrowest fingerprints gives it for all widths.
        let first = self.width.unwrap_or(WIDTHS[0]);
        let parts = construct(first, &digests)?;
        let bytes_of =
            |width: u8| parts.1.len() as f64 / f64::from(first) * f64::from(width) + ENVELOPE_BYTES as f64;
        if bytes_of(first) > allowed {
            let least_bits_per_key = (bytes_of(first) - SLACK_BYTES) * 8.0 / key_count;
            return Err(BuildError::BudgetTooSmall {
                family: Family::Fuse.name(),
                given,
                least_bits_per_key,
            });
        }
        let widest = WIDTHS.into_iter().rfind(|width| bytes_of(*width) <= allowed).unwrap_or(first);
        match self.width {
            None if widest != first => seal(keys, widest, &construct(widest, &digests)?),
            _ => seal(keys, first, &parts),
        }
    }
}
