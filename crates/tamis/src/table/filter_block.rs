//! The filters of a table: the only file that names filter families.
//!
//! Which tables a point read passes over is decided here: `false` from [`FilterBlock::may_contain`] is final. A filter
//! therefore holds the key of every entry of its table, tombstones as well as puts: a table that is passed over must not
//! revive what its tombstones delete (the trap of cockroachdb/pebble #1786). Range tombstones, once they exist, count in a
//! table that is passed over, too.
//!
//! A filter is derived data: one that can't be built is left out, one that is damaged or of an unknown family is reported
//! and passed over, and answers stay the same.

use std::fmt;

use tamis_filter::{
    AnyFilter, Budget, BuildError, Family, Filter, FilterBuilder, FilterSpec, Probe, Samples,
};

use super::section::SectionBytes;

/// Takes the key of every entry of a table and makes its point filter.
pub(super) struct PointFilterBuilder {
    builder: Box<dyn FilterBuilder>,
    budget: Budget,
}

impl fmt::Debug for PointFilterBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PointFilterBuilder({} keys)", self.builder.key_count())
    }
}

impl PointFilterBuilder {
    /// `None` for 0 bits per key.
    pub(super) fn new(bits_per_key: f32, seed: u64) -> Result<Option<Self>, BuildError> {
        if bits_per_key <= 0.0 {
            return Ok(None);
        }
        let budget = Budget::bits_per_key(bits_per_key.into())?;
        Ok(Some(Self { builder: FilterSpec::new(Family::CacheLocal).builder(seed)?, budget }))
    }

    /// Adds a key, in order; one equal to the key before is passed over.
    pub(super) fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.builder.add(key)
    }

    /// The encoded filter.
    pub(super) fn finish(&self) -> Result<Vec<u8>, BuildError> {
        self.builder.finish(self.budget, Samples::NONE)
    }
}

/// One filter of a table, used in place.
#[derive(Debug)]
pub(crate) struct FilterBlock {
    filter: AnyFilter<SectionBytes>,
}

impl FilterBlock {
    /// Opens an encoded filter; the reason as text where that is not possible.
    pub(super) fn open(bytes: SectionBytes) -> Result<Self, String> {
        AnyFilter::open(bytes).map(|filter| Self { filter }).map_err(|error| error.to_string())
    }

    /// Bytes of memory that are held.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.filter.encoded_bytes()
    }

    /// Whether the key may be in the table; `false` is certain.
    #[inline]
    pub(crate) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.filter.may_contain(probe)
    }

    /// Brings what [`FilterBlock::may_contain`] needs into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe<'_>) {
        self.filter.prefetch(probe);
    }

    /// What was built, for people: one line.
    pub(crate) fn design(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.filter.design(&mut text);
        text.push_str(&format!("; {} bytes", self.filter.encoded_bytes()));
        if let Some(rate) = self.filter.predicted_fpr() {
            text.push_str(&format!(", {rate:.6} false positives expected"));
        }
        text
    }
}
