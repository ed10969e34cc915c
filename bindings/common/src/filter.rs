//! Filters without a store: built from keys, opened over encoded bytes, queried for points, ranges and candidates.

use std::sync::Arc;

use tamis_filter::{
    AnyFilter, Budget, Candidate, Digester, Direction, Family, Filter as _, FilterSpec, KeyRange, KeySet,
    Probe, RangeProbe, Samples,
    auto::{self, Part},
    envelope::Envelope,
};

use crate::{Failure, scan::Selection};

/// The name of the design that chooses the family.
const AUTO: &str = "auto";

/// Tables that a range asks, for [`AUTO`]: level 0 and the other levels of a store. Their false positives add up.
const OVERLAPPING_TABLES: u32 = 8;

/// Builds filters of one family, or of the family that its keys and sample choose. It keeps the keys, so that it can build with several budgets.
///
/// Memory: the bytes of the keys plus 8 bytes per key, up to twice that while keys are added.
#[derive(Debug, Clone)]
pub struct Builder {
    /// None: [`AUTO`].
    spec: Option<FilterSpec>,
    bits_per_key: Option<f64>,
    seed: u64,
    keys: Arc<KeySet>,
    queries: Vec<Selection>,
}

impl Builder {
    /// Creates a builder for `NAME[:param=value,...][@BITS_PER_KEY]`, the text form of [`tamis::TableFilter`], or for `auto[@BITS_PER_KEY]`:
    /// the cheapest range filter for the keys and the sample, without a sample `grafite`. Filters with the same seed share digests.
    ///
    /// # Errors
    /// [`crate::Code::InvalidArgument`] for an unknown family or parameter.
    pub fn new(text: &str, seed: u64) -> Result<Self, Failure> {
        // Not `TableFilter::from_str`, which rejects a missing budget: `finish` can still set it.
        let (spec, bits_per_key) = match text.rsplit_once('@') {
            Some((spec, bits)) => {
                let bits: f32 = bits.parse().map_err(|_| {
                    Failure::argument(format!(
                        "{text:?}: {bits:?} is not a number; give bits per key after `@`"
                    ))
                })?;
                (spec, Some(f64::from(bits)))
            }
            None => (text, None),
        };
        let spec = if spec == AUTO { None } else { Some(spec.parse::<FilterSpec>()?) };
        if let Some(spec) = &spec {
            spec.builder(seed)?;
        }
        Ok(Self { spec, bits_per_key, seed, keys: Arc::default(), queries: Vec::new() })
    }

    /// Creates a builder over a shared key set.
    ///
    /// # Errors
    /// As [`Builder::new`].
    pub fn with_keys(text: &str, keys: &Arc<KeySet>) -> Result<Self, Failure> {
        Ok(Self { keys: Arc::clone(keys), ..Self::new(text, 0)? })
    }

    /// Adds a key. Keys must be in ascending order; a duplicate is ignored.
    ///
    /// # Errors
    /// [`crate::Code::FilterBuild`] for a key that is smaller than the previous one.
    pub fn add(&mut self, key: &[u8]) -> Result<(), Failure> {
        Ok(Arc::make_mut(&mut self.keys).push(key)?)
    }

    /// Adds a sample query, for families that choose their design from a sample.
    pub fn add_sample(&mut self, query: Selection) {
        self.queries.push(query);
    }

    /// Number of distinct keys.
    pub fn key_count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The keys.
    pub fn keys(&self) -> &Arc<KeySet> {
        &self.keys
    }

    /// Builds and encodes the filter. `bits_per_key` overrides the budget of the text; without both, the parameters determine the
    /// size.
    ///
    /// # Errors
    /// [`crate::Code::FilterBuild`] if the family cannot be built for these keys in this size.
    pub fn finish(&self, bits_per_key: Option<f64>) -> Result<Vec<u8>, Failure> {
        let bits_per_key = bits_per_key.or(self.bits_per_key);
        let queries: Vec<KeyRange<'_>> = self.queries.iter().map(key_range).collect();
        let part = match (&self.spec, bits_per_key) {
            (Some(spec), _) => Part { spec: spec.clone(), bits_per_key },
            (None, Some(bits)) => self.choose(bits, &queries)?,
            (None, None) => {
                return Err(Failure::argument("auto: give bits per key, for example `auto@16`".to_owned()));
            }
        };
        let mut builder = part.spec.builder(self.seed)?;
        builder.add_all(&self.keys)?;
        let budget = part.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)?;
        Ok(builder.finish(budget, Samples { queries: &queries })?)
    }

    /// The cheapest single filter that answers ranges. A sample without empty queries says nothing about them.
    fn choose(&self, bits_per_key_max: f64, queries: &[KeyRange<'_>]) -> Result<Part, Failure> {
        Budget::bits_per_key(bits_per_key_max)?;
        let given = FilterSpec::new(Family::Grafite);
        let given = Part { spec: given, bits_per_key: Some(bits_per_key_max) };
        if queries.is_empty() {
            return Ok(given);
        }
        let as_query = |range| auto::Query { kind: auto::QueryKind::Range, range, weight: 1.0 };
        let queries: Vec<auto::Query<'_>> = queries.iter().copied().map(as_query).collect();
        let request = auto::Request {
            workload: auto::Workload { queries: &queries },
            prices: auto::Prices::default(),
            bits_per_key_max,
            overlapping_tables: OVERLAPPING_TABLES,
            current: None,
            effort: auto::Effort::Write,
            seed: self.seed,
            pause: auto::Pause::default(),
        };
        let single = |mut parts: Vec<Part>| if parts.len() == 1 { parts.pop() } else { None };
        let mut parts =
            auto::rank(&self.keys, &request).into_iter().filter_map(|scored| single(scored.parts));
        Ok(parts.find(|part| part.spec.family().answers_ranges()).unwrap_or(given))
    }
}

/// Converts a selection to the range of a filter query.
pub fn key_range(selection: &Selection) -> KeyRange<'_> {
    match selection {
        Selection::Range(lower, upper) => {
            KeyRange::new(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
        }
        Selection::Prefix(prefix) => KeyRange::prefix(prefix),
    }
}

/// A filter over encoded bytes. `false` means certainly absent. It can be shared between threads.
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

    /// Whether the filter may contain the key.
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter.may_contain(&Probe::new(key, &self.digester))
    }

    /// Whether the filter may contain a key in the range.
    #[inline]
    pub fn may_contain_range(&self, range: KeyRange<'_>) -> bool {
        self.filter.may_contain_range(&RangeProbe::new(range, &self.digester))
    }

    /// [`OpenFilter::may_contain`] for many keys.
    pub fn may_contain_many(&self, keys: &[&[u8]]) -> Vec<bool> {
        keys.iter().map(|key| self.may_contain(key)).collect()
    }

    /// [`OpenFilter::may_contain_range`] for many ranges.
    pub fn may_contain_ranges(&self, ranges: &[KeyRange<'_>]) -> Vec<bool> {
        ranges.iter().map(|range| self.may_contain_range(*range)).collect()
    }

    /// A bound for the first key that a scan of the range would return.
    pub fn candidate(&self, range: KeyRange<'_>, direction: crate::scan::Direction) -> Candidate {
        let direction = match direction {
            crate::scan::Direction::Forward => Direction::Forward,
            crate::scan::Direction::Backward => Direction::Backward,
        };
        let probe = RangeProbe::new(range, &self.digester);
        match self.filter.may_contain_range(&probe) {
            true => self.filter.candidate(&probe, direction),
            false => Candidate::Absent,
        }
    }

    /// Name of the family.
    pub fn family(&self) -> &'static str {
        self.filter.family().name()
    }

    /// Number of distinct keys in the filter.
    pub fn key_count(&self) -> u64 {
        self.filter.key_count()
    }

    /// Size of the encoded filter in bytes.
    pub fn encoded_bytes(&self) -> u64 {
        self.filter.encoded_bytes()
    }

    /// The false positive rate that the builder predicts.
    pub fn predicted_fpr(&self) -> Option<f64> {
        self.filter.predicted_fpr()
    }

    /// The design of the filter in one line, for people.
    pub fn design(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.filter.design(&mut text);
        text
    }

    /// Verifies the checksum of all bytes.
    ///
    /// # Errors
    /// [`crate::Code::Corruption`].
    pub fn verify(&self) -> Result<(), Failure> {
        Ok(self.filter.verify()?)
    }
}

#[cfg(test)]
mod tests;
