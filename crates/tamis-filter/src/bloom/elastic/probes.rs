//! The number of bits that a key sets in each unit.
//!
//! A unit of 2 bits per key has the least rate if a key sets 1.39 bits in it, a unit of 3 bits per key with 2.08. With
//! whole numbers three 2-bit units have a rate of 6.1 %, but one filter of their size has 5.6 %. So a key may set one
//! more bit in some units than in others: its digest decides in which, so that the sum over the first units is the
//! same for all keys, or differs by one, however many units are loaded. Three units with 4/3 bits on average thus have
//! the rate of one filter of their size with four.

use super::UNITS_MAX;
use crate::bloom::formula::blocked_rate;
use crate::bloom::lines;

/// Fractions of a bit in the format.
const PARTS: u32 = 256;

/// Fractional bits must lower the rates with half and with all of the units to this share of those with whole numbers.
const PARTS_GAIN: f64 = 0.99;

/// Bits that a key sets in a unit on average, in fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnitProbes(u32);

impl UnitProbes {
    pub(super) const fn whole(probe_count: u32) -> Self {
        Self(probe_count * PARTS)
    }

    /// The fields of the format; `None` if a key might set no bit or too many.
    pub(super) fn from_fields(probe_count: u8, probe_parts: u8) -> Option<Self> {
        let probes = Self(u32::from(probe_count) * PARTS + u32::from(probe_parts));
        probes.is_possible().then_some(probes)
    }

    fn is_possible(self) -> bool {
        let most = self.least() + u32::from(!self.is_whole());
        lines::is_possible_probe_count(self.least()) && lines::is_possible_probe_count(most)
    }

    /// See [`UnitProbes::from_fields`].
    pub(super) const fn fields(self) -> [u8; 2] {
        [(self.0 / PARTS) as u8, (self.0 % PARTS) as u8]
    }

    /// Minimum number of bits that a key sets in a unit; the maximum is one more.
    pub(super) const fn least(self) -> u32 {
        self.0 / PARTS
    }

    pub(super) fn mean(self) -> f64 {
        f64::from(self.0) / f64::from(PARTS)
    }

    pub(super) const fn is_whole(self) -> bool {
        self.0.is_multiple_of(PARTS)
    }

    /// The best choice for units of a number of lines.
    pub(super) fn best(keys_per_line: f64, unit_count: u32) -> Self {
        let whole = Self::whole(lines::best_probe_count(keys_per_line));
        let bits_per_key = lines::LINE_BITS / keys_per_line.max(1.0);
        // The formula of scattered bits is precise enough for the choice, and needs no sum.
        let cost = |probes: Self| {
            let fill = -(-probes.mean() / bits_per_key).exp_m1();
            let rate =
                |unit_count| probes.rate(unit_count, |probe_count| fill.powi(probe_count.cast_signed()));
            // With half of the units loaded, and with all.
            rate(unit_count.div_ceil(2)).ln() + rate(unit_count).ln()
        };
        let candidates = (1..=unit_count).flat_map(|unit_count| {
            let ideal = (bits_per_key * std::f64::consts::LN_2 * f64::from(unit_count)) as u32;
            [ideal, ideal + 1].map(|sum| Self((sum * PARTS).div_ceil(unit_count)))
        });
        let best = candidates
            .filter(|probes| probes.is_possible())
            .min_by(|left, right| cost(*left).total_cmp(&cost(*right)));
        let enough = cost(whole) + 2.0 * PARTS_GAIN.ln();
        best.filter(|best| cost(*best) < enough).unwrap_or(whole)
    }

    /// Bits that the key of a digest sets in a unit.
    #[inline(always)]
    pub(super) const fn of(self, digest: u64, unit: u64) -> u32 {
        self.with_phase(digest as u32 % PARTS, unit as u32)
    }

    #[inline(always)]
    const fn with_phase(self, phase: u32, unit: u32) -> u32 {
        ((unit + 1) * self.0 + phase) / PARTS - (unit * self.0 + phase) / PARTS
    }

    /// The combined rate of the first units, from the rate of a unit by the number of tested bits.
    fn rate(self, unit_count: u32, unit_rate: impl Fn(u32) -> f64) -> f64 {
        let least = self.least();
        let (few, many) = (unit_rate(least), unit_rate(least + 1));
        let of_sum = |sum: u32| {
            let many_count = sum - least * unit_count;
            few.powi((unit_count - many_count).cast_signed()) * many.powi(many_count.cast_signed())
        };
        let (sum, parts) = (unit_count * self.0 / PARTS, unit_count * self.0 % PARTS);
        let share = f64::from(parts) / f64::from(PARTS);
        of_sum(sum) * (1.0 - share) + if parts == 0 { 0.0 } else { of_sum(sum + 1) * share }
    }

    /// The combined rates of 0, 1, 2, ... units.
    pub(super) fn rates(self, keys_per_line: f64) -> [f64; UNITS_MAX as usize + 1] {
        let least = self.least();
        let rate = |probe_count| blocked_rate(lines::LINE_BITS, keys_per_line, self.mean(), probe_count);
        let (few, many) = (rate(least), if self.is_whole() { 0.0 } else { rate(least + 1) });
        let mut rates = [1.0; UNITS_MAX as usize + 1];
        for (unit_count, target) in (0..).zip(&mut rates) {
            *target = self.rate(unit_count, |probe_count| if probe_count == least { few } else { many });
        }
        rates
    }
}

#[cfg(test)]
mod tests;
