//! A positioned reader over entries in order: the one interface of memtables, tables, runs and merges.
//!
//! # Contract
//!
//! 1. Order: that of [`crate::key::compare_entries`] (key ascending, then newest first). All versions are seen;
//!    choosing the visible one is the work of `visible.rs`.
//! 2. A new cursor is not valid. Each `seek*` makes it valid at an entry, or not valid when there is none. `next` and
//!    `prev` may be called only while valid; at either end they make the cursor not valid, and a `seek*` is needed.
//! 3. `key`, `sequence`, `kind` and `value` may be called only while valid; the bytes live until the next call that
//!    moves the cursor.
//! 4. After an error the cursor is not valid; a later `seek*` may be tried.
//! 5. A cursor holds all it needs (blocks, memtable, table): it has no lifetime and may move to another thread.
//! 6. Cost: a seek in a table reads at most one data block, or two where the target lies between blocks; `next` and
//!    `prev` read one block when they leave one. Memtables read none.

pub(crate) mod bounded;
pub(crate) mod filter_outcome;
pub(crate) mod merge;
pub(crate) mod run;
pub(crate) mod run_tables;
pub(crate) mod source;
pub(crate) mod visible;

use crate::{
    error::Result,
    key::{Kind, Sequence},
};

/// See the head of this file.
pub(crate) trait Cursor: Send {
    fn seek_first(&mut self) -> Result<()>;
    fn seek_last(&mut self) -> Result<()>;
    /// To the first entry at or after (`key`, `sequence`): with [`crate::key::SEQUENCE_MAX`] the newest version of the
    /// first key at or after `key`.
    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()>;
    /// Tells that `seek` comes next, with the same place: brings near what it will look at. The cursor is not valid then.
    fn prefetch_seek(&mut self, _key: &[u8], _sequence: Sequence) -> Result<()> {
        Ok(())
    }
    /// To the last entry (oldest version) of the last key below `key`, or at `key` too where `is_inclusive`.
    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()>;
    fn next(&mut self) -> Result<()>;
    fn prev(&mut self) -> Result<()>;
    fn is_valid(&self) -> bool;
    fn key(&self) -> &[u8];
    fn sequence(&self) -> Sequence;
    fn kind(&self) -> Kind;
    fn value(&self) -> &[u8];
    /// The value with its own hold on the bytes, copied only where the source can't share them (memtables).
    fn value_slice(&self) -> crate::slice::Slice;
}

#[cfg(test)]
mod tests;
