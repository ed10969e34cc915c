//! Builds the filters of a view, part by part, in bounded memory.
//!
//! Builders keep the keys of their filter in memory. So once the keys of a part take [`KEY_MEMORY`], its filters are finished, and the next
//! key begins another part: a view of any size gets filters.

use std::ops::Range;

use super::{
    filters::{FilterPart, PartOfRuns, ViewFilters, chosen},
    spool::Spool,
};
use crate::{
    coding::{length_u32, put_u32},
    error::Result,
    table::{
        filter_block::{BuiltFilters, FiltersBuilder},
        filter_plan::FilterPlan,
    },
};

/// The memory that the keys of a part take.
const KEY_MEMORY: u64 = 16 << 20;
/// A key in this memory takes its bytes and this many more.
const KEY_OVERHEAD: u64 = 8;

/// The filters to build for a view.
pub(crate) struct FilterJob<'a> {
    pub(crate) plan: &'a FilterPlan,
    pub(crate) spool: Spool,
    key_memory: u64,
}

impl<'a> FilterJob<'a> {
    pub(crate) const fn new(plan: &'a FilterPlan, spool: Spool) -> Self {
        Self { plan, spool, key_memory: KEY_MEMORY }
    }

    #[cfg(any(test, feature = "fuzz-internals"))]
    pub(crate) const fn with_key_memory(mut self, bytes: u64) -> Self {
        self.key_memory = bytes;
        self
    }
}

/// The filters that were built.
#[derive(Default)]
pub(super) struct BuiltGroup {
    parts: Vec<FilterPart>,
    spool: Option<Spool>,
    /// Why others were not built.
    pub(super) refusals: Vec<String>,
}

impl BuiltGroup {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.filter_count == 0)
    }
}

/// The part that is being built.
struct OpenPart {
    filters: FiltersBuilder,
    first: Vec<u8>,
    last: Vec<u8>,
    key_memory: u64,
}

/// Builds the filters of a group.
pub(super) struct GroupBuilder<'a> {
    job: Option<FilterJob<'a>>,
    seed: u64,
    part: Option<OpenPart>,
    built: BuiltGroup,
}

impl<'a> GroupBuilder<'a> {
    /// Without a job it builds nothing.
    pub(super) fn new(job: Option<FilterJob<'a>>, seed: u64) -> Self {
        Self { job, seed, part: None, built: BuiltGroup::default() }
    }

    /// Adds a key. Keys ascend.
    pub(super) fn add(&mut self, key: &[u8]) -> Result<()> {
        let Some(job) = &self.job else { return Ok(()) };
        let (key_memory, limit) = (KEY_OVERHEAD + key.len() as u64, job.key_memory);
        if self.part.as_ref().is_some_and(|part| part.key_memory + key_memory > limit) {
            self.end_part()?;
        }
        if self.part.is_none() && !self.begin_part(key) {
            return Ok(());
        }
        if let Some(part) = &mut self.part {
            part.filters.add(key);
            part.key_memory += key_memory;
            part.last.clear();
            part.last.extend_from_slice(key);
        }
        Ok(())
    }

    /// Begins a part; `false` if no filter can be built.
    fn begin_part(&mut self, key: &[u8]) -> bool {
        let Some(job) = &self.job else { return false };
        match FiltersBuilder::new(job.plan, self.seed) {
            Ok(filters) => {
                self.part = Some(OpenPart { filters, first: key.to_vec(), last: Vec::new(), key_memory: 0 });
                true
            }
            Err(error) => {
                self.built.refusals.push(error.to_string());
                self.job = None;
                false
            }
        }
    }

    fn end_part(&mut self) -> Result<()> {
        let (Some(part), Some(job)) = (self.part.take(), &mut self.job) else { return Ok(()) };
        let BuiltFilters { filters, choice, refusals } = part.filters.finish((&part.first, &part.last));
        let filter_count = length_u32(filters.len());
        for filter in filters {
            job.spool.push(filter)?;
        }
        let choice = choice.map(|choice| choice.encode());
        self.built.parts.push(FilterPart { first_key: part.first, filter_count, choice });
        let known = &mut self.built.refusals;
        refusals.into_iter().for_each(|refusal| {
            if !known.contains(&refusal) {
                known.push(refusal);
            }
        });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<BuiltGroup> {
        self.end_part()?;
        self.built.spool = self.job.map(|job| job.spool);
        Ok(self.built)
    }
}

/// The filters of a view that is being written: those of the old view, then a group for the keys of these runs.
#[derive(Default)]
pub(super) struct WrittenFilters<'a> {
    pub(super) old: Option<&'a ViewFilters>,
    pub(super) new: BuiltGroup,
    pub(super) new_runs: Range<u32>,
}

impl WrittenFilters<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    fn parts(&self) -> impl Iterator<Item = PartOfRuns<'_>> {
        let old = self.old.into_iter().flat_map(ViewFilters::parts);
        old.chain(self.new.parts.iter().map(|part| (&self.new_runs, part)))
    }

    /// The body of the section that says which keys each filter has.
    pub(super) fn encode_parts(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (runs, part) in self.parts() {
            put_u32(&mut body, runs.start);
            put_u32(&mut body, runs.end);
            put_u32(&mut body, part.filter_count);
            put_u32(&mut body, length_u32(part.first_key.len()));
            body.extend_from_slice(&part.first_key);
        }
        body
    }

    /// The body of the section that says why filters were chosen; `None` if all were given.
    pub(super) fn encode_choices(&self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        for (number, _, choice) in chosen(self.parts()) {
            put_u32(&mut body, length_u32(number));
            put_u32(&mut body, length_u32(choice.len()));
            body.extend_from_slice(choice);
        }
        (!body.is_empty()).then_some(body)
    }

    /// Calls `put` for each filter, in the order of the parts.
    pub(super) fn for_each(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.old.into_iter().flat_map(ViewFilters::encoded).try_for_each(&mut *put)?;
        self.new.spool.iter().flat_map(Spool::parts).try_for_each(|filter| put(&filter?))
    }
}
