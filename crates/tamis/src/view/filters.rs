//! The filters of a view: keys and ranges that they deny are in no run, so that no block is read for them.
//!
//! Filters that were built together have the keys of the same runs: a **group**. A rebuild copies the groups of the old view and
//! adds one with the keys of the new runs, so that it needs no key of the old runs. A key may be in the view if all filters of one
//! group admit it.
//!
//! Filters are derived data: if one cannot be used, none is used, and answers stay the same. The builders need memory for the keys
//! of the group, as those of tables do; the caller bounds it through the plan.

use std::ops::Range;

use tamis_filter::{Digester, Probe, RangeProbe};

use crate::{
    coding::{Decoder, put_u32},
    error::Result,
    table::{
        filter_block::{BuiltFilters, FilterBlock, FiltersBuilder},
        filter_plan::FilterPlan,
        format::{KIND_FILTER, KIND_VIEW_FILTER_RUNS},
        section::{SectionBytes, SectionRecord, Source},
    },
};

/// A filter as it is written.
#[derive(Debug)]
pub(super) struct FilterPart<'a> {
    /// The numbers of the runs whose keys it has.
    pub(super) runs: Range<u32>,
    pub(super) bytes: &'a [u8],
}

/// The body of the section that says which runs' keys each filter has.
pub(super) fn encode_filter_runs(parts: &[FilterPart<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        put_u32(&mut body, part.runs.start);
        put_u32(&mut body, part.runs.end);
    }
    body
}

/// Builds the filters of a group.
pub(super) struct GroupBuilder {
    filters: Option<FiltersBuilder>,
    refusals: Vec<String>,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl GroupBuilder {
    /// Without a plan it builds nothing.
    pub(super) fn new(plan: Option<&FilterPlan>, seed: u64) -> Self {
        let mut refusals = Vec::new();
        let mut keep = |error: tamis_filter::BuildError| refusals.push(error.to_string());
        let filters = plan.and_then(|plan| FiltersBuilder::new(plan, seed).map_err(&mut keep).ok());
        Self { filters, refusals, first: Vec::new(), last: Vec::new() }
    }

    /// Adds a key. Keys ascend.
    pub(super) fn add(&mut self, key: &[u8]) {
        let Some(filters) = &mut self.filters else { return };
        filters.add(key);
        if self.first.is_empty() {
            self.first.extend_from_slice(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// The filters, and why others were not built.
    pub(super) fn finish(self) -> (Vec<Vec<u8>>, Vec<String>) {
        let Some(filters) = self.filters.filter(|_| !self.first.is_empty()) else {
            return (Vec::new(), self.refusals);
        };
        let BuiltFilters { filters, refusals, .. } = filters.finish((&self.first, &self.last));
        (filters, refusals)
    }
}

#[derive(Debug)]
struct OpenFilter {
    filter: FilterBlock,
    bytes: SectionBytes,
    runs: Range<u32>,
}

/// See the head of this file. Groups follow each other.
#[derive(Debug, Default)]
pub(super) struct ViewFilters(Vec<OpenFilter>);

impl ViewFilters {
    /// Opens all filters. Refuses filters that do not have the keys of all runs.
    pub(super) fn open(source: &Source, records: &[SectionRecord], run_count: usize) -> Result<Self> {
        let Some(runs_record) = records.iter().find(|record| record.kind == KIND_VIEW_FILTER_RUNS) else {
            return Ok(Self::default());
        };
        let body = source.section(runs_record)?;
        let mut runs = Decoder::new(body.as_ref());
        let mut filters = Vec::new();
        for record in records.iter().filter(|record| record.kind == KIND_FILTER) {
            let bytes = source.section(record)?;
            let filter = FilterBlock::open(bytes.clone())
                .map_err(|reason| source.damaged(record.offset, "filter", "a known family", reason))?;
            let runs = runs.take_u32().zip(runs.take_u32()).map_or(0..0, |(start, end)| start..end);
            filters.push(OpenFilter { filter, bytes, runs });
        }
        let filters = Self(filters);
        if runs.rest().is_empty() && filters.have_all_runs(run_count) {
            return Ok(filters);
        }
        let got = format!("{:?}", filters.0.iter().map(|filter| &filter.runs).collect::<Vec<_>>());
        Err(source.damaged(runs_record.offset, "filter runs", format!("all of {run_count} runs"), got))
    }

    fn have_all_runs(&self, run_count: usize) -> bool {
        let mut end = 0;
        for group in self.groups() {
            let Some(first) = group.first() else { return false };
            if first.runs.start != end || first.runs.is_empty() {
                return false;
            }
            end = first.runs.end;
        }
        end as usize == run_count
    }

    fn groups(&self) -> impl Iterator<Item = &[OpenFilter]> {
        self.0.chunk_by(|left, right| left.runs == right.runs)
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn admit(&self, admits: impl Fn(&FilterBlock) -> bool) -> bool {
        self.is_empty() || self.groups().any(|group| group.iter().all(|filter| admits(&filter.filter)))
    }

    /// Whether a run may have the key; `false` is certain. `true` without filters.
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.admit(|filter| filter.may_contain(probe))
    }

    /// Whether a run may have a key of the range; `false` is certain. `true` without filters.
    pub(super) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.admit(|filter| filter.may_contain_range(probe))
    }

    /// Whether they admit a key of the view, as a point and as ranges that contain it.
    pub(super) fn admit_key(&self, key: &[u8], digester: &Digester) -> bool {
        let probe = Probe::new(key, digester);
        self.admit(|filter| filter.admits(&probe, digester))
    }

    /// The filters as they are written.
    pub(super) fn parts(&self) -> impl Iterator<Item = FilterPart<'_>> {
        self.0.iter().map(|filter| FilterPart { runs: filter.runs.clone(), bytes: filter.bytes.as_ref() })
    }

    /// Descriptions, each with the numbers of the runs.
    pub(super) fn designs(&self) -> Vec<(Range<u32>, String)> {
        self.0.iter().map(|filter| (filter.runs.clone(), filter.filter.design())).collect()
    }
}
