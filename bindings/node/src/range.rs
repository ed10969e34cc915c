//! The range of an iterator or of `clear()`.

use std::ops::{Bound, RangeBounds};

use crate::{error::Fault, packed::Unpacker};

/// A range of keys.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
}

impl Range {
    /// Reads a range: for each bound its kind (0: none, 1: inclusive, 2: exclusive) and its key.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, Fault> {
        let mut unpacker = Unpacker::new(packed);
        let mut bound = || {
            let (kind, key) = (unpacker.byte()?, unpacker.bytes()?);
            Ok::<_, Fault>(match kind {
                0 => Bound::Unbounded,
                1 => Bound::Included(key.to_vec()),
                _ => Bound::Excluded(key.to_vec()),
            })
        };
        Ok(Self { lower: bound()?, upper: bound()? })
    }

    /// The bounds, for the engine.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice))
    }

    /// Whether a key is in the range.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        RangeBounds::<[u8]>::contains(&self.bounds(), key)
    }
}
