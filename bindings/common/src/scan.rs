//! Bounds and steps of scans, in a form for bindings.

use std::ops::Bound;

use tamis::{Keyspace, Result, Scan, Snapshot, TransactionScan};

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Ascending keys.
    #[default]
    Forward,
    /// Descending keys.
    Backward,
}

/// The entries of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Between two bounds.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// All keys with this prefix.
    Prefix(Vec<u8>),
}

impl Selection {
    /// All entries.
    pub const ALL: Self = Self::Range(Bound::Unbounded, Bound::Unbounded);
}

/// Creates a scan of a keyspace, of a snapshot or of the current state, positioned at the start of its direction. Nothing is
/// read before the first step.
pub fn scan(
    keyspace: &Keyspace,
    snapshot: Option<&Snapshot>,
    selection: &Selection,
    direction: Direction,
) -> Scan {
    let mut scan = match (selection, snapshot) {
        (Selection::Range(lower, upper), None) => keyspace.range((borrow(lower), borrow(upper))),
        (Selection::Range(lower, upper), Some(snapshot)) => {
            snapshot.range(keyspace, (borrow(lower), borrow(upper)))
        }
        (Selection::Prefix(prefix), None) => keyspace.prefix(prefix),
        (Selection::Prefix(prefix), Some(snapshot)) => snapshot.prefix(keyspace, prefix),
    };
    if direction == Direction::Backward {
        scan.seek_to_last();
    }
    scan
}

pub(crate) fn borrow(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The steps of [`Scan`], which the scans of transactions also have.
pub trait Steps {
    /// See [`Scan::move_next`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    fn move_next(&mut self) -> Result<bool>;
    /// See [`Scan::move_prev`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    fn move_prev(&mut self) -> Result<bool>;
    /// See [`Scan::seek`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// See [`Scan::seek_for_prev`].
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()>;
    /// See [`Scan::seek_to_first`].
    fn seek_to_first(&mut self);
    /// See [`Scan::seek_to_last`].
    fn seek_to_last(&mut self);
    /// See [`Scan::key`].
    fn key(&self) -> &[u8];
    /// See [`Scan::value`].
    fn value(&self) -> &[u8];
}

/// The methods of a type, which have the same names.
macro_rules! impl_steps {
    ($scan:ty) => {
        impl Steps for $scan {
            #[inline]
            fn move_next(&mut self) -> Result<bool> {
                <$scan>::move_next(self)
            }
            #[inline]
            fn move_prev(&mut self) -> Result<bool> {
                <$scan>::move_prev(self)
            }
            fn seek(&mut self, key: &[u8]) -> Result<()> {
                <$scan>::seek(self, key)
            }
            fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
                <$scan>::seek_for_prev(self, key)
            }
            fn seek_to_first(&mut self) {
                <$scan>::seek_to_first(self);
            }
            fn seek_to_last(&mut self) {
                <$scan>::seek_to_last(self);
            }
            #[inline]
            fn key(&self) -> &[u8] {
                <$scan>::key(self)
            }
            #[inline]
            fn value(&self) -> &[u8] {
                <$scan>::value(self)
            }
        }
    };
}

impl_steps!(Scan);
impl_steps!(TransactionScan<'_>);

/// Moves to the next entry in a direction, whose key and value can then be read in place; returns `false` at the end.
///
/// # Errors
/// As [`Scan::move_next`].
#[inline]
pub fn step(scan: &mut (impl Steps + ?Sized), direction: Direction) -> Result<bool> {
    match direction {
        Direction::Forward => scan.move_next(),
        Direction::Backward => scan.move_prev(),
    }
}
