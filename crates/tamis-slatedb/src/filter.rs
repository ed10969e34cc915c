//! The filters of one table behind SlateDB's interface.
//!
//! Invariant: `might_match` returns `false` only if the table has no entry for the query. Without a readable
//! filter it returns `true`. Copies share the bytes. Cost of a query: a probe of each filter until one rejects it, and
//! of one query in [`crate::sample::TAKEN_ONE_IN`] a copy of its keys into the sample.

use std::sync::Arc;

use log::warn;
use slatedb::bytes::BufMut;
use slatedb::{Filter, FilterQuery, FilterTarget};
use tamis_filter::{AnyFilter, DecodeError, Digester, Filter as _, KeyRange, Probe, RangeProbe};

use crate::counters::count;
use crate::frame::{self, SharedBytes};
use crate::range::{bytes_of, key_range};
use crate::shared::Shared;

/// A filter and the bytes that it reads.
#[derive(Debug)]
struct OpenFilter {
    bytes: SharedBytes,
    filter: AnyFilter<SharedBytes>,
    digester: Digester,
}

impl OpenFilter {
    fn open(bytes: SharedBytes) -> Result<Self, DecodeError> {
        let filter = AnyFilter::open(bytes.clone())?;
        filter.verify()?;
        let envelope = tamis_filter::envelope::Envelope::parse(bytes.as_ref(), bytes.as_ref().len() as u64)?;
        Ok(Self { filter, digester: Digester::new(envelope.seed), bytes })
    }

    fn may_contain(&self, target: &FilterTarget) -> bool {
        match target {
            FilterTarget::Point(key) => self.filter.may_contain(&Probe::new(key, &self.digester)),
            FilterTarget::Prefix(prefix) => {
                self.filter.may_contain_range(&RangeProbe::new(KeyRange::prefix(prefix), &self.digester))
            }
            FilterTarget::Range { lower, upper } => {
                let range = key_range(bytes_of(lower), bytes_of(upper));
                self.filter.may_contain_range(&RangeProbe::new(range, &self.digester))
            }
        }
    }
}

/// The filters of a table.
pub(crate) struct TableFilter {
    filters: Arc<[OpenFilter]>,
    shared: Arc<Shared>,
}

impl TableFilter {
    /// Filters that were just built.
    pub(crate) fn new(encoded: Vec<Vec<u8>>, shared: &Arc<Shared>) -> Self {
        let filters =
            encoded.iter().filter_map(|bytes| OpenFilter::open(bytes.as_slice().into()).ok()).collect();
        Self { filters, shared: Arc::clone(shared) }
    }

    /// Opens stored bytes. Filters that cannot be read are left out; without any the table is always read.
    pub(crate) fn decode(bytes: &[u8], shared: &Arc<Shared>) -> Self {
        let counters = &shared.counters;
        let filters = match frame::decode(bytes) {
            Some(encoded) => encoded.into_iter().filter_map(|bytes| open_or_count(bytes, shared)).collect(),
            None => {
                if let Some(value) = count(&counters.damaged) {
                    warn!(
                        "the filters of a table are damaged; its filters always pass [bytes={}, damaged={value}]",
                        bytes.len()
                    );
                }
                Arc::default()
            }
        };
        counters.opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self { filters, shared: Arc::clone(shared) }
    }
}

fn open_or_count(bytes: &[u8], shared: &Shared) -> Option<OpenFilter> {
    let error = match OpenFilter::open(bytes.into()) {
        Ok(filter) => return Some(filter),
        Err(error) => error,
    };
    let is_unknown = matches!(
        error,
        DecodeError::Magic { .. }
            | DecodeError::Version { .. }
            | DecodeError::Digest { .. }
            | DecodeError::Family { .. }
    );
    let counter = if is_unknown { &shared.counters.unknown } else { &shared.counters.damaged };
    if let Some(value) = count(counter) {
        warn!(
            "a filter of a table cannot be used; it always passes: {error} [bytes={}, count={value}]",
            bytes.len()
        );
    }
    None
}

impl Filter for TableFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        self.shared.sample.record(&query.target);
        self.filters.iter().all(|filter| filter.may_contain(&query.target))
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        frame::encode(self.filters.iter().map(|filter| filter.bytes.as_ref()), writer);
    }

    fn size(&self) -> usize {
        let filters = self.filters.iter().map(|filter| filter.bytes.as_ref().len()).sum::<usize>();
        filters + frame::overhead_bytes(self.filters.len())
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self { filters: Arc::clone(&self.filters), shared: Arc::clone(&self.shared) })
    }
}
