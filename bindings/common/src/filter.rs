//! Filters alone, without a store: built from keys, opened over any bytes, asked for points, ranges and candidates.

use std::sync::Arc;

use tamis::TableFilter;
use tamis_filter::{
    AnyFilter, Budget, Candidate, Count, Digester, Direction, Filter as _, FilterSpec, KeyRange, KeySet,
    RangeProbe, Samples, envelope::Envelope,
};

use crate::{Failure, scan::Selection};

/// Builds filters of one family. Keys are kept until it is dropped, so that it can build with several budgets.
///
/// Cost: the bytes of the keys and 8 bytes for each; twice that while they grow.
#[derive(Debug, Clone)]
pub struct Builder {
    spec: FilterSpec,
    bits_per_key: Option<f64>,
    seed: u64,
    keys: Arc<KeySet>,
    queries: Vec<Selection>,
}

impl Builder {
    /// A builder for `NAME[:param=value,...][@BITS_PER_KEY]`, the text of [`TableFilter`]; filters of one seed share digests.
    ///
    /// # Errors
    /// [`crate::Code::InvalidArgument`] for an unknown family or parameter.
    pub fn new(text: &str, seed: u64) -> Result<Self, Failure> {
        let filter: TableFilter = text.parse()?;
        filter.spec().builder(seed)?;
        Ok(Self {
            spec: filter.spec().clone(),
            bits_per_key: filter.bits_per_key().map(f64::from),
            seed,
            keys: Arc::default(),
            queries: Vec::new(),
        })
    }

    /// A builder that shares a set of keys.
    ///
    /// # Errors
    /// As [`Builder::new`].
    pub fn with_keys(text: &str, keys: &Arc<KeySet>) -> Result<Self, Failure> {
        Ok(Self { keys: Arc::clone(keys), ..Self::new(text, 0)? })
    }

    /// Adds a key; keys come in ascending order, a repeated one is ignored.
    ///
    /// # Errors
    /// [`crate::Code::FilterBuild`] for a key that is smaller than the one before.
    pub fn add(&mut self, key: &[u8]) -> Result<(), Failure> {
        Ok(Arc::make_mut(&mut self.keys).push(key)?)
    }

    /// Adds a query from which families that design themselves learn.
    pub fn add_sample(&mut self, query: Selection) {
        self.queries.push(query);
    }

    /// How many distinct keys were added.
    pub fn key_count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The keys.
    pub fn keys(&self) -> &Arc<KeySet> {
        &self.keys
    }

    /// The encoded filter. A budget given here replaces that of the text; without either, the parameters give the size.
    ///
    /// # Errors
    /// [`crate::Code::FilterBuild`] where the family can't be built for these keys in this size.
    pub fn finish(&self, bits_per_key: Option<f64>) -> Result<Vec<u8>, Failure> {
        let budget = match bits_per_key.or(self.bits_per_key) {
            Some(bits) => Budget::bits_per_key(bits)?,
            None => Budget::BY_PARAMETERS,
        };
        let queries: Vec<KeyRange<'_>> = self.queries.iter().map(key_range).collect();
        let mut builder = self.spec.builder(self.seed)?;
        builder.add_all(&self.keys)?;
        Ok(builder.finish(budget, Samples { queries: &queries })?)
    }
}

/// A selection as the range that filters are asked for.
pub fn key_range(selection: &Selection) -> KeyRange<'_> {
    match selection {
        Selection::Range(lower, upper) => {
            KeyRange::new(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
        }
        Selection::Prefix(prefix) => KeyRange::prefix(prefix),
    }
}

/// A filter over encoded bytes. `false` means certainly absent; it may be shared between threads.
#[derive(Debug)]
pub struct OpenFilter<D> {
    filter: AnyFilter<D>,
    digester: Digester,
}

impl<D: AsRef<[u8]>> OpenFilter<D> {
    /// Opens encoded bytes in place; reads the header only.
    ///
    /// # Errors
    /// [`crate::Code::Corruption`], [`crate::Code::UnknownFormat`].
    pub fn new(bytes: D) -> Result<Self, Failure> {
        let length = bytes.as_ref().len() as u64;
        let seed = Envelope::parse(bytes.as_ref(), length)?.seed;
        Ok(Self { filter: AnyFilter::open(bytes)?, digester: Digester::new(seed) })
    }

    /// Whether the key may be among the keys.
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter.may_contain_key(&self.digester, key)
    }

    /// Whether a key may lie in the range.
    #[inline]
    pub fn may_contain_range(&self, range: KeyRange<'_>) -> bool {
        self.filter.may_contain_key_in(&self.digester, range)
    }

    /// [`OpenFilter::may_contain`] for many keys: overlaps their cache misses.
    pub fn may_contain_many(&self, keys: &[&[u8]]) -> Vec<bool> {
        let mut answers = vec![true; keys.len()];
        self.filter.may_contain_keys(&self.digester, keys, &mut answers);
        answers
    }

    /// [`OpenFilter::may_contain_range`] for many ranges.
    pub fn may_contain_ranges(&self, ranges: &[KeyRange<'_>]) -> Vec<bool> {
        let mut answers = vec![true; ranges.len()];
        self.filter.may_contain_ranges(&self.digester, ranges, &mut answers);
        answers
    }

    /// What is known about the first key that a scan of the range would meet.
    pub fn candidate(&self, range: KeyRange<'_>, direction: crate::scan::Direction) -> Candidate {
        let direction = match direction {
            crate::scan::Direction::Forward => Direction::Forward,
            crate::scan::Direction::Backward => Direction::Backward,
        };
        self.filter.tighten(&RangeProbe::new(range, &self.digester), direction)
    }

    /// How many keys lie in the range, where the family can tell.
    pub fn count(&self, range: KeyRange<'_>) -> Option<Count> {
        self.filter.count(&RangeProbe::new(range, &self.digester))
    }

    /// The family's name.
    pub fn family(&self) -> &'static str {
        self.filter.family().name()
    }

    /// How many distinct keys it was built from.
    pub fn key_count(&self) -> u64 {
        self.filter.key_count()
    }

    /// Bytes of the whole filter.
    pub fn encoded_bytes(&self) -> u64 {
        self.filter.encoded_bytes()
    }

    /// The rate of false positives that the builder expects.
    pub fn predicted_fpr(&self) -> Option<f64> {
        self.filter.predicted_fpr()
    }

    /// The builder's choices in one line, for people.
    pub fn design(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.filter.design(&mut text);
        text
    }

    /// Compares the checksum of all bytes.
    ///
    /// # Errors
    /// [`crate::Code::Corruption`].
    pub fn verify(&self) -> Result<(), Failure> {
        Ok(self.filter.verify()?)
    }
}

#[cfg(test)]
mod tests;
