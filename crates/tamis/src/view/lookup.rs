//! Reads of a view without cursors: which run has a key, for point reads, and how many keys are in a range.

use std::ops::Bound;

use tamis_filter::Probe;

use super::{
    format::kind_of,
    reader::View,
    search::{Located, Place, resolve},
};
use crate::{
    error::{Error, Result},
    key::Kind,
};

/// The covered runs that may have a visible version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRuns {
    /// No run has the key.
    None,
    /// The run with this number has the newest version, if the key exists. A reader at or above [`View::largest_sequence`] needs no
    /// other run; an older one may need a version of an older run.
    NewestIn(usize),
}

impl View {
    /// The runs that may have a key. Reads no block: the view may find another key, and only a read of its run can decide.
    pub(crate) fn runs_of(&self, probe: &Probe<'_>) -> Result<KeyRuns> {
        let Located::Candidate(place) = self.locate(0, probe.key())? else { return Ok(KeyRuns::None) };
        let page = self.page(place.page, place.layout);
        if !self.admits(page.tag(place.entry()), probe) {
            return Ok(KeyRuns::None);
        }
        Ok(KeyRuns::NewestIn(self.run_at(&place)?))
    }

    /// The error for an entry of a run that the run does not have.
    pub(crate) fn missing_entry(&self, run: usize, ordinal: u64) -> Error {
        let (expected, got) = (format!("entry {ordinal} of run {run}"), "a run with fewer entries");
        Error::corruption(self.path(), 0, "view", expected, got)
    }

    fn run_at(&self, place: &Place) -> Result<usize> {
        let run = self.page(place.page, place.layout).run(place.segment, place.slot);
        if run < self.runs().len() { Ok(run) } else { Err(self.malformed(place.page)) }
    }

    /// The number of keys of a range whose newest entry is a put. `read_key` returns the key of an entry of a run, by the run's number and
    /// the entry's ordinal; it is called at most once for each bound.
    pub(crate) fn count_live(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        read_key: &mut dyn FnMut(usize, u64) -> Result<Vec<u8>>,
    ) -> Result<u64> {
        let first = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.live_up_to(key, false, read_key)?,
            Bound::Excluded(key) => self.live_up_to(key, true, read_key)?,
        };
        let end = match upper {
            Bound::Unbounded => self.live_count(),
            Bound::Included(key) => self.live_up_to(key, true, read_key)?,
            Bound::Excluded(key) => self.live_up_to(key, false, read_key)?,
        };
        Ok(end.saturating_sub(first))
    }

    /// The number of keys below `key`, and `key` if `is_inclusive`, whose newest entry is a put.
    fn live_up_to(
        &self,
        key: &[u8],
        is_inclusive: bool,
        read_key: &mut dyn FnMut(usize, u64) -> Result<Vec<u8>>,
    ) -> Result<u64> {
        let candidate = match self.locate(0, key)? {
            Located::Above(place) => return Ok(self.live_before(&place)),
            Located::Candidate(candidate) => candidate,
        };
        let page = self.page(candidate.page, candidate.layout);
        let run = self.run_at(&candidate)?;
        let segment = page.segment(candidate.page, candidate.segment, candidate.start);
        let ordinal =
            self.first_ordinal(&candidate, run) + u64::from(segment.count_before(run, candidate.slot));
        let (slot, is_equal) = resolve(&page, &candidate, key, &read_key(run, ordinal)?);
        let place = self.at_slot(&candidate, slot)?;
        let is_put = kind_of(segment.kind(candidate.slot)) == Some(Kind::Put);
        let is_counted = is_equal && is_inclusive && is_put;
        Ok(self.live_before(&place) + u64::from(is_counted))
    }
}
