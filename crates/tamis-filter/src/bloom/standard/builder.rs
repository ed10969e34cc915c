//! Builds standard Bloom filters. With independent digests the keys are kept (the number of digests follows from the
//! budget), otherwise 8 bytes a key.

use std::sync::Arc;

use super::{PROBE_MAX, Scheme, independent_digesters, place};
use crate::bloom::digests::DigestKeeper;
use crate::bloom::formula::standard_best_k;
use crate::bloom::{PROBES, lines};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES};
use crate::key_set::KeptKeys;
use crate::spec::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, KeySet, Samples};

/// Builder of [`Family::Standard`]. Parameters `scheme` and `probes`.
#[derive(Debug)]
pub struct StandardBuilder {
    scheme: Scheme,
    probe_count: Option<u32>,
    digests: DigestKeeper,
    keys: KeptKeys,
}

impl StandardBuilder {
    /// A builder whose digests have this seed.
    pub fn new(scheme: Scheme, seed: u64) -> Self {
        Self { scheme, probe_count: None, digests: DigestKeeper::new(seed), keys: KeptKeys::new() }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let scheme = parameters.take("scheme", "independent, rotated or double", |_| true)?;
        let mut builder = Self::new(scheme.unwrap_or(Scheme::Double), seed);
        let is_possible = |count: &u32| (1..=PROBE_MAX).contains(count);
        builder.probe_count = parameters.take(PROBES, "1 to 64 bits set by a key", is_possible)?;
        parameters.finish("scheme, probes")?;
        Ok(builder)
    }

    fn is_independent(&self) -> bool {
        self.scheme == Scheme::Independent
    }

    fn insert_all(&self, payload: &mut [u8], probe_count: u32) {
        let bit_count = payload.len() as u64 * 8;
        let mut set = |value: u64| {
            let place = place(value, bit_count);
            if let Some(byte) = payload.get_mut((place / 8) as usize) {
                *byte |= 1 << (place % 8);
            }
        };
        if self.is_independent() {
            let digesters = independent_digesters(self.digests.seed(), probe_count);
            for key in self.keys.iter() {
                digesters.iter().for_each(|digester| set(digester.digest(key)));
            }
        } else {
            let mut set_all = |digest: &u64| {
                let (mut value, step) = self.scheme.start_and_step(*digest);
                for _ in 0..probe_count {
                    set(value);
                    value = value.wrapping_add(step);
                }
            };
            self.digests.for_each_part(|digests| digests.iter().for_each(&mut set_all));
        }
    }
}

impl FilterBuilder for StandardBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.is_independent() { self.keys.push(key) } else { self.digests.add(key) }
    }

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        if self.is_independent() { self.keys.push_all(keys) } else { self.digests.add_all(keys) }
    }

    fn key_count(&self) -> u64 {
        if self.is_independent() { self.keys.len() as u64 } else { self.digests.key_count() }
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.digests.memory_bytes()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Standard.name())?;
        let word_count = (self.key_count() as f64 * bits_per_key / 64.0).ceil() as u64;
        let mut filter = lines::empty_filter(word_count.saturating_mul(8))?;
        let real_bits_per_key = word_count as f64 * 64.0 / (self.key_count() as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| standard_best_k(real_bits_per_key, PROBE_MAX));
        if let Some(payload) = filter.get_mut(ENVELOPE_BYTES..) {
            self.insert_all(payload, probe_count);
        }
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        parameters[1] = self.scheme as u8;
        Envelope::new(Family::Standard, self.digests.seed(), self.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
