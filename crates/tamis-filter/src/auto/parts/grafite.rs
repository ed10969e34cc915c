//! Grafite: its rate has a bound that holds for all keys and queries.

use super::BUDGET_SHARES;
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::{Family, FilterSpec};

/// Bits of a key that do not lower the rate.
const OVERHEAD_BITS: f64 = 2.0;

impl Problem<'_> {
    pub(super) fn grafite_parts(&self) -> Vec<Predicted> {
        let part = |share: f64| Part {
            spec: FilterSpec::new(Family::Grafite),
            bits_per_key: Some(share * self.bits_max()),
        };
        let parts = BUDGET_SHARES.map(part).into_iter();
        parts.filter_map(|part| self.predict_grafite(&part)).collect()
    }

    pub(super) fn predict_grafite(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key.filter(|bits| *bits > OVERHEAD_BITS)?;
        let rate = (OVERHEAD_BITS - bits).exp2();
        // The window of other keys depends on the bytes that they share: there is no formula for them.
        let unit = 64 - 8 * self.counts.fixed_bytes.filter(|bytes| (1..=8).contains(bytes))?;
        let result = |case: &Case<'_>| {
            let bounds = case.range.word_bounds();
            bounds.map_or(1.0, |(lower, upper)| rate * (((upper - lower) >> unit) as f64 + 1.0))
        };
        Some(self.prediction(part.spec.clone(), part.bits_per_key, bits, result))
    }
}
