//! The cursor of a scan in one partition: over a sorted view, or over the merge of all sources.
//!
//! A scan reads a view alone if it needs no other table, there are no range tombstones, and the snapshot sees the newest version of each
//! key. Then each entry that the view shows is visible as long as no memtable has an entry near it
//! ([`super::memtable_gap`]): a step needs no merge and no check of versions, and compares keys only with a bound of the range and with
//! the next key of a memtable. When a scan reaches such a key, the memtables' version of it hides that of the view; while the scan
//! is at an entry of a memtable, the view is at its next entry in the direction of the scan, or at the same key.
//!
//! A scan that passes many deleted keys of memtables continues with the merge until its next seek, because the merge records them.
//!
//! If the view turns out to be damaged, the scan continues with the merge, from the same place.

use std::{ops::Bound, sync::Arc};

use super::{
    either::{either, forward_to_either},
    memtable_gap::{MemtableGap, Shown},
    scan_source::ScanSource,
    seek_answers::Visible,
    select_views::SelectedView,
};
use crate::{
    cursor::{Cursor as _, view_runs::ViewRuns},
    error::{Error, Result},
    slice::Slice,
    view::{cursor::ViewCursor, scan::ViewScan},
};

/// See the head of this file. The contract of [`crate::cursor`] applies to the visible entries of the scan's range.
#[expect(clippy::large_enum_variant, reason = "a scan has at most two; merges are the usual cursors")]
pub(super) enum ScanCursor {
    Merge(Visible),
    View(Box<ScanOfView>),
}

forward_to_either!(ScanCursor: Merge, View);

impl ScanCursor {
    /// A cursor that is not valid. Nothing is read but filters and views, once per scan.
    pub(super) fn new(source: &Arc<ScanSource>) -> Self {
        match source.selection().only_view() {
            Some(selected) if selected.is_sole_source(source.sequence()) && !source.has_memtable_ranges() => {
                Self::View(Box::new(ScanOfView::new(source, selected)))
            }
            _ => Self::Merge(source.merged_cursor()),
        }
    }

    /// Moves to the last entry of the range at or before `key`.
    pub(super) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        either!(self, Merge | View, cursor => cursor.seek_for_prev(key, true))
    }

    /// Moves forward by up to `count` entries without reading those between, and returns by how many: 0 unless a view alone has these
    /// entries. Only at an entry, and at one afterwards unless it fails.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64> {
        match self {
            Self::Merge(_) => Ok(0),
            Self::View(cursor) => cursor.skip(count),
        }
    }

    /// The merge, if it made the last movement.
    #[inline]
    pub(super) fn merge(&self) -> Option<&Visible> {
        match self {
            Self::Merge(cursor) => Some(cursor),
            Self::View(cursor) => cursor.merge_in_use(),
        }
    }
}

/// Deleted keys of memtables that a movement passes before it continues with the merge.
const DELETED_KEYS_MAX: u32 = 16;

/// The cursor that made the last movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    View,
    /// At an entry of a memtable, after a movement forward or backward.
    Memtable {
        is_forward: bool,
    },
    /// Until the next seek.
    Merge,
    /// Permanently: the view is damaged.
    MergeOnly,
}

/// A scan whose tables are all covered by one view.
pub(super) struct ScanOfView {
    source: Arc<ScanSource>,
    view: ViewScan<ViewRuns>,
    gap: MemtableGap,
    mode: Mode,
    /// The view is at an entry of the range within the gap, or a memtable at one of the range.
    is_valid: bool,
    /// Created when it is first needed.
    merge: Option<Box<Visible>>,
}

impl ScanOfView {
    fn new(source: &Arc<ScanSource>, selected: &SelectedView) -> Self {
        let view = &selected.bound.view;
        let runs = ViewRuns::new(Arc::<ScanSource>::clone(source), selected.first_run, view.runs().len());
        Self {
            view: ViewScan::new(ViewCursor::over_named(view, runs), source.sequence()),
            source: Arc::clone(source),
            gap: MemtableGap::new(source.read_state()),
            mode: Mode::View,
            is_valid: false,
            merge: None,
        }
    }

    fn merge(&mut self) -> &mut Visible {
        self.merge.get_or_insert_with(|| Box::new(self.source.merged_cursor()))
    }

    /// Seeks in the view, or in the merge if the view is damaged.
    fn seek_with(
        &mut self,
        in_view: impl FnOnce(&mut Self) -> Result<()>,
        in_merge: impl FnOnce(&mut Visible) -> Result<()>,
    ) -> Result<()> {
        self.is_valid = false;
        if self.mode != Mode::MergeOnly {
            self.mode = Mode::View;
            match in_view(self) {
                Ok(()) => return Ok(()),
                Err(error) => self.leave_damaged(error)?,
            }
        }
        in_merge(self.merge())
    }

    /// Leaves a damaged view; another error is returned.
    fn leave_damaged(&mut self, error: Error) -> Result<()> {
        let path = self.view.entry().view().path();
        if !matches!(&error, Error::Corruption(found) if found.file == path) {
            return Err(error);
        }
        self.mode = Mode::MergeOnly;
        self.source.report_damaged_only_view(&error);
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.seek_with(Self::seek_first_in_view, Visible::seek_first)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_with(Self::seek_last_in_view, Visible::seek_last)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let in_view = |scan: &mut Self| {
            let range = &scan.source.range;
            if range.is_below(key) {
                return scan.seek_first_in_view();
            }
            if range.is_above(key) || range.is_empty() {
                return Ok(());
            }
            scan.gap.begin_forward(Some((key, true)))?;
            scan.view.seek(key)?;
            scan.end_forward()
        };
        self.seek_with(in_view, |merge| merge.seek(key))
    }

    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()> {
        let in_view = |scan: &mut Self| {
            let range = &scan.source.range;
            if range.is_above(key) {
                return scan.seek_last_in_view();
            }
            if range.is_below(key) || !is_inclusive && range.is_at_lower(key) || range.is_empty() {
                return Ok(());
            }
            scan.gap.begin_backward(Some((key, is_inclusive)))?;
            scan.view.seek_for_prev(key, is_inclusive)?;
            scan.end_backward()
        };
        self.seek_with(in_view, |merge| merge.seek_for_prev(key, is_inclusive))
    }

    fn seek_first_in_view(&mut self) -> Result<()> {
        let range = &self.source.range;
        if range.is_empty() {
            return Ok(());
        }
        let from = match &range.lower {
            Bound::Unbounded => None,
            Bound::Included(lower) => Some((lower.as_slice(), true)),
            Bound::Excluded(lower) => Some((lower.as_slice(), false)),
        };
        self.gap.begin_forward(from)?;
        match from {
            None => self.view.seek_first()?,
            Some((lower, _)) => self.view.seek(lower)?,
        }
        if self.view.is_valid() && range.is_below(self.view.entry().key()) {
            // It is at the excluded bound.
            self.view.next()?;
        }
        self.end_forward()
    }

    fn seek_last_in_view(&mut self) -> Result<()> {
        let range = &self.source.range;
        if range.is_empty() {
            return Ok(());
        }
        let from = match &range.upper {
            Bound::Unbounded => None,
            Bound::Included(upper) => Some((upper.as_slice(), true)),
            Bound::Excluded(upper) => Some((upper.as_slice(), false)),
        };
        self.gap.begin_backward(from)?;
        match from {
            None => self.view.seek_last()?,
            Some((upper, is_inclusive)) => self.view.seek_for_prev(upper, is_inclusive)?,
        }
        self.end_backward()
    }

    /// Ends a forward movement of the view within the gap; `false` if it has met an entry of a memtable.
    #[inline]
    fn is_in_gap_forward(&mut self) -> bool {
        let found = self.view.is_valid().then(|| self.view.entry().key());
        if self.gap.met_forward(found).is_some() {
            return false;
        }
        self.is_valid = found.is_some_and(|key| !self.source.range.is_above(key));
        true
    }

    /// As [`ScanOfView::is_in_gap_forward`], for a backward movement.
    #[inline]
    fn is_in_gap_backward(&mut self) -> bool {
        let found = self.view.is_valid().then(|| self.view.entry().key());
        if self.gap.met_backward(found).is_some() {
            return false;
        }
        self.is_valid = found.is_some_and(|key| !self.source.range.is_below(key));
        true
    }

    fn end_forward(&mut self) -> Result<()> {
        if self.is_in_gap_forward() { Ok(()) } else { self.settle(true) }
    }

    fn end_backward(&mut self) -> Result<()> {
        if self.is_in_gap_backward() { Ok(()) } else { self.settle(false) }
    }

    /// Ends a step of the view that has met an entry of a memtable.
    #[cold]
    fn settle_step(&mut self, is_forward: bool) -> Result<()> {
        self.settle(is_forward).or_else(|error| self.repeat_in_merge(error, is_forward))
    }

    /// Ends a movement at the first visible entry of the view and the memtables.
    #[cold]
    fn settle(&mut self, is_forward: bool) -> Result<()> {
        self.mode = Mode::View;
        let mut deleted_count = 0;
        loop {
            let is_outside = |key: &[u8]| match is_forward {
                true => self.source.range.is_above(key),
                false => self.source.range.is_below(key),
            };
            let found = self.view.is_valid().then(|| self.view.entry().key());
            let met = if is_forward { self.gap.met_forward(found) } else { self.gap.met_backward(found) };
            let Some(key) = met else {
                self.is_valid = found.is_some_and(|key| !is_outside(key));
                return Ok(());
            };
            if is_outside(key) {
                return Ok(());
            }
            let is_in_view = found == Some(key);
            match self.gap.show(is_forward, self.source.sequence())? {
                Shown::Put => {
                    self.mode = Mode::Memtable { is_forward };
                    self.is_valid = true;
                    return Ok(());
                }
                Shown::Deleted => {
                    deleted_count += 1;
                    if deleted_count > DELETED_KEYS_MAX {
                        return self.continue_in_merge(is_forward);
                    }
                    if is_in_view {
                        self.step_view(is_forward)?;
                    }
                }
                // A key that the snapshot sees in no memtable may be that of the view.
                Shown::Hidden => {}
            }
            self.gap.pass(is_forward)?;
        }
    }

    /// Not inlined, so that the usual steps are.
    #[inline(never)]
    fn step_view(&mut self, is_forward: bool) -> Result<()> {
        if is_forward { self.view.next() } else { self.view.prev() }
    }

    #[inline(always)]
    fn next(&mut self) -> Result<()> {
        if self.mode != Mode::View {
            return self.step_elsewhere(true);
        }
        self.is_valid = false;
        // No entry is read to find out that the range ends at its included bound.
        if self.source.range.is_at_upper(self.view.entry().key()) {
            return Ok(());
        }
        self.gap.continue_forward(self.view.entry().key())?;
        match self.view.next() {
            Ok(()) if self.is_in_gap_forward() => Ok(()),
            Ok(()) => self.settle_step(true),
            Err(error) => self.repeat_in_merge(error, true),
        }
    }

    #[inline(always)]
    fn prev(&mut self) -> Result<()> {
        if self.mode != Mode::View {
            return self.step_elsewhere(false);
        }
        self.is_valid = false;
        if self.source.range.is_at_lower(self.view.entry().key()) {
            return Ok(());
        }
        self.gap.continue_backward(self.view.entry().key())?;
        match self.view.prev() {
            Ok(()) if self.is_in_gap_backward() => Ok(()),
            Ok(()) => self.settle_step(false),
            Err(error) => self.repeat_in_merge(error, false),
        }
    }

    /// See [`ScanCursor::skip`]. Ends before the next key of a memtable, and at the last entry of the range.
    fn skip(&mut self, count: u64) -> Result<u64> {
        if self.mode != Mode::View {
            return Ok(0);
        }
        let last = self.view.entry().position();
        self.is_valid = false;
        self.gap.continue_forward(self.view.entry().key())?;
        let range = self.source.range.upper.as_ref().map(Vec::as_slice);
        let upper = match (self.gap.upper(), range) {
            (Some(key), Bound::Included(upper) | Bound::Excluded(upper)) if upper < key => range,
            (Some(key), _) => Bound::Excluded(key),
            (None, _) => range,
        };
        match self.view.skip_within(count, upper) {
            Ok(skipped) => {
                self.is_valid = true;
                Ok(skipped)
            }
            Err(error) => {
                self.leave_damaged(error)?;
                let (key, _) = self.view.entry_at(last)?;
                self.merge().seek(&key)?;
                Ok(0)
            }
        }
    }

    /// A step that does not begin at an entry of the view.
    #[cold]
    fn step_elsewhere(&mut self, is_forward: bool) -> Result<()> {
        let Mode::Memtable { is_forward: was_forward } = self.mode else {
            let merge = self.merge();
            return if is_forward { merge.next() } else { merge.prev() };
        };
        if is_forward == was_forward {
            return self.pass_memtable(is_forward);
        }
        // The view is on the other side of the entry.
        let key = self.gap.entry().0.to_vec();
        if !is_forward {
            return self.seek_for_prev(&key, false);
        }
        // A merge takes over if the view turns out to be damaged. Otherwise the scan is at the entry of the memtable again.
        self.seek(&key)?;
        let is_there = self.is_valid() && self.key() == key;
        if is_there { self.step_elsewhere(true) } else { Ok(()) }
    }

    /// A step from an entry of a memtable in the direction of the last one.
    fn pass_memtable(&mut self, is_forward: bool) -> Result<()> {
        self.is_valid = false;
        let range = &self.source.range;
        let (key, _) = self.gap.entry();
        if if is_forward { range.is_at_upper(key) } else { range.is_at_lower(key) } {
            return Ok(());
        }
        let is_in_view = self.view.is_valid() && self.view.entry().key() == key;
        let key = self.gap.pass(is_forward)?;
        let passed = if is_in_view { self.step_view(is_forward) } else { Ok(()) };
        match passed.and_then(|()| self.settle(is_forward)) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.leave_damaged(error)?;
                self.merge_behind(&key, is_forward)
            }
        }
    }

    /// Continues a movement that has met deleted keys of memtables: the view has no entry before the next one.
    fn continue_in_merge(&mut self, is_forward: bool) -> Result<()> {
        self.mode = Mode::Merge;
        let met = if is_forward { self.gap.met_forward(None) } else { self.gap.met_backward(None) };
        let key = met.unwrap_or_default().to_vec();
        let merge = self.merge();
        if is_forward { merge.seek(&key) } else { merge.seek_for_prev(&key, true) }
    }

    /// Repeats a step that failed because the view is damaged.
    #[cold]
    fn repeat_in_merge(&mut self, error: Error, is_forward: bool) -> Result<()> {
        self.leave_damaged(error)?;
        let last = self.view.entry().position();
        let (key, _) = self.view.entry_at(last)?;
        self.merge_behind(&key, is_forward)
    }

    /// Moves the merge to the entry behind a key in a direction.
    fn merge_behind(&mut self, key: &[u8], is_forward: bool) -> Result<()> {
        let merge = self.merge();
        if !is_forward {
            return merge.seek_for_prev(key, false);
        }
        merge.seek(key)?;
        if merge.is_valid() && merge.key() == key { merge.next() } else { Ok(()) }
    }

    /// The merge, if it made the last movement.
    #[inline]
    fn merge_in_use(&self) -> Option<&Visible> {
        self.merge.as_deref().filter(|_| matches!(self.mode, Mode::Merge | Mode::MergeOnly))
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.merge_in_use().map_or(self.is_valid, |merge| merge.is_valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.mode == Mode::View { self.view.entry().key() } else { self.entry_elsewhere().0 }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.mode == Mode::View { self.view.entry().value() } else { self.entry_elsewhere().1 }
    }

    /// Key and value of an entry that is not the view's.
    #[cold]
    fn entry_elsewhere(&self) -> (&[u8], &[u8]) {
        match (&self.merge, self.mode) {
            (_, Mode::Memtable { .. }) => self.gap.entry(),
            (Some(merge), _) => (merge.key(), merge.value()),
            (None, _) => (&[], &[]),
        }
    }

    fn value_slice(&self) -> Slice {
        match self.mode {
            Mode::View => self.view.entry().value_slice(),
            Mode::Memtable { .. } => self.gap.value_slice(),
            Mode::Merge | Mode::MergeOnly => {
                self.merge.as_ref().map_or_else(|| Slice::from([].as_slice()), |merge| merge.value_slice())
            }
        }
    }
}
