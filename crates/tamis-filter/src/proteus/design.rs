//! What a filter can be made of, what it is predicted to do, and what that is worth.

use std::fmt;

/// In place of a prefix length: the Bloom filter holds whole keys under their own digests.
pub const WHOLE_KEYS: u32 = u32::MAX;

/// How the bits of a prefix lie in a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BloomLayout {
    /// Spread over the whole filter: the least rate.
    Spread,
    /// In one line of 512 bits: the fewest cache lines.
    Lines,
}

impl BloomLayout {
    /// Both, that with the least rate first.
    pub(super) const ALL: [Self; 2] = [Self::Spread, Self::Lines];

    /// The number in the format.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Spread => 3,
            Self::Lines => 2,
        }
    }

    /// 1 was spread in another way, which would be read wrongly.
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

    /// Cache lines that a question touches: a spread one ends, on average, at the second bit.
    pub(super) const fn lines_touched(self) -> f64 {
        match self {
            Self::Spread => 2.0,
            Self::Lines => 1.0,
        }
    }
}

/// How a set of prefixes is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetForm {
    /// The succinct trie, lone branches as explicit bits.
    Trie = 1,
    /// Elias-Fano numbers, counted from the least prefix (integers only).
    EliasFano = 2,
    /// One bit for each prefix from the least to the greatest (integers only).
    Bitmap = 6,
    /// Elias-Fano numbers with marks, which are asked in half the time.
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

/// What is asked before the Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    /// Nothing.
    None,
    /// The set of all prefixes of so many bits.
    Set {
        /// Bits of a prefix.
        depth: u32,
        /// How it is kept.
        form: SetForm,
    },
    /// A Bloom filter of the prefixes of so many bits.
    Bloom {
        /// Bits of a prefix.
        depth: u32,
        /// The share of the budget that it takes.
        share: f64,
    },
}

impl Stage {
    /// Bits of a prefix, 0 where there is no first stage.
    pub const fn depth(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Set { depth, .. } | Self::Bloom { depth, .. } => *depth,
        }
    }
}

/// One way to spend a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// What is asked first.
    pub first: Stage,
    /// Bits of the prefixes in the (second) Bloom filter, or [`WHOLE_KEYS`], or 0 for none.
    pub prefix: u32,
    /// How the Bloom filters are laid out.
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

/// What a design is expected to do with queries like those of the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The share of empty queries that it takes for present.
    pub fpr: f64,
    /// Questions to its parts for an empty query: one to a set, one to a Bloom filter for each prefix.
    pub probes: f64,
    /// What a query is expected to cost at the model's prices: reads that it does not save, and cache lines that it touches. Counts in what a
    /// larger sample would show: queries that come closer to a key than those of the sample.
    pub cost: f64,
    /// Bytes of the first stage.
    pub first_bytes: u64,
    /// Bytes of the (second) Bloom filter.
    pub bloom_bytes: u64,
}

/// What things cost, in one unit of the caller's choice; the defaults are nanoseconds. A price that is negative or no number counts as the default, a cap
/// out of bounds as the nearest one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// A cache line touched in a filter.
    pub probe: f64,
    /// A read that a filter did not save.
    pub read: f64,
    /// Most questions that one query may put to the parts of a filter; a range that needs more is taken for present unasked.
    pub probe_cap: u32,
}

impl Prices {
    /// Least that a probe cap can be: a set and a Bloom filter.
    pub const PROBE_CAP_MIN: u32 = 2;
    /// Most that a probe cap can be.
    pub const PROBE_CAP_MAX: u32 = 1 << 24;

    /// A cache line 5 ns, a read 20 microseconds, at most 1,024 questions.
    pub const DEFAULT: Self = Self { probe: 5.0, read: 20_000.0, probe_cap: 1024 };

    /// These prices, and in place of what is none the default: of what is negative, infinite or no number. A cap beyond its bounds is the nearest.
    pub(super) fn usable(self) -> Self {
        let or = |price: f64, default: f64| if price.is_finite() && price >= 0.0 { price } else { default };
        Self {
            probe: or(self.probe, Self::DEFAULT.probe),
            read: or(self.read, Self::DEFAULT.read),
            probe_cap: self.probe_cap.clamp(Self::PROBE_CAP_MIN, Self::PROBE_CAP_MAX),
        }
    }

    /// Questions that may be put to the Bloom filter behind a set, or without one.
    pub(super) const fn bloom_cap(&self, has_set: bool) -> u64 {
        (self.probe_cap as u64).saturating_sub(has_set as u64)
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::DEFAULT
    }
}
