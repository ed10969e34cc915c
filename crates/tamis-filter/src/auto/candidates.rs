//! The candidates for the filters of a table: lists them, and combines them under one budget.
//!
//! 1. Every family proposes designs at a few budgets (`point_parts.rs`, `prefix_parts.rs`, `surf_parts.rs`, `proteus_parts.rs`),
//!    each with the probability of a positive for every empty query.
//! 2. All designs alone, all pairs of a filter for points and one for ranges, and pairs and triples of the best of these are
//!    priced. A query is asked to the filters in order until one rejects it: for each query the probabilities multiply.
//! 3. The cheapest combination wins; of those that cost at most 5 % more, the one that is best for invented queries.

use std::sync::Arc;

use super::cases::Cases;
use super::key_counts::KeyCounts;
use super::work::Work;
use super::{FalsePositiveRates, Part, Request, Scored};
use crate::KeySet;

/// Combinations that cost at most this multiple of the best are equally good for the sample.
const EQUALLY_GOOD: f64 = 1.05;
/// The weight of invented queries among these.
const INVENTED_SHARE: f64 = 0.05;
/// The number of queries as which the invented ones count in the expected cost.
const PSEUDO_QUERIES: f64 = 0.5;

/// Range filters that are combined with each other, and combinations that get a third filter.
const COMBINED_MAX: usize = 12;

/// A filter and what it would do.
#[derive(Debug, Clone)]
pub(super) struct Predicted {
    pub(super) part: Part,
    /// The expected size.
    pub(super) bits: f64,
    /// The probability of a positive for each empty query; 1 for a seek without candidates.
    pub(super) rates: Vec<f32>,
    pub(super) point_ns: f64,
    pub(super) range_ns: f64,
}

impl Predicted {
    fn answers_ranges(&self) -> bool {
        self.part.spec.family().answers_ranges()
    }

    fn time_ns(&self, is_point: bool, is_seek: bool) -> f64 {
        match (is_point, is_seek) {
            (true, _) => self.point_ns,
            (false, true) if !self.part.spec.family().names_candidates() => 0.0,
            (false, _) => self.range_ns,
        }
    }
}

/// A combination of filters with its cost.
#[derive(Debug, Clone)]
struct Combination {
    parts: Vec<usize>,
    cost_ns: f64,
    /// The cost of invented queries.
    invented_ns: f64,
}

impl Combination {
    fn robust_ns(&self) -> f64 {
        INVENTED_SHARE.mul_add(self.invented_ns, (1.0 - INVENTED_SHARE) * self.cost_ns)
    }
}

/// The keys and queries of a table, and the prices.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) keys: &'a Arc<KeySet>,
    pub(super) counts: KeyCounts,
    pub(super) cases: &'a Cases<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) work: Work,
}

impl<'a> Problem<'a> {
    pub(super) fn new(keys: &'a Arc<KeySet>, cases: &'a Cases<'a>, request: &'a Request<'a>) -> Self {
        let work = Work::for_keys(keys.len());
        Self { keys, counts: KeyCounts::new(keys), cases, request, work }
    }

    pub(super) fn bits_max(&self) -> f64 {
        self.request.bits_per_key_max
    }

    /// The ranking of all combinations of families, the best first.
    pub(super) fn ranked(&self) -> Vec<Scored> {
        let predicted = self.predicted();
        let mut combinations = self.combinations(&predicted);
        combinations.sort_by(|left, right| left.cost_ns.total_cmp(&right.cost_ns));
        let limit = combinations.first().map_or(0.0, |best| best.cost_ns * EQUALLY_GOOD);
        let good = combinations.partition_point(|combination| combination.cost_ns <= limit);
        if let Some(good) = combinations.get_mut(..good) {
            good.sort_by(|left, right| left.robust_ns().total_cmp(&right.robust_ns()));
        }
        let mut ranked: Vec<Scored> = Vec::new();
        for combination in combinations {
            let parts: Vec<&Predicted> =
                combination.parts.iter().filter_map(|index| predicted.get(*index)).collect();
            let is_new = |other: &Scored| {
                !other
                    .parts
                    .iter()
                    .map(|part| part.spec.family())
                    .eq(parts.iter().map(|predicted| predicted.part.spec.family()))
            };
            if ranked.iter().all(is_new) {
                ranked.push(self.scored(&parts));
            }
        }
        ranked
    }

    /// The expected cost of given filters.
    pub(super) fn score(&self, parts: &[Part]) -> Scored {
        let predicted: Vec<Predicted> = parts.iter().map(|part| self.predict(part)).collect();
        self.scored(&predicted.iter().collect::<Vec<_>>())
    }

    fn combinations(&self, predicted: &[Predicted]) -> Vec<Combination> {
        let fits = |parts: &[usize]| {
            let bits = |index: &usize| predicted.get(*index).map_or(0.0, |one| one.bits);
            parts.iter().map(bits).sum::<f64>() <= self.bits_max()
        };
        let mut found = vec![self.combination(predicted, Vec::new())];
        let singles = (0..predicted.len()).map(|index| vec![index]).filter(|parts| fits(parts));
        found.extend(singles.map(|parts| self.combination(predicted, parts)));
        let answers = |index: &usize| predicted.get(*index).is_some_and(Predicted::answers_ranges);
        let (ranges, points): (Vec<usize>, Vec<usize>) = (0..predicted.len()).partition(answers);
        let pairs = points.iter().flat_map(|point| ranges.iter().map(move |range| vec![*point, *range]));
        found.extend(pairs.filter(|parts| fits(parts)).map(|parts| self.combination(predicted, parts)));
        // Two range filters, for example one for prefixes and one for ranges: only of the best.
        let mut best: Vec<Vec<usize>> = Vec::new();
        let mut by_cost: Vec<&Combination> = found.iter().filter(|one| !one.parts.is_empty()).collect();
        by_cost.sort_by(|left, right| left.cost_ns.total_cmp(&right.cost_ns));
        best.extend(by_cost.iter().take(COMBINED_MAX).map(|one| one.parts.clone()));
        let family = |index: usize| predicted.get(index).map(|one| one.part.spec.family());
        for parts in best {
            for range in &ranges {
                let is_other = parts.iter().all(|part| family(*part) != family(*range));
                let more = [parts.as_slice(), &[*range]].concat();
                if is_other && fits(&more) && self.work.take(self.cases.empty.len()) {
                    found.push(self.combination(predicted, more));
                }
            }
        }
        found
    }

    fn combination(&self, predicted: &[Predicted], parts: Vec<usize>) -> Combination {
        let chosen: Vec<&Predicted> = parts.iter().filter_map(|index| predicted.get(*index)).collect();
        let sums = self.sums(&chosen);
        let bits: f64 = chosen.iter().map(|one| one.bits).sum();
        let memory = bits * self.request.prices.bit_ns;
        let invented_ns = sums.invented_ns + memory;
        Combination { parts, cost_ns: sums.cost_ns + memory, invented_ns }
    }

    fn scored(&self, parts: &[&Predicted]) -> Scored {
        let sums = self.sums(parts);
        let bits_per_key = parts.iter().map(|one| one.bits).sum();
        let rate = |[weight, passed]: [f64; 2]| (weight > 0.0).then(|| passed / weight);
        let [point, range, seek] = sums.kinds.map(rate);
        Scored {
            parts: parts.iter().map(|one| one.part.clone()).collect(),
            cost_ns: self.request.prices.bit_ns.mul_add(bits_per_key, sums.cost_ns),
            bits_per_key,
            false_positive_rates: FalsePositiveRates { point, range, seek },
        }
    }

    /// The expected cost of a query, without the price of memory.
    fn sums(&self, parts: &[&Predicted]) -> Sums {
        let mut sums = Sums::default();
        let mut costs = [0.0; 2];
        let mut weights = [0.0; 2];
        for (index, case) in self.cases.empty.iter().enumerate() {
            let (mut passed, mut ns) = (1.0, 0.0);
            for part in parts {
                ns += passed * part.time_ns(case.is_point, case.kind.is_seek());
                passed *= part.rates.get(index).copied().map_or(1.0, f64::from);
            }
            let cost = passed.mul_add(self.request.prices.read_ns, ns);
            let invented = usize::from(index >= self.cases.sampled);
            if let (Some(sum), Some(weight)) = (costs.get_mut(invented), weights.get_mut(invented)) {
                *sum += case.weight * cost;
                *weight += case.weight;
            }
            if invented == 0 || self.cases.sampled == 0 {
                let kind = if case.kind.is_seek() { 2 } else { usize::from(!case.is_point) };
                if let Some([weight, sum]) = sums.kinds.get_mut(kind) {
                    *weight += case.weight;
                    *sum += case.weight * passed;
                }
            }
        }
        let [sampled, invented] = costs;
        let [sampled_weight, invented_weight] = weights;
        sums.invented_ns = if invented_weight > 0.0 { invented / invented_weight } else { 0.0 };
        // Queries that hold a key ask all filters.
        let held = |part: &&Predicted| {
            let [points, others] = self.cases.hits;
            points * part.time_ns(true, false) + others * part.time_ns(false, false)
        };
        let [points, others] = self.cases.hits;
        let held_ns: f64 = parts.iter().map(held).sum();
        let mean_weight = sampled_weight / (self.cases.sampled.max(1) as f64);
        let pseudo = if self.cases.sampled == 0 { 1.0 } else { mean_weight * PSEUDO_QUERIES };
        let total = sampled_weight + points + others + pseudo;
        sums.cost_ns = (sampled + held_ns + pseudo * sums.invented_ns) / total.max(f64::MIN_POSITIVE);
        sums
    }
}

/// Sums over the queries.
#[derive(Debug, Default)]
struct Sums {
    cost_ns: f64,
    invented_ns: f64,
    /// Weight of the empty points, ranges and seeks, and of those that pass.
    kinds: [[f64; 2]; 3],
}
