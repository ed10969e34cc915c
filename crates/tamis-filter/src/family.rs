//! The filter families: their numbers in the format, names and parameters.

use std::fmt;

use crate::{BuildError, DecodeError};

/// A kind of filter. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Bloom filter with all bits of a key in one cache line; the default for points.
    BlockedBloom = 1,
    // 2 and 5 were families that moved to `research/`: no other one takes their numbers.
    /// Bloom filter of prefixes of the keys.
    Prefix = 3,
    /// Bloom filter in units that are loaded one by one.
    Elastic = 4,
    /// Succinct range filter whose suffix the budget and the samples choose.
    Surf = 6,
    /// Succinct range filter without suffixes.
    SurfBase = 7,
    /// Succinct range filter with digest bits: for points.
    SurfHash = 8,
    /// Succinct range filter with key bits: for ranges.
    SurfReal = 9,
    /// Succinct range filter with both.
    SurfMixed = 10,
    /// Bloom filters of binary prefixes; for ranges and points.
    Rosetta = 11,
    /// Set of prefixes and Bloom filter of longer ones, chosen by the samples.
    Proteus = 12,
    /// Bloom filter of prefixes whose length the samples choose.
    OnePrefixBloom = 13,
    /// Two Bloom filters of prefixes whose lengths the samples choose.
    TwoPrefixBloom = 14,
    /// Sorted hashes that keep the order of neighbouring keys: a guaranteed rate for ranges and points.
    Grafite = 15,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 13] = [
        Self::BlockedBloom,
        Self::Prefix,
        Self::Elastic,
        Self::Surf,
        Self::SurfBase,
        Self::SurfHash,
        Self::SurfReal,
        Self::SurfMixed,
        Self::Rosetta,
        Self::Proteus,
        Self::OnePrefixBloom,
        Self::TwoPrefixBloom,
        Self::Grafite,
    ];

    /// The name on the command line and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlockedBloom => "blocked-bloom",
            Self::Prefix => "prefix-bloom",
            Self::Elastic => "elastic",
            Self::Surf => "surf",
            Self::SurfBase => "surf-base",
            Self::SurfHash => "surf-hash",
            Self::SurfReal => "surf-real",
            Self::SurfMixed => "surf-mixed",
            Self::Rosetta => "rosetta",
            Self::Proteus => "proteus",
            Self::OnePrefixBloom => "1pbf",
            Self::TwoPrefixBloom => "2pbf",
            Self::Grafite => "grafite",
        }
    }

    /// Its parameters and purpose in one line.
    pub const fn help(self) -> &'static str {
        match self {
            Self::BlockedBloom => "points: Bloom filter, one cache line per key; probes=1..16",
            Self::Prefix => {
                "ranges: Bloom filter of prefixes; bytes=N or N+M, separator=C or 0xNN, points=yes|no; probes=1..16"
            }
            Self::Elastic => {
                "points: Bloom filter in units, loaded and unloaded one by one in stores that read tables buffered or directly; units=1..8, probes=1..16"
            }
            Self::Surf => {
                "points and ranges: succinct trie; the budget and the sample choose its suffixes; truncate=yes|no (yes: a small budget shortens the trie)"
            }
            Self::SurfBase => "points and ranges: succinct trie without suffixes (no budget needed)",
            Self::SurfHash => "points and ranges: succinct trie with digest bits; bits=N (no budget needed)",
            Self::SurfReal => "points and ranges: succinct trie with key bits; bits=N (no budget needed)",
            Self::SurfMixed => {
                "points and ranges: succinct trie with both; hash=N, real=N (no budget needed)"
            }
            Self::Rosetta => {
                "ranges and points: Bloom filters of binary prefixes, by the sample; probe-cost=NS, read-cost=NS, probe-cap=N"
            }
            Self::Proteus => {
                "points and ranges: set of prefixes and Bloom filter, chosen by the sample; trie=BITS, prefix=BITS, layout=spread|lines, probe-cost=, read-cost=, probe-cap=2..16777216"
            }
            Self::OnePrefixBloom => {
                "points and ranges: Bloom filter of prefixes, chosen by the sample; prefix=BITS, and as proteus"
            }
            Self::TwoPrefixBloom => {
                "points and ranges: two Bloom filters of prefixes; first=BITS, second=BITS, share=0..1, and as proteus"
            }
            Self::Grafite => {
                "ranges and points: sorted hashes; window=N: at most N bytes of a key after those that all share; rate of false positives for ranges of l integers: at most l / 2^(bits per key - 2), without a sample"
            }
        }
    }

    /// The family with a name.
    pub fn from_name(name: &str) -> Result<Self, BuildError> {
        Self::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| BuildError::UnknownFamily {
            name: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }

    /// The family with a number in the format.
    pub fn from_number(number: u16) -> Result<Self, DecodeError> {
        let mut families = Self::ALL.into_iter();
        families.find(|family| *family as u16 == number).ok_or(DecodeError::Family { got: number })
    }

    /// Whether filters of the family can reject ranges of more than one key. The others reject points only.
    pub const fn answers_ranges(self) -> bool {
        !matches!(self, Self::BlockedBloom | Self::Elastic)
    }

    /// Whether filters of the family can name the first key of a range ([`crate::Filter::candidate`]): of any one, or of one with two
    /// bounds.
    pub const fn names_candidates(self, has_two_bounds: bool) -> bool {
        match self {
            Self::Surf | Self::SurfBase | Self::SurfHash | Self::SurfReal | Self::SurfMixed => true,
            Self::Rosetta => has_two_bounds,
            _ => false,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
