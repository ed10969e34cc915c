//! The filter policy: one configuration for all tables of a database.

use std::sync::Arc;

use slatedb::{Filter, FilterBuilder, FilterPolicy};
use tamis_filter::auto::Prices;

use crate::choice::LastChoice;
use crate::filter::TableFilter;
use crate::shared::Shared;
use crate::table_builder::TableFilterBuilder;
use crate::{Counters, Design, PolicyError, QuerySample, frame};

/// The price of a request to an object store, in nanoseconds: 10 ms.
const REQUEST_NS: f64 = 10e6;

/// The seed of the digests. With another seed for each database, they are safe from keys that were prepared as false positives.
const SEED: u64 = 0x7461_6d69_735f_7364;

/// Bytes of a filter in addition to its bits.
const FILTER_OVERHEAD_BYTES: usize = 128;

/// A filter policy of SlateDB with the filters of Tamis. See [`crate::FilterPolicies`] for its use.
#[derive(Debug)]
pub struct TamisPolicy {
    shared: Arc<Shared>,
}

impl TamisPolicy {
    /// The name that tables store with their filters: the version of the frame. Nothing else decides compatibility, since
    /// each filter contains its family, parameters, digest and seed.
    pub const NAME: &'static str = "tamis:1";

    /// The policy of a design.
    ///
    /// # Errors
    /// A budget, family or parameter that is not possible.
    pub fn new(design: Design) -> Result<Self, PolicyError> {
        design.check()?;
        let prices = Prices { read_ns: REQUEST_NS, ..Prices::default() };
        let sample = Arc::new(QuerySample::new());
        let (counters, last_choice) = (Arc::default(), LastChoice::default());
        Ok(Self { shared: Arc::new(Shared { design, prices, seed: SEED, sample, counters, last_choice }) })
    }

    /// Chooses the filters of each table from its keys and the sampled queries.
    ///
    /// # Errors
    /// A number of bits per key that is not possible.
    pub fn auto(bits_per_key_max: f64) -> Result<Self, PolicyError> {
        Self::new(Design::Auto { bits_per_key_max })
    }

    /// Uses a sample that is shared with other policies, or filled by other processes ([`QuerySample::read`]).
    #[must_use]
    pub fn with_sample(self, sample: Arc<QuerySample>) -> Self {
        self.with(|shared| shared.sample = sample)
    }

    /// Uses other prices of a request and of memory for the automatic choice. Default: 10 ms per request.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        self.with(|shared| shared.prices = prices)
    }

    /// Uses another seed. Filters of all seeds are read; a random seed for each database protects from prepared keys.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.with(|shared| shared.seed = seed)
    }

    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let shared = &self.shared;
        let mut copy = Shared {
            design: shared.design.clone(),
            prices: shared.prices,
            seed: shared.seed,
            sample: Arc::clone(&shared.sample),
            counters: Arc::clone(&shared.counters),
            last_choice: LastChoice::default(),
        };
        change(&mut copy);
        Self { shared: Arc::new(copy) }
    }

    /// The filters of each table.
    pub fn design(&self) -> &Design {
        &self.shared.design
    }

    /// The sample of queries.
    pub fn sample(&self) -> &Arc<QuerySample> {
        &self.shared.sample
    }

    /// The counters of this process.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.shared.counters
    }
}

impl FilterPolicy for TamisPolicy {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(TableFilterBuilder::new(Arc::clone(&self.shared)))
    }

    /// Never fails: filters that cannot be read always pass.
    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(TableFilter::decode(data, &self.shared))
    }

    fn estimate_size(&self, key_count: usize) -> usize {
        let bits = self.shared.design.expected_bits() * key_count as f64;
        (bits / 8.0) as usize + FILTER_OVERHEAD_BYTES + frame::overhead_bytes(1)
    }

    fn supports_range_queries(&self) -> bool {
        self.shared.design.answers_ranges()
    }

    /// No, although filters answer prefixes: SlateDB would ask for the whole prefix also for `scan_prefix(prefix, from..to)`. Without
    /// this support it asks for the range that is scanned, of which [`key_range`](crate::range::key_range) restores the prefix.
    fn supports_prefix_queries(&self) -> bool {
        false
    }
}
