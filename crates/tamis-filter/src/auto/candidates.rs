//! The candidates for the filters of a table: lists them, and combines them under one budget.
//!
//! 1. Every family proposes designs at a few budgets (`parts/`),
//!    each with the probability of a positive for every empty query.
//! 2. All designs alone, all pairs of a filter for points and one for ranges, and pairs and triples of the best of these are
//!    priced. Points probe only the point filter if there is one, and all other queries to the range filters in order
//!    until one rejects them: for each query the probabilities multiply.
//! 3. The cheapest combination wins; of those that cost at most 3 % more, the one that is best for synthetic queries.
//!    If it has too many false positives for the tables that a query asks, the cheapest that has few enough wins.

use std::sync::Arc;

use super::cases::Cases;
use super::key_counts::KeyCounts;
use super::probe_times::CANDIDATE_RANGES;
use super::work::Work;
use super::{FalsePositiveRates, Part, Request, Scored, TARGET_SHARE, target_cost_max, target_use};
use crate::{KeySet, steps};

/// Combinations that cost at most this multiple of the best are equally good for the sample.
const EQUALLY_GOOD: f64 = 1.03;
/// The weight of synthetic queries among these.
const SYNTHETIC_SHARE: f64 = 0.05;
/// The number of queries as which the synthetic ones count in the expected cost: next to a sample, and next to a small one.
const PSEUDO_QUERIES: f64 = 0.5;
const ASSUMED_QUERIES: f64 = 10.0;
/// In the assumed workload, the weight of the points that find their key, relative to that of all queries without a key: half of
/// the points do.
const ASSUMED_HITS: f64 = 1.0 / 3.0;

/// Without a sample, points may cost more than with a Bloom filter of so many bits per key (of a small budget, of this share) by this share
/// of a read: most reads of most stores are lookups of keys.
const POINT_BITS: f64 = 10.0;
const POINT_BITS_SHARE: f64 = 0.625;
const POINT_READ_SHARE: f64 = 0.005;

/// Another range filter must lower the cost to this share: it fits the sample better than the queries to come.
const ANOTHER_FILTER: f64 = 0.9;

/// The number of best range filters that are combined with another one.
const COMBINED_MAX: usize = 5;

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
            (false, true) if self.part.spec.family().names_candidates(false) => {
                CANDIDATE_RANGES * self.range_ns
            }
            (false, true) => 0.0,
            (false, false) => self.range_ns,
        }
    }
}

/// Sums over the queries of one kind: of the sample, then the synthetic ones.
#[derive(Debug, Clone, Copy, Default)]
struct KindSums {
    weight: [f64; 2],
    passed: [f64; 2],
    /// Time of the probes, without that of a filter for points.
    ns: [f64; 2],
}

/// Range filters (none, one, or two) and their sums for points, for ranges and for seeks.
#[derive(Debug, Clone)]
struct RangeFilters {
    parts: Vec<usize>,
    bits: f64,
    /// The time of a point that passes all of them.
    point_ns: f64,
    kinds: [KindSums; 3],
}

/// A combination of filters with its cost.
#[derive(Debug, Clone)]
struct Combination {
    /// The filter for points first.
    parts: Vec<usize>,
    cost_ns: f64,
    /// The cost of synthetic queries.
    synthetic_ns: f64,
    /// The cost of synthetic points and those that find their key, without the price of memory.
    points_ns: f64,
    /// The false positives as a share of the targets; 0 without a sample.
    target_use: f64,
}

impl Combination {
    fn robust_ns(&self) -> f64 {
        SYNTHETIC_SHARE.mul_add(self.synthetic_ns, (1.0 - SYNTHETIC_SHARE) * self.cost_ns)
    }
}

/// The keys and queries of a table, and the prices.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) keys: &'a Arc<KeySet>,
    pub(super) counts: KeyCounts<'a>,
    pub(super) cases: &'a Cases<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) work: Work<'a>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(keys: &'a Arc<KeySet>, cases: &'a Cases<'a>, request: &'a Request<'a>) -> Self {
        let work = Work::for_keys(keys.len(), request.effort).with_pause(request.pause);
        Self { keys, counts: KeyCounts::new(keys), cases, request, work }
    }

    /// Without a limit on the work.
    pub(super) fn unlimited(keys: &'a Arc<KeySet>, cases: &'a Cases<'a>, request: &'a Request<'a>) -> Self {
        Self { work: Work::unlimited(), ..Self::new(keys, cases, request) }
    }

    pub(super) fn bits_max(&self) -> f64 {
        self.request.bits_per_key_max
    }

    /// The ranking of all combinations of families, the best first. Also returns whether it costs more than the cheapest one because it meets the
    /// targets; then that one is the second, of any families.
    pub(super) fn ranked(&self) -> (Vec<Scored>, bool) {
        let predicted = self.predicted();
        let mut combinations = self.combinations(&predicted);
        self.leave_out_slow_points(&mut combinations);
        combinations.sort_by(|left, right| left.cost_ns.total_cmp(&right.cost_ns));
        let limit = combinations.first().map_or(0.0, |best| best.cost_ns * EQUALLY_GOOD);
        let good = combinations.partition_point(|combination| combination.cost_ns <= limit);
        if let Some(good) = combinations.get_mut(..good) {
            good.sort_by(|left, right| left.robust_ns().total_cmp(&right.robust_ns()));
        }
        let is_cheapest_second = self.prefer_few_false_positives(&mut combinations);
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
            if ranked.iter().all(is_new) || (is_cheapest_second && ranked.len() == 1) {
                ranked.push(self.scored(&parts));
            }
        }
        (ranked, is_cheapest_second)
    }

    /// Moves the cheapest combination that meets the targets to the front, unless it costs too much. Returns whether a cheaper one follows.
    fn prefer_few_false_positives(&self, combinations: &mut [Combination]) -> bool {
        let Some(best) = combinations.first().filter(|best| best.target_use > 1.0) else { return false };
        let limit = best.cost_ns * target_cost_max(self.request.overlapping_tables);
        let meets =
            |share: f64| combinations.iter().position(|one| one.target_use <= share && one.cost_ns <= limit);
        let first = meets(TARGET_SHARE).or_else(|| meets(1.0));
        let Some(front) = first.and_then(|place| combinations.get_mut(..=place)) else { return false };
        front.rotate_right(1);
        true
    }

    /// Whether filters have at most this share of the false positives of the targets.
    pub(super) fn meets_targets(&self, scored: &Scored, share: f64) -> bool {
        self.cases.is_assumed
            || target_use(&scored.false_positive_rates, self.request.overlapping_tables) <= share
    }

    /// Leaves out combinations that make points slower, unless a sample shows the queries.
    fn leave_out_slow_points(&self, combinations: &mut Vec<Combination>) {
        if !self.cases.is_assumed || self.cases.sampled as f64 >= ASSUMED_QUERIES {
            return;
        }
        let bits = POINT_BITS.min(POINT_BITS_SHARE * self.bits_max());
        let Some(bloom) = self.predict_bloom(bits) else { return };
        let none = self.range_filters(&[], &[]);
        let limit = self.points_ns(&none, Some(&bloom)) + POINT_READ_SHARE * self.request.prices.read_ns;
        if combinations.iter().any(|combination| combination.points_ns <= limit) {
            combinations.retain(|combination| combination.points_ns <= limit);
        }
    }

    /// The mean cost of synthetic points and of those that find their key, without the price of memory.
    fn points_ns(&self, group: &RangeFilters, point: Option<&Predicted>) -> f64 {
        let [sums, ..] = &group.kinds;
        let [_, weight] = sums.weight;
        if weight == 0.0 {
            return 0.0;
        }
        let held = ASSUMED_HITS * (self.cases.synthetic().len() as f64) / weight;
        let ([_, passed], [_, ns]) = (sums.passed, sums.ns);
        let (empty_ns, held_ns) = match point {
            Some(point) => {
                let rate = self.point_rate(point);
                (point.point_ns + rate * self.request.prices.read_ns, point.point_ns)
            }
            None => ((ns + passed * self.request.prices.read_ns) / weight, group.point_ns),
        };
        (empty_ns + held * held_ns) / (1.0 + held)
    }

    /// The expected cost of given filters.
    pub(super) fn score(&self, parts: &[Part]) -> Scored {
        let predicted: Vec<Predicted> = parts.iter().map(|part| self.predict(part)).collect();
        self.scored(&predicted.iter().collect::<Vec<_>>())
    }

    /// All combinations within the maximum: a filter for points or none, with up to two range filters. Two range filters, for
    /// example one for prefixes and one for ranges, are combined only of the best ones.
    fn combinations(&self, predicted: &[Predicted]) -> Vec<Combination> {
        let answers = |index: &usize| predicted.get(*index).is_some_and(Predicted::answers_ranges);
        let (ranges, points): (Vec<usize>, Vec<usize>) = (0..predicted.len()).partition(answers);
        let mut groups = vec![self.range_filters(predicted, &[])];
        groups.extend(ranges.iter().map(|index| self.range_filters(predicted, &[*index])));
        let mut found: Vec<Combination> =
            groups.iter().flat_map(|group| self.with_point_filters(predicted, group, &points)).collect();
        found.sort_by(|left, right| left.cost_ns.total_cmp(&right.cost_ns));
        let mut best: Vec<usize> = Vec::new();
        for index in found.iter().filter_map(|one| one.parts.iter().copied().find(answers)) {
            if !best.contains(&index) {
                best.push(index);
            }
        }
        let family = |index: &usize| predicted.get(*index).map(|one| one.part.spec.family());
        let bits = |index: &usize| predicted.get(*index).map_or(0.0, |one| one.bits);
        let limit = found.first().map_or(0.0, |best| best.cost_ns * ANOTHER_FILTER);
        let misses_targets = found.first().is_some_and(|best| best.target_use > 1.0);
        for (number, first) in best.iter().take(COMBINED_MAX).enumerate() {
            for second in best.iter().skip(number + 1) {
                if family(first) != family(second)
                    && bits(first) + bits(second) <= self.bits_max()
                    && self.work.take(self.cases.empty.len() * 4)
                {
                    let group = self.range_filters(predicted, &[*first, *second]);
                    let pairs = self.with_point_filters(predicted, &group, &points);
                    let is_useful = |pair: &Combination| {
                        pair.cost_ns <= limit || (misses_targets && pair.target_use <= 1.0)
                    };
                    found.extend(pairs.into_iter().filter(is_useful));
                }
            }
        }
        found
    }

    /// Range filters without and with each filter for points that fits.
    fn with_point_filters(
        &self,
        predicted: &[Predicted],
        group: &RangeFilters,
        points: &[usize],
    ) -> Vec<Combination> {
        let fits = |point: &&usize| {
            predicted.get(**point).is_some_and(|one| one.bits + group.bits <= self.bits_max())
        };
        let alone = std::iter::once(None).filter(|_| group.bits <= self.bits_max());
        let options = alone.chain(points.iter().filter(fits).map(|point| Some(*point)));
        // Filters for points pass all ranges.
        let target_use = self.target_use(group);
        options
            .map(|point| {
                let filter = point.and_then(|point| predicted.get(point));
                let (cost_ns, synthetic_ns) = self.cost(predicted, group, filter);
                let parts = point.into_iter().chain(group.parts.iter().copied()).collect();
                let points_ns = self.points_ns(group, filter);
                Combination { parts, cost_ns, synthetic_ns, points_ns, target_use }
            })
            .collect()
    }

    fn target_use(&self, group: &RangeFilters) -> f64 {
        if self.cases.is_assumed {
            return 0.0;
        }
        let [_, range, seek] = rates_of(group, 0);
        let rates = FalsePositiveRates { point: None, range, seek };
        target_use(&rates, self.request.overlapping_tables)
    }

    /// The sums of range filters over all queries.
    fn range_filters(&self, predicted: &[Predicted], parts: &[usize]) -> RangeFilters {
        let chosen: Vec<&Predicted> = parts.iter().filter_map(|index| predicted.get(*index)).collect();
        RangeFilters {
            parts: parts.to_vec(),
            bits: chosen.iter().map(|one| one.bits).sum(),
            point_ns: chosen.iter().map(|one| one.point_ns).sum(),
            kinds: self.kind_sums(&chosen),
        }
    }

    fn kind_sums(&self, parts: &[&Predicted]) -> [KindSums; 3] {
        let mut kinds = [KindSums::default(); 3];
        steps::count(self.cases.empty.len() * (1 + parts.len()));
        for (index, case) in self.cases.empty.iter().enumerate() {
            let (mut passed, mut ns) = (1.0, 0.0);
            for part in parts {
                ns += passed * part.time_ns(case.is_point, case.kind.is_seek());
                passed *= part.rates.get(index).copied().map_or(1.0, f64::from);
            }
            let kind = if case.kind.is_seek() { 2 } else { usize::from(!case.is_point) };
            let is_synthetic = usize::from(index >= self.cases.sampled);
            let Some(sums) = kinds.get_mut(kind) else { continue };
            let add = |sums: &mut [f64; 2], value: f64| {
                if let Some(sum) = sums.get_mut(is_synthetic) {
                    *sum = case.weight.mul_add(value, *sum);
                }
            };
            add(&mut sums.weight, 1.0);
            add(&mut sums.passed, passed);
            add(&mut sums.ns, ns);
        }
        kinds
    }

    /// The expected cost of a query, and of a synthetic one, with the price of memory.
    fn cost(&self, predicted: &[Predicted], group: &RangeFilters, point: Option<&Predicted>) -> (f64, f64) {
        let parts: Vec<&Predicted> = group.parts.iter().filter_map(|index| predicted.get(*index)).collect();
        let point_rate = point.map_or(1.0, |point| self.point_rate(point));
        let first_ns =
            |is_point: bool, is_seek: bool| point.map_or(0.0, |one| one.time_ns(is_point, is_seek));
        let read_ns = self.request.prices.read_ns;
        let [mut sampled, mut synthetic] = [(0.0, 0.0); 2];
        for (kind, sums) in group.kinds.iter().enumerate() {
            let (is_point, is_seek) = (kind == 0, kind == 2);
            let first_ns = first_ns(is_point, is_seek);
            for (index, total) in [&mut sampled, &mut synthetic].into_iter().enumerate() {
                let of = |sums: &[f64; 2]| sums.get(index).copied().unwrap_or(0.0);
                let (weight, passed, ns) = (of(&sums.weight), of(&sums.passed), of(&sums.ns));
                let (passed, ns) = match point {
                    Some(_) if is_point => (weight * point_rate, 0.0),
                    _ => (passed, ns),
                };
                total.0 += weight * first_ns + ns + passed * read_ns;
                total.1 += weight;
            }
        }
        // Ranges that contain a key probe all filters, seeks those that name candidates.
        let [points, ranges, seeks] = self.cases.hits;
        let all_ns = |is_seek: bool| -> f64 {
            parts.iter().chain(point.iter()).map(|part| part.time_ns(false, is_seek)).sum()
        };
        let points_ns: f64 = match point {
            Some(point) => point.time_ns(true, false),
            None => parts.iter().map(|part| part.time_ns(true, false)).sum(),
        };
        let mean_weight = sampled.1 / (self.cases.sampled.max(1) as f64);
        let pseudo = match (self.cases.sampled, self.cases.is_assumed) {
            (0, _) => 1.0,
            (_, true) => mean_weight * ASSUMED_QUERIES,
            (_, false) => mean_weight * PSEUDO_QUERIES,
        };
        let points = points + if self.cases.is_assumed { pseudo * ASSUMED_HITS } else { 0.0 };
        let held_ns = points * points_ns + ranges * all_ns(false) + seeks * all_ns(true);
        let synthetic_ns = if synthetic.1 > 0.0 { synthetic.0 / synthetic.1 } else { 0.0 };
        let total = (sampled.1 + points + ranges + seeks + pseudo).max(f64::MIN_POSITIVE);
        let memory = (group.bits + point.map_or(0.0, |point| point.bits)) * self.request.prices.bit_ns;
        ((sampled.0 + held_ns + pseudo * synthetic_ns) / total + memory, synthetic_ns + memory)
    }

    /// The rate of a filter for points, which is the same for each.
    fn point_rate(&self, point: &Predicted) -> f64 {
        let index = self.cases.empty.iter().position(|case| case.is_point);
        index.and_then(|index| point.rates.get(index)).map_or(1.0, |rate| f64::from(*rate))
    }

    fn scored(&self, parts: &[&Predicted]) -> Scored {
        let predicted: Vec<Predicted> = parts.iter().map(|part| (*part).clone()).collect();
        let for_points = predicted.iter().find(|one| !one.answers_ranges());
        let others: Vec<usize> = (0..predicted.len())
            .filter(|index| {
                predicted
                    .get(*index)
                    .is_some_and(|one| for_points.is_none_or(|first| !std::ptr::eq(first, one)))
            })
            .collect();
        let group = self.range_filters(&predicted, &others);
        let (cost_ns, _) = self.cost(&predicted, &group, for_points);
        let of = usize::from(self.cases.sampled == 0);
        let [point, range, seek] = rates_of(&group, of);
        let point = point.map(|rate| for_points.map_or(rate, |filter| self.point_rate(filter)));
        let false_positive_rates = FalsePositiveRates { point, range, seek };
        let parts = parts.iter().map(|one| one.part.clone()).collect();
        let bits_per_key = group.bits + for_points.map_or(0.0, |one| one.bits);
        Scored { parts, cost_ns, bits_per_key, false_positive_rates }
    }
}

/// The rates of range filters for points, for ranges and for seeks of the sample (0) or of synthetic queries (1).
fn rates_of(group: &RangeFilters, of: usize) -> [Option<f64>; 3] {
    group.kinds.map(|sums| {
        let (weight, passed) = (sums.weight.get(of).copied()?, sums.passed.get(of).copied()?);
        (weight > 0.0).then(|| passed / weight)
    })
}
