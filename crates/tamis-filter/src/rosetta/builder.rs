//! Builds Rosettas: stores the keys, chooses the levels, sets their bits.

use std::sync::Arc;

use super::insert::insert;
use super::keys::key_bytes;
use super::layout::{BitLayout, DEPTH_MAX, ENTRY_BYTES, FULL_DEPTH, Level};
use super::model::{Model, Share, Unseen};
use super::prices::Prices;
use super::sample::{self, SyntheticQueries};
use super::search::{Problem, STEPS_PER_CASE, possible_depths};
use super::search_limit::SearchLimit;
use crate::bloom::empty_filter;
use crate::empty_query::{EmptyQuery, thinned};
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, set_parameter, set_predicted_fpr};
use crate::key_set::KeptKeys;
use crate::parameters::Parameters;
use crate::prefix_counts::PrefixCounts;
use crate::{Budget, BuildError, Digester, Family, FilterBuilder, KeySet, Samples};

/// Bytes that a filter may take in addition to its bits per key.
const BUDGET_SLACK_BYTES: u64 = 128;

/// Maximum number of queries as near to a key that a search evaluates.
const CASES_OF_A_KIND: usize = 14;

/// Builder of [`Family::Rosetta`]. Parameters `probe-cost`, `read-cost`, `probe-cap`.
#[derive(Debug)]
pub struct RosettaBuilder {
    prices: Prices,
    digester: Digester,
    pub(super) keys: KeptKeys,
    /// The design of [`FilterBuilder::design`], with its budget.
    chosen: Option<(Budget, Plan)>,
}

/// The result of the design.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) shares: Vec<Share>,
    pub(super) predicted: Option<f64>,
    pub(super) counts: Arc<PrefixCounts>,
    /// Whether the step limit ended the search for levels.
    pub(super) is_cut: bool,
}

impl RosettaBuilder {
    /// A builder with a seed for its digests.
    pub fn new(prices: Prices, seed: u64) -> Self {
        Self { prices, digester: Digester::new(seed), keys: KeptKeys::new(), chosen: None }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        Ok(Self::new(Prices::from_parameters(parameters)?, seed))
    }

    /// Sets a design as if it had been chosen.
    #[cfg(test)]
    pub(super) fn set_plan(&mut self, bits_per_key: f64, shares: Vec<Share>) {
        let budget = Budget::bits_per_key(bits_per_key).expect("a possible budget");
        let counts = Arc::new(PrefixCounts::of_keys(&self.keys, DEPTH_MAX));
        self.chosen = Some((budget, Plan { shares, predicted: None, counts, is_cut: false }));
    }

    /// The levels for a number of bits in total.
    pub(super) fn plan(&self, bits: f64, samples: Samples<'_>) -> Plan {
        let counts = PrefixCounts::of_keys(&self.keys, DEPTH_MAX);
        let mut cases = sample::sampled_cases(&self.keys, samples.queries);
        let has_samples = !cases.is_empty();
        let synthetic = if sample::is_enough(cases.len()) {
            SyntheticQueries::default()
        } else {
            SyntheticQueries::new(&self.keys)
        };
        let ranges = synthetic.ranges();
        let known = cases.len();
        cases.extend(EmptyQuery::all_of(&self.keys, &ranges));
        let limit = SearchLimit::for_keys(self.keys.len());
        let shares = self.problem(&counts, &cases, bits, &limit).solve();
        if has_samples {
            cases.truncate(known);
        }
        let model = self.model(&counts, &shares, &cases);
        let predicted = (!cases.is_empty()).then(|| model.expected(&cases).rate);
        Plan { shares, predicted, counts: Arc::new(counts), is_cut: limit.is_cut() }
    }

    /// The input of the search, with as many of the queries as it can evaluate within its limit.
    pub(super) fn problem<'a>(
        &self,
        counts: &'a PrefixCounts,
        cases: &[EmptyQuery<'a>],
        bits: f64,
        limit: &'a SearchLimit,
    ) -> Problem<'a> {
        let key_bits = key_bytes(&self.keys) * 8;
        Problem {
            cases: thinned(cases, limit.rest() / STEPS_PER_CASE, CASES_OF_A_KIND),
            counts,
            key_bits,
            bits,
            unseen: Unseen::new(cases),
            prices: self.prices,
            depths: possible_depths(counts, key_bits, sample::useful_depth(cases)),
            limit,
        }
    }

    /// The model of the filter that would be built for keys and a sample; `None` for keys that cannot be stored.
    pub(crate) fn planned(
        keys: &Arc<KeySet>,
        prices: Prices,
        bits_per_key: f64,
        samples: Samples<'_>,
    ) -> Option<Model> {
        let mut builder = Self::new(prices, 0);
        builder.add_all(keys).ok()?;
        let plan = builder.plan(keys.len() as f64 * bits_per_key, samples);
        Some(builder.model(&plan.counts, &plan.shares, &sample::sampled_cases(keys, samples.queries)))
    }

    fn model(&self, counts: &PrefixCounts, shares: &[Share], cases: &[EmptyQuery<'_>]) -> Model {
        let (key_bits, cap) = (key_bytes(&self.keys) * 8, self.prices.probe_cap);
        Model::new(shares, |share| share.filter(counts), key_bits, Unseen::new(cases), cap)
    }
}

/// Lays out the levels in a number of bytes, directory included: blocked levels first, since they start at multiples
/// of 64. The largest level gets the bytes that rounding leaves.
pub(super) fn laid_out(shares: &[Share], counts: &PrefixCounts, bytes: u64) -> Vec<Level> {
    let mut shares: Vec<Share> = shares.to_vec();
    loop {
        let directory = (shares.len() * ENTRY_BYTES) as u64;
        let body = bytes.saturating_sub(directory);
        let total: f64 = shares.iter().map(|share| share.bits).sum();
        let scale = if total > 0.0 { (body as f64 * 8.0 / total).min(1.0) } else { 0.0 };
        let unit = |share: &Share| if share.layout == BitLayout::Blocked { 64 } else { 8 };
        let size = |share: &Share| ((share.bits * scale / 8.0) as u64) / unit(share) * unit(share);
        // Drops levels without a byte.
        if let Some(index) = shares.iter().position(|share| size(share) == 0) {
            shares.remove(index);
            continue;
        }
        shares.sort_by_key(|share| (share.layout != BitLayout::Blocked, share.depth, share.is_full));
        let mut sizes: Vec<u64> = shares.iter().map(size).collect();
        let rest = body.saturating_sub(sizes.iter().sum());
        let largest = (0..shares.len()).max_by_key(|index| sizes.get(*index).copied());
        if let Some(index) = largest
            && let (Some(share), Some(size)) = (shares.get(index), sizes.get_mut(index))
        {
            *size += rest / unit(share) * unit(share);
        }
        let mut offset = 0;
        let place = |(share, byte_count): (&Share, u64)| {
            let prefix_count = share.prefix_count(counts);
            let resized = Share { bits: byte_count as f64 * 8.0, ..*share };
            let level = Level {
                depth: if share.is_full { FULL_DEPTH } else { share.depth },
                layout: share.layout,
                probe_count: resized.filter(counts).probe_count,
                offset,
                byte_count,
                prefix_count,
            };
            offset += byte_count as usize;
            level
        };
        return shares.iter().zip(sizes).map(place).collect();
    }
}

impl FilterBuilder for RosettaBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.chosen = None;
        self.keys.push(key)
    }

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        self.chosen = None;
        self.keys.push_all(keys)
    }

    fn design(&mut self, budget: Budget, samples: Samples<'_>) -> Result<(), BuildError> {
        let bits_per_key = budget.require(Family::Rosetta.name())?;
        if !self.keys.is_empty() {
            let plan = self.plan(self.keys.len() as f64 * bits_per_key, samples);
            self.chosen = Some((budget, plan));
        }
        Ok(())
    }

    fn key_count(&self) -> u64 {
        self.keys.len() as u64
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn finish(&self, budget: Budget, samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let bits_per_key = budget.require(Family::Rosetta.name())?;
        let bits = self.keys.len() as f64 * bits_per_key;
        let (levels, predicted, is_cut) = if self.keys.is_empty() {
            (Vec::new(), None, false)
        } else {
            let plan = match &self.chosen {
                Some((known, plan)) if *known == budget => plan.clone(),
                _ => self.plan(bits, samples),
            };
            let bytes = (bits / 8.0) as u64 + BUDGET_SLACK_BYTES - ENVELOPE_BYTES as u64;
            (laid_out(&plan.shares, &plan.counts, bytes), plan.predicted, plan.is_cut)
        };
        let body: u64 = levels.iter().map(|level| level.byte_count).sum();
        let mut filter = empty_filter(body + (levels.len() * ENTRY_BYTES) as u64)?;
        if let Some(payload) = filter.get_mut(ENVELOPE_BYTES..) {
            levels.iter().for_each(|level| insert(level, &self.keys, &self.digester, payload));
            let directory = payload.get_mut(body as usize..).unwrap_or_default();
            let entries = levels.iter().flat_map(Level::encode);
            directory.iter_mut().zip(entries).for_each(|(target, source)| *target = source);
        }
        let mut parameters = [0; PARAMETER_BYTES];
        set_parameter(&mut parameters, 0, [levels.len() as u8]);
        set_parameter(&mut parameters, 2, (key_bytes(&self.keys) as u16).to_le_bytes());
        set_predicted_fpr(&mut parameters, predicted);
        set_parameter(&mut parameters, 8, self.prices.probe_cap.to_le_bytes());
        set_parameter(&mut parameters, 12, [u8::from(is_cut)]);
        let seed = self.digester.seed();
        Envelope::new(Family::Rosetta, seed, self.keys.len() as u64, parameters).seal(&mut filter);
        Ok(filter)
    }
}
