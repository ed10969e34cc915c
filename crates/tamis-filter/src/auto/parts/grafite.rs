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

/// Bytes of windows that are tried, besides the longest ones: a prefix of as many bytes is one window.
const SHORT_WINDOWS: [usize; 4] = [12, 8, 6, 4];
/// The bytes of windows for the assumed workload, if the longest ones do not hold whole keys: texts may be queried by prefixes.
const ASSUMED_WINDOW: usize = 8;
/// The steps of the number of windows of a query.
const QUERY_STEPS: usize = 60;

impl Problem<'_> {
    pub(super) fn grafite_parts(&self) -> Vec<Predicted> {
        let Some(spec) = self.best_grafite() else { return Vec::new() };
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

    /// The length of windows with the fewest false positives of ranges.
    fn best_grafite(&self) -> Option<FilterSpec> {
        let bits = self.bits_max();
        let rate = (OVERHEAD_BITS - bits).exp2();
        let longest = self.windows(bits, usize::MAX)?;
        let with_window = |bytes: usize| FilterSpec::new(Family::Grafite).with("window", &bytes.to_string());
        let is_shorter = |bytes: usize| bytes < longest.window.byte_count();
        if self.cases.is_assumed {
            let is_short = !longest.window.is_whole() && is_shorter(ASSUMED_WINDOW);
            return Some(if is_short {
                with_window(ASSUMED_WINDOW)
            } else {
                FilterSpec::new(Family::Grafite)
            });
        }
        let cases = self.cases.designed_for();
        let positives = |windows: &Windows<'_>| -> f64 {
            let is_range = |case: &&Case<'_>| case.is_closed() && !case.is_point && !case.kind.is_seek();
            let ranges = cases.iter().filter(is_range);
            ranges.map(|case| (rate * windows.count(case)).min(1.0) * case.weight).sum()
        };
        let mut best = (positives(&longest), FilterSpec::new(Family::Grafite));
        for bytes in SHORT_WINDOWS.into_iter().filter(|bytes| is_shorter(*bytes) && longest.rests.longest > 8)
        {
            if !self.work.take(cases.len() * QUERY_STEPS) {
                break;
            }
            let passed = self.windows(bits, bytes).map_or(f64::INFINITY, |windows| positives(&windows));
            if passed < best.0 {
                best = (passed, with_window(bytes));
            }
        }
        Some(best.1)
    }

    /// The windows of a filter with at most so many bits per key and bytes of a window.
    fn windows(&self, bits_per_key: f64, window_max: usize) -> Option<Windows<'_>> {
        let first = self.keys.get(0)?;
        let shared = first.get(..shared_bytes(first, self.keys.get(self.keys.len() - 1)?))?;
        let (shortest, longest) = self.counts.lengths();
        let rests = Rests {
            shared_bytes: shared.len(),
            shortest: shortest - shared.len(),
            longest: longest - shared.len(),
            window_max,
        };
        Some(Windows { shared, window: Window::of_sample(self.keys, bits_per_key, &rests), rests })
    }
}

/// The windows of a filter.
struct Windows<'a> {
    shared: &'a [u8],
    window: Window,
    rests: Rests,
}

impl Windows<'_> {
    /// The number of windows of a query; infinite if the window of a key is among them.
    fn count(&self, case: &Case<'_>) -> f64 {
        let window_end = (self.shared.len() + self.window.byte_count()) as u32 * 8;
        if !self.window.is_whole() && case.shared_left.max(case.shared_right) >= window_end {
            return f64::INFINITY;
        }
        let windows = self.window.of_range(self.shared, &case.range);
        windows.map_or(0.0, |(lower, upper)| (upper - lower) as f64 + 1.0)
    }
}
