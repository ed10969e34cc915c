//! A sorted view as one source of a scan, instead of the runs that it covers.
//!
//! It returns at most one version of each key: the newest one that the snapshot sees, which hides the older ones in every merge. Only behind an operand the
//! next older one follows, forward.
//! Tombstones are left out, too, if no source of the scan is older than all covered runs. So both are skipped without reading them.
//!
//! A view that turns out to be damaged never fails a read: the source continues as a merge of the covered runs, from the same place.

use std::{ops::Bound, sync::Arc};

use tamis_filter::Direction;

use super::{
    Cursor, SkipTarget,
    coverage::CoveredSpan,
    merge::MergeCursor,
    run::RunCursor,
    run_tables::{RunTables, ScanContext},
    view_runs::ViewRuns,
};
use crate::{
    error::{Error, Result},
    key::{BoundKind, Kind, Sequence},
    slice::Slice,
    version::bound_view::BoundView,
    view::{cursor::ViewCursor, scan::ViewScan},
};

/// The view that a source reads.
pub(crate) struct ViewInput {
    pub(crate) scan: Arc<dyn ScanContext>,
    pub(crate) bound: Arc<BoundView>,
    /// The number of its first run in the scan; the others follow in the order of the view.
    pub(crate) first_run: usize,
    /// The rank of the newest run of its partition ([`super::coverage`]).
    pub(crate) first_rank: usize,
    pub(crate) snapshot: Sequence,
}

/// See the head of this file, and [`super`] for the contract.
pub(crate) struct ViewSource {
    input: ViewInput,
    reads: Reads,
}

#[expect(clippy::large_enum_variant, reason = "a scan has one of them, and its source is boxed")]
enum Reads {
    View(ViewScan<ViewRuns>),
    Merge(MergeCursor<RunCursor<RunTables>>),
}

impl ViewSource {
    pub(crate) fn new(input: ViewInput) -> Self {
        let BoundView { view, hides_tombstones, .. } = &*input.bound;
        let runs = ViewRuns::new(Arc::clone(&input.scan), input.first_run, view.runs().len());
        let cursor = ViewCursor::over_named(view, runs);
        let scan = ViewScan::new(cursor, input.snapshot);
        let reads = Reads::View(if *hides_tombstones { scan } else { scan.with_tombstones() });
        Self { input, reads }
    }

    /// Seeks in the view, or in the merge if the view is damaged.
    fn seek_with(
        &mut self,
        in_view: impl FnOnce(&mut ViewScan<ViewRuns>) -> Result<()>,
        in_merge: impl FnOnce(&mut MergeCursor<RunCursor<RunTables>>) -> Result<()>,
    ) -> Result<()> {
        if let Reads::View(scan) = &mut self.reads {
            match in_view(scan) {
                Err(error) if self.input.is_damage(&error) => self.reads = self.input.merge_instead(&error),
                other => return other,
            }
        }
        match &mut self.reads {
            Reads::Merge(merge) => in_merge(merge),
            Reads::View(_) => Ok(()),
        }
    }

    fn step_within(&mut self, direction: Direction) -> Result<()> {
        let scan = match &mut self.reads {
            Reads::View(scan) => scan,
            Reads::Merge(merge) => return merge.step(direction),
        };
        let position = scan.entry().position();
        match scan.step(direction) {
            Err(error) if self.input.is_damage(&error) => self.step_in_merge(position, &error, direction),
            other => other,
        }
    }

    /// Whether it returns visible entries only, and not all versions of the runs of a damaged view.
    #[inline]
    pub(super) const fn shows_visible(&self) -> bool {
        matches!(self.reads, Reads::View(_))
    }

    /// Continues as a merge of the runs, at the key next to the one at this position in the view, which is damaged.
    fn step_in_merge(&mut self, position: (usize, u64), error: &Error, direction: Direction) -> Result<()> {
        let (key, sequence, kind) = self.seek_in_merge(position, error)?;
        let Reads::Merge(merge) = &mut self.reads else { return Ok(()) };
        if direction == Direction::Forward && kind == Kind::Operand {
            // The older versions of the key follow.
            return merge.seek(&key, sequence.saturating_sub(1));
        }
        if direction == Direction::Backward {
            return merge.seek_for_prev(&key, BoundKind::Excluded);
        }
        merge.seek(&key, 0)?;
        while merge.is_valid() && merge.key() == key {
            merge.next()?;
        }
        Ok(())
    }

    /// Continues as a merge of the runs, at the entry with this position in the view, which is damaged. Returns the entry.
    fn seek_in_merge(&mut self, position: (usize, u64), error: &Error) -> Result<(Vec<u8>, Sequence, Kind)> {
        let Reads::View(scan) = &mut self.reads else { return Ok((Vec::new(), 0, Kind::Put)) };
        let (key, sequence, kind) = scan.entry_at(position)?;
        self.reads = self.input.merge_instead(error);
        if let Reads::Merge(merge) = &mut self.reads {
            merge.seek(&key, sequence)?;
        }
        Ok((key, sequence, kind))
    }
}

impl ViewInput {
    /// The ranks of the runs, in the order of the view.
    fn ranks(&self) -> impl Iterator<Item = usize> {
        self.bound.ranks.iter().map(|rank| self.first_rank + rank)
    }

    fn runs(&self) -> impl Iterator<Item = RunTables> {
        let numbers = self.first_run..self.first_run + self.bound.runs.len();
        numbers.map(|run| RunTables::whole_run_of_scan(Arc::clone(&self.scan), run))
    }

    fn is_damage(&self, error: &Error) -> bool {
        matches!(error, Error::Corruption(found) if found.file == self.bound.view.path())
    }

    fn merge_instead(&self, error: &Error) -> Reads {
        self.scan.record_damaged_view(error);
        let mut runs: Vec<_> = self.ranks().zip(self.runs().map(RunCursor::new)).collect();
        runs.sort_by_key(|(rank, _)| *rank);
        Reads::Merge(MergeCursor::ranked(runs))
    }
}

/// Forwards a call to the cursor in use.
macro_rules! either {
    ($self:expr, $cursor:ident => $call:expr) => {
        match &$self.reads {
            Reads::View(scan) => {
                let $cursor = scan.entry();
                $call
            }
            Reads::Merge($cursor) => $call,
        }
    };
}

impl Cursor for ViewSource {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_with(ViewScan::seek_first, Cursor::seek_first)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_with(ViewScan::seek_last, Cursor::seek_last)
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let in_view = |scan: &mut ViewScan<ViewRuns>| {
            scan.seek(key)?;
            let is_newer = scan.is_valid() && scan.entry().sequence() > sequence && scan.entry().key() == key;
            if is_newer { scan.next() } else { Ok(()) }
        };
        self.seek_with(in_view, |merge| merge.seek(key, sequence))
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        self.seek_with(|scan| scan.seek_for_prev(key, kind), |merge| merge.seek_for_prev(key, kind))
    }

    /// Without steps: the entries of runs that are older than the tombstone.
    fn skip_covered(&mut self, span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
        let scan = match &mut self.reads {
            Reads::View(scan) => scan,
            Reads::Merge(merge) => return merge.skip_covered(span, target),
        };
        if scan.entry().sequence() >= span.sequence {
            return Ok(false);
        }
        let ranks = self.input.ranks().enumerate();
        let newer: Vec<usize> = ranks.filter(|&(_, rank)| rank <= span.rank).map(|(run, _)| run).collect();
        let end = match target.direction {
            Direction::Forward => &span.upper,
            Direction::Backward => &span.lower,
        };
        let end = Some(end.as_slice()).filter(|end| !target.is_last && !end.is_empty());
        let position = scan.entry().position();
        match scan.skip_older(&newer, end, target.direction) {
            Err(error) if self.input.is_damage(&error) => {
                self.step_in_merge(position, &error, target.direction)?
            }
            other => other?,
        }
        Ok(true)
    }

    fn next(&mut self) -> Result<()> {
        self.step_within(Direction::Forward)
    }

    fn prev(&mut self) -> Result<()> {
        self.step_within(Direction::Backward)
    }

    fn is_only_version(&self, _: Sequence) -> bool {
        self.shows_visible()
    }

    fn skip(&mut self, count: u64, upper: Bound<&[u8]>) -> Result<u64> {
        let Reads::View(scan) = &mut self.reads else { return Ok(0) };
        let position = scan.entry().position();
        match scan.skip_within(count, upper) {
            Err(error) if self.input.is_damage(&error) => self.seek_in_merge(position, &error).map(|_| 0),
            other => other,
        }
    }

    fn is_valid(&self) -> bool {
        either!(self, cursor => cursor.is_valid())
    }

    fn key(&self) -> &[u8] {
        either!(self, cursor => cursor.key())
    }

    fn sequence(&self) -> Sequence {
        either!(self, cursor => cursor.sequence())
    }

    fn kind(&self) -> Kind {
        either!(self, cursor => cursor.kind())
    }

    fn value(&self) -> &[u8] {
        either!(self, cursor => cursor.value())
    }

    fn value_slice(&self) -> Slice {
        either!(self, cursor => cursor.value_slice())
    }
}
