//! Builds prefix Bloom filters: 8 bytes of memory per distinct prefix.

use tamis_bits::line;

use super::BITS_PER_PREFIX_MAX;
use super::prefix_set::{Lengths, PrefixSet, Separators};
use crate::bloom::digests::DigestKeeper;
use crate::bloom::{PROBES, lines};
use crate::envelope::{Envelope, PARAMETER_BYTES, set_parameter};
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, Samples};

/// The only length of prefixes without parameters.
const DEFAULT_BYTES: u16 = 4;

/// Bytes by which the payload may exceed the budget: 128 less the envelope.
const SLACK_BYTES: u64 = 64;

/// Builder of [`Family::Prefix`]. Parameters: `bytes`, `separator`, `points` (without these: 4 bytes), and `probes`.
#[derive(Debug)]
pub struct PrefixBuilder {
    keys: DigestKeeper,
    set: PrefixSet,
    probe_count: Option<u32>,
}

impl PrefixBuilder {
    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let expected = "1 to 65535 bytes, or at most eight lengths as in 4+8+12";
        let lengths = parameters.take("bytes", expected, Lengths::is_possible)?;
        let expected = "at most four characters or hexadecimal bytes, as in / or 0x2f+0x3a";
        let separators = parameters.take("separator", expected, Separators::is_possible)?;
        let points = parameters.take("points", "yes or no", |text: &String| text == "yes" || text == "no")?;
        let mut set = PrefixSet {
            lengths: lengths.unwrap_or_default(),
            separators: separators.unwrap_or_default(),
            has_points: points.as_deref() == Some("yes"),
        };
        if set.is_empty() {
            set.lengths = Lengths(vec![DEFAULT_BYTES]);
        }
        let is_possible = |count: &u32| lines::is_possible_probe_count(*count);
        let probe_count = parameters.take(PROBES, lines::PROBES_EXPECTED, is_possible)?;
        parameters.finish("bytes, separator, points, probes")?;
        Ok(Self { keys: DigestKeeper::new(seed), set, probe_count })
    }

    /// The number of cache lines for a budget. A set is stored after them, within the budget.
    fn line_count(&self, given: f64) -> Result<u64, BuildError> {
        let (key_count, prefix_count) = (self.keys.key_count(), self.keys.len() as u64);
        let useful = lines::line_count(prefix_count, BITS_PER_PREFIX_MAX);
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
    /// Adds the prefixes of the key except those that it shares with the previous key, which are already stored.
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        let shared = match self.keys.key_count() {
            0 => 0,
            _ => tamis_bits::common_prefix_length(self.keys.last_key(), key),
        };
        if !self.keys.accept(key)? {
            return Ok(());
        }
        self.set.for_each_length(key, shared, |length| self.keys.push_prefix(key, length));
        if self.set.has_points {
            self.keys.push_key(key);
        }
        Ok(())
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
        set_parameter(&mut parameters, 8, (prefix_count as u64).to_le_bytes());
        Envelope::new(Family::Prefix, self.keys.seed(), self.keys.key_count(), parameters).seal(&mut filter);
        Ok(filter)
    }
}
