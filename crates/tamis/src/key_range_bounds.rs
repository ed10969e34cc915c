//! Ranges of keys as programs write them.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: `..`, `a..b`, `a..=b`, `a..`, `..b`, `..=b`, or a pair of [`Bound`]s, of keys of any type that is bytes.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let db = tamis::Db::open(folder.path())?;
/// use std::ops::Bound;
///
/// db.put("apple", "red")?;
/// db.put("banana", "yellow")?;
/// assert_eq!(db.range(..).count(), 2);
/// assert_eq!(db.range("b"..).count(), 1);
/// assert_eq!(db.range(1_u32.to_be_bytes()..=9_u32.to_be_bytes()).count(), 0);
/// assert_eq!(db.range((Bound::Excluded("apple"), Bound::Unbounded)).count(), 1);
/// # Ok(())
/// # }
/// ```
pub trait KeyRangeBounds {
    /// The lower and the upper bound.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRangeBounds for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<R: KeyRangeBounds + ?Sized> KeyRangeBounds for &R {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).key_bounds()
    }
}

/// The bounds of a range of the standard library.
macro_rules! of_standard_ranges {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyRangeBounds for $range {
            fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                (self.start_bound().map(K::as_ref), self.end_bound().map(K::as_ref))
            }
        }
    )*};
}

of_standard_ranges!(
    Range<K>,
    RangeInclusive<K>,
    RangeFrom<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);
