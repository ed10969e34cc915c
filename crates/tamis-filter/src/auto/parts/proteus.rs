//! Proteus, 1PBF and 2PBF: designs by their own model, at several budgets.
//!
//! The model searches with the queries that a filter would serve: all of them, and without the points for a filter that has one
//! for points next to it. A search of strings takes longer than one of integers.

use super::parameter;
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::proteus::{BloomLayout, Design, Model, Prices, SetForm, SizedDesign, Stage};
use crate::{Budget, Family, FilterSpec, KeyRange, Samples};

/// Steps of a scan of a key, of a query, and of a search.
const KEY_STEPS: usize = 20;
const QUERY_STEPS: usize = 300;
const SEARCH_STEPS: usize = 200_000;
const PAIR_SEARCH_STEPS: usize = 1_200_000;

/// Steps of the result of a query.
const RESULT_STEPS: usize = 100;

/// The shares of invented ranges for which prefixes without a sample are long enough.
const LENGTH_SHARES: [f64; 4] = [0.5, 0.7, 0.85, 0.95];

/// The families and the steps of a search; one Bloom filter of prefixes is a design of Proteus.
const FAMILIES: [(Family, usize); 2] =
    [(Family::Proteus, SEARCH_STEPS), (Family::TwoPrefixBloom, PAIR_SEARCH_STEPS)];

impl Problem<'_> {
    pub(super) fn proteus_parts(&self) -> Vec<Predicted> {
        let (has_points, has_others) = self.has_points_and_others();
        let mut found = Vec::new();
        if self.cases.sampled == 0 {
            return self.prefix_designs();
        }
        for with_points in [true, false] {
            if (with_points && !has_points && has_others) || (!with_points && !has_others) {
                continue;
            }
            let queries = self.closed_queries(with_points);
            if queries.is_empty() || !self.work.take(self.model_steps(queries.len())) {
                continue;
            }
            let model = Model::of_shared(self.keys, Samples { queries: &queries });
            for bits in self.range_budgets() {
                for (family, steps) in FAMILIES {
                    if self.work.take(steps + queries.len() * RESULT_STEPS) {
                        found.extend(self.searched(&model, family, bits));
                    }
                }
            }
        }
        found
    }

    /// Without a sample there is a filter for points next to it, and a flush pays for the choice: Bloom filters of one prefix that is
    /// just long enough for some shares of the invented ranges.
    fn prefix_designs(&self) -> Vec<Predicted> {
        let queries = self.closed_queries(false);
        let shared = |case: &Case<'_>| case.shared_left.max(case.shared_right);
        let ranges = self.cases.invented().iter().filter(|case| !case.is_point);
        let mut lengths: Vec<u32> = ranges.map(|case| shared(case) + 1).collect();
        lengths.sort_unstable();
        let mut lengths: Vec<u32> = LENGTH_SHARES
            .into_iter()
            .filter_map(|share| lengths.get((share * lengths.len() as f64) as usize).copied())
            .collect();
        lengths.dedup();
        let model = Model::of_shared(self.keys, Samples { queries: &queries });
        let design = |prefix| Design { first: Stage::None, prefix, layout: BloomLayout::Lines };
        let budgets = self.range_budgets();
        let designs =
            budgets.iter().flat_map(|bits| lengths.iter().map(move |length| (*bits, design(*length))));
        designs
            .filter_map(|(bits, design)| self.sized(&model, Family::Proteus, &design, bits, None))
            .collect()
    }

    /// The prediction of a filter whose design is given, or searched.
    pub(super) fn predict_proteus(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key?;
        let queries = self.closed_queries(true);
        let model = Model::of_shared(self.keys, Samples { queries: &queries });
        match given(&part.spec) {
            Some(design) => self.sized(&model, part.spec.family(), &design, bits, Some(&part.spec)),
            None => {
                let budget = Budget::bits_per_key(bits).ok()?;
                let (design, _) = model.choose(part.spec.family(), budget, &self.proteus_prices()).ok()?;
                self.sized(&model, part.spec.family(), &design, bits, Some(&part.spec))
            }
        }
    }

    fn searched(&self, model: &Model<'_>, family: Family, bits: f64) -> Option<Predicted> {
        let budget = Budget::bits_per_key(bits).ok()?;
        let design = model.choose_quickly(family, budget, &self.proteus_prices())?;
        self.sized(model, family, &design, bits, None)
    }

    /// The prediction of a design; `spec` is that of the filter, if it is not to be written with the design.
    fn sized(
        &self,
        model: &Model<'_>,
        family: Family,
        design: &Design,
        bits: f64,
        spec: Option<&FilterSpec>,
    ) -> Option<Predicted> {
        let budget_bytes = (self.counts.key_count as f64 * bits / 8.0) as u64;
        let sized = model.sized(family, design, budget_bytes, &self.proteus_prices())?;
        let spec = match spec {
            Some(spec) => spec.clone(),
            None => sized.spec()?,
        };
        Some(self.with_results(model, &sized, spec, bits))
    }

    fn with_results(&self, model: &Model<'_>, sized: &SizedDesign, spec: FilterSpec, bits: f64) -> Predicted {
        let ranges: Vec<KeyRange<'_>> = self.cases.empty.iter().map(|case| case.range).collect();
        let results = model.results(sized, &ranges);
        let size = self.counts.bits_per_key(sized.bytes);
        let time = self.request.prices.probe.get(spec.family());
        let mut predicted = self.prediction(spec, Some(bits), size, |_| 1.0);
        let (mut tests, mut counts) = ([0.0; 2], [0.0; 2]);
        for ((case, result), rate) in self.cases.empty.iter().zip(&results).zip(&mut predicted.rates) {
            if case.kind.is_seek() {
                continue;
            }
            *rate = result.rate as f32;
            let kind = usize::from(!case.is_point);
            if let (Some(tests), Some(count)) = (tests.get_mut(kind), counts.get_mut(kind)) {
                *tests += result.probes * case.weight;
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

    /// The empty queries of the sample that a filter of prefixes can answer.
    fn closed_queries(&self, with_points: bool) -> Vec<KeyRange<'_>> {
        let cases = if self.cases.sampled > 0 { self.cases.sample() } else { self.cases.invented() };
        let closed = cases.iter().filter(|case| !case.kind.is_seek() && (with_points || !case.is_point));
        closed.map(|case| case.range).collect()
    }

    fn model_steps(&self, query_count: usize) -> usize {
        self.keys.len() * KEY_STEPS + query_count * QUERY_STEPS
    }

    fn proteus_prices(&self) -> Prices {
        let probe = self.request.prices.probe.get(Family::Proteus).further_ns / 2.0;
        Prices { probe, read: self.request.prices.read_ns, ..Prices::DEFAULT }
    }
}

/// The design in the parameters of a filter.
fn given(spec: &FilterSpec) -> Option<Design> {
    let bits = |name: &str| parameter::<u32>(spec, name);
    let layout = parameter::<BloomLayout>(spec, "layout").unwrap_or(BloomLayout::Spread);
    let (first, prefix) = match spec.family() {
        Family::TwoPrefixBloom => {
            let share = parameter(spec, "share").unwrap_or(0.5);
            (Stage::Bloom { depth: bits("first")?, share }, bits("second")?)
        }
        _ => match (bits("trie"), bits("prefix")) {
            (None, None) => return None,
            (None | Some(0), prefix) => (Stage::None, prefix.unwrap_or(0)),
            (Some(depth), prefix) => (Stage::Set { depth, form: SetForm::Trie }, prefix.unwrap_or(0)),
        },
    };
    Some(Design { first, prefix, layout })
}
