//! A cursor over a view and its runs: all entries in order, as a merge of the runs returns them.
//!
//! The view says which run has the next entry, so a step compares no keys: it moves the cursor of one run by one entry. A step
//! without reading ([`ViewCursor::step`]) moves no run at all; the run is moved to the entry when it is read.
//!
//! The ordinal of the current entry is the number of its run's entries before it: those before the page are in the page index, those
//! before the segment are counted once per run and segment, those before the entry are counted in the segment's masks.

use std::sync::Arc;

use tamis_filter::Direction;

use super::{
    format::kind_of,
    reader::View,
    run::OrdinalRun,
    run_set::RunSet,
    search::{Located, Place, resolve},
    segment::{Segment, ones},
};
use crate::{
    cursor::{Cursor, STEP_COUNT_MAX},
    error::{Error, Result},
    key::{BoundKind, Kind, SEQUENCE_MAX, Sequence},
    slice::Slice,
    table::cursor::EntryPart,
};

/// The step after a seek that prefetches blocks of the runs that further steps will reach, and the one that prefetches entries.
const BLOCKS_STEP: u8 = 2;
const ENTRIES_STEP: u8 = 4;

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

/// A run of the view.
struct Lane<L> {
    reader: L,
    /// The ordinal of the run's first entry at or behind the start of the segment that the view cursor entered as the `entered`-th
    /// one.
    base: u64,
    /// The entries of the run in that segment, a bit each.
    entries: u64,
    entered: u64,
}

impl<L> Lane<L> {
    /// The ordinal of the run's first entry at or behind a slot of the segment that was entered last.
    #[inline]
    fn ordinal(&self, slot: usize) -> u64 {
        self.base.wrapping_add((self.entries & ones(slot)).count_ones().into())
    }
}

/// See the head of this file, and [`crate::cursor`] for the contract.
pub(crate) struct ViewCursor<S: RunSet> {
    view: Arc<View>,
    runs: S,
    lanes: Vec<Lane<S::Lane>>,
    #[cfg(any(test, feature = "bench-internals"))]
    mode: SearchMode,
    place: Place,
    is_valid: bool,
    /// The run of the current entry and its ordinal there, once it was read.
    current: usize,
    ordinal: u64,
    /// The segment of the place, or one before.
    segment: Segment,
    is_last_of_page: bool,
    /// Segments that were entered so far.
    entered: u64,
    /// Steps since the last seek, up to [`ENTRIES_STEP`].
    steps: u8,
}

impl<R: OrdinalRun> ViewCursor<Arc<[R]>> {
    /// A cursor that is not valid. Refuses runs that are not those of the view. Nothing is read.
    pub(crate) fn new(view: &Arc<View>, runs: &Arc<[R]>) -> Result<Self> {
        let counts = runs.iter().map(OrdinalRun::entry_count);
        let named = view.runs().iter().map(|run| run.entry_count);
        if !counts.clone().eq(named.clone()) {
            let describe = |counts: Vec<u64>| format!("runs of {counts:?} entries");
            let (expected, got) = (describe(counts.collect()), describe(named.collect()));
            return Err(Error::corruption(view.path(), 0, "view header", expected, got));
        }
        Ok(Self::over_named(view, Arc::clone(runs)))
    }
}

impl<S: RunSet> ViewCursor<S> {
    /// As [`ViewCursor::new`], for the runs that have the ids of the view: they cannot be others.
    pub(crate) fn over_named(view: &Arc<View>, runs: S) -> Self {
        let lane = |_| Lane { reader: S::Lane::default(), base: 0, entries: 0, entered: 0 };
        Self {
            view: Arc::clone(view),
            lanes: (0..runs.run_count()).map(lane).collect(),
            runs,
            #[cfg(any(test, feature = "bench-internals"))]
            mode: SearchMode::default(),
            place: view.end(),
            is_valid: false,
            current: 0,
            ordinal: 0,
            segment: Segment::NONE,
            is_last_of_page: false,
            entered: 0,
            steps: 0,
        }
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
        self.steps = 0;
    }

    /// Reads the masks of the segment of a place, unless they were read last.
    #[inline]
    fn enter(&mut self, place: &Place) {
        if !self.segment.is(place.page, place.segment) {
            self.read_segment(place);
        }
    }

    /// As [`ViewCursor::enter`], for the current place.
    #[inline]
    fn enter_here(&mut self) {
        let place = self.place;
        self.enter(&place);
    }

    fn read_segment(&mut self, place: &Place) {
        let page = self.view.page(place.page, place.layout);
        let next = page.segment(place.page, place.segment, place.start);
        let is_last_of_page = place.segment + 1 == place.layout.segment_count();
        let last = std::mem::replace(&mut self.segment, next);
        let was_last_of_page = std::mem::replace(&mut self.is_last_of_page, is_last_of_page);
        let is_same_page = last.page == place.page;
        let is_behind = is_same_page && place.segment == last.number + 1
            || was_last_of_page && place.segment == 0 && place.page == last.page.wrapping_add(1);
        let is_before = is_same_page && place.segment + 1 == last.number
            || is_last_of_page && last.number == 0 && last.page == place.page + 1;
        self.entered += 1;
        if !is_behind && !is_before {
            return;
        }
        // The numbers of entries before the segment follow from those before the last one.
        let entered = self.entered;
        let known = self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.entered + 1 == entered);
        for (run, lane) in known {
            let last = std::mem::replace(&mut lane.entries, self.segment.entries_of(run));
            lane.base = if is_behind {
                lane.base.wrapping_add(last.count_ones().into())
            } else {
                lane.base.wrapping_sub(lane.entries.count_ones().into())
            };
            lane.entered = entered;
        }
    }

    /// The run of an entry and the entry's ordinal there.
    #[inline]
    fn entry_of(&mut self, place: &Place) -> Result<(usize, u64)> {
        self.enter(place);
        let run = self.segment.run(place.slot);
        match self.lanes.get(run) {
            Some(lane) if lane.entered == self.entered => {}
            _ => self.count_before(run, place)?,
        }
        Ok((run, self.lanes.get(run).map_or(0, |lane| lane.ordinal(place.slot))))
    }

    /// Counts the entries of a run before the current segment, which is that of the place.
    fn count_before(&mut self, run: usize, place: &Place) -> Result<()> {
        let Some(lane) = self.lanes.get_mut(run) else { return Err(self.view.malformed(place.page)) };
        lane.base = self.view.first_ordinal(place, run);
        lane.entries = self.segment.entries_of(run);
        lane.entered = self.entered;
        Ok(())
    }

    /// Moves the lane of a run to an ordinal.
    #[inline]
    fn read(&mut self, run: usize, ordinal: u64) -> Result<()> {
        if let Some(lane) = self.lanes.get_mut(run)
            && self.runs.move_to(run, &mut lane.reader, ordinal)?
        {
            return Ok(());
        }
        Err(self.view.malformed(self.place.page))
    }

    #[inline]
    fn entry_in(&self, run: usize) -> Option<&S::Entry> {
        self.lanes.get(run).and_then(|lane| S::entry(&lane.reader))
    }

    /// The key of an entry. Reads it unless its run is there.
    pub(super) fn key_at(&mut self, place: &Place) -> Result<&[u8]> {
        let (run, ordinal) = self.entry_of(place)?;
        self.read(run, ordinal)?;
        Ok(self.entry_in(run).map_or(&[], Cursor::key))
    }

    /// Reads the current entry; not valid behind the last one.
    pub(super) fn load(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_at_entry() {
            return Ok(());
        }
        let (run, ordinal) = self.entry_of(&{ self.place })?;
        self.show(run, ordinal)
    }

    /// Moves the lane of a run to an ordinal, which is the current entry then.
    #[inline]
    fn show(&mut self, run: usize, ordinal: u64) -> Result<()> {
        self.read(run, ordinal)?;
        (self.current, self.ordinal) = (run, ordinal);
        self.is_valid = true;
        Ok(())
    }

    /// After a step, prefetches the entries that further steps will need: the next one of the current run, and after the first steps
    /// the next ones of the other runs in the segment, whose cursors are elsewhere.
    #[inline]
    pub(super) fn prefetch_after_step(&mut self, direction: Direction) {
        if !self.is_valid {
            return;
        }
        if self.steps < ENTRIES_STEP {
            self.steps += 1;
            if self.steps == BLOCKS_STEP || self.steps == ENTRIES_STEP {
                self.prefetch_runs(direction);
            }
        }
        if let Some(lane) = self.lanes.get(self.current) {
            S::prefetch_step(&lane.reader, direction);
        }
    }

    /// Prefetches the next entry of each other run that has one in the rest of the segment.
    #[cold]
    fn prefetch_runs(&mut self, direction: Direction) {
        let part = if self.steps == BLOCKS_STEP { EntryPart::Block } else { EntryPart::Entry };
        let mut place = self.place;
        let before = ones(place.slot + 1);
        let ahead = match direction {
            Direction::Forward => !before,
            Direction::Backward => before >> 1,
        };
        let mut ahead = ones(self.segment.length) & ahead;
        ahead &= !self.segment.entries_of(self.current);
        while ahead != 0 {
            place.slot = match direction {
                Direction::Forward => ahead.trailing_zeros(),
                Direction::Backward => 63 - ahead.leading_zeros(),
            } as usize;
            let Ok((run, ordinal)) = self.entry_of(&place) else { return };
            ahead &= !self.segment.entries_of(run);
            if let Some(lane) = self.lanes.get_mut(run) {
                self.runs.prefetch(run, &mut lane.reader, ordinal, part);
            }
        }
    }

    /// Moves to the next entry without reading it. Only at an entry.
    pub(super) fn step(&mut self) -> Result<()> {
        self.is_valid = false;
        self.enter_here();
        self.move_forward(self.place.slot + 1)
    }

    /// Moves to a slot of the current segment, or to the next segment for its length.
    #[inline]
    fn move_forward(&mut self, slot: usize) -> Result<()> {
        self.place.slot = slot;
        if slot >= self.segment.length {
            self.place.start += self.segment.length;
            (self.place.segment, self.place.slot) = (self.place.segment + 1, 0);
            if self.place.segment == self.place.layout.segment_count() {
                self.place = self.view.start_of(self.place.page + 1)?;
            }
        }
        Ok(())
    }

    /// Moves to the previous entry without reading it; `false` if there is none: then the place stays.
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
        Ok(true)
    }

    /// Whether the current entry is an old version of its key.
    #[inline]
    pub(super) fn is_old_version(&mut self) -> bool {
        self.enter_here();
        self.segment.is_old_version(self.place.slot)
    }

    /// The kind of the current entry, without reading it.
    #[inline]
    pub(super) fn stored_kind(&mut self) -> Kind {
        self.enter_here();
        kind_of(self.segment.kind(self.place.slot))
    }

    /// The run and the kind of the current entry, without reading it.
    #[inline]
    pub(super) fn stored_entry(&mut self) -> (usize, Kind) {
        let kind = self.stored_kind();
        (self.segment.run(self.place.slot), kind)
    }

    /// The entries of the current key in the current segment, at its newest one, and whether they are the whole segment.
    #[inline]
    pub(super) fn versions_in_segment(&mut self) -> (usize, bool) {
        self.enter_here();
        let end = self.segment.next_key(self.place.slot).unwrap_or(self.segment.length);
        let count = end.saturating_sub(self.place.slot);
        (count, count == self.segment.length)
    }

    /// Moves to the first entry of the next key without reading it. Only at an entry.
    pub(super) fn step_key(&mut self) -> Result<()> {
        self.is_valid = false;
        self.enter_here();
        if let Some(slot) = self.segment.next_key(self.place.slot) {
            self.place.slot = slot;
            return Ok(());
        }
        self.move_forward(self.segment.length)?;
        if self.is_at_entry() && self.is_old_version() {
            // Continuation segments hold nothing but old versions of one key.
            self.place = self.view.head_from(self.place, self.place.segment)?;
        }
        Ok(())
    }

    /// Moves to the next or the previous key in the segment whose newest entry is a put, and reads this entry; `false` without a move if
    /// there is none. Only at the newest entry of a key.
    #[inline]
    pub(super) fn step_live_key(&mut self, direction: Direction) -> Result<bool> {
        if !self.segment.is(self.place.page, self.place.segment) {
            return Ok(false);
        }
        let found = match direction {
            Direction::Forward => self.segment.next_live_key(self.place.slot),
            Direction::Backward => self.segment.previous_live_key(self.place.slot),
        };
        let Some(slot) = found else { return Ok(false) };
        self.is_valid = false;
        self.place.slot = slot;
        let run = self.segment.run(slot);
        let Some(lane) = self.lanes.get_mut(run).filter(|lane| lane.entered == self.entered) else {
            self.load()?;
            return Ok(true);
        };
        let ordinal = lane.ordinal(slot);
        if !self.runs.move_to(run, &mut lane.reader, ordinal)? {
            return Err(self.view.malformed(self.place.page));
        }
        (self.current, self.ordinal, self.is_valid) = (run, ordinal, true);
        Ok(true)
    }

    /// Moves to the newest entry of the current key without reading it. Only at an entry.
    pub(super) fn step_to_newest(&mut self) -> Result<()> {
        while self.is_old_version() {
            let page = self.view.page(self.place.page, self.place.layout);
            if self.place.slot > 0 && page.is_continuation(self.place.segment) {
                self.place.slot = 0;
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
        if !is_equal || self.view.shows_newest_at(sequence) {
            return Ok(is_equal);
        }
        self.seek_version(sequence)
    }

    /// Moves to the last entry of the last key below `key`, or at `key` if it is included, without reading it; `false` if there is
    /// none.
    pub(super) fn seek_place_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<bool> {
        self.is_valid = false;
        let (place, is_equal) = self.find(key)?;
        self.move_to(place);
        if is_equal && kind == BoundKind::Included {
            self.step_key()?;
        }
        self.step_back()
    }

    /// Moves from the newest entry of a key to the next key whose entries are not all in a span of older ones, without reading it: forward
    /// to the first one of `runs`, or the first one at or behind `end`, whichever is first. Without such a key, to the end.
    pub(super) fn skip_older(&mut self, runs: &[usize], end: Option<&[u8]>) -> Result<()> {
        self.step_key()?;
        let view = Arc::clone(&self.view);
        let from = self.place;
        let found = view.first_of_runs(&from, runs)?;
        let Some(end) = end else {
            self.move_to(found.unwrap_or_else(|| view.end()));
            return Ok(());
        };
        if let Some(found) = found {
            // Near entries are read to find out whether they are in the span: the scan needs them if they are.
            let is_near = found.page == from.page && found.segment == from.segment;
            if is_near && self.key_at(&found)? < end {
                self.move_to(found);
                return Ok(());
            }
        }
        let end = self.find(end)?.0;
        let is_within = |found: &Place| view.number_of(found) < view.number_of(&end);
        self.move_to(found.filter(is_within).unwrap_or(end));
        Ok(())
    }

    /// As [`ViewCursor::skip_older`], backward: to the last entry of `runs`, or the last one below `start`; `false` if there is none.
    pub(super) fn skip_older_backward(&mut self, runs: &[usize], start: Option<&[u8]>) -> Result<bool> {
        self.step_to_newest()?;
        if !self.step_back()? {
            return Ok(false);
        }
        let view = Arc::clone(&self.view);
        let from = self.place;
        let found = view.last_of_runs(&from, runs)?;
        if let (Some(found), Some(start)) = (found, start) {
            let is_near = found.page == from.page && found.segment == from.segment;
            if is_near && self.key_at(&found)? >= start {
                self.move_to(found);
                return Ok(true);
            }
        }
        let has_start = match start {
            Some(start) => self.seek_place_for_prev(start, BoundKind::Excluded)?,
            None => false,
        };
        let is_behind = |found: &Place| !has_start || view.number_of(found) > view.number_of(&self.place);
        match found.filter(is_behind) {
            Some(found) => self.move_to(found),
            None => return Ok(has_start),
        }
        Ok(true)
    }

    /// The run of the current entry and its ordinal there. Only while valid.
    #[inline]
    pub(crate) const fn position(&self) -> (usize, u64) {
        (self.current, self.ordinal)
    }

    /// Reads the key, the sequence number and the kind of a position without the view, which may be damaged. The cursor is not valid then.
    pub(crate) fn entry_at(&mut self, (run, ordinal): (usize, u64)) -> Result<(Vec<u8>, Sequence, Kind)> {
        self.is_valid = false;
        self.read(run, ordinal)?;
        let entry = self.entry_in(run);
        Ok(entry.map_or((Vec::new(), 0, Kind::Put), |entry| {
            (entry.key().to_vec(), entry.sequence(), entry.kind())
        }))
    }

    #[inline]
    fn current(&self) -> Option<&S::Entry> {
        self.entry_in(self.current)
    }
}

impl<S: RunSet> Cursor for ViewCursor<S> {
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

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        if self.seek_place_for_prev(key, kind)? { self.load() } else { Ok(()) }
    }

    fn next(&mut self) -> Result<()> {
        self.step()?;
        self.load()
    }

    fn prev(&mut self) -> Result<()> {
        if self.step_back()? { self.load() } else { Ok(()) }
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().map_or(&[], |cursor| cursor.key())
    }

    #[inline]
    fn sequence(&self) -> Sequence {
        self.current().map_or(SEQUENCE_MAX, Cursor::sequence)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.current().map_or(Kind::Put, Cursor::kind)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().map_or(&[], |cursor| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.current().map_or_else(|| Slice::from([].as_slice()), Cursor::value_slice)
    }
}
