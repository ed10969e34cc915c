//! The expected result of single queries, by the formulas of `model.rs`: for the automatic choice, which combines filters.

use std::sync::Arc;

use super::builder::RosettaBuilder;
use super::keys::key_bytes;
use super::model::{Expected, Model, Unseen};
use super::prices::Prices;
use super::sample::{self, SampleQuery};
use crate::{FilterBuilder as _, KeyRange, KeySet, Samples};

/// The filter that would be built for the keys and a sample, without its bits.
#[derive(Debug)]
pub(crate) struct PlannedRosetta {
    builder: RosettaBuilder,
    model: Model,
}

impl PlannedRosetta {
    /// Searches the levels for the sample, as the builder does. `None` for keys that cannot be stored.
    pub(crate) fn new(
        keys: &Arc<KeySet>,
        prices: Prices,
        bits_per_key: f64,
        samples: Samples<'_>,
    ) -> Option<Self> {
        let mut builder = RosettaBuilder::new(prices, 0);
        builder.add_all(keys).ok()?;
        let plan = builder.plan(keys.len() as f64 * bits_per_key, samples);
        let cases = sample::sampled_cases(&builder.keys, samples.queries);
        let (key_bits, unseen) = (key_bytes(&builder.keys) * 8, Unseen::new(&cases));
        let filter = |share: &super::model::Share| share.filter(&plan.counts);
        let model = Model::new(&plan.shares, filter, key_bits, unseen, prices.probe_cap);
        Some(Self { builder, model })
    }

    /// The rate of a query and its probes in cache lines; `None` for a query that holds a key.
    pub(crate) fn result(&self, range: &KeyRange<'_>) -> Option<(f64, f64)> {
        let query = SampleQuery::new(&self.builder.keys, range)?;
        let Expected { rate, lines } = self.model.of(&query);
        Some((rate, lines))
    }
}
