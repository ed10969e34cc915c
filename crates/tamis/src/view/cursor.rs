//! A cursor over a view and its runs: all entries in order, as a merge of the runs returns them.
//!
//! The view says which run has the next entry, so a step compares no keys: it moves the cursor of one run by one entry. A step
//! without reading ([`ViewCursor::step`]) moves no run at all; the run is moved to the entry when it is read.
//!
//! The ordinal of the current entry is the number of its run's entries before it. It is counted once per run and seek (bit planes
//! of at most one page); then each step adds or subtracts one.

use std::sync::Arc;

use super::{
    format::kind_of,
    reader::View,
    run::{OrdinalCursor, OrdinalRun},
    search::{Located, Place, resolve},
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
    key::{Kind, SEQUENCE_MAX, Sequence},
    slice::Slice,
};

/// Versions of a key that are read one after the other before the search for a version halves the others.
const STEP_COUNT_MAX: usize = 8;

/// How a key is searched in its segment, for experiments and tests.
#[cfg(any(test, feature = "bench-internals"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SearchMode {
    /// By differences and infixes, with one key read.
    #[default]
    Blind,
    /// The paper's binary search: a key read for each halving of the segment.
    Full,
    /// The paper's partial binary search: keys are read from the anchor on.
    Partial,
}

/// A run of the view, with its cursor once it is used.
struct Lane<C> {
    cursor: Option<C>,
    /// The ordinal at which the cursor is.
    ordinal: Option<u64>,
    /// The ordinal of the run's first entry at or behind the current place, if `stamp` is that of the view cursor.
    position: u64,
    stamp: u64,
}

/// See the head of this file, and [`crate::cursor`] for the contract.
pub(crate) struct ViewCursor<R: OrdinalRun> {
    view: Arc<View>,
    runs: Arc<[R]>,
    lanes: Vec<Lane<R::Cursor>>,
    #[cfg(any(test, feature = "bench-internals"))]
    mode: SearchMode,
    place: Place,
    is_valid: bool,
    /// The run of the current entry, once it was read.
    current: usize,
    /// Changes when the place is not reached by single steps.
    stamp: u64,
}

impl<R: OrdinalRun> ViewCursor<R> {
    /// A cursor that is not valid. Refuses runs that are not those of the view. Nothing is read.
    pub(crate) fn new(view: &Arc<View>, runs: &Arc<[R]>) -> Result<Self> {
        let counts = runs.iter().map(OrdinalRun::entry_count);
        if !counts.clone().eq(view.runs().iter().map(|run| run.entry_count)) {
            let counts: Vec<_> = counts.collect();
            let expected = format!("runs with {:?}", view.runs());
            return Err(Error::corruption(
                view.path(),
                0,
                "view header",
                expected,
                format!("{counts:?} entries"),
            ));
        }
        let lane = |_: &R| Lane { cursor: None, ordinal: None, position: 0, stamp: 0 };
        Ok(Self {
            view: Arc::clone(view),
            lanes: runs.iter().map(lane).collect(),
            runs: Arc::clone(runs),
            #[cfg(any(test, feature = "bench-internals"))]
            mode: SearchMode::default(),
            place: view.end(),
            is_valid: false,
            current: 0,
            stamp: 1,
        })
    }

    /// Selects another search. Answers are the same.
    #[cfg(any(test, feature = "bench-internals"))]
    pub(crate) const fn with_mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) const fn view(&self) -> &Arc<View> {
        &self.view
    }

    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the place is that of an entry.
    pub(super) fn is_at_entry(&self) -> bool {
        self.place.page < self.view.page_count()
    }

    pub(super) fn move_to(&mut self, place: Place) {
        self.is_valid = false;
        self.place = place;
        self.stamp += 1;
    }

    /// The run of an entry and the entry's ordinal there.
    fn entry_of(&self, place: &Place) -> Result<(usize, u64)> {
        let page = self.view.page(place.page, place.layout);
        let run = page.run(place.segment, place.slot);
        if run >= self.lanes.len() {
            return Err(self.view.malformed(place.page));
        }
        let before = page.count_before(run, place.segment, place.slot);
        Ok((run, u64::from(self.view.index.position(place.page, run)) + u64::from(before)))
    }

    /// Moves a run's cursor to an ordinal.
    fn read(&mut self, run: usize, ordinal: u64) -> Result<&R::Cursor> {
        let (Some(lane), Some(source)) = (self.lanes.get_mut(run), self.runs.get(run)) else {
            return Err(self.view.malformed(self.place.page));
        };
        let cursor = lane.cursor.get_or_insert_with(|| source.cursor());
        match lane.ordinal.take() {
            Some(at) if at == ordinal => {}
            Some(at) if at + 1 == ordinal => cursor.next()?,
            Some(at) if at == ordinal + 1 => cursor.prev()?,
            _ => cursor.seek_ordinal(ordinal)?,
        }
        if !cursor.is_valid() {
            return Err(self.view.malformed(self.place.page));
        }
        lane.ordinal = Some(ordinal);
        Ok(cursor)
    }

    /// The key of an entry. Reads it unless its run is there.
    pub(super) fn key_at(&mut self, place: &Place) -> Result<&[u8]> {
        let (run, ordinal) = self.entry_of(place)?;
        self.read(run, ordinal).map(Cursor::key)
    }

    /// Reads the current entry; not valid behind the last one.
    pub(super) fn load(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_at_entry() {
            return Ok(());
        }
        let page = self.view.page(self.place.page, self.place.layout);
        let run = page.run(self.place.segment, self.place.slot);
        let ordinal = match self.lanes.get(run) {
            Some(lane) if lane.stamp == self.stamp => lane.position,
            _ => self.entry_of(&self.place)?.1,
        };
        let stamp = self.stamp;
        if let Some(lane) = self.lanes.get_mut(run) {
            (lane.position, lane.stamp) = (ordinal, stamp);
        }
        self.read(run, ordinal)?;
        self.current = run;
        self.is_valid = true;
        Ok(())
    }

    /// Adds to the position of the run of the current entry, if it is known.
    fn shift(&mut self, is_forward: bool) {
        let run = self.view.page(self.place.page, self.place.layout).run(self.place.segment, self.place.slot);
        let stamp = self.stamp;
        if let Some(lane) = self.lanes.get_mut(run).filter(|lane| lane.stamp == stamp) {
            lane.position = if is_forward { lane.position + 1 } else { lane.position.saturating_sub(1) };
        }
    }

    /// Moves to the next entry without reading it. Only at an entry.
    pub(super) fn step(&mut self) -> Result<()> {
        self.is_valid = false;
        self.shift(true);
        let page = self.view.page(self.place.page, self.place.layout);
        let length = page.segment_length(self.place.segment);
        self.place.slot += 1;
        if self.place.slot == length {
            self.place.start += length;
            (self.place.segment, self.place.slot) = (self.place.segment + 1, 0);
            if self.place.segment == self.place.layout.segment_count() {
                self.place = self.view.start_of(self.place.page + 1)?;
            }
        }
        Ok(())
    }

    /// Moves to the entry before without reading it; `false` if there is none: then the place stays.
    pub(super) fn step_back(&mut self) -> Result<bool> {
        self.is_valid = false;
        if let Some(slot) = self.place.slot.checked_sub(1) {
            self.place.slot = slot;
        } else if let Some(segment) = self.place.segment.checked_sub(1) {
            let length = self.view.page(self.place.page, self.place.layout).segment_length(segment);
            self.place.start -= length.min(self.place.start);
            (self.place.segment, self.place.slot) = (segment, length.saturating_sub(1));
        } else {
            let Some(before) = self.place.page.checked_sub(1) else { return Ok(false) };
            self.place = self.view.last_of(before)?;
        }
        self.shift(false);
        Ok(true)
    }

    /// Whether the current entry is an old version of its key.
    pub(super) fn is_old_version(&self) -> bool {
        self.view.page(self.place.page, self.place.layout).is_old_version(self.place.entry())
    }

    /// The kind of the current entry, without reading it.
    pub(super) fn stored_kind(&self) -> Result<Kind> {
        let page = self.view.page(self.place.page, self.place.layout);
        kind_of(page.kind(self.place.segment, self.place.slot))
            .ok_or_else(|| self.view.malformed(self.place.page))
    }

    /// Moves to the first entry of the next key without reading it. Only at an entry.
    pub(super) fn step_key(&mut self) -> Result<()> {
        self.step()?;
        while self.is_at_entry() && self.is_old_version() {
            if self.place.slot == 0 {
                // Continuation segments hold nothing but old versions of one key.
                self.move_to(self.view.head_from(self.place, self.place.segment)?);
                return Ok(());
            }
            self.step()?;
        }
        Ok(())
    }

    /// Moves to the newest entry of the current key without reading it. Only at an entry.
    pub(super) fn step_to_newest(&mut self) -> Result<()> {
        while self.is_old_version() {
            let page = self.view.page(self.place.page, self.place.layout);
            if self.place.slot > 0 && page.is_continuation(self.place.segment) {
                self.move_to(Place { slot: 0, ..self.place });
            }
            if !self.step_back()? {
                break;
            }
        }
        Ok(())
    }

    /// Moves to the newest entry at or below `sequence` of the current key, and reads it; `false` if there is none: then the place is the
    /// next key. Only at the newest entry of a key. Cost: a read for each newer entry, or their logarithm if they are many.
    pub(super) fn seek_version(&mut self, sequence: Sequence) -> Result<bool> {
        for _ in 0..STEP_COUNT_MAX {
            self.load()?;
            if self.sequence() <= sequence {
                return Ok(true);
            }
            self.step()?;
            if !self.is_at_entry() || !self.is_old_version() {
                return Ok(false);
            }
        }
        let mut low = self.view.number_of(&self.place);
        self.step_key()?;
        let end = self.view.number_of(&self.place);
        let mut high = end;
        while low < high {
            let middle = low.midpoint(high);
            self.move_to(self.view.place_of(middle)?);
            self.load()?;
            if self.sequence() > sequence { low = middle + 1 } else { high = middle }
        }
        self.move_to(self.view.place_of(low)?);
        if low == end {
            return Ok(false);
        }
        self.load()?;
        Ok(true)
    }

    /// Finds the first key at or after `key`: its place, and whether it is the key.
    pub(super) fn find(&mut self, key: &[u8]) -> Result<(Place, bool)> {
        #[cfg(any(test, feature = "bench-internals"))]
        if self.mode != SearchMode::Blind {
            return self.find_by_keys(key);
        }
        let view = Arc::clone(&self.view);
        match view.locate(self.place.page, key)? {
            Located::Above(place) => Ok((place, false)),
            Located::Candidate(place) => self.resolve_candidate(&place, key),
        }
    }

    /// The place of the first key at or after `key`, whose search ended at this candidate, and whether it is the key.
    pub(super) fn resolve_candidate(&mut self, candidate: &Place, key: &[u8]) -> Result<(Place, bool)> {
        let view = Arc::clone(&self.view);
        let found = self.key_at(candidate)?;
        let (slot, is_equal) = resolve(&view.page(candidate.page, candidate.layout), candidate, key, found);
        Ok((view.at_slot(candidate, slot)?, is_equal))
    }

    /// As [`ViewCursor::find`], with the paper's searches.
    #[cfg(any(test, feature = "bench-internals"))]
    fn find_by_keys(&mut self, key: &[u8]) -> Result<(Place, bool)> {
        let view = Arc::clone(&self.view);
        let place = match view.find_segment(self.place.page, key)? {
            super::search::SegmentFound::Above(place) => return Ok((place, false)),
            super::search::SegmentFound::Segment(place, _) => place,
        };
        let page = view.page(place.page, place.layout);
        let length = page.segment_length(place.segment);
        let (mut low, mut high) = (0, length);
        let mut is_equal = false;
        while low < high {
            let mut slot = if self.mode == SearchMode::Full { low.midpoint(high) } else { low };
            while slot > low && page.is_old_version(place.start + slot) {
                slot -= 1;
            }
            let order = self.key_at(&Place { slot, ..place })?.cmp(key);
            if order.is_lt() {
                low = slot + 1;
                while low < high && page.is_old_version(place.start + low) {
                    low += 1;
                }
            } else {
                high = slot;
                is_equal = order.is_eq();
                if is_equal || self.mode == SearchMode::Partial {
                    low = slot;
                }
            }
        }
        Ok((view.at_slot(&place, low)?, is_equal))
    }

    /// Moves to the first entry at or after (`key`, `sequence`) without reading it, unless sequence numbers must be compared.
    pub(super) fn seek_place(&mut self, key: &[u8], sequence: Sequence) -> Result<bool> {
        self.is_valid = false;
        let (place, is_equal) = self.find(key)?;
        self.move_to(place);
        if !is_equal || sequence >= self.view.largest_sequence() {
            return Ok(is_equal);
        }
        self.seek_version(sequence)
    }

    /// Moves to the last entry of the last key below `key`, or at `key` if `is_inclusive`, without reading it; `false` if there is
    /// none.
    pub(super) fn seek_place_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<bool> {
        self.is_valid = false;
        let (place, is_equal) = self.find(key)?;
        self.move_to(place);
        if is_equal && is_inclusive {
            self.step_key()?;
        }
        self.step_back()
    }

    /// Moves forward by `count` entries without reading those between.
    pub(crate) fn skip(&mut self, count: u64) -> Result<()> {
        self.is_valid = false;
        if self.is_at_entry() {
            let place = self.view.place_of(self.view.number_of(&self.place).saturating_add(count))?;
            self.move_to(place);
        }
        self.load()
    }

    fn current(&self) -> Option<&R::Cursor> {
        self.lanes.get(self.current)?.cursor.as_ref()
    }
}

impl<R: OrdinalRun> Cursor for ViewCursor<R> {
    fn seek_first(&mut self) -> Result<()> {
        self.move_to(self.view.start_of(0)?);
        self.load()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.move_to(self.view.end());
        if self.step_back()? { self.load() } else { Ok(()) }
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.seek_place(key, sequence)?;
        self.load()
    }

    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()> {
        if self.seek_place_for_prev(key, is_inclusive)? { self.load() } else { Ok(()) }
    }

    fn next(&mut self) -> Result<()> {
        self.step()?;
        self.load()
    }

    fn prev(&mut self) -> Result<()> {
        if self.step_back()? { self.load() } else { Ok(()) }
    }

    fn is_valid(&self) -> bool {
        self.is_valid
    }

    fn key(&self) -> &[u8] {
        self.current().map_or(&[], |cursor| cursor.key())
    }

    fn sequence(&self) -> Sequence {
        self.current().map_or(SEQUENCE_MAX, Cursor::sequence)
    }

    fn kind(&self) -> Kind {
        self.current().map_or(Kind::Put, Cursor::kind)
    }

    fn value(&self) -> &[u8] {
        self.current().map_or(&[], |cursor| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.current().map_or_else(|| Slice::from([].as_slice()), Cursor::value_slice)
    }
}
