//! Sets of ranges over a key set: ranges without a key, and ranges with at least one.
//!
//! All ranges are closed: `[left, right]`, both inclusive. Each draw makes its calls of the generator in a fixed
//! order, also if it is rejected: so keys, count and seed determine a set. Cost: one binary search in the keys per
//! draw.

use std::{fmt, str::FromStr};

use crate::{keys::KeySet, prng::SplitMix64};

#[cfg(test)]
mod tests;

/// The seed of the published query files.
pub const QUERY_SEED: u64 = 43;
/// The seed of the published sample files.
pub const SAMPLE_SEED: u64 = 44;
/// The seed of the published sets of non-empty ranges.
pub const NON_EMPTY_SEED: u64 = 45;

/// Farthest distance of a correlated range from its key.
const CORRELATED_DISTANCE_MAX: u64 = 1024;
/// Longest uniform half of a split set.
const SPLIT_LENGTH_MAX: u64 = 1 << 30;
/// Longest uniform half of a split set over [`KeySet::Gaps`], whose gaps are short.
const SPLIT_LENGTH_MAX_GAPS: u64 = 1024;
/// Maximum number of consecutive rejected draws before the keys count as leaving no room.
const REJECTED_MAX: u32 = 1_000_000;

/// A closed range: `left <= right`, both inclusive.
pub type Range = (u64, u64);

/// Maximum length of ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeMax {
    /// Points: `right == left`.
    Point,
    /// `right - left` from 2 to 32.
    R32,
    /// `right - left` from 2 to 1024.
    R1024,
    /// `right - left` from 2 to 2^20.
    R1m,
}

impl RangeMax {
    /// All lengths.
    pub const ALL: [Self; 4] = [Self::Point, Self::R32, Self::R1024, Self::R1m];

    /// The largest `right - left`.
    pub fn length_max(self) -> u64 {
        match self {
            Self::Point => 0,
            Self::R32 => 32,
            Self::R1024 => 1024,
            Self::R1m => 1 << 20,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Point => "r0",
            Self::R32 => "r32",
            Self::R1024 => "r1024",
            Self::R1m => "r1m",
        }
    }
}

/// A distribution of ranges; only [`QuerySet::Mixed`] contains ranges with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuerySet {
    /// Anywhere in the key space (for [`KeySet::Gaps`]: between the least and the greatest key).
    Uniform(RangeMax),
    /// From 1 to 1024 above a key.
    Correlated(RangeMax),
    /// Alternating: correlated of length 32 at most, and uniform and long.
    Split,
    /// All keys with one prefix of a number of bits (1 to 64).
    Prefix(u8),
    /// Uniform ranges with a percentage of empty ones (0 to 100), evenly mixed; the others contain a key.
    Mixed(RangeMax, u8),
}

/// The keys are so dense that no empty range of the wanted kind was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no empty range of kind {set} was found among {key_count} keys; use shorter ranges, longer prefixes, sparser keys, or another number of keys"
)]
pub struct NoEmptyRange {
    /// Name of the wanted set.
    pub set: String,
    /// Number of keys.
    pub key_count: usize,
}

impl QuerySet {
    /// All published sets, in the order in which they are listed to users. [`QuerySet::Prefix`] and
    /// [`QuerySet::Mixed`] are not published: they have a parameter.
    pub fn all() -> impl Iterator<Item = Self> {
        let uniform = RangeMax::ALL.into_iter().map(Self::Uniform);
        let correlated = RangeMax::ALL.into_iter().map(Self::Correlated);
        uniform.chain(correlated).chain([Self::Split])
    }

    /// The published sets for a kind of keys. Among `gaps` almost none of the longest ranges is empty, and the search
    /// for one takes minutes.
    pub fn published(key_set: KeySet) -> impl Iterator<Item = Self> {
        let is_long =
            |set: &Self| matches!(set, Self::Uniform(RangeMax::R1m) | Self::Correlated(RangeMax::R1m));
        Self::all().filter(move |set| key_set != KeySet::Gaps || !is_long(set))
    }

    /// `count` ranges without any of `keys` (ascending, of kind `key_set`; except for [`QuerySet::Mixed`]), in the
    /// order of drawing.
    ///
    /// # Errors
    /// [`NoEmptyRange`] when there are no keys, or they leave no room for such ranges.
    pub fn generate(
        self,
        key_set: KeySet,
        keys: &[u64],
        count: usize,
        seed: u64,
    ) -> Result<Vec<Range>, NoEmptyRange> {
        let space = match key_set {
            KeySet::Gaps | KeySet::Zipf => Space::Between { split_length_max: SPLIT_LENGTH_MAX_GAPS },
            KeySet::Uniform | KeySet::Normal => Space::Whole,
        };
        self.generate_in(space, keys, count, seed)
    }

    /// The same over any ascending numbers.
    pub(crate) fn generate_in(
        self,
        space: Space,
        keys: &[u64],
        count: usize,
        seed: u64,
    ) -> Result<Vec<Range>, NoEmptyRange> {
        let fail = || NoEmptyRange { set: self.to_string(), key_count: keys.len() };
        let (Some(&least), Some(&greatest)) = (keys.first(), keys.last()) else { return Err(fail()) };
        let (bounds, split_length_max) = match space {
            Space::Whole => (None, SPLIT_LENGTH_MAX),
            Space::Between { split_length_max } => (Some((least, greatest)), split_length_max),
        };
        let mut draws = Draws { random: SplitMix64::new(seed), keys, bounds };
        let draw = |index: usize| match self {
            Self::Uniform(length) => draws.uniform(length.length_max()),
            Self::Correlated(length) => draws.correlated(length.length_max()),
            Self::Split if index.is_multiple_of(2) => draws.correlated(RangeMax::R32.length_max()),
            Self::Split => draws.uniform(split_length_max),
            Self::Prefix(bits) => draws.prefix(bits),
            Self::Mixed(length, percent) if is_empty_turn(index, percent) => {
                draws.uniform(length.length_max())
            }
            Self::Mixed(length, _) => draws.holding(length),
        };
        accepted(count, draw).ok_or_else(fail)
    }
}

/// The starts of uniform ranges, and the maximum length of the uniform half of a split set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Space {
    /// Any 64-bit number.
    Whole,
    /// Between the least and the greatest key.
    Between { split_length_max: u64 },
}

/// Draws until a number of ranges were accepted; `draw` gets the number of those before. `None`: a million were
/// rejected in a row.
pub(crate) fn accepted<R>(count: usize, mut draw: impl FnMut(usize) -> Option<R>) -> Option<Vec<R>> {
    let mut ranges = Vec::with_capacity(count);
    let mut rejected = 0;
    while ranges.len() < count {
        if let Some(range) = draw(ranges.len()) {
            ranges.push(range);
            rejected = 0;
        } else if rejected == REJECTED_MAX {
            return None;
        } else {
            rejected += 1;
        }
    }
    Some(ranges)
}

/// Whether a closed range contains one of `keys` (ascending).
pub(crate) fn holds_key<K: Ord>(keys: &[K], lower: &K, upper: &K) -> bool {
    let next = keys.partition_point(|key| key < lower);
    keys.get(next).is_some_and(|key| key <= upper)
}

/// Draws one range at a time; `None` is a rejected one.
struct Draws<'keys> {
    random: SplitMix64,
    keys: &'keys [u64],
    /// The least and the greatest left end of uniform ranges; `None`: the whole key space.
    bounds: Option<(u64, u64)>,
}

impl Draws<'_> {
    fn uniform(&mut self, length_max: u64) -> Option<Range> {
        let (left, offset) = self.uniform_ends(length_max);
        self.empty(left, left.checked_add(offset))
    }

    /// A left end and `right - left`.
    fn uniform_ends(&mut self, length_max: u64) -> (u64, u64) {
        let left = match self.bounds {
            // A span of all 2^64 numbers wraps to 0, which `below` interprets as 2^64.
            Some((least, greatest)) => least + self.random.below((greatest - least).wrapping_add(1)),
            None => self.random.below(0_u64.wrapping_sub(length_max)),
        };
        (left, self.offset(length_max))
    }

    fn correlated(&mut self, length_max: u64) -> Option<Range> {
        let index = self.random.below(self.keys.len() as u64);
        let distance = 1 + self.random.below(CORRELATED_DISTANCE_MAX);
        let offset = self.offset(length_max);
        let left = self.keys.get(index as usize)?.checked_add(distance)?;
        self.empty(left, left.checked_add(offset))
    }

    fn prefix(&mut self, bits: u8) -> Option<Range> {
        let (left, _) = self.uniform_ends(0);
        let rest = u64::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
        self.empty(left & !rest, Some(left | rest))
    }

    /// A range that contains a key.
    fn holding(&mut self, length: RangeMax) -> Option<Range> {
        holding(self.keys, length, &mut self.random)
    }

    /// `right - left`: 0 for points, otherwise uniform in `[2, length_max]`.
    fn offset(&mut self, length_max: u64) -> u64 {
        if length_max == 0 { 0 } else { 2 + self.random.below(length_max - 1) }
    }

    fn empty(&self, left: u64, right: Option<u64>) -> Option<Range> {
        let right = right?;
        (!holds_key(self.keys, &left, &right)).then_some((left, right))
    }
}

/// `count` ranges that each contain at least one of `keys`: every filter must return `true`. Points and ranges of at
/// most 32, 1024 and 2^20 alternate. Without keys there are no ranges.
pub fn non_empty_ranges(keys: &[u64], count: usize, seed: u64) -> Vec<Range> {
    let mut random = SplitMix64::new(seed);
    let mut ranges = Vec::with_capacity(count);
    for length in RangeMax::ALL.into_iter().cycle().take(count) {
        let Some(range) = holding(keys, length, &mut random) else { break };
        ranges.push(range);
    }
    ranges
}

/// A range around a random key; `None` when there are no keys.
fn holding(keys: &[u64], length: RangeMax, random: &mut SplitMix64) -> Option<Range> {
    let index = random.below(keys.len() as u64);
    let (offset, back) = match length.length_max() {
        0 => (0, 0),
        length_max => {
            let offset = 2 + random.below(length_max - 1);
            (offset, random.below(offset + 1))
        }
    };
    let left = keys.get(index as usize)?.saturating_sub(back);
    Some((left, left.saturating_add(offset)))
}

/// Whether the range with a number is an empty one, so that of each hundred `percent` are, evenly mixed.
pub(crate) fn is_empty_turn(index: usize, percent: u8) -> bool {
    let percent = usize::from(percent.min(100));
    (index + 1) * percent / 100 > index * percent / 100
}

impl fmt::Display for QuerySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(length) => write!(formatter, "uniform_{}", length.name()),
            Self::Correlated(length) => write!(formatter, "correlated_{}", length.name()),
            Self::Split => formatter.write_str("split"),
            Self::Prefix(bits) => write!(formatter, "prefix_b{bits}"),
            Self::Mixed(length, percent) => write!(formatter, "mixed_{}_e{percent}", length.name()),
        }
    }
}

impl FromStr for QuerySet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let numbered = name.strip_prefix("prefix_b").map_or_else(|| mixed(name), prefix);
        numbered.or_else(|| Self::all().find(|set| set.to_string() == name)).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(|set| set.to_string()).collect();
            format!(
                "no query set named {name:?}; there are {}, prefix_b1 to prefix_b64, mixed_R_eN (R is r0, r32, r1024 or r1m, N percent are empty)",
                names.join(", ")
            )
        })
    }
}

fn prefix(bits: &str) -> Option<QuerySet> {
    bits.parse().ok().filter(|bits| (1..=64).contains(bits)).map(QuerySet::Prefix)
}

/// `mixed_r32_e50`.
fn mixed(name: &str) -> Option<QuerySet> {
    let (length, percent) = name.strip_prefix("mixed_")?.split_once("_e")?;
    let length = RangeMax::ALL.into_iter().find(|own| own.name() == length)?;
    Some(QuerySet::Mixed(length, share(percent)?))
}

/// A percentage.
pub(crate) fn share(percent: &str) -> Option<u8> {
    percent.parse().ok().filter(|percent| *percent <= 100)
}
