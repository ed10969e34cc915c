//! Queries over text keys: points, closed ranges and prefixes without a key, closed ranges of which a share is empty,
//! and ranges that all contain a key.
//!
//! A range is one step of a last byte: `[word, word']`, where `word'` ends with the next byte. As among integers each
//! draw makes its calls of the generator in a fixed order, also if it is rejected. Cost: one binary search in the keys
//! per draw.

use std::{fmt, str::FromStr};

use crate::{
    prng::{SplitMix64, mix64},
    queries::{NoEmptyRange, accepted, holds_key, is_empty_turn, share},
    strings::{TextDraws, TextSet},
};

#[cfg(test)]
mod tests;

/// A closed range of text: both bounds are included.
pub type TextRange = (Vec<u8>, Vec<u8>);

/// A distribution of ranges of text; only [`TextQuerySet::Mixed`] contains ranges with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextQuerySet {
    /// Texts of the same kind as the keys.
    Points,
    /// One step of the last byte, from such a text on.
    Ranges,
    /// All keys with a prefix of such a text, of a number of bytes (at least one).
    Prefix(usize),
    /// Ranges as [`TextQuerySet::Ranges`] with a percentage of empty ones (0 to 100), evenly mixed; the others contain
    /// a key.
    Mixed(u8),
}

impl TextQuerySet {
    /// The sets without parameters, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Points, Self::Ranges];

    /// Ranges over `keys` (ascending, of kind `text_set`), in the order of drawing. `count` of them; of ranges and
    /// prefixes fewer if some of `count` texts give no empty one. The seed must differ from that of the keys.
    ///
    /// # Errors
    /// [`NoEmptyRange`] when there are no keys, or none of the wanted ranges was found.
    pub fn generate(
        self,
        text_set: TextSet,
        keys: &[Vec<u8>],
        count: usize,
        seed: u64,
    ) -> Result<Vec<TextRange>, NoEmptyRange> {
        let words = || absent_texts(text_set, keys, count, seed);
        let ranges = match self {
            _ if keys.is_empty() => Vec::new(),
            Self::Points => words().into_iter().map(|word| (word.clone(), word)).collect(),
            Self::Ranges => empty_text_ranges(keys, &words()),
            Self::Prefix(length) => {
                empty_prefixes(keys, &words(), length).iter().map(|prefix| whole(prefix)).collect()
            }
            Self::Mixed(percent) => mixed(text_set, keys, percent, count, seed).unwrap_or_default(),
        };
        if ranges.is_empty() && count > 0 {
            return Err(NoEmptyRange { set: self.to_string(), key_count: keys.len() });
        }
        Ok(ranges)
    }
}

/// `count` ranges that each contain at least one of `keys` (ascending): every filter must return `true`. Alternating:
/// a key, one step of the last byte from or to a key, and all keys with the first half of a key as prefix. Without
/// keys there are no ranges.
pub fn non_empty_text_ranges(keys: &[Vec<u8>], count: usize, seed: u64) -> Vec<TextRange> {
    let mut random = SplitMix64::new(seed);
    let ranges = accepted(count, |index| match index % 3 {
        0 => drawn(keys, &mut random).map(|key| (key.clone(), key.clone())),
        1 => holding(keys, &mut random),
        _ => drawn(keys, &mut random).map(|key| whole(key.get(..key.len() / 2).unwrap_or_default())),
    });
    ranges.unwrap_or_default()
}

/// See [`TextQuerySet::Mixed`]; `None` if the keys leave no room for empty ranges.
fn mixed(
    text_set: TextSet,
    keys: &[Vec<u8>],
    percent: u8,
    count: usize,
    seed: u64,
) -> Option<Vec<TextRange>> {
    let mut words = TextDraws::new(text_set, seed);
    let mut random = SplitMix64::new(mix64(seed));
    accepted(count, |index| {
        if !is_empty_turn(index, percent) {
            return holding(keys, &mut random);
        }
        let range = step(words.draw())?;
        (!holds_key(keys, &range.0, &range.1)).then_some(range)
    })
}

/// A range that begins or ends with a key.
fn holding(keys: &[Vec<u8>], random: &mut SplitMix64) -> Option<TextRange> {
    let mut lower = drawn(keys, random)?.clone();
    if random.below(2) == 1 {
        let last = lower.last_mut()?;
        *last = last.checked_sub(1)?;
    }
    step(lower)
}

fn drawn<'keys>(keys: &'keys [Vec<u8>], random: &mut SplitMix64) -> Option<&'keys Vec<u8>> {
    keys.get(random.below(keys.len() as u64) as usize)
}

/// From a text to the one that ends with the next byte; `None` for a text that ends with the greatest byte, and for
/// the empty one.
fn step(lower: Vec<u8>) -> Option<TextRange> {
    let mut upper = lower.clone();
    let last = upper.last_mut()?;
    *last = last.checked_add(1)?;
    Some((lower, upper))
}

/// All keys that begin with these bytes: no key contains a byte of 255, so no key with the prefix is greater.
fn whole(prefix: &[u8]) -> TextRange {
    (prefix.to_vec(), [prefix, &[u8::MAX]].concat())
}

/// `count` texts of a set that are none of `keys` (ascending), in the order of drawing; one may occur twice. The seed
/// must differ from that of the keys.
pub fn absent_texts(set: TextSet, keys: &[Vec<u8>], count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut draws = TextDraws::new(set, seed);
    let absent = std::iter::repeat_with(|| draws.draw()).filter(|text| keys.binary_search(text).is_err());
    absent.take(count).collect()
}

/// Closed ranges of text from a word on: `[word, word']`, where `word'` ends with the next byte. Omits ranges that
/// contain one of `keys` (ascending), and words that end with the greatest byte.
pub fn empty_text_ranges(keys: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<TextRange> {
    let ranges = words.iter().filter_map(|word| step(word.clone()));
    ranges.filter(|(lower, upper)| !holds_key(keys, lower, upper)).collect()
}

/// Prefixes of `length` bytes of `words` that no key begins with. Each represents all keys that begin with it.
pub fn empty_prefixes(keys: &[Vec<u8>], words: &[Vec<u8>], length: usize) -> Vec<Vec<u8>> {
    let mut prefixes: Vec<Vec<u8>> =
        words.iter().filter_map(|word| word.get(..length)).map(<[u8]>::to_vec).collect();
    prefixes.dedup();
    prefixes.retain(|prefix| {
        let next = keys.partition_point(|key| key < prefix);
        keys.get(next).is_none_or(|key| !key.starts_with(prefix))
    });
    prefixes
}

impl fmt::Display for TextQuerySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Points => formatter.write_str("points"),
            Self::Ranges => formatter.write_str("ranges"),
            Self::Prefix(length) => write!(formatter, "prefix_b{}", length * 8),
            Self::Mixed(percent) => write!(formatter, "mixed_e{percent}"),
        }
    }
}

impl FromStr for TextQuerySet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let whole_bytes = |bits: usize| (bits > 0 && bits.is_multiple_of(8)).then_some(bits / 8);
        let prefix = || name.strip_prefix("prefix_b")?.parse().ok().and_then(whole_bytes).map(Self::Prefix);
        let mixed = || name.strip_prefix("mixed_e").and_then(share).map(Self::Mixed);
        let named = Self::ALL.into_iter().find(|set| set.to_string() == name);
        named.or_else(prefix).or_else(mixed).ok_or_else(|| {
            format!(
                "no query set of text named {name:?}; there are points, ranges, prefix_bN (N a multiple of 8), mixed_eN (N percent are empty)"
            )
        })
    }
}
