//! Searches the designs of a family and keeps the cheapest one.
//!
//! A round prices pairs of lengths, of the first stage (0: none) and of the Bloom filter, on a few queries that represent the sample; then
//! the best pairs in each layout, and with other shares of the budget; then the best of those on the whole sample. The first round has all lengths
//! that keys and queries distinguish ([`Model::lengths`]) and all sets that fit. If these are too many, it has evenly spaced ones, and those at
//! which queries of the sample differ from the keys and in their ends. Each further round has the lengths between the neighbours of the best
//! pair with a first stage, and of the best without.

use std::collections::BTreeSet;

use super::design::{BloomLayout, Design, Prediction, Prices, SetForm, Stage, WHOLE_KEYS};
use super::model::{Model, is_surely_best, whole_set};
use crate::empty_query::{EmptyQuery, thinned};
use crate::{Budget, BuildError, Family, steps};

/// How many designs a search tries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breadth {
    /// All designs that a filter may have. Otherwise those that the parameters of a filter can express.
    is_full: bool,
    /// Pairs of lengths of the first round, rounds, and queries of the first step of each.
    pairs: usize,
    rounds: usize,
    queries: u64,
    /// Pairs of the second step, and designs of the third one.
    good: [usize; 2],
}

impl Breadth {
    /// For a filter that chooses its own design.
    pub(super) const FULL: Self =
        Self { is_full: true, pairs: 8192, rounds: 4, queries: 512, good: [48, 12] };
    /// For the automatic choice in the background.
    pub(crate) const MANY: Self =
        Self { is_full: false, pairs: 1600, rounds: 4, queries: 256, good: [16, 6] };
    /// While a table is written.
    pub(crate) const FEW: Self = Self { is_full: false, pairs: 400, rounds: 3, queries: 128, good: [6, 4] };
}

/// Maximum number of queries as near to a key among the few of the first step.
const QUERIES_OF_A_KIND: usize = 64;
/// Shares of the first of two Bloom filters.
const SHARES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];
/// Number of shares for the list of all designs: those of the paper.
const LISTED_SHARES: usize = 3;

impl<'a> Model<'a> {
    /// Every design of a family of this module within a budget, each with its prediction. Without sample queries: the default design in each
    /// layout.
    pub fn designs(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Vec<(Design, Prediction)>, BuildError> {
        let search = self.search(Breadth::FULL, None, family, budget, prices)?;
        if self.queries.is_empty() {
            return Ok(search.defaults());
        }
        let (firsts, seconds) = search.all_lengths();
        let pairs = pairs(&firsts, &seconds);
        let designs = pairs.iter().flat_map(|pair| search.variants(*pair, LISTED_SHARES));
        Ok(designs.filter_map(|design| Some((design, search.priced(&design, &self.queries)?))).collect())
    }

    /// The cheapest design. Without sample queries: the default design, see the module's documentation.
    pub fn choose(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        self.choose_in(Breadth::FULL, None, family, budget, prices)
    }

    /// [`Model::choose`] among fewer designs, and restricted to a layout if one is given. If no design fits: the empty one, which passes all
    /// queries.
    pub(crate) fn choose_in(
        &self,
        breadth: Breadth,
        layout: Option<BloomLayout>,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        let search = self.search(breadth, layout, family, budget, prices)?;
        let prices = search.prices;
        if let Some(whole) = whole_set(family, self.keys, search.budget_bytes, &prices)
            && (self.queries.is_empty() || is_surely_best(&whole.1, &prices))
        {
            return Ok(whole);
        }
        let nothing = Design { first: Stage::None, prefix: 0, layout: BloomLayout::Spread };
        let passing = Prediction { fpr: 1.0, probes: 0.0, cost: prices.read, first_bytes: 0, bloom_bytes: 0 };
        let found = if self.queries.is_empty() { search.defaults() } else { search.run() };
        Ok(cheapest(found).unwrap_or((nothing, passing)))
    }

    /// The prediction for a design; `None` if it exceeds the budget or is not one of the family, and without sample queries.
    pub fn predict(
        &self,
        family: Family,
        design: &Design,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Option<Prediction>, BuildError> {
        let search = self.search(Breadth::FULL, None, family, budget, prices)?;
        let has_queries = !self.queries.is_empty();
        Ok(has_queries.then(|| search.priced(design, &self.queries)).flatten())
    }

    fn search(
        &self,
        breadth: Breadth,
        layout: Option<BloomLayout>,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Search<'_, 'a>, BuildError> {
        let layouts = BloomLayout::ALL.into_iter().filter(|own| layout.is_none_or(|layout| *own == layout));
        Ok(Search {
            model: self,
            family,
            budget_bytes: self.budget_bytes(family, budget)?,
            prices: prices.usable(),
            layouts: layouts.collect(),
            breadth,
        })
    }
}

/// A search of the designs.
struct Search<'m, 'a> {
    model: &'m Model<'a>,
    family: Family,
    budget_bytes: u64,
    prices: Prices,
    /// The possible layouts of the second stage.
    layouts: Vec<BloomLayout>,
    breadth: Breadth,
}

/// Bits of a first stage, or 0 for none, and of the prefixes of the Bloom filter, or 0 for none.
type Lengths = (u32, u32);

/// The cost of two lengths on a few queries.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    lengths: Lengths,
    /// In the first layout, which is the spread one if both are possible.
    cost: f64,
    /// In lines, if the rate were the same: a test reads one line less.
    cost_in_lines: f64,
}

impl Search<'_, '_> {
    /// The best designs of each round.
    fn run(&self) -> Vec<(Design, Prediction)> {
        let few = thinned(&self.model.queries, self.breadth.queries, QUERIES_OF_A_KIND);
        let (all_firsts, all_seconds) = self.all_lengths();
        let (mut firsts, mut seconds) = self.first_lengths(&all_firsts, &all_seconds);
        let (mut tried_firsts, mut tried_seconds) = (firsts.clone(), seconds.clone());
        let mut tried: BTreeSet<Lengths> = BTreeSet::new();
        let mut ranked: Vec<Ranked> = Vec::new();
        let mut found = Vec::new();
        for _ in 0..self.breadth.rounds {
            let new = pairs(&firsts, &seconds).into_iter().filter(|pair| tried.insert(*pair));
            let new: Vec<Ranked> = new.filter_map(|pair| self.ranked(pair, &few)).collect();
            if new.is_empty() {
                break;
            }
            ranked.extend(&new);
            ranked.sort_by(|left, right| left.cost.total_cmp(&right.cost));
            found.extend(self.best_of(new, &few));
            let best_with = ranked.iter().find(|ranked| ranked.lengths.0 > 0);
            let best_without = ranked.iter().find(|ranked| ranked.lengths.0 == 0);
            (firsts, seconds) = (Vec::new(), Vec::new());
            // Integers and short strings have no lengths between those of the first round.
            let count = (self.breadth.pairs as f64).sqrt() as usize / 2;
            for Ranked { lengths: (first, second), .. } in best_with.into_iter().chain(best_without) {
                firsts.extend(finer(&all_firsts, &tried_firsts, *first, count));
                seconds.extend(finer(&all_seconds, &tried_seconds, *second, count));
            }
            tried_firsts.extend(&firsts);
            tried_seconds.extend(&seconds);
        }
        found
    }

    /// The best designs of some pairs.
    fn best_of(&self, mut pairs: Vec<Ranked>, few: &[EmptyQuery<'_>]) -> Vec<(Design, Prediction)> {
        let [to_second, to_third] = self.breadth.good;
        let mut good: BTreeSet<Lengths> = BTreeSet::new();
        for cost in [|ranked: &Ranked| ranked.cost, |ranked: &Ranked| ranked.cost_in_lines] {
            pairs.sort_by(|left, right| cost(left).total_cmp(&cost(right)));
            good.extend(pairs.iter().take(to_second).map(|ranked| ranked.lengths));
        }
        let variants = good.iter().flat_map(|pair| self.variants(*pair, SHARES.len()));
        let price =
            |design: Design, queries: &[EmptyQuery<'_>]| Some((design, self.priced(&design, queries)?));
        let mut good: Vec<(Design, Prediction)> = variants.filter_map(|design| price(design, few)).collect();
        good.sort_by(|(_, left), (_, right)| left.cost.total_cmp(&right.cost));
        let best = good.into_iter().take(to_third);
        best.filter_map(|(design, _)| price(design, &self.model.queries)).collect()
    }

    /// The default: whole keys.
    fn defaults(&self) -> Vec<(Design, Prediction)> {
        let prefix = self.model.keys.fixed().map_or(WHOLE_KEYS, |fixed| fixed.bit_count());
        let designs =
            self.layouts.iter().map(|layout| Design { first: Stage::None, prefix, layout: *layout });
        designs.filter_map(|design| Some((design, self.priced(&design, &[])?))).collect()
    }

    /// The cost of a pair of lengths.
    fn ranked(&self, lengths: Lengths, queries: &[EmptyQuery<'_>]) -> Option<Ranked> {
        let design = self.variants(lengths, 1).into_iter().next()?;
        let Prediction { cost, probes, .. } = self.priced(&design, queries)?;
        Some(Ranked { lengths, cost, cost_in_lines: cost - self.prices.probe * probes })
    }

    fn priced(&self, design: &Design, queries: &[EmptyQuery<'_>]) -> Option<Prediction> {
        let sized = self.model.sized(self.family, design, self.budget_bytes, &self.prices)?;
        Some(sized.prediction(queries, &self.prices))
    }

    /// The designs of two lengths: each layout, with each of some shares of the first of two Bloom filters.
    fn variants(&self, (depth, prefix): Lengths, share_count: usize) -> Vec<Design> {
        let firsts: Vec<Stage> = match (depth, self.family) {
            (0, _) => vec![Stage::None],
            (_, Family::TwoPrefixBloom) => {
                SHARES.iter().take(share_count).map(|share| Stage::Bloom { depth, share: *share }).collect()
            }
            _ => {
                let form = self.model.set_size(depth).map_or(SetForm::Trie, |size| size.form);
                vec![Stage::Set { depth, form }]
            }
        };
        let layouts = if prefix == 0 { &[BloomLayout::Spread][..] } else { &self.layouts };
        let with = |first: Stage| layouts.iter().map(move |layout| Design { first, prefix, layout: *layout });
        firsts.into_iter().flat_map(with).collect()
    }

    /// All lengths of the first stage, and of the Bloom filter.
    fn all_lengths(&self) -> (Vec<u32>, Vec<u32>) {
        let lengths = self.model.lengths();
        let firsts: Vec<u32> = match self.family {
            Family::Proteus => (0..=self.deepest_set()).collect(),
            Family::TwoPrefixBloom => std::iter::once(0).chain(lengths.iter().copied()).collect(),
            _ => vec![0],
        };
        let none = (self.family == Family::Proteus).then_some(0);
        let whole = (self.breadth.is_full && self.model.keys.fixed().is_none()).then_some(WHOLE_KEYS);
        (firsts, none.into_iter().chain(lengths.iter().copied()).chain(whole).collect())
    }

    /// Those of the first round.
    fn first_lengths(&self, firsts: &[u32], seconds: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let pairs = self.breadth.pairs;
        if firsts.len() * seconds.len() <= pairs {
            return (firsts.to_vec(), seconds.to_vec());
        }
        let count = firsts.len().min((pairs as f64).sqrt() as usize);
        let some_firsts = match self.family {
            Family::TwoPrefixBloom => self.some_lengths(firsts, count),
            _ => std::iter::once(0).chain(thin(firsts, count)).collect(),
        };
        let some_seconds = self.some_lengths(seconds, pairs / some_firsts.len().max(1));
        (some_firsts, some_seconds)
    }

    /// Evenly spaced lengths, and lengths just beyond the common prefixes of queries and keys and of the ends of queries.
    fn some_lengths(&self, all: &[u32], count: usize) -> Vec<u32> {
        if all.len() <= count {
            return all.to_vec();
        }
        let queries = &self.model.queries;
        let mut near: Vec<u32> = queries.iter().map(|query| query.near() + 1).collect();
        let mut ends: Vec<u32> = queries.iter().map(|query| query.shared_ends).collect();
        let mut lengths: BTreeSet<u32> = thin(all, count / 3).into_iter().collect();
        lengths.extend(all.iter().filter(|length| matches!(**length, 0 | WHOLE_KEYS)));
        steps::count(2 * queries.len());
        for list in [&mut near, &mut ends] {
            list.sort_unstable();
            lengths.extend(thin(list, count / 3));
        }
        lengths
            .into_iter()
            .filter(|length| *length <= self.model.bit_count() || *length == WHOLE_KEYS)
            .collect()
    }

    /// The greatest depth whose set fits; sizes almost always grow with the depth.
    fn deepest_set(&self) -> u32 {
        let fits = |depth| self.model.set_size(depth).is_some_and(|size| size.bytes <= self.budget_bytes);
        // Steps up from 0, because sizing a set that is far too large is expensive.
        let (mut deepest, mut step) = (0, 16);
        while deepest + step <= self.model.bit_count() && fits(deepest + step) {
            deepest += step;
            step *= 2;
        }
        let mut end = (deepest + step).min(self.model.bit_count() + 1);
        while deepest + 1 < end {
            let middle = u32::midpoint(deepest, end);
            if fits(middle) { deepest = middle } else { end = middle }
        }
        deepest
    }
}

fn cheapest(designs: Vec<(Design, Prediction)>) -> Option<(Design, Prediction)> {
    designs.into_iter().min_by(|(_, left), (_, right)| left.cost.total_cmp(&right.cost))
}

/// All pairs of a first length and a longer second one, and the first ones alone.
fn pairs(firsts: &[u32], seconds: &[u32]) -> Vec<Lengths> {
    let is_pair = |(first, second): &Lengths| second > first || (*second == 0 && *first > 0);
    firsts.iter().flat_map(|first| seconds.iter().map(|second| (*first, *second))).filter(is_pair).collect()
}

/// At most `count` evenly spaced lengths between the neighbours of a length in a list; none if it is no prefix length.
fn finer(all: &[u32], tried: &[u32], length: u32, count: usize) -> Vec<u32> {
    if length == 0 || length == WHOLE_KEYS {
        return vec![length];
    }
    let below = tried.iter().copied().filter(|other| *other < length).max().unwrap_or(0);
    let above = tried.iter().copied().filter(|other| *other > length).min().unwrap_or(WHOLE_KEYS);
    let new: Vec<u32> = all.iter().copied().filter(|other| below < *other && *other < above).collect();
    steps::count(all.len());
    let mut lengths = thin(&new, count);
    lengths.push(length);
    lengths
}

/// At most `count` evenly spaced elements of a list, the last one included.
fn thin(list: &[u32], count: usize) -> Vec<u32> {
    let step = list.len().div_ceil(count.max(1)).max(1);
    let mut some: Vec<u32> = list.iter().rev().copied().step_by(step).collect();
    some.reverse();
    some
}
