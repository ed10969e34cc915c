//! Finds the next entry of some of a view's runs in view order without reading one.
//!
//! The page index has the number of each run's entries before each page, so a binary search per run leads to the page of the next
//! entry, and the masks of that page's segments lead to the entry.
//!
//! Cost: the segments of at most two pages.

use super::{page::Page, reader::View, search::Place, segment::ones};
use crate::error::Result;

/// The entries of runs in a segment, a bit each.
fn entries_of(page: &Page<'_>, place: &Place, runs: &[usize]) -> u64 {
    let segment = page.segment(place.page, place.segment, place.start);
    runs.iter().fold(0, |found, &run| found | segment.entries_of(run))
}

impl View {
    /// The first entry at or behind a place that one of the runs has; `None` if there is none.
    pub(super) fn first_of_runs(&self, place: &Place, runs: &[usize]) -> Result<Option<Place>> {
        if place.page >= self.page_count() {
            return Ok(None);
        }
        if let Some(found) = self.first_in_page(place, runs) {
            return Ok(Some(found));
        }
        let page_of = |&run: &usize| {
            let ordinal = self.ordinal_at_page(place.page + 1, run);
            (ordinal < self.ordinal_at_page(self.page_count(), run))
                .then(|| self.index.page_of_ordinal(run, ordinal))
        };
        let Some(page) = runs.iter().filter_map(page_of).min() else { return Ok(None) };
        let found = self.first_in_page(&self.start_of(page)?, runs);
        found.map(Some).ok_or_else(|| self.malformed(page))
    }

    /// The last entry at or before a place that one of the runs has; `None` if there is none.
    pub(super) fn last_of_runs(&self, place: &Place, runs: &[usize]) -> Result<Option<Place>> {
        if let Some(found) = self.last_in_page(place, runs) {
            return Ok(Some(found));
        }
        let page_of = |&run: &usize| {
            let last = self.ordinal_at_page(place.page, run).checked_sub(1)?;
            Some(self.index.page_of_ordinal(run, last))
        };
        let Some(page) = runs.iter().filter_map(page_of).max() else { return Ok(None) };
        let found = self.last_in_page(&self.last_of(page)?, runs);
        found.map(Some).ok_or_else(|| self.malformed(page))
    }

    /// The ordinal of a run's first entry at or behind the start of a page. For the page count: all entries of the run.
    fn ordinal_at_page(&self, page: usize, run: usize) -> u64 {
        if page < self.page_count() {
            return self.index.position(page, run).into();
        }
        self.runs().get(run).map_or(0, |run| run.entry_count)
    }

    fn first_in_page(&self, place: &Place, runs: &[usize]) -> Option<Place> {
        let page = self.page(place.page, place.layout);
        let mut place = *place;
        while place.segment < place.layout.segment_count() {
            let found = entries_of(&page, &place, runs) & !ones(place.slot);
            if found != 0 {
                return Some(Place { slot: found.trailing_zeros() as usize, ..place });
            }
            let start = place.start + page.segment_length(place.segment);
            place = Place { segment: place.segment + 1, start, slot: 0, ..place };
        }
        None
    }

    fn last_in_page(&self, place: &Place, runs: &[usize]) -> Option<Place> {
        let page = self.page(place.page, place.layout);
        let mut place = *place;
        loop {
            let found = entries_of(&page, &place, runs) & ones(place.slot + 1);
            if found != 0 {
                return Some(Place { slot: (u64::BITS - 1 - found.leading_zeros()) as usize, ..place });
            }
            let segment = place.segment.checked_sub(1)?;
            let length = page.segment_length(segment);
            let start = place.start.saturating_sub(length);
            place = Place { segment, start, slot: length.saturating_sub(1), ..place };
        }
    }
}
