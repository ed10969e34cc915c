//! The expected result of queries for one design, by the formulas of `model.rs`.

use super::bloom::best_rate;
use super::design::{BloomLayout, Design, Prediction, Prices, Stage, WHOLE_KEYS};
use super::model::{Model, set_lines};
use super::two_bloom_model::{Expected, Pair};
use crate::empty_query::EmptyQuery;
use crate::{Family, steps};

/// A design with the sizes and rates of its stages.
#[derive(Debug)]
pub(crate) struct SizedDesign {
    design: Design,
    first_bytes: u64,
    bloom_bytes: u64,
    /// The rate of the (second) Bloom filter, and the logarithm of the probability that it rejects a prefix.
    rate: f64,
    log_miss: f64,
    /// Cache lines of a lookup in a set.
    set_lines: f64,
    pair: Option<Pair>,
    cap: u64,
    /// The rate that is expected beyond the sample.
    hidden: f64,
}

impl Model<'_> {
    /// The sizes and rates of a design of a family within a budget; `None` if it does not fit, or if it is none of the family.
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
        let (first_bytes, first_rate, set_lines) = match design.first {
            Stage::None => (0, 0.0, 0.0),
            Stage::Set { depth, .. } if family == Family::Proteus => {
                let size = self.set_size(depth)?;
                (size.bytes, 0.0, set_lines(size.form, depth))
            }
            // The second filter is tested for prefixes below those of the first: it can't contain whole keys.
            Stage::Bloom { depth, share }
                if family == Family::TwoPrefixBloom
                    && depth < design.prefix
                    && design.prefix != WHOLE_KEYS =>
            {
                let bytes = (budget_bytes as f64 * share) as u64;
                let plan = best_rate(BloomLayout::Spread, bytes, count(depth))?;
                (plan.bytes, plan.rate, 0.0)
            }
            Stage::Set { .. } | Stage::Bloom { .. } => return None,
        };
        let rest = budget_bytes.checked_sub(first_bytes)?;
        let (bloom_bytes, rate) = match design.prefix {
            0 => (0, 1.0),
            prefix => best_rate(design.layout, rest, count(prefix)).map(|plan| (plan.bytes, plan.rate))?,
        };
        let depth = design.first.depth();
        let is_pair = matches!(design.first, Stage::Bloom { .. });
        let pair = is_pair.then(|| Pair::new((depth, first_rate), (design.prefix, rate), cap));
        let hidden_at = |bits: u32| if bits == WHOLE_KEYS { 0.0 } else { self.near.hidden(bits) };
        let hidden = match design.prefix {
            0 => hidden_at(depth),
            prefix => hidden_at(prefix) + if depth > 0 { rate * hidden_at(depth) } else { 0.0 },
        };
        let (design, log_miss) = (*design, (-rate).ln_1p());
        Some(SizedDesign { design, first_bytes, bloom_bytes, rate, log_miss, set_lines, pair, cap, hidden })
    }
}

impl SizedDesign {
    /// Bytes of both stages.
    pub(crate) const fn bytes(&self) -> u64 {
        self.first_bytes + self.bloom_bytes
    }

    /// The rate that is expected beyond the sample.
    pub(crate) const fn hidden(&self) -> f64 {
        self.hidden
    }

    /// Tests of a set.
    fn set_tests(&self) -> f64 {
        f64::from(u8::from(matches!(self.design.first, Stage::Set { .. })))
    }

    /// Tests of a query, that of a set included.
    pub(crate) fn tests(&self, expected: &Expected) -> f64 {
        self.set_tests() + expected.tests.iter().sum::<f64>()
    }

    /// The mean over queries, and its price. Without queries that of an absent point that no set rejects.
    pub(super) fn prediction(&self, queries: &[EmptyQuery<'_>], prices: &Prices) -> Prediction {
        steps::count(queries.len());
        let (mut rate, mut first, mut second, mut weight) = (0.0, 0.0, 0.0, 0.0);
        for query in queries {
            let expected = self.result(query);
            rate += query.weight * expected.rate;
            first += query.weight * expected.tests[0];
            second += query.weight * expected.tests[1];
            weight += query.weight;
        }
        if queries.is_empty() {
            (rate, second, weight) = (self.rate, 1.0, 1.0);
        }
        let [fpr, first, second] = [rate, first, second].map(|sum| sum / f64::max(weight, 1e-9));
        let lines = self.set_lines
            + first * BloomLayout::Spread.lines_touched()
            + second * self.design.layout.lines_touched();
        Prediction {
            fpr,
            probes: self.set_tests() + first + second,
            cost: (fpr + self.hidden) * prices.read + prices.probe * lines,
            first_bytes: self.first_bytes,
            bloom_bytes: self.bloom_bytes,
        }
    }

    /// The expected result of a query, without the rate that is expected beyond the sample.
    pub(crate) fn result(&self, query: &EmptyQuery<'_>) -> Expected {
        if let Some(pair) = &self.pair {
            return pair.expected(query);
        }
        let known = |rate: f64, tests: f64| Expected { rate, tests: [0.0, tests] };
        let (depth, prefix) = (self.design.first.depth(), self.design.prefix);
        let near = query.near();
        if depth > near {
            return known(0.0, 0.0);
        }
        if prefix == 0 {
            return known(1.0, 0.0);
        }
        if prefix == WHOLE_KEYS {
            return if query.is_point { known(self.rate, 1.0) } else { known(1.0, 0.0) };
        }
        if prefix <= near {
            return known(1.0, 1.0);
        }
        let count = if query.shared_ends >= depth {
            query.prefix_count(prefix)
        } else {
            let (left, right) = query.bounds.end_counts(depth, prefix);
            let part = |shared: u32, count: u64| if shared >= depth { count } else { 0 };
            part(query.shared_left, left).saturating_add(part(query.shared_right, right))
        };
        if count > self.cap {
            return known(1.0, 0.0);
        }
        let rate = if self.rate >= 1.0 { 1.0 } else { -(self.log_miss * count as f64).exp_m1() };
        // The mean of a geometric distribution that is cut off at the number of prefixes.
        known(rate, if self.rate > 1e-12 { rate / self.rate } else { count as f64 })
    }

    /// The design as the parameters of a filter; `None` if they cannot express it.
    pub(crate) fn spec(&self) -> Option<crate::FilterSpec> {
        let Design { first, prefix, layout } = self.design;
        if prefix == WHOLE_KEYS || (first == Stage::None && prefix == 0) {
            return None;
        }
        let with = |family: Family, name: &str, bits: u32| {
            crate::FilterSpec::new(family).with(name, &bits.to_string())
        };
        let spec = match first {
            Stage::None => with(Family::OnePrefixBloom, "prefix", prefix),
            Stage::Set { depth, .. } if prefix == 0 => with(Family::Proteus, "trie", depth),
            Stage::Set { depth, .. } => {
                with(Family::Proteus, "trie", depth).with("prefix", &prefix.to_string())
            }
            Stage::Bloom { depth, share } => with(Family::TwoPrefixBloom, "first", depth)
                .with("second", &prefix.to_string())
                .with("share", &share.to_string()),
        };
        Some(if prefix == 0 { spec } else { spec.with("layout", layout.name()) })
    }
}
