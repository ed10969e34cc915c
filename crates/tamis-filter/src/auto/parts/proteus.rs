//! Proteus, 1PBF and 2PBF: designs by their own model, at several budgets.
//!
//! The model searches with the queries that a filter would serve: all of them, and without the points for a filter that has one
//! for points next to it. A search of strings takes longer than one of integers.

use super::parameter;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::auto::{Effort, Part, ProbeTime};
use crate::empty_query::EmptyQuery;
use crate::fixed_keys::FixedKeys;
use crate::proteus::{BloomLayout, Breadth, Design, Model, Prices, SetForm, SizedDesign, Stage};
use crate::{Budget, Family, FilterSpec};

/// Steps of a scan of a key, of a query, and of a search.
const KEY_STEPS: usize = 20;
const BACKGROUND_KEY_STEPS: usize = 150;
const QUERY_STEPS: usize = 300;
const SEARCH_STEPS: usize = 200_000;
const PAIR_SEARCH_STEPS: usize = 1_200_000;

/// The model prices each level of a trie as a line of the cache, the choice prices all levels like a single test. The model is therefore also
/// asked with cheaper lines.
const LINE_DIVISORS: [f64; 2] = [1.0, 8.0];
/// A search with more designs, for two prices, takes so many times as long.
const MANY_FACTOR: usize = 8;

/// Steps of the result of a query.
const RESULT_STEPS: usize = 100;

/// The shares of the assumed ranges for which prefixes are long enough.
const LENGTH_SHARES: [f64; 4] = [0.5, 0.7, 0.85, 0.95];

/// The families and the steps of a search; one Bloom filter of prefixes is a design of Proteus.
const FAMILIES: [(Family, usize); 2] =
    [(Family::Proteus, SEARCH_STEPS), (Family::TwoPrefixBloom, PAIR_SEARCH_STEPS)];

impl Problem<'_> {
    pub(super) fn proteus_parts(&self) -> Vec<Predicted> {
        let (has_points, has_others) = self.has_points_and_others();
        let mut found = if self.cases.is_assumed { self.assumed_designs() } else { Vec::new() };
        if self.cases.sampled == 0 {
            return found;
        }
        for with_points in [true, false] {
            if (with_points && !has_points && has_others) || (!with_points && !has_others) {
                continue;
            }
            let queries = self.closed_queries(with_points);
            let query_count = queries.len();
            if queries.is_empty() || !self.work.take(self.model_steps(query_count)) {
                continue;
            }
            let model = Model::with_queries(self.keys, queries);
            for (index, bits) in self.range_budgets().into_iter().enumerate() {
                for family in FAMILIES {
                    found.extend(self.searches(&model, query_count, family, (index, bits)));
                }
            }
        }
        found
    }

    /// The best designs of a family within a budget. In the background, with the first budget, more designs are tried.
    fn searches(
        &self,
        model: &Model<'_>,
        query_count: usize,
        (family, steps): (Family, usize),
        (index, bits): (usize, f64),
    ) -> Vec<Predicted> {
        let steps = steps + query_count * RESULT_STEPS;
        let prices = self.proteus_prices();
        let is_thorough = self.request.effort == Effort::Background && index == 0;
        if is_thorough && self.work.take(steps * MANY_FACTOR) {
            let prices = LINE_DIVISORS.map(|divisor| Prices { probe: prices.probe / divisor, ..prices });
            let search = |prices| self.searched(model, Breadth::MANY, family, bits, prices);
            return prices.iter().filter_map(search).collect();
        }
        let is_possible = self.work.take(steps);
        let searched = is_possible.then(|| self.searched(model, Breadth::FEW, family, bits, &prices));
        searched.flatten().into_iter().collect()
    }

    /// Designs for the assumed workload, without a search: Bloom filters of one prefix that is just long enough for some shares of its
    /// ranges, and the set of whole integers, which has no false positives.
    fn assumed_designs(&self) -> Vec<Predicted> {
        if !self.work.take(self.model_steps(self.cases.empty.len())) {
            return Vec::new();
        }
        let queries = self.cases.synthetic().iter().filter_map(|case| case.query).collect();
        let ranges = self.cases.synthetic().iter().filter(|case| !case.is_point);
        let mut lengths: Vec<u32> = ranges.map(|case| case.near() + 1).collect();
        lengths.sort_unstable();
        let mut lengths: Vec<u32> = LENGTH_SHARES
            .into_iter()
            .filter_map(|share| lengths.get((share * lengths.len() as f64) as usize).copied())
            .collect();
        lengths.dedup();
        let model = Model::with_queries(self.keys, queries);
        let design = |prefix| Design { first: Stage::None, prefix, layout: BloomLayout::Lines };
        let budgets = self.range_budgets();
        let designs =
            budgets.iter().flat_map(|bits| lengths.iter().map(move |length| (*bits, design(*length))));
        let whole = |fixed: FixedKeys| Design {
            first: Stage::Set { depth: fixed.bit_count(), form: SetForm::Trie },
            prefix: 0,
            layout: BloomLayout::Lines,
        };
        let whole = self.keys.fixed().map(|fixed| (self.bits_max(), whole(fixed)));
        let designs = designs.chain(whole);
        let designs = designs.filter(|_| self.work.take(self.cases.empty.len() * RESULT_STEPS));
        designs
            .filter_map(|(bits, design)| self.sized(&model, Family::Proteus, &design, bits, None))
            .collect()
    }

    /// The prediction of a filter whose design is given, or searched.
    pub(super) fn predict_proteus(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key?;
        let model = Model::with_queries(self.keys, self.closed_queries(true));
        let design = match given(&part.spec) {
            Some(design) => design,
            None => {
                let budget = Budget::bits_per_key(bits).ok()?;
                model.choose(part.spec.family(), budget, &self.proteus_prices()).ok()?.0
            }
        };
        self.sized(&model, part.spec.family(), &design, bits, Some(&part.spec))
    }

    fn searched(
        &self,
        model: &Model<'_>,
        breadth: Breadth,
        family: Family,
        bits: f64,
        prices: &Prices,
    ) -> Option<Predicted> {
        let budget = Budget::bits_per_key(bits).ok()?;
        let (design, _) = model.choose_in(breadth, None, family, budget, prices).ok()?;
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
        Some(self.with_results(&sized, spec, bits))
    }

    fn with_results(&self, sized: &SizedDesign, spec: FilterSpec, bits: f64) -> Predicted {
        let result = |case: &Case<'_>| {
            let expected = case.query.map(|query| sized.result(&query));
            expected.map_or((1.0, 1.0), |expected| {
                ((expected.rate + sized.hidden()).min(1.0), sized.tests(&expected))
            })
        };
        let results: Vec<(f64, f64)> = self.cases.empty.iter().map(result).collect();
        self.with_probes(spec, Some(bits), self.counts.bits_per_key(sized.bytes()), &results)
    }

    /// The empty queries of the sample that a filter of prefixes can answer.
    pub(super) fn closed_cases(&self, with_points: bool) -> impl Iterator<Item = &Case<'_>> {
        let cases = self.cases.designed_for().iter();
        cases.filter(move |case| !case.kind.is_seek() && (with_points || !case.is_point))
    }

    fn closed_queries(&self, with_points: bool) -> Vec<EmptyQuery<'_>> {
        self.closed_cases(with_points).filter_map(|case| case.query).collect()
    }

    fn model_steps(&self, query_count: usize) -> usize {
        let is_background = self.request.effort == Effort::Background;
        let of_key = if is_background { BACKGROUND_KEY_STEPS } else { KEY_STEPS };
        self.keys.len() * of_key + query_count * QUERY_STEPS
    }

    fn proteus_prices(&self) -> Prices {
        let probe = ProbeTime::of(Family::Proteus).further_ns / 2.0;
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
