//! The designs that each family proposes, and the prediction for any filter.

mod grafite;
mod points;
mod prefixes;
mod proteus;
mod surf;

use super::Part;
use super::candidates::{Predicted, Problem};
use super::cases::Case;
use crate::{Family, FilterSpec};

/// Budgets as shares of the maximum.
const BUDGET_SHARES: [f64; 6] = [1.0, 0.5, 0.75, 0.35, 0.6, 0.2];

/// Without a sample a filter for points has so many bits per key, or this share of the maximum, and a range filter the rest.
const POINT_BITS_ALONE: f64 = 10.0;
const POINT_SHARE_ALONE: f64 = 0.625;

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
        predicted.retain(|one| one.bits > 0.0 && one.bits <= self.bits_max());
        predicted
    }

    /// The prediction for a filter of any family. A family without a formula counts as passing everything.
    pub(super) fn predict(&self, part: &Part) -> Predicted {
        let known = match part.spec.family() {
            Family::BlockedBloom | Family::Elastic | Family::Standard | Family::Fuse => {
                self.predict_point(part)
            }
            Family::Prefix => self.predict_prefix(part),
            Family::Surf | Family::SurfBase | Family::SurfHash | Family::SurfReal | Family::SurfMixed => {
                self.predict_surf(part)
            }
            Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom => self.predict_proteus(part),
            Family::Grafite => self.predict_grafite(part),
            Family::Rosetta => None,
        };
        known.unwrap_or_else(|| {
            let bits = part.bits_per_key.unwrap_or(0.0);
            self.prediction(part.spec.clone(), part.bits_per_key, bits, |_| 1.0)
        })
    }

    /// The budgets of range filters that are tried. Without a sample only one: a flush pays for the choice.
    fn range_budgets(&self) -> Vec<f64> {
        if self.cases.sampled == 0 {
            return vec![self.bits_max() - self.point_bits_alone()];
        }
        BUDGET_SHARES.iter().map(|share| share * self.bits_max()).collect()
    }

    /// The budget of a filter for points without a sample.
    fn point_bits_alone(&self) -> f64 {
        POINT_BITS_ALONE.min(POINT_SHARE_ALONE * self.bits_max())
    }

    /// A prediction from the probability of a positive for each empty query, with the probe times of the family.
    fn prediction(
        &self,
        spec: FilterSpec,
        bits_per_key: Option<f64>,
        bits: f64,
        rate: impl Fn(&Case<'_>) -> f64,
    ) -> Predicted {
        let time = self.request.prices.probe.get(spec.family());
        let names_candidates = spec.family().names_candidates();
        let rate = |case: &Case<'_>| match (case.kind.is_seek(), case.is_closed()) {
            (true, _) if !names_candidates => 1.0,
            // An open seek with a candidate reads the table only when the scan reaches it.
            (true, false) => 0.0,
            _ => rate(case).clamp(0.0, 1.0) as f32,
        };
        let rates = self.cases.empty.iter().map(rate).collect();
        let part = Part { spec, bits_per_key };
        Predicted { part, bits, rates, point_ns: time.point_ns, range_ns: time.range_ns }
    }

    /// Whether the sample has empty points, and whether it has empty ranges or seeks.
    fn has_points_and_others(&self) -> (bool, bool) {
        let cases = if self.cases.sampled > 0 { self.cases.sample() } else { self.cases.invented() };
        (cases.iter().any(|case| case.is_point), cases.iter().any(|case| !case.is_point))
    }
}

/// A parameter of a filter.
fn parameter<T: std::str::FromStr>(spec: &FilterSpec, name: &str) -> Option<T> {
    spec.parameter(name)?.parse().ok()
}
