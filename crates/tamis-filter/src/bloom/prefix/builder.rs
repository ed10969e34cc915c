//! Builds prefix Bloom filters: 8 bytes of memory per distinct prefix.

use tamis_bits::line;

use super::prefix_set::{Lengths, PrefixSet, Separators};
use super::{BIT_COUNT_MAX, BITS_PER_PREFIX_MAX};
use crate::bloom::digests::DigestKeeper;
use crate::bloom::{PROBES, lines};
use crate::envelope::{Envelope, PARAMETER_BYTES, set_parameter};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, Samples};

/// Bytes by which the payload may exceed the budget: 128 less the envelope.
const SLACK_BYTES: u64 = 64;

/// Builder of [`Family::Prefix`]. Parameters: `bits` or `bytes` (default: 4 bytes), `separator`, `points`, and `probes`.
#[derive(Debug)]
pub struct PrefixBuilder {
    keys: DigestKeeper,
    /// The length of the only prefix in bits; 0 for a set of prefixes.
    bit_count: u32,
    set: PrefixSet,
    /// The last key, if there is a set.
    last: Vec<u8>,
    probe_count: Option<u32>,
}

impl PrefixBuilder {
    /// A builder for prefixes of a number of bits (at most 524,280; greater numbers are reduced to this maximum).
    pub fn new(bit_count: u32, seed: u64) -> Self {
        Self {
            keys: DigestKeeper::new(seed),
            bit_count: bit_count.min(BIT_COUNT_MAX),
            set: PrefixSet::default(),
            last: Vec::new(),
            probe_count: None,
        }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let expected = "1 to 65535 bytes, or at most eight lengths as in 4+8+12";
        let lengths = parameters.take("bytes", expected, Lengths::is_possible)?;
        let expected = "at most four characters or hexadecimal bytes, as in / or 0x2f+0x3a";
        let separators = parameters.take("separator", expected, Separators::is_possible)?;
        let points = parameters.take("points", "yes or no", |text: &String| text == "yes" || text == "no")?;
        let is_possible = |bits: &u32| (1..=BIT_COUNT_MAX).contains(bits);
        let bits = parameters.take("bits", "1 to 524280 bits", is_possible)?;
        let mut set = PrefixSet {
            lengths: lengths.unwrap_or_default(),
            separators: separators.unwrap_or_default(),
            has_points: points.as_deref() == Some("yes"),
        };
        if let Some(bits) = bits
            && !set.is_empty()
        {
            let (name, value, expected) =
                ("bits", bits.to_string(), "bits alone: no bytes, separator or points");
            return Err(BuildError::Parameter { family: Family::Prefix.name(), name, value, expected });
        }
        let only_length = match (set.lengths.0.as_slice(), set.separators.0.is_empty(), set.has_points) {
            ([], true, false) => Some(bits.unwrap_or(32)),
            ([bytes], true, false) => Some(u32::from(*bytes) * 8),
            _ => None,
        };
        if only_length.is_some() {
            set = PrefixSet::default();
        }
        let mut builder = Self::new(only_length.unwrap_or(0), seed);
        builder.set = set;
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        builder.probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish("bytes, bits, separator, points, probes")?;
        Ok(builder)
    }

    /// Adds the prefixes of the key except those that it shares with the previous key, which are already stored.
    fn add_set(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if !self.keys.accept(key)? {
            return Ok(());
        }
        let shared = tamis_bits::common_prefix_length(&self.last, key);
        self.set.for_each_length(key, shared, |length| {
            self.keys.push_prefix(key.get(..length).unwrap_or_default());
        });
        if self.set.has_points {
            self.keys.push_key(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// The number of cache lines for a budget. A set is stored after them, within the budget.
    fn line_count(&self, given: f64) -> Result<u64, BuildError> {
        let (key_count, prefix_count) = (self.keys.key_count(), self.keys.len() as u64);
        let useful = lines::line_count(prefix_count, BITS_PER_PREFIX_MAX);
        if self.set.is_empty() {
            return Ok(lines::line_count(key_count, given).min(useful));
        }
        let set_bytes = self.set.encoded_bytes() as u64;
        let allowed = (key_count as f64 * given / 8.0) as u64 + SLACK_BYTES;
        let line_count = (allowed.saturating_sub(set_bytes) / line::LINE_BYTES as u64).min(useful);
        if line_count == 0 && prefix_count > 0 {
            let least_bits_per_key = set_bytes as f64 * 8.0 / key_count as f64;
            return Err(BuildError::BudgetTooSmall {
                family: Family::Prefix.name(),
                given,
                least_bits_per_key,
            });
        }
        Ok(line_count)
    }
}

impl FilterBuilder for PrefixBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        if self.bit_count == 0 { self.add_set(key) } else { self.keys.add_prefix(key, self.bit_count) }
    }

    fn key_count(&self) -> u64 {
        self.keys.key_count()
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.last.capacity()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Prefix.name())?;
        let prefix_count = self.keys.len();
        let line_count = self.line_count(bits_per_key)?;
        let prefixes_per_line = prefix_count as f64 / (line_count as f64).max(1.0);
        let probe_count = self.probe_count.unwrap_or_else(|| lines::best_probe_count(prefixes_per_line));
        let mut filter =
            lines::filled_filter(line_count.saturating_mul(line::LINE_BYTES as u64), |payload| {
                self.keys.for_each_part(|digests| lines::insert(payload, digests, probe_count));
            })?;
        self.set.encode(&mut filter);
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[0] = probe_count as u8;
        parameters[1] = self.set.lengths.0.len() as u8;
        parameters[2] = self.set.separators.0.len() as u8;
        parameters[3] = u8::from(self.set.has_points);
        set_parameter(&mut parameters, 4, self.bit_count.to_le_bytes());
        set_parameter(&mut parameters, 8, (prefix_count as u64).to_le_bytes());
        Envelope::new(Family::Prefix, self.keys.seed(), self.keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
