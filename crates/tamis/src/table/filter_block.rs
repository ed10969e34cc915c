//! The filters of a table. This is the only file that calls filter families by name.
//!
//! It decides which tables a read skips: `false` from [`FilterBlock::may_contain`] or [`FilterBlock::may_contain_range`] of
//! any filter of the table is final. Therefore a filter has the key of every entry of its table, tombstones as well as
//! puts: skipping a table must not revive keys that its tombstones delete (the bug of cockroachdb/pebble #1786). Filters do not
//! contain range tombstones, which apply even if their table is skipped.
//!
//! A filter is derived data. One that can't be built is left out and reported; one that is damaged or of an unknown family
//! is reported and not used. Results stay the same.

use std::{fmt, ops::Bound};

use tamis_filter::{
    AnyFilter, Budget, BuildError, Candidate, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples,
    Upper,
};

use super::section::SectionBytes;
use crate::options::TableFilter;

/// Builds the filters of a table from the key of every entry.
#[derive(Default)]
pub(super) struct FiltersBuilder {
    builders: Vec<PendingFilter>,
    refusals: Vec<String>,
}

/// A filter that is being built.
struct PendingFilter {
    wanted: TableFilter,
    builder: Box<dyn FilterBuilder>,
    budget: Budget,
}

impl fmt::Debug for FiltersBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.builders.iter().map(|pending| pending.wanted.to_string()))
            .finish()
    }
}

impl FiltersBuilder {
    /// Builders of these filters; their digests use the seed of the database.
    pub(super) fn new(filters: &[TableFilter], seed: u64) -> Result<Self, BuildError> {
        let begin = |wanted: &TableFilter| {
            let (builder, budget) = wanted.builder(seed)?;
            Ok(PendingFilter { wanted: wanted.clone(), builder, budget })
        };
        let builders = filters.iter().map(begin).collect::<Result<_, BuildError>>()?;
        Ok(Self { builders, refusals: Vec::new() })
    }

    /// Adds a key, in order; a key equal to the one before is skipped.
    pub(super) fn add(&mut self, key: &[u8]) {
        let refusals = &mut self.refusals;
        self.builders.retain_mut(|pending| match pending.builder.add(key) {
            Ok(()) => true,
            Err(error) => {
                refusals.push(refusal(&pending.wanted, &error));
                false
            }
        });
    }

    /// Approximate bytes of the filters.
    pub(super) fn estimated_bytes(&self) -> usize {
        let bits = |pending: &PendingFilter| {
            let per_key = pending.wanted.bits_per_key().map_or(0.0, f64::from);
            per_key * pending.builder.key_count() as f64
        };
        (self.builders.iter().map(bits).sum::<f64>() / 8.0) as usize
    }

    /// The encoded filters, and the reasons why others could not be built.
    pub(super) fn finish(self) -> (Vec<Vec<u8>>, Vec<String>) {
        let Self { builders, mut refusals } = self;
        let mut filters = Vec::new();
        for pending in builders {
            match pending.builder.finish(pending.budget, Samples::NONE) {
                Ok(filter) => filters.push(filter),
                Err(error) => refusals.push(refusal(&pending.wanted, &error)),
            }
        }
        (filters, refusals)
    }
}

fn refusal(wanted: &TableFilter, error: &BuildError) -> String {
    format!("{wanted}: {error}")
}

/// One filter of a table, used in place.
#[derive(Debug)]
pub(crate) struct FilterBlock {
    filter: AnyFilter<SectionBytes>,
}

impl FilterBlock {
    /// Opens an encoded filter; the reason as text if that fails.
    pub(super) fn open(bytes: SectionBytes) -> Result<Self, String> {
        AnyFilter::open(bytes).map(|filter| Self { filter }).map_err(|error| error.to_string())
    }

    /// Bytes of memory that it uses.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.filter.encoded_bytes()
    }

    /// Whether it can deny ranges of more than one key.
    pub(super) fn answers_ranges(&self) -> bool {
        self.filter.family().answers_ranges()
    }

    /// Whether the key may be in the table; `false` is certain.
    #[inline]
    pub(crate) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.filter.may_contain(probe)
    }

    /// Whether a key of the range may be in the table; `false` is certain.
    pub(crate) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.filter.may_contain_range(probe)
    }

    /// Whether it may know the first key of an open range.
    pub(super) fn names_candidates(&self) -> bool {
        self.filter.family().names_candidates()
    }

    /// The least key at or above `lower`, as far as it knows.
    pub(super) fn least_candidate(&self, lower: Bound<&[u8]>) -> Candidate {
        self.filter.least_candidate(lower)
    }

    /// The greatest key within `upper`, as far as it knows.
    pub(super) fn greatest_candidate(&self, upper: Upper<'_>) -> Candidate {
        self.filter.greatest_candidate(upper)
    }

    /// Whether it admits a key of its table, as a point and as ranges that contain it.
    pub(super) fn admits(&self, probe: &Probe<'_>, digester: &tamis_filter::Digester) -> bool {
        let key = probe.key();
        let ranges = [KeyRange::point(key), KeyRange::prefix(key)];
        let admits_range = |range| self.filter.may_contain_range(&RangeProbe::new(range, digester));
        self.filter.may_contain(probe) && (!self.answers_ranges() || ranges.into_iter().all(admits_range))
    }

    /// Prefetches the cache lines that [`FilterBlock::may_contain`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe<'_>) {
        self.filter.prefetch(probe);
    }

    /// A one-line description.
    pub(crate) fn design(&self) -> String {
        let mut text = format!("{}: ", self.filter.family());
        // Writing to a string can't fail.
        let _ = self.filter.design(&mut text);
        text.push_str(&format!("; {} bytes", self.filter.encoded_bytes()));
        if let Some(rate) = self.filter.predicted_fpr() {
            text.push_str(&format!(", {rate:.6} false positives expected"));
        }
        text
    }
}
