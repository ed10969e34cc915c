//! One cursor over the tables of a run, which are in key order. Only the current table is open.
//!
//! A seek finds its table by the smallest and largest keys of the tables, which are in memory: a table that ends before the
//! target (backward: that begins after it) is never opened. A step past the end of a table opens the next one.
//!
//! The versions of a key may be in neighbouring tables: if a table has no entry at or after the target, the seek continues
//! in the next one.

use tamis_filter::{RangeProbe, Upper};

use super::{Cursor, SeekHint};
use crate::{
    error::Result,
    key::{BoundKind, Kind, Sequence},
    slice::Slice,
};

/// The tables of a run: in key order, and disjoint except for versions of one key.
pub(crate) trait RunSource: Send {
    type Cursor: Cursor;

    fn table_count(&self) -> usize;
    /// The smallest user key of a table (`table_index` below the count), without a read.
    fn smallest_key(&self, table_index: usize) -> &[u8];
    /// The largest user key of a table (`table_index` below the count), without a read.
    fn largest_key(&self, table_index: usize) -> &[u8];
    fn open_cursor(&self, table_index: usize) -> Result<Box<Self::Cursor>>;

    /// The number of tables that end before `key`.
    fn position(&self, key: &[u8]) -> usize {
        partition_point(self.table_count(), |table_index| self.largest_key(table_index) < key)
    }

    /// Makes a cursor one of another table. After an error it is not valid.
    fn change_cursor(&self, cursor: &mut Self::Cursor, table_index: usize) -> Result<()> {
        *cursor = *self.open_cursor(table_index)?;
        Ok(())
    }
}

/// How many numbers below `count` satisfy a predicate that is true up to some number.
fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut lower, mut upper) = (0, count);
    while lower < upper {
        let middle = lower.midpoint(upper);
        if is_before(middle) {
            lower = middle + 1;
        } else {
            upper = middle;
        }
    }
    lower
}

/// See the head of this file, and [`super`] for the contract.
pub(crate) struct RunCursor<S: RunSource> {
    source: S,
    /// The open table and its position in the run. Boxed: a list of cursors with this part inline would be larger than what
    /// allocators cache per thread, and threads that scan at once would contend.
    open: Option<(usize, Box<S::Cursor>)>,
}

impl<S: RunSource> RunCursor<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, open: None }
    }

    pub(crate) const fn source(&self) -> &S {
        &self.source
    }

    /// The position of the open table.
    pub(super) fn open_index(&self) -> Option<usize> {
        self.open.as_ref().map(|(table_index, _)| *table_index)
    }

    pub(crate) fn open_cursor(&self) -> Option<&S::Cursor> {
        self.open.as_ref().map(|(_, cursor)| &**cursor)
    }

    /// Opens a table, unless it is open.
    fn open(&mut self, table_index: usize) -> Result<&mut S::Cursor> {
        if self.open_index() != Some(table_index) {
            self.change_table(table_index)?;
        }
        Ok(self.open.as_mut().map(|(_, cursor)| &mut **cursor).expect("opened above"))
    }

    fn change_table(&mut self, table_index: usize) -> Result<()> {
        match &mut self.open {
            Some((open_index, cursor)) => {
                if let Err(error) = self.source.change_cursor(cursor, table_index) {
                    self.close();
                    return Err(error);
                }
                *open_index = table_index;
            }
            none => *none = Some((table_index, self.source.open_cursor(table_index)?)),
        }
        Ok(())
    }

    /// Whether a neighbor of a table begins or ends with a key of it.
    #[cold]
    fn shares_key(&self, table_index: usize) -> bool {
        let meet = |before: usize| self.source.largest_key(before) == self.source.smallest_key(before + 1);
        table_index.checked_sub(1).is_some_and(meet)
            || table_index + 1 < self.source.table_count() && meet(table_index)
    }

    /// Opens a table, unless it is open, and seeks in it.
    pub(crate) fn enter(
        &mut self,
        table_index: usize,
        seek: impl FnOnce(&mut S::Cursor) -> Result<()>,
    ) -> Result<()> {
        seek(self.open(table_index)?)
    }

    /// The number of tables that begin before `key`, or at it if it is included.
    fn tables_begun_at(&self, key: &[u8], kind: BoundKind) -> usize {
        partition_point(self.source.table_count(), |table_index| {
            kind.is_within(self.source.smallest_key(table_index), key)
        })
    }

    /// The first entry of a table and those after it.
    fn hint_at(&self, table_index: usize, bound: &mut Vec<u8>) -> SeekHint {
        if table_index >= self.source.table_count() {
            return SeekHint::End;
        }
        bound.extend_from_slice(self.source.smallest_key(table_index));
        SeekHint::Bound
    }

    /// The last entry of the table before `table_index` and those before it.
    fn hint_before(&self, table_index: usize, bound: &mut Vec<u8>) -> SeekHint {
        let Some(previous) = table_index.checked_sub(1) else { return SeekHint::End };
        bound.extend_from_slice(self.source.largest_key(previous));
        SeekHint::Bound
    }

    /// Makes the cursor not valid.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Takes the open table's cursor away, with the position of the table, until [`RunCursor::give_back`].
    pub(super) fn lend(&mut self) -> Option<(usize, Box<S::Cursor>)> {
        self.open.take()
    }

    pub(super) fn give_back(&mut self, open: (usize, Box<S::Cursor>)) {
        self.open = Some(open);
    }

    fn exhausted_table(&self) -> Option<usize> {
        self.open.as_ref().filter(|(_, cursor)| !cursor.is_valid()).map(|(table_index, _)| *table_index)
    }

    /// While the open table is exhausted, opens the next one.
    fn skip_exhausted_tables(&mut self, seek: impl Fn(&mut S::Cursor) -> Result<()>) -> Result<()> {
        while let Some(table_index) = self.exhausted_table() {
            if table_index + 1 >= self.source.table_count() {
                return Ok(());
            }
            self.enter(table_index + 1, &seek)?;
        }
        Ok(())
    }

    /// While the open table is exhausted backward, opens the previous one.
    fn skip_exhausted_tables_backward(&mut self) -> Result<()> {
        while let Some(table_index) = self.exhausted_table() {
            let Some(previous) = table_index.checked_sub(1) else { return Ok(()) };
            self.enter(previous, S::Cursor::seek_last)?;
        }
        Ok(())
    }
}

impl<S: RunSource> Cursor for RunCursor<S> {
    fn seek_first(&mut self) -> Result<()> {
        if self.source.table_count() == 0 {
            return Ok(());
        }
        self.enter(0, S::Cursor::seek_first)?;
        self.skip_exhausted_tables(S::Cursor::seek_first)
    }

    fn seek_last(&mut self) -> Result<()> {
        let Some(last) = self.source.table_count().checked_sub(1) else { return Ok(()) };
        self.enter(last, S::Cursor::seek_last)?;
        self.skip_exhausted_tables_backward()
    }

    fn forget_prepared(&mut self) {
        if let Some((_, cursor)) = &mut self.open {
            cursor.forget_prepared();
        }
    }

    fn prepare_seek_first(&mut self, bound: &mut Vec<u8>) -> SeekHint {
        self.hint_at(0, bound)
    }

    fn prepare_seek_last(&mut self, bound: &mut Vec<u8>) -> SeekHint {
        self.hint_before(self.source.table_count(), bound)
    }

    fn prepare_seek(
        &mut self,
        needed: &RangeProbe<'_>,
        sequence: Sequence,
        bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        let key = needed.range().lower_bytes();
        let table_index = self.source.position(key);
        if table_index == self.source.table_count() || self.source.smallest_key(table_index) > key {
            return Ok(self.hint_at(table_index, bound));
        }
        let hint = self.open(table_index)?.prepare_seek(needed, sequence, bound)?;
        let is_behind = hint == SeekHint::Bound && bound.as_slice() > self.source.largest_key(table_index);
        if hint != SeekHint::End && !is_behind {
            return Ok(hint);
        }
        bound.clear();
        Ok(self.hint_at(table_index + 1, bound))
    }

    fn prepare_seek_for_prev(&mut self, needed: &RangeProbe<'_>, bound: &mut Vec<u8>) -> Result<SeekHint> {
        let key = needed.range().upper_bytes().unwrap_or_default();
        let kind = match needed.range().upper {
            Upper::Included(_) => BoundKind::Included,
            Upper::Open | Upper::Excluded(_) | Upper::Prefix(_) => BoundKind::Excluded,
        };
        let table_count = self.tables_begun_at(key, kind);
        let Some(table_index) = table_count.checked_sub(1) else { return Ok(SeekHint::End) };
        if self.source.largest_key(table_index) < key {
            return Ok(self.hint_before(table_count, bound));
        }
        let hint = self.open(table_index)?.prepare_seek_for_prev(needed, bound)?;
        let is_before = hint == SeekHint::Below && bound.as_slice() <= self.source.smallest_key(table_index);
        if hint != SeekHint::End && !is_before {
            return Ok(hint);
        }
        bound.clear();
        Ok(self.hint_before(table_index, bound))
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let table_index = self.source.position(key);
        if table_index == self.source.table_count() {
            self.close();
            return Ok(());
        }
        self.enter(table_index, |cursor| cursor.seek(key, sequence))?;
        // The next table may begin with newer versions of the key than the requested one, so it needs a seek, too.
        self.skip_exhausted_tables(|cursor| cursor.seek(key, sequence))
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        let table_count = self.tables_begun_at(key, kind);
        let Some(table_index) = table_count.checked_sub(1) else {
            self.close();
            return Ok(());
        };
        self.enter(table_index, |cursor| cursor.seek_for_prev(key, kind))?;
        self.skip_exhausted_tables_backward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        let Some((_, cursor)) = &mut self.open else { return Ok(()) };
        cursor.next()?;
        if cursor.is_valid() { Ok(()) } else { self.skip_exhausted_tables(S::Cursor::seek_first) }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.is_valid());
        let Some((_, cursor)) = &mut self.open else { return Ok(()) };
        cursor.prev()?;
        if cursor.is_valid() { Ok(()) } else { self.skip_exhausted_tables_backward() }
    }

    #[inline]
    fn is_only_version(&self, snapshot: Sequence) -> bool {
        self.open.as_ref().is_some_and(|(table_index, cursor)| {
            cursor.is_only_version(snapshot) && !(cursor.is_at_edge() && self.shares_key(*table_index))
        })
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, cursor)| cursor.is_valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |(_, cursor)| cursor.key())
    }

    #[inline]
    fn sequence(&self) -> Sequence {
        self.open.as_ref().map_or(0, |(_, cursor)| cursor.sequence())
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.open.as_ref().map_or(Kind::Tombstone, |(_, cursor)| cursor.kind())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |(_, cursor)| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.open.as_ref().map_or_else(|| Slice::from(&[][..]), |(_, cursor)| cursor.value_slice())
    }
}
