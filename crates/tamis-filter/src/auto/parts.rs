//! The designs that each family proposes, and the prediction for any filter.

mod grafite;
mod points;
mod prefixes;
mod proteus;
mod rosetta;
mod surf;

use super::candidates::{Predicted, Problem};
use super::cases::Case;
use super::{Part, ProbeTime};
use crate::{Family, FilterSpec, steps};

/// Budgets as shares of the maximum.
const BUDGET_SHARES: [f64; 6] = [1.0, 0.5, 0.75, 0.35, 0.6, 0.2];

/// Budgets of filters for points that are tried for the assumed workload; a range filter gets the rest, or all if there is none.
const ASSUMED_POINT_BITS: [f64; 3] = [10.0, 8.0, 6.0];
/// The least budget of a range filter next to it.
const RANGE_BITS_MIN: f64 = 2.0;

impl Problem<'_> {
    /// The designs of all families. The last ones are left out if the limit on the work is reached.
    pub(super) fn predicted(&self) -> Vec<Predicted> {
        if self.keys.is_empty() {
            return Vec::new();
        }
        let mut predicted = self.point_parts();
        predicted.extend(self.surf_parts());
        predicted.extend(self.grafite_parts());
        predicted.extend(self.prefix_parts());
        predicted.extend(self.proteus_parts());
        predicted.extend(self.rosetta_parts());
        predicted.retain(|one| one.bits > 0.0 && one.bits <= self.bits_max());
        predicted
    }

    /// The prediction for a filter of any family. One that cannot be predicted counts as passing everything.
    pub(super) fn predict(&self, part: &Part) -> Predicted {
        let known = match part.spec.family() {
            Family::BlockedBloom | Family::Elastic => self.predict_point(part),
            Family::Prefix => self.predict_prefix(part),
            Family::Surf | Family::SurfBase | Family::SurfHash | Family::SurfReal | Family::SurfMixed => {
                self.predict_surf(part)
            }
            Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom => self.predict_proteus(part),
            Family::Grafite => self.predict_grafite(part),
            Family::Rosetta => self.predict_rosetta(part),
        };
        known.unwrap_or_else(|| {
            let bits = part.bits_per_key.unwrap_or(0.0);
            self.prediction(part.spec.clone(), part.bits_per_key, bits, |_| 1.0)
        })
    }

    /// The budgets of range filters that are tried.
    fn range_budgets(&self) -> Vec<f64> {
        if self.cases.is_assumed {
            let rest = |bits: &f64| self.bits_max() - bits;
            let rests = ASSUMED_POINT_BITS.iter().map(rest).filter(|rest| *rest >= RANGE_BITS_MIN);
            return std::iter::once(self.bits_max()).chain(rests).collect();
        }
        BUDGET_SHARES.iter().map(|share| share * self.bits_max()).collect()
    }

    /// A prediction from the probability of a positive for each empty query, with the probe times of the family.
    fn prediction(
        &self,
        spec: FilterSpec,
        bits_per_key: Option<f64>,
        bits: f64,
        rate: impl Fn(&Case<'_>) -> f64,
    ) -> Predicted {
        let time = ProbeTime::of(spec.family());
        let names_candidates = spec.family().names_candidates(false);
        let rate = |case: &Case<'_>| match (case.kind.is_seek(), case.is_closed()) {
            (true, _) if !names_candidates => 1.0,
            // An open seek with a candidate reads the table only when the scan reaches it.
            (true, false) => 0.0,
            _ => rate(case).clamp(0.0, 1.0) as f32,
        };
        steps::count(self.cases.empty.len());
        let rates = self.cases.empty.iter().map(rate).collect();
        let part = Part { spec, bits_per_key };
        Predicted { part, bits, rates, point_ns: time.point_ns, range_ns: time.range_ns }
    }

    /// A prediction from the probability of a positive and the number of probes of each empty query.
    fn with_probes(
        &self,
        spec: FilterSpec,
        bits_per_key: Option<f64>,
        bits: f64,
        results: &[(f64, f64)],
    ) -> Predicted {
        let time = ProbeTime::of(spec.family());
        let mut predicted = self.prediction(spec, bits_per_key, bits, |_| 1.0);
        let (mut tests, mut counts) = ([0.0; 2], [0.0; 2]);
        for ((case, (rate, probes)), slot) in self.cases.empty.iter().zip(results).zip(&mut predicted.rates) {
            if case.kind.is_seek() {
                continue;
            }
            *slot = rate.clamp(0.0, 1.0) as f32;
            let kind = usize::from(!case.is_point);
            if let (Some(tests), Some(count)) = (tests.get_mut(kind), counts.get_mut(kind)) {
                *tests += probes * case.weight;
                *count += case.weight;
            }
        }
        let [points, ranges] = [0, 1].map(|kind: usize| {
            let (tests, count) = (tests.get(kind).copied(), counts.get(kind).copied());
            (tests.unwrap_or(0.0) / count.unwrap_or(0.0).max(1e-9) - 1.0).max(0.0)
        });
        predicted.point_ns = time.further_ns.mul_add(points, time.point_ns);
        predicted.range_ns = time.further_ns.mul_add(ranges, time.range_ns);
        predicted
    }

    /// Whether there are empty points, and empty ranges or seeks.
    fn has_points_and_others(&self) -> (bool, bool) {
        let cases = if self.cases.is_assumed { &self.cases.empty } else { self.cases.sample() };
        (cases.iter().any(|case| case.is_point), cases.iter().any(|case| !case.is_point))
    }
}

/// A parameter of a filter.
fn parameter<T: std::str::FromStr>(spec: &FilterSpec, name: &str) -> Option<T> {
    spec.parameter(name)?.parse().ok()
}
