//! The filters of the tables of a keyspace, per level.

use std::{fmt, str::FromStr};

use tamis_filter::{Budget, BuildError, Family, FilterBuilder, FilterSpec, Samples};

use crate::error::{Error, Result};

/// The default bits per key of all filters of a keyspace.
const AUTOMATIC_BITS_PER_KEY: f32 = 16.0;

/// One filter of a table: its family with parameters, and its budget. As text: `NAME[:param=value,...][@BITS]`.
///
/// The units of an elastic filter are loaded and unloaded one by one only if tables are read into memory
/// ([`crate::Access::Buffered`] or [`crate::Access::Direct`]). A mapped table uses all its units, and the page cache decides which
/// of their pages are in memory.
///
/// ```
/// let filter: tamis::TableFilter = "surf-real:bits=8".parse()?;
/// assert_eq!(filter.to_string(), "surf-real:bits=8");
/// assert_eq!("surf@16".parse::<tamis::TableFilter>()?.bits_per_key(), Some(16.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TableFilter {
    spec: FilterSpec,
    bits_per_key: Option<f32>,
}

impl TableFilter {
    /// A filter of `bits_per_key` (above 0, up to 64); `None` if the parameters determine its size.
    pub const fn new(spec: FilterSpec, bits_per_key: Option<f32>) -> Self {
        Self { spec, bits_per_key }
    }

    /// A blocked Bloom filter, for point reads.
    pub const fn bits(bits_per_key: f32) -> Self {
        Self::new(FilterSpec::new(Family::BlockedBloom), Some(bits_per_key))
    }

    /// The family with its parameters.
    pub const fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// The budget; `None` if the parameters determine the size.
    pub const fn bits_per_key(&self) -> Option<f32> {
        self.bits_per_key
    }

    /// A builder and the budget with which it finishes.
    pub(crate) fn builder(
        &self,
        seed: u64,
    ) -> std::result::Result<(Box<dyn FilterBuilder>, Budget), BuildError> {
        let budget = match self.bits_per_key {
            Some(bits) => Budget::bits_per_key(bits.into())?,
            None => Budget::BY_PARAMETERS,
        };
        Ok((self.spec.builder(seed)?, budget))
    }

    /// Refuses parameters and sizes with which no filter can be built for any keys.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(bits) = self.bits_per_key
            && !(bits > 0.0 && bits <= 64.0)
        {
            return Err(refused(bits, "use more than 0 and at most 64 bits per key"));
        }
        let tried = self.builder(0).and_then(|(builder, budget)| builder.finish(budget, Samples::NONE));
        tried.map(drop).map_err(|error| match error {
            BuildError::UnknownParameter { family, name, known } => {
                Error::UnknownFilterParameter { filter: self.to_string(), family, parameter: name, known }
            }
            error => refused(self, &format!("use a filter that can be built: {error}")),
        })
    }
}

fn refused(got: impl ToString, expected: &str) -> Error {
    Error::InvalidArgument { what: "filters", got: got.to_string(), expected: expected.to_owned() }
}

impl fmt::Display for TableFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(formatter)?;
        self.bits_per_key.map_or(Ok(()), |bits| write!(formatter, "@{bits}"))
    }
}

impl FromStr for TableFilter {
    type Err = Error;

    /// Refuses all that the creation of a keyspace with this filter would refuse.
    fn from_str(text: &str) -> Result<Self> {
        let (spec, bits) = match text.rsplit_once('@') {
            Some((spec, bits)) => {
                let parsed = bits.parse().map_err(|_| refused(text, "use bits per key as a number"))?;
                (spec, Some(parsed))
            }
            None => (text, None),
        };
        let spec = spec.parse().map_err(|error: BuildError| refused(text, &error.to_string()))?;
        let filter = Self::new(spec, bits);
        filter.check()?;
        Ok(filter)
    }
}

/// The filters of each table: chosen by the store (the default), or given per level. A table may have any number of filters; one that
/// rejects a key or range is enough to skip the table. A keyspace is created with filters ([`crate::KeyspaceOptions::filters`]), and
/// [`crate::Keyspace::set_options`] changes them.
///
/// ```
/// use tamis::{Filters, KeyspaceOptions};
///
/// // The store chooses, with at most 12 bits per key.
/// let chosen = KeyspaceOptions::default().filters(Filters::auto(12.0));
/// // The store chooses, with at most 256 MiB for the keyspace.
/// let chosen = KeyspaceOptions::default().filters(Filters::auto_bytes(256 << 20));
/// // One filter for point reads and ranges.
/// let filters = Filters::each(["surf@16".parse()?]);
/// let given = KeyspaceOptions::default().filters(filters);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filters(FilterSource);

/// The source of the filters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FilterSource {
    /// The store.
    Chosen(FilterBudget),
    /// The program: per level, L0 first; the last entry applies to all deeper levels.
    Given(Vec<Vec<TableFilter>>),
}

/// The memory of all filters of a keyspace that the store chooses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FilterBudget {
    BitsPerKey(f32),
    Bytes(u64),
}

impl FilterBudget {
    /// The maximum of a table of a keyspace of so many keys in all.
    pub(crate) fn bits_per_key(self, key_count: u64) -> f32 {
        match self {
            Self::BitsPerKey(bits) => bits,
            Self::Bytes(bytes) => {
                let bits = 8.0 * bytes as f64 / key_count.max(1) as f64;
                // With few keys, more bits would save nothing, and new keys would soon exceed the budget.
                bits.min(24.0) as f32
            }
        }
    }

    /// The bits per key of a table outside of a store, whose keys are not counted yet.
    pub(crate) const fn of_single_table(self) -> f32 {
        match self {
            Self::BitsPerKey(bits) => bits,
            Self::Bytes(_) => AUTOMATIC_BITS_PER_KEY,
        }
    }
}

impl Default for Filters {
    /// The store chooses, with at most 16 bits per key.
    fn default() -> Self {
        Self::auto(AUTOMATIC_BITS_PER_KEY)
    }
}

impl Filters {
    /// The store chooses the filters of each table, with at most `bits_per_key` (above 0, up to 64): those of least
    /// expected cost for the queries that it samples. It replaces filters whose false-positive rate is not the expected one. Without a
    /// sample it chooses filters for points and ranges that suit most queries.
    pub const fn auto(bits_per_key: f32) -> Self {
        Self::chosen(FilterBudget::BitsPerKey(bits_per_key))
    }

    /// As [`Filters::auto`], with a budget in bytes (above 0) for the filters of all tables of the keyspace: the more keys, the fewer
    /// bits each of them gets, and no filters if that is too little. While the keyspace grows, older tables have more bits than their share until
    /// they are compacted.
    ///
    /// A table that [`crate::TableWriter`] builds outside of a store gets up to 16 bits per key, because the other keys of the keyspace are
    /// not known. An ingest keeps these filters, as a checkpoint keeps those of its tables. A compaction gives the entries filters within their
    /// share. Until then the filters may take more than the budget.
    pub const fn auto_bytes(bytes: u64) -> Self {
        Self::chosen(FilterBudget::Bytes(bytes))
    }

    const fn chosen(budget: FilterBudget) -> Self {
        Self(FilterSource::Chosen(budget))
    }

    /// No filters.
    pub const fn none() -> Self {
        Self(FilterSource::Given(Vec::new()))
    }

    /// One blocked Bloom filter for each table; none for 0 bits.
    pub fn bits(bits_per_key: f32) -> Self {
        if bits_per_key == 0.0 { Self::none() } else { Self::each([TableFilter::bits(bits_per_key)]) }
    }

    /// The same filters for each table.
    pub fn each(filters: impl IntoIterator<Item = TableFilter>) -> Self {
        Self::per_level([filters.into_iter().collect()])
    }

    /// Filters per level, L0 first; the last entry applies to all deeper levels.
    pub fn per_level(levels: impl IntoIterator<Item = Vec<TableFilter>>) -> Self {
        Self(FilterSource::Given(levels.into_iter().collect()))
    }

    pub(crate) const fn source(&self) -> &FilterSource {
        &self.0
    }

    /// Whether the queries decide which filters are built: the store chooses them, or some design themselves.
    pub(crate) fn uses_sample(&self) -> bool {
        let designs_itself = |filter: &TableFilter| filter.spec.family().answers_ranges();
        match &self.0 {
            FilterSource::Chosen(_) => true,
            FilterSource::Given(levels) => levels.iter().flatten().any(designs_itself),
        }
    }

    /// The given filters of a table: `depth` is the position in per-level options. None if the store chooses.
    pub fn of_level(&self, depth: usize) -> &[TableFilter] {
        match &self.0 {
            FilterSource::Chosen(_) => &[],
            FilterSource::Given(levels) => levels.get(depth).or(levels.last()).map_or(&[], Vec::as_slice),
        }
    }

    /// Refuses filters that can't be built for any keys.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            FilterSource::Chosen(FilterBudget::BitsPerKey(bits)) => TableFilter::bits(*bits).check(),
            FilterSource::Chosen(FilterBudget::Bytes(0)) => {
                Err(refused("0 bytes for all filters", "use at least one byte, or no filters"))
            }
            FilterSource::Chosen(FilterBudget::Bytes(_)) => Ok(()),
            FilterSource::Given(levels) => levels.iter().flatten().try_for_each(TableFilter::check),
        }
    }
}

/// The filters of a level.
fn filters_text(filters: &[TableFilter]) -> String {
    match filters {
        [] => "none".to_owned(),
        filters => filters.iter().map(TableFilter::to_string).collect::<Vec<_>>().join("+"),
    }
}

/// `auto@BITS`, `auto:bytes=BYTES`, or the filters of each level, L0 first.
impl fmt::Display for Filters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            FilterSource::Chosen(FilterBudget::BitsPerKey(bits)) => write!(formatter, "auto@{bits}"),
            FilterSource::Chosen(FilterBudget::Bytes(bytes)) => write!(formatter, "auto:bytes={bytes}"),
            FilterSource::Given(levels) if levels.is_empty() => formatter.write_str("none"),
            FilterSource::Given(levels) => {
                let levels: Vec<_> = levels.iter().map(|level| filters_text(level)).collect();
                formatter.write_str(&levels.join("/"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
