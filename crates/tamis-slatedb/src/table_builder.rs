//! Builds the filters of one table from its entries.
//!
//! SlateDB adds every entry of the table in key order: values, tombstones, merge operands and old versions. All of their
//! keys are in the filter, so that a skipped table never hides a tombstone or an operand. Entries out of order cannot
//! occur; if they do, the table gets no filter.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use log::warn;
use slatedb::{Filter, FilterBuilder, RowEntry};
use tamis_filter::auto::{Effort, Part, Pause, Query, QueryKind, Request, Workload};
use tamis_filter::{BuildError, KeyRange, KeySet, Samples};

use crate::counters::count;
use crate::design::{Design, budget};
use crate::filter::TableFilter;
use crate::shared::Shared;

/// The keys of a table that is being written.
pub(crate) struct TableFilterBuilder {
    keys: KeySet,
    is_unsorted: bool,
    shared: Arc<Shared>,
}

impl TableFilterBuilder {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { keys: KeySet::new(), is_unsorted: false, shared }
    }

    fn build_all(&self, keys: &Arc<KeySet>) -> Vec<Vec<u8>> {
        let (sample, taken) = self.shared.sample.queries();
        let ranges: Vec<KeyRange<'_>> = sample.iter().map(|query| query.range()).collect();
        let parts = match &self.shared.design {
            Design::Fixed(parts) => parts.clone(),
            Design::Auto { bits_per_key_max } => {
                let kinds = sample.iter().map(|query| query.kind());
                let queries: Vec<Query<'_>> =
                    kinds.zip(&ranges).map(|(kind, range)| query(kind, *range)).collect();
                let request = Request {
                    workload: Workload { queries: &queries },
                    prices: self.shared.prices,
                    bits_per_key_max: *bits_per_key_max,
                    overlapping_tables: 1,
                    current: None,
                    effort: Effort::Write,
                    seed: self.shared.seed,
                    pause: Pause::default(),
                };
                let (parts, is_new) = self.shared.last_choice.parts(keys, &request, taken);
                self.shared.counters.searches.fetch_add(u64::from(is_new), Relaxed);
                parts
            }
        };
        let built = parts.iter().filter_map(|part| self.build_or_count(part, keys, &ranges));
        built.collect()
    }

    /// A filter, or `None` if it cannot be built for these keys: the table is then read without it.
    fn build_or_count(&self, part: &Part, keys: &Arc<KeySet>, sample: &[KeyRange<'_>]) -> Option<Vec<u8>> {
        match build(part, keys, sample, self.shared.seed) {
            Ok(bytes) if u32::try_from(bytes.len()).is_ok() => Some(bytes),
            Ok(_) => self.report("the filter has 4 GiB or more"),
            Err(error) => self.report(&error.to_string()),
        }
    }

    fn report<T>(&self, reason: &str) -> Option<T> {
        if let Some(value) = count(&self.shared.counters.build_failures) {
            warn!("a table has no filter: {reason} [design={}, count={value}]", self.shared.design);
        }
        None
    }
}

fn query(kind: QueryKind, range: KeyRange<'_>) -> Query<'_> {
    Query { kind, range, weight: 1.0 }
}

fn build(part: &Part, keys: &Arc<KeySet>, sample: &[KeyRange<'_>], seed: u64) -> Result<Vec<u8>, BuildError> {
    let mut builder = part.spec.builder(seed)?;
    builder.add_all(keys)?;
    builder.finish(budget(part)?, Samples { queries: sample })
}

impl FilterBuilder for TableFilterBuilder {
    fn add_entry(&mut self, entry: &RowEntry) {
        self.is_unsorted |= self.keys.push(&entry.key).is_err();
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let keys = Arc::new(std::mem::take(&mut self.keys));
        let encoded = if self.is_unsorted {
            self.report("its entries are not in the order of their keys").unwrap_or_default()
        } else {
            self.build_all(&keys)
        };
        let counters = &self.shared.counters;
        counters.built.fetch_add(1, Relaxed);
        counters.built_keys.fetch_add(keys.len() as u64, Relaxed);
        counters.built_bytes.fetch_add(encoded.iter().map(|bytes| bytes.len() as u64).sum(), Relaxed);
        Arc::new(TableFilter::new(encoded, &self.shared))
    }
}
