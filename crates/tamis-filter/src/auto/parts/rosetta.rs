//! Rosetta: its own search for levels, in the background only. It takes as long as writing a fifth of the table.

use super::parameter;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::auto::{Effort, Part, ProbeTime};
use crate::rosetta::{Prices, RosettaBuilder};
use crate::{Family, FilterSpec, KeyRange, Samples};

/// The steps of a search per key, and at least.
const KEY_STEPS: usize = 250;
const SEARCH_STEPS_MIN: usize = 1_000_000;
/// Steps of the result of a query.
const RESULT_STEPS: usize = 200;
/// The share of the maximum next to a filter for points.
const SHARE_NEXT_TO_POINTS: f64 = 0.6;

impl Problem<'_> {
    pub(super) fn rosetta_parts(&self) -> Vec<Predicted> {
        let (_, has_others) = self.has_points_and_others();
        if self.request.effort != Effort::Background || self.cases.sampled == 0 || !has_others {
            return Vec::new();
        }
        let prices = self.request.prices;
        let spec = FilterSpec::new(Family::Rosetta)
            .with("probe-cost", &ProbeTime::of(Family::Rosetta).further_ns.to_string())
            .with("read-cost", &prices.read_ns.to_string());
        let mut found = Vec::new();
        for share in [1.0, SHARE_NEXT_TO_POINTS] {
            let bits_per_key = Some(share * self.bits_max());
            found.extend(self.predict_rosetta(&Part { spec: spec.clone(), bits_per_key }));
        }
        found
    }

    /// The prediction of a filter; `None` if the search exceeds the limit on the work. It includes
    /// the search, so a table's own Rosetta filter takes a quarter of the work of a check.
    pub(super) fn predict_rosetta(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key.filter(|bits| *bits > 0.0)?;
        let steps = self.keys.len().saturating_mul(KEY_STEPS).max(SEARCH_STEPS_MIN);
        if !self.work.take(steps + self.cases.empty.len() * RESULT_STEPS) {
            return None;
        }
        let default = Prices::default();
        let prices = Prices {
            probe_ns: parameter(&part.spec, "probe-cost").unwrap_or(default.probe_ns),
            read_ns: parameter(&part.spec, "read-cost").unwrap_or(default.read_ns),
            probe_cap: parameter(&part.spec, "probe-cap").unwrap_or(default.probe_cap),
        };
        let queries: Vec<KeyRange<'_>> = self.closed_cases(true).map(|case| case.range).collect();
        let model = RosettaBuilder::planned(self.keys, prices, bits, Samples { queries: &queries })?;
        let result = |case: &Case<'_>| {
            let expected = case.query.map(|query| model.of(&query));
            expected.map_or((1.0, 1.0), |expected| (expected.rate, expected.lines))
        };
        let results: Vec<(f64, f64)> = self.cases.empty.iter().map(result).collect();
        Some(self.with_probes(part.spec.clone(), part.bits_per_key, bits, &results))
    }
}
