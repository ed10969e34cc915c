//! Grafite: its rate has a bound that holds for all keys and queries.

use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::grafite::Window;
use crate::trie::shared_bytes;
use crate::{Family, FilterSpec};

/// Bits of a key that do not lower the rate.
const OVERHEAD_BITS: f64 = 2.0;

impl Problem<'_> {
    pub(super) fn grafite_parts(&self) -> Vec<Predicted> {
        let part = |bits: f64| Part { spec: FilterSpec::new(Family::Grafite), bits_per_key: Some(bits) };
        self.range_budgets().into_iter().map(part).filter_map(|part| self.predict_grafite(&part)).collect()
    }

    pub(super) fn predict_grafite(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key.filter(|bits| *bits > OVERHEAD_BITS)?;
        let rate = (OVERHEAD_BITS - bits).exp2();
        let first = self.keys.get(0)?;
        let shared = first.get(..shared_bytes(first, self.keys.get(self.keys.len() - 1)?))?;
        let (shortest, longest) = self.counts.lengths();
        let (shortest, longest) = (shortest - shared.len(), longest - shared.len());
        let window = Window {
            byte_count: longest.min(8) as u32,
            is_whole: longest <= 8,
            is_fixed: longest <= 8 && shortest == longest,
        };
        let window_end = (shared.len() as u32 + window.byte_count) * 8;
        let result = |case: &Case<'_>| {
            if !window.is_whole && case.shared_left.max(case.shared_right) >= window_end {
                return 1.0;
            }
            let windows = window.of_range(shared, &case.range);
            windows.map_or(0.0, |(lower, upper)| rate * ((upper - lower) as f64 + 1.0))
        };
        Some(self.prediction(part.spec.clone(), part.bits_per_key, bits, result))
    }
}
