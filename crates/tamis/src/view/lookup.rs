//! Reads of a view without cursors: how many keys are in a range.

use std::ops::Bound;

use super::{
    format::kind_of,
    reader::View,
    search::{Located, Place, resolve},
};
use crate::{
    error::{Error, Result},
    key::{BoundKind, Kind},
};

impl View {
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
            Bound::Included(key) => self.live_up_to(key, BoundKind::Excluded, read_key)?,
            Bound::Excluded(key) => self.live_up_to(key, BoundKind::Included, read_key)?,
        };
        let end = match upper {
            Bound::Unbounded => self.live_count(),
            Bound::Included(key) => self.live_up_to(key, BoundKind::Included, read_key)?,
            Bound::Excluded(key) => self.live_up_to(key, BoundKind::Excluded, read_key)?,
        };
        Ok(end.saturating_sub(first))
    }

    /// The number of keys below `key`, and `key` if it is included, whose newest entry is a put.
    fn live_up_to(
        &self,
        key: &[u8],
        kind: BoundKind,
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
        let is_put = kind_of(segment.kind(candidate.slot)) != Kind::Tombstone;
        let is_counted = is_equal && kind == BoundKind::Included && is_put;
        Ok(self.live_before(&place) + u64::from(is_counted))
    }
}
