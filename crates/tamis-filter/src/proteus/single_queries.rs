//! The expected result of single queries, by the formulas of `model.rs`: for the automatic choice, which combines filters.

use super::bloom::best_rate;
use super::counts::Query;
use super::design::{BloomLayout, Design, Prices, Stage, WHOLE_KEYS};
use super::keys::Keys;
use super::model::Model;
use super::sizes::whole_set_size;
use super::two_bloom_model::Pair;
use crate::{Family, KeyRange, steps};

/// The expected result of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ExpectedResult {
    /// The probability that it passes.
    pub(crate) rate: f64,
    /// Tests, that of a set included.
    pub(crate) probes: f64,
}

impl ExpectedResult {
    const PASSES: Self = Self { rate: 1.0, probes: 1.0 };
}

/// A design with the sizes and rates of its stages.
#[derive(Debug)]
pub(crate) struct SizedDesign {
    family: Family,
    design: Design,
    /// Bytes of both stages.
    pub(crate) bytes: u64,
    /// The rate of the (second) Bloom filter.
    rate: f64,
    pair: Option<Pair>,
    cap: u64,
    /// The rate that is expected beyond the sample.
    hidden: f64,
}

impl<'a> Model<'a> {
    /// The sizes and rates of a design within a budget; `None` if it does not fit.
    pub(crate) fn sized(
        &self,
        family: Family,
        design: &Design,
        budget_bytes: u64,
        prices: &Prices,
    ) -> Option<SizedDesign> {
        let cap = prices.bloom_cap(family == Family::Proteus);
        let count =
            |bits: u32| if bits == WHOLE_KEYS { self.keys.len() as u64 } else { self.prefix_count(bits) };
        let (first_bytes, first_rate) = match design.first {
            Stage::None => (0, 0.0),
            Stage::Set { depth, .. } => (self.set_size(depth)?.bytes, 0.0),
            Stage::Bloom { depth, share } => {
                let bytes = (budget_bytes as f64 * share) as u64;
                let plan = best_rate(BloomLayout::Spread, bytes, count(depth))?;
                (plan.bytes, plan.rate)
            }
        };
        let rest = budget_bytes.checked_sub(first_bytes)?;
        let plan = (design.prefix != 0).then(|| best_rate(design.layout, rest, count(design.prefix)));
        let (bloom_bytes, rate) = match plan {
            Some(plan) => plan.map(|plan| (plan.bytes, plan.rate))?,
            None => (0, 1.0),
        };
        let pair = match design.first {
            Stage::Bloom { depth, .. } if depth < design.prefix => {
                Some(Pair::new((depth, first_rate), (design.prefix, rate), cap))
            }
            Stage::Bloom { .. } => return None,
            _ => None,
        };
        let depth = design.first.depth();
        let hidden_at = |bits: u32| if bits == WHOLE_KEYS { 0.0 } else { self.near.hidden(bits) };
        let hidden = match design.prefix {
            0 => hidden_at(depth),
            prefix => hidden_at(prefix) + if depth > 0 { rate * hidden_at(depth) } else { 0.0 },
        };
        let bytes = first_bytes + bloom_bytes;
        Some(SizedDesign { family, design: *design, bytes, rate, pair, cap, hidden })
    }

    /// The set of whole keys, if these are integers.
    pub(crate) fn whole_set_design(&self) -> Option<Design> {
        let Keys::Words(fixed, words) = &*self.keys else { return None };
        let depth = fixed.bit_count();
        let form = whole_set_size(words, words.len() as u64, depth)?.form;
        Some(Design { first: Stage::Set { depth, form }, prefix: 0, layout: BloomLayout::Spread })
    }

    /// The expected results of queries, including the rate that is expected beyond the sample; a query that holds a key passes.
    pub(crate) fn results(&self, sized: &SizedDesign, ranges: &[KeyRange<'_>]) -> Vec<ExpectedResult> {
        steps::count(ranges.len() * self.keys.len().max(1).ilog2() as usize);
        ranges
            .iter()
            .map(|range| {
                let Some(query) = self.query(range) else { return ExpectedResult::PASSES };
                let result = sized.result(&query);
                ExpectedResult { rate: (result.rate + sized.hidden).min(1.0), ..result }
            })
            .collect()
    }
}

impl SizedDesign {
    fn result(&self, query: &Query<'_>) -> ExpectedResult {
        if let Some(pair) = &self.pair {
            let expected = pair.expected(query);
            return ExpectedResult { rate: expected.rate, probes: expected.probes.iter().sum() };
        }
        let depth = self.design.first.depth();
        let set_probes = f64::from(u8::from(depth > 0));
        let near = query.near();
        if depth > near {
            return ExpectedResult { rate: 0.0, probes: set_probes };
        }
        let prefix = self.design.prefix;
        if prefix == WHOLE_KEYS {
            let rate = if query.is_point { self.rate } else { 1.0 };
            return ExpectedResult { rate, probes: set_probes + 1.0 };
        }
        if prefix <= near {
            return ExpectedResult { rate: 1.0, probes: set_probes + 1.0 };
        }
        let count = if query.shared_ends >= depth {
            query.prefix_count(prefix)
        } else {
            let (left, right) = query.end_counts(depth, prefix);
            let part = |shared: u32, count: u64| if shared >= depth { count } else { 0 };
            part(query.shared_left, left).saturating_add(part(query.shared_right, right))
        };
        if count > self.cap {
            return ExpectedResult { rate: 1.0, probes: set_probes };
        }
        let rate = if self.rate >= 1.0 { 1.0 } else { -((-self.rate).ln_1p() * count as f64).exp_m1() };
        let tests = if self.rate > 1e-12 { rate / self.rate } else { count as f64 };
        ExpectedResult { rate, probes: set_probes + tests }
    }

    /// The design as the parameters of a filter; `None` if they cannot express it.
    pub(crate) fn spec(&self) -> Option<crate::FilterSpec> {
        let Design { first, prefix, layout } = self.design;
        if prefix == WHOLE_KEYS || (first == Stage::None && prefix == 0) {
            return None;
        }
        let spec = match first {
            Stage::None => crate::FilterSpec::new(Family::OnePrefixBloom).with("prefix", &prefix.to_string()),
            Stage::Set { depth, .. } => {
                let spec = crate::FilterSpec::new(self.family).with("trie", &depth.to_string());
                if prefix == 0 { spec } else { spec.with("prefix", &prefix.to_string()) }
            }
            Stage::Bloom { depth, share } => crate::FilterSpec::new(self.family)
                .with("first", &depth.to_string())
                .with("second", &prefix.to_string())
                .with("share", &share.to_string()),
        };
        Some(if prefix == 0 { spec } else { spec.with("layout", layout.name()) })
    }
}
