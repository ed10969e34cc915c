//! The designs of a filter, their predicted rates, and their prices.

use std::fmt;

/// Instead of a prefix length: the Bloom filter contains whole keys under the digests of keys.
pub const WHOLE_KEYS: u32 = u32::MAX;

/// How the bits of a prefix are placed in a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BloomLayout {
    /// In the whole filter: the lowest rate.
    Spread,
    /// In one block of 512 bits: the fewest cache lines.
    Lines,
}

impl BloomLayout {
    /// Both, the one with the lower rate first.
    pub(super) const ALL: [Self; 2] = [Self::Spread, Self::Lines];

    /// The number in the format.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Spread => 3,
            Self::Lines => 2,
        }
    }

    /// Number 1 was another spread layout, which is not readable any more.
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::Lines),
            3 => Some(Self::Spread),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Lines => "lines",
        }
    }

    /// Cache lines per test: in the spread layout a test ends, on average, at the second bit.
    pub(super) const fn lines_touched(self) -> f64 {
        match self {
            Self::Spread => 2.0,
            Self::Lines => 1.0,
        }
    }
}

/// The encoding of a set of prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetForm {
    /// A succinct trie, lone branches as explicit bits.
    Trie = 1,
    /// Elias-Fano numbers, counted from the least prefix (integers only).
    EliasFano = 2,
    /// One bit for each prefix from the least to the greatest (integers only).
    Bitmap = 6,
    /// Elias-Fano numbers with marks, which make lookups twice as fast.
    MarkedEliasFano = 5,
}

impl SetForm {
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Trie),
            2 => Some(Self::EliasFano),
            6 => Some(Self::Bitmap),
            5 => Some(Self::MarkedEliasFano),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Trie => "trie",
            Self::EliasFano => "plain Elias-Fano",
            Self::MarkedEliasFano => "Elias-Fano",
            Self::Bitmap => "bitmap",
        }
    }
}

/// The first stage of a filter, which is tested before the Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    /// None.
    None,
    /// The set of all prefixes of one length.
    Set {
        /// Bits of a prefix.
        depth: u32,
        /// The encoding.
        form: SetForm,
    },
    /// A Bloom filter of the prefixes of one length.
    Bloom {
        /// Bits of a prefix.
        depth: u32,
        /// Its share of the budget.
        share: f64,
    },
}

impl Stage {
    /// Bits of a prefix, 0 without a first stage.
    pub const fn depth(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Set { depth, .. } | Self::Bloom { depth, .. } => *depth,
        }
    }
}

/// The parts of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// The first stage.
    pub first: Stage,
    /// Bits of the prefixes in the (second) Bloom filter, or [`WHOLE_KEYS`], or 0 for none.
    pub prefix: u32,
    /// The layout of the Bloom filters.
    pub layout: BloomLayout,
}

impl fmt::Display for Design {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            Stage::None => {}
            Stage::Set { depth, form } => write!(formatter, "{} of {depth} bits", form.name())?,
            Stage::Bloom { depth, share } => {
                write!(formatter, "Bloom filter of {depth} bits in {:.0} %", share * 100.0)?;
            }
        }
        if self.prefix != 0 && self.first != Stage::None {
            formatter.write_str(", ")?;
        }
        match self.prefix {
            0 => Ok(()),
            WHOLE_KEYS => write!(formatter, "Bloom filter of whole keys, {}", self.layout.name()),
            bits => write!(formatter, "Bloom filter of {bits} bits, {}", self.layout.name()),
        }
    }
}

/// The expected behaviour of a design for queries like those of the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The false positive rate of empty queries.
    pub fpr: f64,
    /// Tests per empty query: one for a set, and one for each prefix in a Bloom filter.
    pub probes: f64,
    /// The expected cost of a query: false-positive reads and cache lines at the model's prices. Includes queries closer to a key than those
    /// of the sample, which a larger sample would contain.
    pub cost: f64,
    /// Bytes of the first stage.
    pub first_bytes: u64,
    /// Bytes of the (second) Bloom filter.
    pub bloom_bytes: u64,
}

/// Prices in any one unit; the defaults are nanoseconds. An invalid price (negative, infinite or NaN) is replaced by the default, a cap out of
/// bounds by the nearest one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// A cache line of a filter.
    pub probe: f64,
    /// A false-positive read.
    pub read: f64,
    /// Most tests per query; a range that needs more passes untested.
    pub probe_cap: u32,
}

impl Prices {
    /// The least probe cap: a set and a Bloom filter.
    pub const PROBE_CAP_MIN: u32 = 2;
    /// The greatest probe cap.
    pub const PROBE_CAP_MAX: u32 = 1 << 24;

    /// A cache line 5 ns, a read 20 microseconds, at most 1,024 tests.
    pub const DEFAULT: Self = Self { probe: 5.0, read: 20_000.0, probe_cap: 1024 };

    /// These prices, with invalid ones replaced.
    pub(super) fn usable(self) -> Self {
        let or = |price: f64, default: f64| if price.is_finite() && price >= 0.0 { price } else { default };
        Self {
            probe: or(self.probe, Self::DEFAULT.probe),
            read: or(self.read, Self::DEFAULT.read),
            probe_cap: self.probe_cap.clamp(Self::PROBE_CAP_MIN, Self::PROBE_CAP_MAX),
        }
    }

    /// Most tests in Bloom filters; a set takes one of the cap.
    pub(super) const fn bloom_cap(&self, has_set: bool) -> u64 {
        (self.probe_cap as u64).saturating_sub(has_set as u64)
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::DEFAULT
    }
}
