//! The rate of every design before one is built: the CPFPR model.
//!
//! For an empty query `Q` the strings of `Q` nearest to the keys are its ends. Let `P` and `S` be the keys before and behind it,
//! `left` and `right` the bits that the lower end shares with `P` and the upper end with `S`, `near` the greater of both, and
//! `|Q_n|` the number of prefixes of `n` bits that cover it. A prefix of `n` bits in `Q` belongs to a key exactly where `near >= n`,
//! and only the first and the last can. With `p` the rate of the Bloom filter that is really built for `|K_l|` prefixes in the
//! bytes that are left:
//!
//! ```text
//! 1PBF      1 where l <= near, else 1 - (1 - p)^|Q_l|
//! set only  [t <= near]
//! Proteus   0 where near < t; 1 where l <= near; else 1 - (1 - p)^N
//!           N = |Q_l| where the ends share t bits, else [left >= t] L + [right >= t] R
//!           L, R: prefixes of l bits in Q below its first and its last prefix of t bits
//! 2PBF      `pair.rs`
//! ```
//!
//! A query with more prefixes than the cap allows is taken for present unasked, here as in the reader: its rate is 1 and it
//! costs nothing. **Price**: rate times the price of a read, and the price of a cache line for each that is touched: three for
//! a set of Elias-Fano numbers, one for a bitmap, one a level for a trie, and one or two for a question to a Bloom filter, by
//! its layout. A filter of the price of a line 0 has the least rate.
//!
//! **Beyond the sample.** Where fewer than [`RARE`] queries of the sample come within `n` bits of a key, their number tells little about
//! the share that does: half of the share of one bit less is expected, which weighs as much as [`WEIGHT`] queries, and the number is
//! counted against it. That ranks designs which the sample cannot tell apart, and is no part of what is predicted.
//!
//! Cost: the pass over the keys, a sort of the sample, and for each query one cell for each length at which its prefixes double.

use std::borrow::Cow;

use super::choice::Search;
use super::counts::Counts;
use super::design::{BloomLayout, Design, Prediction, Prices, SetForm, Stage};
use super::keys::Keys;
use super::sizes::whole_set_size;
use crate::{Budget, BuildError, Family, KeySet, Samples};

/// Fewer queries than this say little about a share.
const RARE: u64 = 16;
/// What is expected of a share weighs as much as so many queries: with one query counted for each expected there is no difference.
const WEIGHT: f64 = 4.0;

/// What the keys of a table and a sample of queries tell about filters for them.
#[derive(Debug)]
pub struct Model<'a> {
    pub(super) keys: Cow<'a, Keys>,
    pub(super) counts: Counts<'a>,
    /// Queries of the sample that share at least so many bits with a key.
    pub(super) near: Near,
}

impl<'a> Model<'a> {
    /// Looks once at all keys and at the sample; queries that hold a key are left out.
    pub fn new(keys: &KeySet, samples: Samples<'a>) -> Self {
        Self::with_keys(Cow::Owned(Keys::of(keys)), samples)
    }

    pub(super) fn of(keys: &'a Keys, samples: Samples<'a>) -> Self {
        Self::with_keys(Cow::Borrowed(keys), samples)
    }

    fn with_keys(keys: Cow<'a, Keys>, samples: Samples<'a>) -> Self {
        let counts = Counts::of(&keys, samples.queries);
        let near = Near::of(&counts, keys.bit_count());
        Self { keys, counts, near }
    }

    /// Queries of the sample that are empty, and those that were left out.
    pub fn sample_counts(&self) -> (usize, usize) {
        (self.counts.queries.len(), self.counts.left_out)
    }

    /// Bits of the longest key.
    pub fn bit_count(&self) -> u32 {
        self.keys.bit_count()
    }

    /// Distinct prefixes of so many bits.
    pub fn prefix_count(&self, bits: u32) -> u64 {
        self.counts.prefix_count(bits)
    }

    /// Every design of one of the families of this module within a budget, each with its prediction. For keys that are no
    /// integers of at most eight bytes: those that were looked at, first some lengths over all, then those near the best. Without queries in the sample
    /// nothing can be told of designs: those of the default, in each layout.
    pub fn designs(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Vec<(Design, Prediction)>, BuildError> {
        let mut search = Search::all(self, family, self.budget_bytes(family, budget)?, prices);
        search.run();
        Ok(search.finish_all())
    }

    /// The design with the least price. Without queries in the sample: the default that the module's head states.
    pub fn choose(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        self.choose_in(None, family, budget, prices)
    }

    /// [`Model::choose`] among the designs of a layout, where one is given.
    pub(super) fn choose_in(
        &self,
        layout: Option<BloomLayout>,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        let prices = &prices.usable();
        let budget_bytes = self.budget_bytes(family, budget)?;
        if let Some(whole) = whole_set(family, &self.keys, budget_bytes, prices)
            && (self.counts.queries.is_empty() || is_surely_best(&whole.1, prices))
        {
            return Ok(whole);
        }
        let mut search = Search::best(self, family, budget_bytes, prices).with_layout(layout);
        search.run();
        Ok(search.finish_best())
    }

    /// What a given design would do; `None` where it does not fit into the budget, or is none of the family's, and without queries in the sample.
    pub fn predict(
        &self,
        family: Family,
        design: &Design,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Option<Prediction>, BuildError> {
        let mut search = Search::all(self, family, self.budget_bytes(family, budget)?, prices);
        search.only(design);
        let mut found = search.finish_all();
        found.retain(|(found, _)| found.layout == design.layout);
        Ok(found.pop().map(|(_, prediction)| prediction))
    }

    fn budget_bytes(&self, family: Family, budget: Budget) -> Result<u64, BuildError> {
        let bits = budget.require(family.name())?;
        Ok((self.keys.len() as f64 * bits / 8.0) as u64)
    }
}

/// The set of whole integers, where it fits: it answers everything, and no pass over the keys is needed to know. Without queries it is what
/// is built; with them where nothing can be cheaper, otherwise it is one design of many.
pub(super) fn whole_set(
    family: Family,
    keys: &Keys,
    budget_bytes: u64,
    prices: &Prices,
) -> Option<(Design, Prediction)> {
    let Keys::Words(fixed, words) = keys else { return None };
    if family != Family::Proteus {
        return None;
    }
    let depth = fixed.bit_count();
    let size = whole_set_size(words, words.len() as u64, depth).filter(|size| size.bytes <= budget_bytes)?;
    let first = Stage::Set { depth, form: size.form };
    let design = Design { first, prefix: 0, layout: BloomLayout::Spread };
    let cost = prices.probe * set_lines(size.form, depth);
    Some((design, Prediction { fpr: 0.0, probes: 1.0, cost, first_bytes: size.bytes, bloom_bytes: 0 }))
}

/// Whether nothing that errs can be cheaper: a question touches one line at least.
pub(super) fn is_surely_best(whole: &Prediction, prices: &Prices) -> bool {
    whole.cost <= prices.probe
}

/// Cache lines that a question to a set touches.
pub(super) fn set_lines(form: SetForm, depth: u32) -> f64 {
    match form {
        SetForm::Bitmap => 1.0,
        SetForm::EliasFano | SetForm::MarkedEliasFano => 3.0,
        SetForm::Trie => f64::from(depth.div_ceil(8).min(8)),
    }
}

/// The share of queries that come within some bits of a key.
#[derive(Debug)]
pub(super) struct Near {
    /// `shares[n]`: those that share at least `n` bits.
    shares: Vec<f64>,
    /// The same, as far as can be told for queries that the sample does not have.
    expected: Vec<f64>,
}

impl Near {
    fn of(counts: &Counts<'_>, bit_count: u32) -> Self {
        let mut reached = vec![0_u64; bit_count as usize + 2];
        for query in &counts.queries {
            if let Some(count) = reached.get_mut(query.near() as usize) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in reached.iter_mut().rev() {
            sum += *count;
            *count = sum;
        }
        Self::of_reached(&reached, counts.queries.len())
    }

    /// `reached[n]`: queries that share at least `n` bits.
    fn of_reached(reached: &[u64], total: usize) -> Self {
        // No query without a key shares all bits with one (but for strings that zeros make equal): nothing is expected there.
        let last = reached.len().saturating_sub(2);
        let mut before = total as f64;
        let expect = |(bits, count): (usize, &u64)| {
            let counted = *count as f64;
            before = if *count >= RARE || bits >= last { counted } else { beyond(before / 2.0, counted) };
            before = before.max(counted);
            before
        };
        let scale = 1.0 / (total as f64).max(1.0);
        let expected = reached.iter().enumerate().map(expect).map(|count| count * scale).collect();
        Self { shares: reached.iter().map(|count| *count as f64 * scale).collect(), expected }
    }

    /// The share of the sample.
    pub(super) fn share(&self, bits: u32) -> f64 {
        self.shares.get(bits as usize).copied().unwrap_or(0.0)
    }

    /// What is to be expected beyond that share.
    pub(super) fn hidden(&self, bits: u32) -> f64 {
        self.expected.get(bits as usize).map_or(0.0, |expected| expected - self.share(bits))
    }
}

/// How many queries are to be expected where `prior` were, and so many were counted: the mean of a gamma distribution.
fn beyond(prior: f64, counted: f64) -> f64 {
    if prior <= 0.0 { counted } else { (WEIGHT + counted) / (WEIGHT / prior + 1.0) }
}

#[cfg(test)]
mod tests;
