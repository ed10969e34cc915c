//! The filters of a table. This is the only file that calls filter families by name.
//!
//! It decides which tables a read skips: `false` from [`FilterBlock::may_contain`] or [`FilterBlock::may_contain_range`] of
//! any filter of the table is final. Therefore a filter has the key of every entry of its table, tombstones as well as
//! puts: skipping a table must not revive keys that its tombstones delete (the bug of cockroachdb/pebble #1786). Filters do not
//! contain range tombstones, which apply even if their table is skipped.
//!
//! A filter is derived data. One that can't be built is left out and reported; one that is damaged or of an unknown family
//! is reported and not used. Results stay the same.

use std::{fmt, sync::Arc};

use tamis_filter::{
    AnyFilter, Budget, BuildError, Candidate, DecodeError, Direction, Family, Filter, FilterBuilder,
    KeyRange, KeySet, Probe, RangeProbe, Samples,
    auto::{Pause, Query},
};

use super::{
    filter_choice::FilterChoice,
    filter_plan::{ChoiceInput, FilterPlan, GivenFilters, queries_within},
    section::SectionBytes,
};
use crate::{observe::query_sample::SharedQueries, options::TableFilter};

/// A key at which filter builders panic, for tests of the jobs that use them.
#[cfg(test)]
pub(crate) const PANIC_KEY: &[u8] = b"panic of a filter builder";

/// Builds the filters of a table from the key of every entry.
pub(crate) enum FiltersBuilder {
    Given(GivenBuilders),
    /// The keys are kept until all are known.
    Chosen(KeySet, Box<ChoiceInput>),
}

/// Builders of given filters, which take the keys one by one.
#[derive(Default)]
pub(crate) struct GivenBuilders {
    builders: Vec<PendingFilter>,
    refusals: Vec<String>,
    queries: SharedQueries,
}

/// The filters of a table, encoded.
#[derive(Default)]
pub(crate) struct BuiltFilters {
    pub(crate) filters: Vec<Vec<u8>>,
    /// Why they were chosen, if the store chose them.
    pub(crate) choice: Option<FilterChoice>,
    /// Why others were not built.
    pub(crate) refusals: Vec<String>,
}

/// A filter that is being built.
pub(super) struct PendingFilter {
    wanted: TableFilter,
    builder: Box<dyn FilterBuilder>,
    budget: Budget,
}

impl PendingFilter {
    fn new(wanted: &TableFilter, seed: u64) -> Result<Self, BuildError> {
        let (builder, budget) = wanted.builder(seed)?;
        Ok(Self { wanted: wanted.clone(), builder, budget })
    }
}

impl Default for FiltersBuilder {
    fn default() -> Self {
        Self::Given(GivenBuilders::default())
    }
}

impl fmt::Debug for FiltersBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(given) => {
                let names = given.builders.iter().map(|pending| pending.wanted.to_string());
                formatter.debug_list().entries(names).finish()
            }
            Self::Chosen(..) => formatter.write_str("chosen"),
        }
    }
}

impl FiltersBuilder {
    /// Builders of the planned filters; their digests use the seed of the database.
    pub(crate) fn new(plan: &FilterPlan, seed: u64) -> Result<Self, BuildError> {
        Ok(match plan {
            FilterPlan::Given(GivenFilters { filters, queries }) => {
                let builders = filters.iter().map(|wanted| PendingFilter::new(wanted, seed));
                Self::Given(GivenBuilders {
                    builders: builders.collect::<Result<_, BuildError>>()?,
                    refusals: Vec::new(),
                    queries: queries.clone(),
                })
            }
            FilterPlan::Chosen(input) => Self::Chosen(KeySet::new(), input.clone()),
        })
    }

    /// Adds a key, in order; a key equal to the previous one is skipped.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8]) {
        match self {
            Self::Given(given) => given.add(key),
            // The writer refuses keys that are not in order before they come here.
            Self::Chosen(keys, _) => drop(keys.push(key)),
        }
    }

    /// Approximate bytes of the filters.
    pub(super) fn estimated_bytes(&self) -> usize {
        let bits = match self {
            Self::Given(given) => {
                let bits = |pending: &PendingFilter| {
                    let per_key = pending.wanted.bits_per_key().map_or(0.0, f64::from);
                    per_key * pending.builder.key_count() as f64
                };
                given.builders.iter().map(bits).sum()
            }
            Self::Chosen(keys, input) => f64::from(input.bits_per_key) * keys.len() as f64,
        };
        (bits / 8.0) as usize
    }

    /// The encoded filters, and the reasons why others could not be built. `span`: the first and the last key.
    pub(crate) fn finish(self, span: (&[u8], &[u8])) -> BuiltFilters {
        match self {
            Self::Given(given) => given.finish(span),
            Self::Chosen(keys, input) => {
                let keys = Arc::new(keys);
                let queries = queries_within(&input.queries, span);
                if let Some(choice) = input.shared.take(keys.len(), input.overlapping_tables(span)) {
                    let built = build_choice(&keys, input.seed, &queries, choice);
                    if built.fits(keys.len(), input.bits_per_key) {
                        return built;
                    }
                }
                let choice = input.choose(&keys, &queries, Pause::default()).choice;
                input.shared.put(keys.len(), &choice);
                build_choice(&keys, input.seed, &queries, choice)
            }
        }
    }
}

impl GivenBuilders {
    fn add(&mut self, key: &[u8]) {
        #[cfg(test)]
        assert!(self.builders.is_empty() || key != PANIC_KEY, "a filter builder panics");
        let refusals = &mut self.refusals;
        self.builders.retain_mut(|pending| match pending.builder.add(key) {
            Ok(()) => true,
            Err(error) => {
                refusals.push(refusal(&pending.wanted, &error));
                false
            }
        });
    }

    fn finish(self, span: (&[u8], &[u8])) -> BuiltFilters {
        let mut built = BuiltFilters { refusals: self.refusals, ..BuiltFilters::default() };
        let ranges = ranges_of(&queries_within(&self.queries, span));
        self.builders.iter().for_each(|pending| built.add(pending, Samples { queries: &ranges }));
        built
    }
}

/// Builds the filters that were chosen for these keys and queries. The stored choice has those that could be built, so that a check adds
/// the others if they are still the best.
pub(super) fn build_choice(
    keys: &Arc<KeySet>,
    seed: u64,
    queries: &[Query<'_>],
    mut choice: FilterChoice,
) -> BuiltFilters {
    let mut built = BuiltFilters::default();
    let ranges = ranges_of(queries);
    choice.chosen.filters.retain(|wanted| {
        let built_count = built.filters.len();
        let pending = PendingFilter::new(wanted, seed).and_then(|mut pending| {
            pending.builder.add_all(keys)?;
            Ok(pending)
        });
        match pending {
            Ok(pending) => built.add(&pending, Samples { queries: &ranges }),
            Err(error) => built.refusals.push(refusal(wanted, &error)),
        }
        built.filters.len() > built_count
    });
    built.choice = Some(choice);
    built
}

fn ranges_of<'a>(queries: &[Query<'a>]) -> Vec<KeyRange<'a>> {
    queries.iter().map(|query| query.range).collect()
}

impl BuiltFilters {
    /// Whether filters that were found for other keys could be built within the budget.
    fn fits(&self, key_count: usize, bits_per_key: f32) -> bool {
        let bytes: usize = self.filters.iter().map(Vec::len).sum();
        // Filters of a few keys may take so many bytes more than their budget: headers, and the least size of their parts.
        let bytes_max = f64::from(bits_per_key) * key_count as f64 / 8.0 + 512.0;
        self.refusals.is_empty() && bytes as f64 <= bytes_max
    }

    fn add(&mut self, pending: &PendingFilter, samples: Samples<'_>) {
        match pending.builder.finish(pending.budget, samples) {
            Ok(filter) => self.filters.push(filter),
            Err(error) => self.refusals.push(refusal(&pending.wanted, &error)),
        }
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
    /// Opens an encoded filter.
    pub(crate) fn open(bytes: SectionBytes) -> Result<Self, DecodeError> {
        AnyFilter::open(bytes).map(|filter| Self { filter })
    }

    /// Bytes of memory that it uses.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.filter.encoded_bytes()
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

    /// Its family.
    pub(crate) fn family(&self) -> Family {
        self.filter.family()
    }

    /// The first key of a range in a direction, as far as it knows.
    pub(super) fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        self.filter.candidate(probe, direction)
    }

    /// Whether it admits a key of its table, as a point and as ranges that contain it.
    pub(crate) fn admits(&self, probe: &Probe<'_>, digester: &tamis_filter::Digester) -> bool {
        let key = probe.key();
        let ranges = [KeyRange::point(key), KeyRange::prefix(key)];
        let admits_range = |range| self.filter.may_contain_range(&RangeProbe::new(range, digester));
        self.filter.may_contain(probe)
            && (!self.filter.family().answers_ranges() || ranges.into_iter().all(admits_range))
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

#[cfg(test)]
mod tests;
