//! The sources of a scan as one type, so that the merge calls them without dynamic dispatch.

use std::{mem, ops::Bound};

use tamis_filter::{Direction, KeyRange, RangeProbe};

use super::{
    Cursor, SeekHint, SkipTarget, coverage::CoveredSpan, filter_outcome::FilterOutcome, run::RunCursor,
    run_tables::RunTables, view_source::ViewSource,
};
use crate::{
    error::Result,
    key::{AFTER_ALL, BoundKind, Kind, Sequence},
    memtable::MemtableCursor,
    slice::Slice,
    table::cursor::TableCursor,
    version::handle::Table,
};

/// One sorted source of a scan.
pub(crate) enum Source {
    Memtable(MemtableCursor),
    /// The writes of the reader's own transaction: those up to this number are visible, which is above those that seeks name.
    Own(MemtableCursor, Sequence),
    Run(RunCursor<RunTables>),
    /// A run whose table a filter admitted, until it is known whether the filter was right.
    FilterChecked(RunCursor<RunTables>, Option<Box<FilterOutcome>>),
    /// All runs that a view covers. Boxed, so that the other sources stay small.
    View(Box<ViewSource>),
    /// The place of a view that is lent; it has no entry.
    Lent,
}

/// A cursor that is lent to a stretch.
pub(super) enum Lent {
    /// The open table of a run, with its position there.
    Table(usize, Box<TableCursor>),
    View(Box<ViewSource>),
}

impl Source {
    /// The table of a run that was opened last.
    pub(crate) fn open_table(&self) -> Option<&Table> {
        match self {
            Self::Run(cursor) | Self::FilterChecked(cursor, _) => cursor.open_table(),
            Self::Memtable(_) | Self::Own(..) | Self::View(_) | Self::Lent => None,
        }
    }

    pub(super) const fn is_view(&self) -> bool {
        matches!(self, Self::View(_))
    }

    /// The cursor of a run that is at an entry of a block with only entries that the snapshot sees, each the only version of its key in the
    /// run.
    #[inline]
    pub(super) fn plain_block(&self, snapshot: Sequence) -> Option<&TableCursor> {
        match self {
            Self::Run(run) | Self::FilterChecked(run, _) if run.is_only_version(snapshot) => {
                run.open_cursor()
            }
            _ => None,
        }
    }

    /// Takes the cursor away that moves within a stretch, until [`Source::give_back`].
    pub(super) fn lend(&mut self) -> Option<Lent> {
        match self {
            Self::Run(run) | Self::FilterChecked(run, _) => {
                run.lend().map(|(table_index, cursor)| Lent::Table(table_index, cursor))
            }
            Self::View(_) => match mem::replace(self, Self::Lent) {
                Self::View(view) => Some(Lent::View(view)),
                _ => None,
            },
            Self::Memtable(_) | Self::Own(..) | Self::Lent => None,
        }
    }

    pub(super) fn give_back(&mut self, lent: Lent) {
        match lent {
            Lent::View(view) => *self = Self::View(view),
            Lent::Table(table_index, cursor) => {
                if let Self::Run(run) | Self::FilterChecked(run, _) = self {
                    run.give_back((table_index, cursor));
                }
            }
        }
    }

    /// Lets the outcome of a filter know the hint for a seek, which may begin at a candidate of the filter.
    fn note_hint(&mut self, needed: &KeyRange<'_>, direction: Direction, (hint, bound): (SeekHint, &[u8])) {
        if let Self::FilterChecked(_, Some(outcome)) = self {
            outcome.note_hint(needed, direction, (hint, bound));
        }
    }

    /// Records the outcome of a filter, if a seek decides it.
    fn record_outcome(&mut self, is_decided: impl FnOnce(&FilterOutcome, Option<&[u8]>) -> bool) {
        if let Self::FilterChecked(cursor, open) = self
            && let Some(outcome) = open
            && is_decided(outcome, cursor.is_valid().then(|| cursor.key()))
        {
            *open = None;
        }
    }
}

/// Forwards a call to the cursor of the variant.
macro_rules! either {
    ($self:expr, $cursor:ident => $call:expr, lent => $none:expr) => {
        match $self {
            Source::Lent => $none,
            Source::Memtable($cursor) | Source::Own($cursor, _) => $call,
            Source::Run($cursor) | Source::FilterChecked($cursor, _) => $call,
            Source::View($cursor) => $call,
        }
    };
}

impl Cursor for Source {
    fn seek_first(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_first(), lent => Ok(()))?;
        self.record_outcome(|outcome, found| outcome.record_seek_to_end(found));
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_last(), lent => Ok(()))?;
        self.record_outcome(|outcome, found| outcome.record_seek_to_end(found));
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        if let Self::Own(cursor, newest) = self {
            return cursor.seek(key, if sequence == AFTER_ALL { AFTER_ALL } else { *newest });
        }
        either!(self, cursor => cursor.seek(key, sequence), lent => Ok(()))?;
        self.record_outcome(|outcome, found| outcome.record_seek(key, found));
        Ok(())
    }

    fn prepare_seek(
        &mut self,
        needed: &RangeProbe<'_>,
        sequence: Sequence,
        bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        let hint =
            either!(self, cursor => cursor.prepare_seek(needed, sequence, bound), lent => Ok(SeekHint::End))?;
        self.note_hint(needed.range(), Direction::Forward, (hint, bound));
        Ok(hint)
    }

    fn forget_prepared(&mut self) {
        either!(self, cursor => cursor.forget_prepared(), lent => ());
    }

    fn prepare_seek_first(&mut self, bound: &mut Vec<u8>) -> SeekHint {
        either!(self, cursor => cursor.prepare_seek_first(bound), lent => SeekHint::End)
    }

    fn prepare_seek_for_prev(&mut self, needed: &RangeProbe<'_>, bound: &mut Vec<u8>) -> Result<SeekHint> {
        let hint =
            either!(self, cursor => cursor.prepare_seek_for_prev(needed, bound), lent => Ok(SeekHint::End))?;
        self.note_hint(needed.range(), Direction::Backward, (hint, bound));
        Ok(hint)
    }

    fn prepare_seek_last(&mut self, bound: &mut Vec<u8>) -> SeekHint {
        either!(self, cursor => cursor.prepare_seek_last(bound), lent => SeekHint::End)
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        either!(self, cursor => cursor.seek_for_prev(key, kind), lent => Ok(()))?;
        self.record_outcome(|outcome, found| outcome.record_seek_for_prev(key, found));
        Ok(())
    }

    fn skip_covered(&mut self, span: &CoveredSpan, target: SkipTarget) -> Result<bool> {
        match self {
            Self::View(view) => view.skip_covered(span, target),
            Self::Memtable(_) | Self::Own(..) | Self::Run(_) | Self::FilterChecked(..) | Self::Lent => {
                Ok(false)
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        either!(self, cursor => cursor.next(), lent => Ok(()))
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        either!(self, cursor => cursor.prev(), lent => Ok(()))
    }

    #[inline]
    fn is_only_version(&self, snapshot: Sequence) -> bool {
        either!(self, cursor => cursor.is_only_version(snapshot), lent => false)
    }

    fn skip(&mut self, count: u64, upper: Bound<&[u8]>) -> Result<u64> {
        match self {
            Self::View(view) => view.skip(count, upper),
            Self::Memtable(_) | Self::Own(..) | Self::Run(_) | Self::FilterChecked(..) | Self::Lent => Ok(0),
        }
    }

    #[inline]
    fn is_valid(&self) -> bool {
        either!(self, cursor => cursor.is_valid(), lent => false)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        either!(self, cursor => cursor.key(), lent => &[])
    }

    #[inline]
    fn sequence(&self) -> Sequence {
        either!(self, cursor => cursor.sequence(), lent => 0)
    }

    #[inline]
    fn kind(&self) -> Kind {
        either!(self, cursor => cursor.kind(), lent => Kind::Tombstone)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        either!(self, cursor => cursor.value(), lent => &[])
    }

    fn value_slice(&self) -> Slice {
        either!(self, cursor => cursor.value_slice(), lent => Slice::from(&[][..]))
    }
}
