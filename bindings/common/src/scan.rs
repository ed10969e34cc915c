//! Bounds and steps of scans, in a form for bindings.

use std::ops::Bound;

use tamis::{Keyspace, Result, Scan, Snapshot};

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

fn borrow(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Moves to the next entry in a direction, whose key and value can then be read in place; returns `false` at the end.
///
/// # Errors
/// As [`Scan::move_next`].
#[inline]
pub fn step(scan: &mut Scan, direction: Direction) -> Result<bool> {
    match direction {
        Direction::Forward => scan.move_next(),
        Direction::Backward => scan.move_prev(),
    }
}
