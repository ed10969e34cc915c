//! Reads of a view without cursors: the entries of each run in a range, and how many keys are in a range.

use std::ops::{Bound, Range};

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

    /// For each run, the ordinals of its entries that a scan of the keys from `lower` to `upper` reads. Reads nothing. If only the key of an
    /// entry could decide where the range begins or ends, it is taken as that key, so that a few other entries may be read instead.
    pub(crate) fn ordinals_within(&self, lower: &[u8], upper: &[u8]) -> Result<Vec<Range<u64>>> {
        let (first, _) = self.taken_place(0, lower)?;
        let (end, last_run) = self.taken_place(first.page, upper)?;
        let ordinals = |run: usize| {
            let end = self.ordinal_at(&end, run) + u64::from(last_run == Some(run));
            self.ordinal_at(&first, run)..end
        };
        Ok((0..self.runs().len()).map(ordinals).collect())
    }

    /// The place of a key, and the run of the entry there if it may have the key.
    fn taken_place(&self, near: usize, key: &[u8]) -> Result<(Place, Option<usize>)> {
        match self.locate(near, key)? {
            Located::Above(place) => Ok((place, None)),
            Located::Candidate(place) => {
                let run = self.run_at(&place)?;
                Ok((place, Some(run)))
            }
        }
    }

    /// The ordinal of a run's first entry at or behind a place.
    fn ordinal_at(&self, place: &Place, run: usize) -> u64 {
        if place.page >= self.page_count() {
            return self.runs().get(run).map_or(0, |run| run.entry_count);
        }
        let segment = self.page(place.page, place.layout).segment(place.page, place.segment, place.start);
        self.first_ordinal(place, run) + u64::from(segment.count_before(run, place.slot))
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
        let is_put = kind_of(segment.kind(candidate.slot)) == Some(Kind::Put);
        let is_counted = is_equal && kind == BoundKind::Included && is_put;
        Ok(self.live_before(&place) + u64::from(is_counted))
    }
}
