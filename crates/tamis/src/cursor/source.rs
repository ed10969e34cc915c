//! The sources of a scan behind one type, so that the merge calls them without indirection.

use super::{Cursor, filter_outcome::FilterOutcome, run::RunCursor, run_tables::RunTables};
use crate::{
    error::Result,
    key::{Kind, Sequence},
    memtable::MemtableCursor,
    slice::Slice,
};

/// One sorted source of a scan.
pub(crate) enum Source {
    Memtable(MemtableCursor),
    Run(RunCursor<RunTables>),
    /// A run whose table a filter admitted for the scan's range, until it is known whether rightly.
    FilterChecked(RunCursor<RunTables>, Option<Box<FilterOutcome>>),
}

impl Source {
    /// Lets a outcome that is still open judge a seek.
    fn judge(&mut self, is_settled: impl FnOnce(&FilterOutcome, Option<&[u8]>) -> bool) {
        if let Self::FilterChecked(cursor, open) = self
            && let Some(outcome) = open
            && is_settled(outcome, cursor.is_valid().then(|| cursor.key()))
        {
            *open = None;
        }
    }
}

/// Hands a call to the cursor that is there.
macro_rules! either {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memtable($cursor) => $call,
            Source::Run($cursor) | Source::FilterChecked($cursor, _) => $call,
        }
    };
}

impl Cursor for Source {
    fn seek_first(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_first())?;
        self.judge(|outcome, found| outcome.is_settled(true, found));
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_last())?;
        self.judge(|outcome, found| outcome.is_settled(true, found));
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        either!(self, cursor => cursor.seek(key, sequence))?;
        self.judge(|outcome, found| outcome.is_settled_forward(key, found));
        Ok(())
    }

    fn prefetch_seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        either!(self, cursor => cursor.prefetch_seek(key, sequence))
    }

    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()> {
        either!(self, cursor => cursor.seek_for_prev(key, is_inclusive))?;
        self.judge(|outcome, found| outcome.is_settled_backward(key, found));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        either!(self, cursor => cursor.next())
    }

    fn prev(&mut self) -> Result<()> {
        either!(self, cursor => cursor.prev())
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
