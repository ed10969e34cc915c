//! Bounds and steps of scans, in the form that bindings need.

use std::ops::Bound;

use tamis::{Keyspace, Result, Scan, Snapshot};

/// In which direction a scan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From small keys to great ones.
    #[default]
    Forward,
    /// From great keys to small ones.
    Backward,
}

/// Which entries a scan shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Between two bounds.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// All keys that begin with these bytes.
    Prefix(Vec<u8>),
}

impl Selection {
    /// All entries.
    pub const ALL: Self = Self::Range(Bound::Unbounded, Bound::Unbounded);
}

/// A scan of a keyspace as of a snapshot, or as of now, at the end where its direction begins. Nothing is read before the first step.
pub fn scan(
    keyspace: &Keyspace,
    snapshot: Option<&Snapshot>,
    selection: &Selection,
    direction: Direction,
) -> Scan {
    let mut scan = match (selection, snapshot) {
        (Selection::Range(lower, upper), None) => keyspace.range::<&[u8]>((borrow(lower), borrow(upper))),
        (Selection::Range(lower, upper), Some(snapshot)) => {
            snapshot.range::<&[u8]>(keyspace, (borrow(lower), borrow(upper)))
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

/// To the next entry in a direction, whose key and value can then be read in place; `false` at the end.
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
