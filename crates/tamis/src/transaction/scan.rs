//! A scan of a transaction: that of the store over snapshot and own writes, which records what it has passed.
//!
//! Nothing is recorded at a step. When a scan turns, seeks or is dropped, the keys between the place where it began to move and the current one are a range that was
//! read; behind the last entry, up to the bound of the scan.

use std::{fmt, iter::FusedIterator, marker::PhantomData, mem, ops::Bound, sync::Arc};

use tamis_filter::Direction;

use super::reads::Reads;
use crate::{
    cursor::bounded::{Bounds, as_slice},
    error::Result,
    read::scan::Scan,
    slice::Slice,
};

/// How an end of a scan moves.
#[derive(Debug, Default)]
struct Walk {
    /// Where it began to move; `None`: at the bound of the scan.
    from: Option<Vec<u8>>,
    /// `None`: it has not moved since.
    direction: Option<Direction>,
    /// It has passed the last entry.
    is_ended: bool,
}

/// The entries of a key range as a transaction sees them: at its snapshot, with its own writes until the scan was created. As [`Scan`], it is an iterator from
/// both ends, and moves in both directions; `nth` and `skip` step over each entry.
///
/// It ends before the transaction is committed: by its lifetime, or, if it is detached ([`crate::Transaction::detached_range`]), because the commit fails otherwise.
pub struct TransactionScan<'t> {
    /// Shared with the transaction, which is not committed while a scan exists.
    reads: Arc<Reads>,
    transaction: PhantomData<&'t ()>,
    keyspace: u32,
    scan: Scan,
    bounds: Bounds,
    front: Walk,
    back: Walk,
    /// The key that the back has returned last.
    back_key: Option<Slice>,
}

impl fmt::Debug for TransactionScan<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TransactionScan")
    }
}

impl TransactionScan<'_> {
    pub(super) fn new(reads: &Arc<Reads>, keyspace: u32, scan: Scan, bounds: Bounds) -> Self {
        let (front, back, back_key) = Default::default();
        let (reads, transaction) = (Arc::clone(reads), PhantomData);
        Self { reads, transaction, keyspace, scan, bounds, front, back, back_key }
    }

    /// See [`Scan::move_next`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn move_next(&mut self) -> Result<bool> {
        self.turn(Direction::Forward);
        let moved = self.scan.move_next();
        self.front.is_ended = !matches!(moved, Ok(true));
        moved
    }

    /// See [`Scan::move_prev`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn move_prev(&mut self) -> Result<bool> {
        self.turn(Direction::Backward);
        let moved = self.scan.move_prev();
        self.front.is_ended = !matches!(moved, Ok(true));
        moved
    }

    /// See [`Scan::seek`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.leave(Some(key.as_ref().to_vec()));
        self.scan.seek(key)
    }

    /// See [`Scan::seek_for_prev`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.leave(Some(key.as_ref().to_vec()));
        self.scan.seek_for_prev(key)
    }

    /// See [`Scan::seek_to_first`].
    pub fn seek_to_first(&mut self) {
        self.leave(None);
        self.scan.seek_to_first();
    }

    /// See [`Scan::seek_to_last`].
    pub fn seek_to_last(&mut self) {
        self.leave(None);
        self.scan.seek_to_last();
    }

    /// See [`Scan::key`].
    pub fn key(&self) -> &[u8] {
        self.scan.key()
    }

    /// See [`Scan::value`].
    pub fn value(&self) -> &[u8] {
        self.scan.value()
    }

    /// The current key; `None` behind the last entry, also where the front has met the back.
    fn here(&self) -> Option<&[u8]> {
        Some(self.scan.key()).filter(|key| !self.front.is_ended && !key.is_empty())
    }

    /// Begins a step of the front in a direction.
    fn turn(&mut self, direction: Direction) {
        if self.front.direction.is_some_and(|before| before != direction) {
            let here = self.here().map(<[u8]>::to_vec);
            self.leave(here);
        }
        self.front.direction = Some(direction);
    }

    /// Records what the front has passed; it moves from another place next.
    fn leave(&mut self, next: Option<Vec<u8>>) {
        let walk = mem::replace(&mut self.front, Walk { from: next, ..Walk::default() });
        let here = self.here().filter(|_| !walk.is_ended);
        self.record(&walk, here);
    }

    /// Records the keys from the beginning of a walk to the current one, or to the bound of the scan.
    fn record(&self, walk: &Walk, here: Option<&[u8]>) {
        let (lower, upper) = (as_slice(&self.bounds.0), as_slice(&self.bounds.1));
        let (from, here) = (walk.from.as_deref().map(Bound::Included), here.map(Bound::Included));
        let (lower, upper) = match walk.direction {
            None => return,
            Some(Direction::Forward) => (from.unwrap_or(lower), here.unwrap_or(upper)),
            Some(Direction::Backward) => (here.unwrap_or(lower), from.unwrap_or(upper)),
        };
        self.reads.add_range(self.keyspace, lower, upper);
    }
}

impl Iterator for TransactionScan<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.turn(Direction::Forward);
        let item = self.scan.next();
        self.front.is_ended = !matches!(item, Some(Ok(_)));
        item
    }
}

impl DoubleEndedIterator for TransactionScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let item = self.scan.next_back();
        self.back.direction = Some(Direction::Backward);
        self.back.is_ended = !matches!(item, Some(Ok(_)));
        if let Some(Ok((key, _))) = &item {
            self.back_key = Some(key.clone());
        }
        item
    }
}

impl FusedIterator for TransactionScan<'_> {}

impl Drop for TransactionScan<'_> {
    fn drop(&mut self) {
        self.leave(None);
        let back_key = self.back_key.take().filter(|_| !self.back.is_ended);
        self.record(&self.back, back_key.as_deref());
    }
}
