//! The candidates for the filters of a table, and their expected cost.

use std::sync::Arc;

use super::cases::Cases;
use super::{FalsePositiveRates, Part, Request, Scored};
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::{Budget, Family, FilterSpec, KeyRange, KeySet, Samples, proteus};

/// Budgets as shares of the maximum.
const BUDGET_SHARES: [f64; 6] = [1.0, 0.8, 0.6, 0.45, 0.3, 0.2];

/// Bits per key of Bloom filters next to a range filter.
const BLOOM_BITS: [f64; 7] = [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0];

/// The probability of a false positive and the time of the probe, by kind of query.
#[derive(Debug, Clone, Copy)]
struct Rates {
    point: f64,
    range: f64,
    seek: f64,
    point_ns: f64,
    range_ns: f64,
}

/// A part with its prediction.
#[derive(Debug, Clone)]
struct Predicted {
    part: Part,
    bits: f64,
    rates: Rates,
}

/// Evaluates filters for the keys and cases of a request.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    keys: &'a Arc<KeySet>,
    cases: &'a Cases<'a>,
    request: &'a Request<'a>,
    /// Shares of the weight: empty points, empty ranges, seeks, points and ranges with a key.
    shares: [f64; 5],
}

impl<'a> Candidates<'a> {
    pub(super) fn new(keys: &'a Arc<KeySet>, cases: &'a Cases<'a>, request: &'a Request<'a>) -> Self {
        let mut shares = [0.0; 5];
        for case in &cases.cases {
            let index = match (case.kind.is_seek(), case.is_point(), case.is_hit) {
                (true, _, _) => 2,
                (false, true, false) => 0,
                (false, false, false) => 1,
                (false, true, true) => 3,
                (false, false, true) => 4,
            };
            if let Some(share) = shares.get_mut(index) {
                *share += case.weight;
            }
        }
        let total: f64 = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        shares.iter_mut().for_each(|share| *share /= total);
        Self { keys, cases, request, shares }
    }

    /// The filters without a sample.
    pub(super) fn default_parts(&self) -> Vec<Part> {
        let max = self.request.bits_per_key_max;
        let part = |family, bits| Part { spec: FilterSpec::new(family), bits_per_key: Some(bits) };
        let surf = |bits| Part {
            spec: FilterSpec::new(Family::Surf).with("truncate", "yes"),
            bits_per_key: Some(bits),
        };
        match max {
            _ if self.keys.is_empty() || max < 4.0 => Vec::new(),
            ..12.0 => vec![part(Family::BlockedBloom, max)],
            _ => vec![surf(max)],
        }
    }

    /// All candidates, the cheapest first; only the best of each combination of families.
    pub(super) fn ranked(&self) -> Vec<Scored> {
        let mut points: Vec<Predicted> = BLOOM_BITS.iter().filter_map(|bits| self.bloom(*bits)).collect();
        points.extend(BUDGET_SHARES.iter().filter_map(|share| self.bloom(share * self.max())));
        let mut ranges = Vec::new();
        if self.shares[1] > 0.0 {
            ranges.extend(BUDGET_SHARES.iter().filter_map(|share| self.proteus(share * self.max())));
        }
        let mut scored = vec![self.combine(&[])];
        scored.extend(points.iter().map(|one| self.combine(&[one])));
        scored.extend(ranges.iter().map(|one| self.combine(&[one])));
        for range in &ranges {
            scored.extend(points.iter().map(|point| self.combine(&[point, range])));
        }
        scored.retain(|scored| scored.bits_per_key <= self.max());
        scored.sort_by(|left, right| left.cost_ns.total_cmp(&right.cost_ns));
        let mut ranked: Vec<Scored> = Vec::new();
        for scored in scored {
            let families =
                |scored: &Scored| scored.parts.iter().map(|part| part.spec.family()).collect::<Vec<_>>();
            if !ranked.iter().any(|other| families(other) == families(&scored)) {
                ranked.push(scored);
            }
        }
        ranked
    }

    /// The expected cost of given filters.
    pub(super) fn score(&self, parts: &[Part]) -> Scored {
        let predicted: Vec<Predicted> = parts.iter().map(|part| self.predict(part)).collect();
        self.combine(&predicted.iter().collect::<Vec<_>>())
    }

    fn max(&self) -> f64 {
        self.request.bits_per_key_max
    }

    fn predict(&self, part: &Part) -> Predicted {
        let bits = part.bits_per_key.unwrap_or(self.max());
        let known = match part.spec.family() {
            Family::BlockedBloom | Family::Elastic | Family::Standard => self.bloom(bits),
            Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom => self.proteus(bits),
            _ => None,
        };
        let time = self.request.prices.probe.get(part.spec.family());
        let rates = known.map_or(
            Rates { point: 1.0, range: 1.0, seek: 1.0, point_ns: time.point_ns, range_ns: time.range_ns },
            |known| known.rates,
        );
        Predicted { part: part.clone(), bits, rates }
    }

    fn bloom(&self, bits: f64) -> Option<Predicted> {
        Budget::bits_per_key(bits).ok()?;
        let probe_count = standard_best_k(bits, 8);
        let point = blocked_fpr(512.0, 512.0 / bits, probe_count).max(standard_fpr(bits, probe_count));
        let time = self.request.prices.probe.get(Family::BlockedBloom);
        let rates = Rates { point, range: 1.0, seek: 1.0, point_ns: time.point_ns, range_ns: time.range_ns };
        let part = Part { spec: FilterSpec::new(Family::BlockedBloom), bits_per_key: Some(bits) };
        Some(Predicted { part, bits, rates })
    }

    fn proteus(&self, bits: f64) -> Option<Predicted> {
        let budget = Budget::bits_per_key(bits).ok()?;
        let empty = self.cases.cases.iter().filter(|case| !case.is_hit && !case.kind.is_seek());
        let ranges: Vec<KeyRange<'_>> = empty.map(|case| case.range).collect();
        let model = proteus::Model::new(self.keys, Samples { queries: &ranges });
        let prices = proteus::Prices { read: self.request.prices.read_ns, ..proteus::Prices::DEFAULT };
        let (_, prediction) = model.choose(Family::Proteus, budget, &prices).ok()?;
        let time = self.request.prices.probe.get(Family::Proteus);
        let range_ns = time.range_ns + time.further_ns * (prediction.probes - 1.0).max(0.0);
        let (point, range) = (prediction.fpr, prediction.fpr);
        let rates = Rates { point, range, seek: 1.0, point_ns: time.point_ns, range_ns };
        let part = Part { spec: FilterSpec::new(Family::Proteus), bits_per_key: Some(bits) };
        Some(Predicted { part, bits, rates })
    }

    /// All filters of a table are asked one after the other: their rates multiply.
    fn combine(&self, parts: &[&Predicted]) -> Scored {
        let (mut point, mut range, mut seek) = (1.0, 1.0, 1.0);
        let (mut point_ns, mut range_ns, mut bits) = (0.0, 0.0, 0.0);
        for predicted in parts {
            let rates = &predicted.rates;
            point_ns += point * rates.point_ns;
            range_ns += range * rates.range_ns;
            point *= rates.point;
            range *= rates.range;
            seek *= rates.seek;
            bits += predicted.bits;
        }
        let [empty_points, empty_ranges, seeks, held_points, held_ranges] = self.shares;
        let prices = &self.request.prices;
        let cost_ns = (empty_points + held_points) * point_ns
            + (empty_ranges + held_ranges + seeks) * range_ns
            + (empty_points * point + empty_ranges * range + seeks * seek) * prices.read_ns
            + prices.bit_ns * bits;
        let known = |share: f64, rate: f64| (share > 0.0).then_some(rate);
        let false_positive_rates = FalsePositiveRates {
            point: known(empty_points, point),
            range: known(empty_ranges, range),
            seek: known(seeks, seek),
        };
        let parts = parts.iter().map(|predicted| predicted.part.clone()).collect();
        Scored { parts, cost_ns, bits_per_key: bits, false_positive_rates }
    }
}
