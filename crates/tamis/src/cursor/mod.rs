//! Cursors: the one interface of memtables, tables, runs and merges for reading entries in order.
//!
//! # Contract
//!
//! 1. Order: that of [`crate::key::compare_entries`] (key ascending, then newest first). A cursor returns all versions;
//!    `visible.rs` selects the visible one.
//! 2. A new cursor is not valid. Each `seek*` makes it valid at an entry, or not valid if there is none. `next` and `prev`
//!    may be called only while it is valid; past an end they make it not valid, and a `seek*` is needed.
//! 3. `key`, `sequence`, `kind` and `value` may be called only while it is valid. The bytes live until the next call that
//!    moves the cursor.
//! 4. After an error the cursor is not valid; another `seek*` is allowed.
//! 5. A cursor owns all it needs (blocks, memtable, table): it has no lifetime and may move to another thread.
//! 6. Cost: a seek in a table reads at most one data block, or two if the target is between blocks; `next` and `prev` read
//!    a block when they leave one. Memtables read none.

pub(crate) mod bounded;
pub(crate) mod coverage;
pub(crate) mod filter_outcome;
pub(crate) mod merge;
mod passed;
pub(crate) mod run;
pub(crate) mod run_tables;
pub(crate) mod source;
pub(crate) mod stretch;
pub(crate) mod view_runs;
pub(crate) mod view_source;
pub(crate) mod visible;

use std::ops::Bound;

use tamis_filter::{Direction, RangeProbe};

use self::coverage::CoveredSpan;
use crate::{
    error::Result,
    key::{BoundKind, Kind, Sequence},
};

/// Versions of one key that are stepped over before a search for the next key.
pub(crate) const STEP_COUNT_MAX: usize = 8;

/// The next position of a cursor after a span of deleted entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkipTarget {
    pub(crate) direction: Direction,
    /// No entry after the span is needed.
    pub(crate) is_last: bool,
}

/// Knowledge about a seek before it reads a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeekHint {
    Unknown,
    /// There is no entry that the reader needs.
    End,
    /// Forward: the entry's key is the bound or above it. Backward: it is the bound or below it.
    Bound,
    /// Backward: the entry's key is below the bound.
    Below,
}

/// See the head of this file.
pub(crate) trait Cursor: Send {
    fn seek_first(&mut self) -> Result<()>;
    fn seek_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after (`key`, `sequence`): with [`crate::key::SEQUENCE_MAX`], the newest version of
    /// the first key at or after `key`.
    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()>;
    /// Announces a `seek` to the lower bound of `needed`, which is a key: the reader needs no entry outside of this range. If a bound
    /// of the entry is known without a read, stores this key in `bound`; otherwise prefetches the bytes that the seek will read.
    /// The cursor is not valid afterwards.
    fn prepare_seek(
        &mut self,
        _needed: &RangeProbe<'_>,
        _sequence: Sequence,
        _bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        Ok(SeekHint::Unknown)
    }
    /// Another seek than the prepared one follows.
    fn forget_prepared(&mut self) {}
    /// As [`Cursor::prepare_seek`], for `seek_first`.
    fn prepare_seek_first(&mut self, _bound: &mut Vec<u8>) -> SeekHint {
        SeekHint::Unknown
    }
    /// As [`Cursor::prepare_seek`], for `seek_for_prev` to the upper bound of `needed`, which is a key.
    fn prepare_seek_for_prev(&mut self, _needed: &RangeProbe<'_>, _bound: &mut Vec<u8>) -> Result<SeekHint> {
        Ok(SeekHint::Unknown)
    }
    /// As [`Cursor::prepare_seek`], for `seek_last`.
    fn prepare_seek_last(&mut self, _bound: &mut Vec<u8>) -> SeekHint {
        SeekHint::Unknown
    }
    /// Moves to the last entry (oldest version) of the last key below `key`, or at `key` if it is included.
    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()>;
    /// Moves past entries that a range tombstone deletes, from an entry within the span; `false` if that is not possible
    /// without steps; then the cursor did not move.
    fn skip_covered(&mut self, _span: &CoveredSpan, _target: SkipTarget) -> Result<bool> {
        Ok(false)
    }
    fn next(&mut self) -> Result<()>;
    fn prev(&mut self) -> Result<()>;
    /// Moves to the next entry in a direction.
    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        match direction {
            Direction::Forward => self.next(),
            Direction::Backward => self.prev(),
        }
    }
    /// Whether it is certain that a reader at a snapshot sees the current version of the key, and that no other version is returned. Only
    /// while it is valid.
    fn is_only_version(&self, _snapshot: Sequence) -> bool {
        false
    }
    /// Whether another cursor may have versions of the current key, because it is one of the first or last keys of this one.
    #[inline]
    fn is_at_edge(&self) -> bool {
        true
    }
    /// Moves forward by up to `count` visible entries, at most to the last one within `upper`, and returns by how many: 0 unless the source
    /// knows which entries are visible. None of those between is read. Only at an entry that the reader's snapshot sees.
    fn skip(&mut self, _count: u64, _upper: Bound<&[u8]>) -> Result<u64> {
        Ok(0)
    }
    fn is_valid(&self) -> bool;
    fn key(&self) -> &[u8];
    fn sequence(&self) -> Sequence;
    fn kind(&self) -> Kind;
    fn value(&self) -> &[u8];
    /// The value as an owned slice, copied only if the source can't share its bytes (memtables).
    fn value_slice(&self) -> crate::slice::Slice;
}

#[cfg(test)]
mod tests;
