//! The CPFPR model: predicts the false positive rate of every design without building it.
//!
//! The ends of an empty query `Q` are its strings nearest to the keys. Let `P` and `S` be the keys before and after it, `left` and `right`
//! the common bits of the lower end and `P` and of the upper end and `S`, `near` the greater of both, and `|Q_n|` the number of prefixes of
//! `n` bits that cover it. A prefix of `n` bits in `Q` belongs to a key if and only if `near >= n`, and only the first and the last can. Let
//! `p` be the rate of the Bloom filter that is built for `|K_l|` prefixes in the remaining bytes:
//!
//! ```text
//! 1PBF      1 where l <= near, else 1 - (1 - p)^|Q_l|
//! set only  1 if t <= near, else 0
//! Proteus   0 if near < t; 1 if l <= near; else 1 - (1 - p)^N
//!           N = |Q_l| if the ends have t common bits, else [left >= t] L + [right >= t] R
//!           L, R: prefixes of l bits in Q below its first and its last prefix of t bits
//! 2PBF      `two_bloom_model.rs`
//! ```
//!
//! A query with more prefixes than the cap passes untested, here as in the reader: its rate is 1 and it costs no tests. **Price**: the rate
//! times the price of a read, and the number of cache lines times the price of one: three for a set of Elias-Fano numbers, one for a bitmap,
//! one per level of a trie, and one or two per test in a Bloom filter, by its layout. With price 0 for a line the lowest rate wins.
//!
//! **Beyond the sample.** If fewer than [`RARE`] queries of the sample have `n` common bits with a key, their number is a poor estimate. The
//! prior is half of the share for `n - 1` bits, with the weight of [`WEIGHT`] queries. The estimate ranks designs that the sample does not
//! distinguish; it is not part of the predicted rate.
//!
//! Cost: one scan of the keys, and the formula for each query of the sample and design. `design_search.rs` evaluates most designs on few queries.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::design::{BloomLayout, Design, Prediction, Prices, SetForm, Stage};
use super::sizes::{SetSize, integer_size, set_size};
use crate::empty_query::EmptyQuery;
use crate::prefix_counts::PrefixCounts;
use crate::{Budget, BuildError, Family, KeySet, Samples, steps};

/// Fewer queries than this are a poor estimate of a share.
const RARE: u64 = 16;
/// Bits after which the prior, which halves with each of them, makes no difference.
const PRIOR_BITS: u32 = 64;
/// The weight of the prior, in queries.
const WEIGHT: f64 = 4.0;

/// All prefix lengths of shorter strings are priced.
pub(super) const ALL_LENGTHS: u32 = 512;
/// Lengths after the common prefix of a query and a key, over which the prior falls to 1/256.
const EXPECTED_BITS: u32 = 8;
/// Lengths after the common prefix of the ends of a query: its number of prefixes doubles with each, and soon exceeds the cap.
const DOUBLINGS: u32 = 16;

/// Predicts the rates of filters for the keys of a table from a sample of queries.
#[derive(Debug)]
pub struct Model<'a> {
    pub(super) keys: &'a KeySet,
    pub(super) counts: PrefixCounts,
    pub(super) queries: Vec<EmptyQuery<'a>>,
    pub(super) near: Near,
    /// Exact sizes of sets by depth.
    set_sizes: RefCell<BTreeMap<u32, Option<SetSize>>>,
    /// See [`Model::lengths`].
    lengths: OnceCell<Vec<u32>>,
}

impl<'a> Model<'a> {
    /// Scans the keys and the sample once; ignores queries that contain a key.
    pub fn new(keys: &'a KeySet, samples: Samples<'a>) -> Self {
        steps::count(samples.queries.len() * keys.len().max(1).ilog2() as usize);
        Self::with_queries(keys, EmptyQuery::all_of(keys, samples.queries))
    }

    /// [`Model::new`] for queries that are known to be empty.
    pub(crate) fn with_queries(keys: &'a KeySet, queries: Vec<EmptyQuery<'a>>) -> Self {
        let counts = PrefixCounts::of_keys(keys, keys.bit_count());
        let near = Near::of(&queries, keys.bit_count());
        Self { keys, counts, queries, near, set_sizes: RefCell::default(), lengths: OnceCell::new() }
    }

    /// The exact size of the set of all prefixes of `depth` bits.
    pub(super) fn set_size(&self, depth: u32) -> Option<SetSize> {
        let size = || set_size(self.keys, &self.counts, depth);
        *self.set_sizes.borrow_mut().entry(depth).or_insert_with(size)
    }

    /// Bits of the longest key.
    pub fn bit_count(&self) -> u32 {
        self.keys.bit_count()
    }

    /// Number of distinct prefixes of `bits` bits.
    pub fn prefix_count(&self, bits: u32) -> u64 {
        self.counts.at(bits)
    }

    /// The prefix lengths that may be in the best design, in order: those at which the number of prefixes of the keys or of a query changes, or
    /// a query has a prefix in common with a key no more, and [`EXPECTED_BITS`] after each of the latter. Between two of them all
    /// designs have the same rates. All lengths of short keys are among them.
    pub(super) fn lengths(&self) -> &[u32] {
        self.lengths.get_or_init(|| {
            let bit_count = self.bit_count();
            if bit_count <= ALL_LENGTHS {
                return (1..=bit_count).collect();
            }
            let mut marks: BTreeSet<u32> = self.counts.growing_lengths().collect();
            let mut add = |from: u32, count: u32| marks.extend(from..from.saturating_add(count));
            let mut neighbours: Vec<u32> = self.queries.iter().map(EmptyQuery::near).collect();
            let mut ends: Vec<u32> = self.queries.iter().map(|query| query.shared_ends).collect();
            for list in [&mut neighbours, &mut ends] {
                list.sort_unstable();
                list.dedup();
            }
            neighbours.iter().for_each(|near| add(near.saturating_add(1), EXPECTED_BITS));
            ends.iter().for_each(|shared| add(*shared, DOUBLINGS));
            steps::count(2 * self.queries.len() + marks.len());
            marks.into_iter().filter(|length| (1..=bit_count).contains(length)).collect()
        })
    }

    pub(super) fn budget_bytes(&self, family: Family, budget: Budget) -> Result<u64, BuildError> {
        let bits = budget.require(family.name())?;
        Ok((self.keys.len() as f64 * bits / 8.0) as u64)
    }
}

/// The set of whole integers, if it fits: it has no false positives, and its price is known without a scan. It is built without a sample, or
/// if no design can be cheaper; otherwise it is one design of many.
pub(super) fn whole_set(
    family: Family,
    keys: &KeySet,
    budget_bytes: u64,
    prices: &Prices,
) -> Option<(Design, Prediction)> {
    if family != Family::Proteus {
        return None;
    }
    let depth = keys.fixed()?.bit_count();
    let size = integer_size(keys, keys.len() as u64, depth).filter(|size| size.bytes <= budget_bytes)?;
    let first = Stage::Set { depth, form: size.form };
    let design = Design { first, prefix: 0, layout: BloomLayout::Spread };
    let cost = prices.probe * set_lines(size.form, depth);
    Some((design, Prediction { fpr: 0.0, probes: 1.0, cost, first_bytes: size.bytes, bloom_bytes: 0 }))
}

/// Whether no design with false positives can be cheaper: a test reads at least one line.
pub(super) fn is_surely_best(whole: &Prediction, prices: &Prices) -> bool {
    whole.cost <= prices.probe
}

/// Cache lines per lookup in a set.
pub(super) fn set_lines(form: SetForm, depth: u32) -> f64 {
    match form {
        SetForm::Bitmap => 1.0,
        SetForm::EliasFano | SetForm::MarkedEliasFano => 3.0,
        SetForm::Trie => f64::from(depth.div_ceil(8).min(8)),
    }
}

/// The numbers and the share of queries that have at least `n` common bits with a key, for each `n` up to [`PRIOR_BITS`] after the last that
/// any query has.
#[derive(Debug)]
pub(super) struct Near {
    /// In the sample.
    reached: Vec<u64>,
    /// The expected share, including queries that the sample does not contain.
    expected: Vec<f64>,
    scale: f64,
}

impl Near {
    fn of(queries: &[EmptyQuery<'_>], bit_count: u32) -> Self {
        let longest = queries.iter().map(EmptyQuery::near).max().unwrap_or(0);
        let mut reached = vec![0_u64; longest.saturating_add(PRIOR_BITS).min(bit_count) as usize + 2];
        for query in queries {
            if let Some(count) = reached.get_mut(query.near() as usize) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in reached.iter_mut().rev() {
            sum += *count;
            *count = sum;
        }
        steps::count(queries.len() + reached.len());
        Self::of_reached(reached, queries.len(), bit_count)
    }

    /// `reached[n]`: queries with at least `n` common bits.
    fn of_reached(reached: Vec<u64>, total: usize, bit_count: u32) -> Self {
        // An empty query does not have all bits in common with a key, except for strings that zeros make equal: no prior there.
        let last = bit_count as usize;
        let mut before = total as f64;
        let expect = |(bits, count): (usize, &u64)| {
            let counted = *count as f64;
            before = if *count >= RARE || bits >= last { counted } else { beyond(before / 2.0, counted) };
            before = before.max(counted);
            before
        };
        let scale = 1.0 / (total as f64).max(1.0);
        let expected = reached.iter().enumerate().map(expect).map(|count| count * scale).collect();
        Self { reached, expected, scale }
    }

    /// Queries of the sample with at least `bits` common bits with a key.
    pub(super) fn reached(&self, bits: u32) -> u64 {
        self.reached.get(bits as usize).copied().unwrap_or(0)
    }

    /// Their share.
    pub(super) fn share(&self, bits: u32) -> f64 {
        self.reached(bits) as f64 * self.scale
    }

    /// The expected share minus that of the sample.
    pub(super) fn hidden(&self, bits: u32) -> f64 {
        self.expected.get(bits as usize).map_or(0.0, |expected| expected - self.share(bits))
    }
}

/// The expected number of queries if `counted` were found and `prior` were expected: the mean of a gamma distribution.
fn beyond(prior: f64, counted: f64) -> f64 {
    if prior <= 0.0 { counted } else { (WEIGHT + counted) / (WEIGHT / prior + 1.0) }
}

#[cfg(test)]
mod tests;
