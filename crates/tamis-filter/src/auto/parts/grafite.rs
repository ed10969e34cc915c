//! Grafite: its rate has a bound that holds for all keys and queries.

use super::parameter;
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::grafite::{Rests, Window};
use crate::trie::shared_bytes;
use crate::{Family, FilterSpec};

/// Bits of a key that do not lower the rate.
const OVERHEAD_BITS: f64 = 2.0;

/// The bytes of windows for the assumed workload, if the longest ones do not hold whole keys: texts may be queried by prefixes.
const ASSUMED_WINDOW: usize = 8;

impl Problem<'_> {
    pub(super) fn grafite_parts(&self) -> Vec<Predicted> {
        let Some(spec) = self.grafite_spec() else { return Vec::new() };
        let part = |bits: f64| Part { spec: spec.clone(), bits_per_key: Some(bits) };
        self.range_budgets().into_iter().map(part).filter_map(|part| self.predict_grafite(&part)).collect()
    }

    pub(super) fn predict_grafite(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key.filter(|bits| *bits > OVERHEAD_BITS)?;
        let rate = (OVERHEAD_BITS - bits).exp2();
        let windows = self.windows(bits, parameter(&part.spec, "window").unwrap_or(usize::MAX))?;
        let result = |case: &Case<'_>| rate * windows.count(case);
        Some(self.prediction(part.spec.clone(), part.bits_per_key, bits, result))
    }

    /// The longest windows: no sample of the recorded workloads was served better by shorter ones (`results/auto.md`).
    fn grafite_spec(&self) -> Option<FilterSpec> {
        let longest = self.windows(self.bits_max(), usize::MAX)?.window;
        let is_short = self.cases.is_assumed && !longest.is_whole() && ASSUMED_WINDOW < longest.byte_count();
        let spec = FilterSpec::new(Family::Grafite);
        Some(if is_short { spec.with("window", &ASSUMED_WINDOW.to_string()) } else { spec })
    }

    /// The windows of a filter with at most so many bits per key and bytes of a window.
    fn windows(&self, bits_per_key: f64, window_max: usize) -> Option<Windows<'_>> {
        let first = self.keys.get(0)?;
        let shared = first.get(..shared_bytes(first, self.keys.get(self.keys.len() - 1)?))?;
        let rests = Rests::of(self.keys.lengths(), shared.len(), window_max);
        Some(Windows { shared, window: Window::of_sample(self.keys, bits_per_key, &rests) })
    }
}

/// The windows of a filter.
struct Windows<'a> {
    shared: &'a [u8],
    window: Window,
}

impl Windows<'_> {
    /// The number of windows of a query; infinite if the window of a key is among them.
    fn count(&self, case: &Case<'_>) -> f64 {
        let window_end = (self.shared.len() + self.window.byte_count()) as u32 * 8;
        if !self.window.is_whole() && case.near() >= window_end {
            return f64::INFINITY;
        }
        let windows = self.window.of_range(self.shared, &case.range);
        windows.map_or(0.0, |(lower, upper)| (upper - lower) as f64 + 1.0)
    }
}
