//! Many ranges in contiguous memory.

use std::ops::Bound;

use tamis_filter::{KeyRange, Upper};

/// Closed ranges in the order in which they were added.
#[derive(Debug, Default, Clone)]
pub struct Ranges {
    bytes: Vec<u8>,
    lengths: Vec<(u32, u32)>,
}

impl Ranges {
    /// Ranges of integers, as big-endian bytes, so that their order is that of the keys.
    pub fn from_integers(ranges: &[(u64, u64)]) -> Self {
        let mut own = Self::default();
        ranges.iter().for_each(|(lower, upper)| own.push(&lower.to_be_bytes(), &upper.to_be_bytes()));
        own
    }

    /// Adds a range.
    ///
    /// # Panics
    /// If a bound has 4 GiB or more.
    pub fn push(&mut self, lower: &[u8], upper: &[u8]) {
        self.bytes.extend_from_slice(lower);
        self.bytes.extend_from_slice(upper);
        let length = |bound: &[u8]| u32::try_from(bound.len()).expect("bounds are shorter than 4 GiB");
        self.lengths.push((length(lower), length(upper)));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The bounds.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |(lower, upper)| {
            let (lower, behind) = rest.split_at_checked(*lower as usize).unwrap_or_default();
            let (upper, behind) = behind.split_at_checked(*upper as usize).unwrap_or_default();
            rest = behind;
            (lower, upper)
        })
    }

    /// The ranges as arguments of a filter.
    pub fn key_ranges(&self) -> Vec<KeyRange<'_>> {
        let closed =
            |(lower, upper)| KeyRange { lower: Bound::Included(lower), upper: Upper::Included(upper) };
        self.iter().map(closed).collect()
    }

    /// The keys, if every range is one key and all keys have the same length.
    pub(super) fn points(&self) -> Option<Points> {
        let (key_bytes, _) = *self.lengths.first()?;
        let is_alike = self.lengths.iter().all(|length| *length == (key_bytes, key_bytes));
        if key_bytes == 0 || !is_alike || !self.are_points() {
            return None;
        }
        let bytes = self.iter().flat_map(|(key, _)| key.iter().copied()).collect();
        Some(Points { bytes, key_bytes: key_bytes as usize })
    }

    /// Whether every range is one key.
    pub fn are_points(&self) -> bool {
        self.iter().all(|(lower, upper)| lower == upper)
    }
}

/// Keys of one length in contiguous memory.
pub(super) struct Points {
    pub(super) bytes: Vec<u8>,
    pub(super) key_bytes: usize,
}

impl<'a> FromIterator<(&'a [u8], &'a [u8])> for Ranges {
    fn from_iter<I: IntoIterator<Item = (&'a [u8], &'a [u8])>>(ranges: I) -> Self {
        let mut own = Self::default();
        ranges.into_iter().for_each(|(lower, upper)| own.push(lower, upper));
        own
    }
}
