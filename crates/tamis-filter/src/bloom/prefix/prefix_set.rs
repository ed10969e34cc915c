//! The lengths of the prefixes that a filter stores: a set of byte lengths, and the position after each separator. A key that is shorter than a
//! length is continued by zeros.
//!
//! A filter stores all prefixes of a key that the set selects. The selection depends on the prefix only, not on the
//! rest of the key: if all keys of a range begin with a selected prefix, the filter contains it or the range is empty.

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use super::BYTE_COUNT_MAX;
use crate::{KeyRange, Upper};

/// Maximum number of lengths, and of separators.
const LENGTHS_MAX: usize = 8;
const SEPARATORS_MAX: usize = 4;

/// Separators of a key after which no prefix is stored: bounds the cost of hostile keys.
const SEPARATED_MAX: usize = 16;

/// The prefixes of a key that a filter stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PrefixSet {
    pub(crate) lengths: Lengths,
    pub(crate) separators: Separators,
    /// Whether whole keys are stored, too.
    pub(crate) has_points: bool,
}

/// Ascending lengths in bytes; in text joined by `+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lengths(pub(crate) Vec<u16>);

/// Ascending separator bytes; in text characters or hexadecimal numbers, joined by `+`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Separators(pub(crate) Vec<u8>);

impl PrefixSet {
    /// Bytes of the encoded set after the lines.
    pub(super) fn encoded_bytes(&self) -> usize {
        self.lengths.0.len() * 2 + self.separators.0.len()
    }

    pub(super) fn encode(&self, target: &mut Vec<u8>) {
        target.extend(self.lengths.0.iter().flat_map(|length| length.to_le_bytes()));
        target.extend_from_slice(&self.separators.0);
    }

    /// The set at the end of a payload, and the bytes before it; `None` if no builder writes it.
    pub(super) fn decode(
        payload: &[u8],
        [length_count, separator_count, flags]: [u8; 3],
    ) -> Option<(Self, usize)> {
        let bytes = usize::from(length_count) * 2 + usize::from(separator_count);
        let lines = payload.len().checked_sub(bytes)?;
        let (lengths, separators) = payload.get(lines..)?.split_at_checked(usize::from(length_count) * 2)?;
        let (lengths, _) = lengths.as_chunks::<2>();
        let lengths = Lengths(lengths.iter().map(|length| u16::from_le_bytes(*length)).collect());
        let separators = Separators(separators.to_vec());
        let set = Self { lengths, separators, has_points: flags == 1 };
        (flags <= 1 && set.lengths.is_possible() && set.separators.is_possible()).then_some((set, lines))
    }

    /// Whether it selects nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.lengths.0.is_empty() && self.separators.0.is_empty() && !self.has_points
    }

    /// Maximum number of stored digests per key.
    pub(super) fn per_key_max(&self) -> u64 {
        let separated = if self.separators.0.is_empty() { 0 } else { SEPARATED_MAX };
        (self.lengths.0.len() + separated + usize::from(self.has_points)) as u64
    }

    /// The lengths of the prefixes after separators, ascending.
    fn separated<'k>(&'k self, key: &'k [u8]) -> impl Iterator<Item = usize> + 'k {
        let reach = if self.separators.0.is_empty() { 0 } else { key.len().min(BYTE_COUNT_MAX) };
        let bytes = key.get(..reach).unwrap_or_default();
        let is_separator = |(_, byte): &(usize, &u8)| self.separators.0.contains(byte);
        bytes.iter().enumerate().filter(is_separator).take(SEPARATED_MAX).map(|(place, _)| place + 1)
    }

    /// The only length of all stored prefixes.
    pub(crate) fn only_length(&self) -> Option<usize> {
        match (self.lengths.0.as_slice(), self.separators.0.is_empty(), self.has_points) {
            ([length], true, false) => Some(usize::from(*length)),
            _ => None,
        }
    }

    /// Calls `visit` with the lengths of the stored prefixes of a key that are longer than `known`, each once.
    pub(crate) fn for_each_length(&self, key: &[u8], known: usize, mut visit: impl FnMut(usize)) {
        let fixed = || self.lengths.0.iter().map(|length| usize::from(*length));
        for length in fixed().filter(|length| *length > known) {
            visit(length);
        }
        for length in self.separated(key).filter(|length| *length > known) {
            if fixed().all(|other| other != length) {
                visit(length);
            }
        }
    }

    /// The length of the longest stored prefix of the keys that begin with these bytes.
    #[inline]
    pub(crate) fn longest(&self, bytes: &[u8]) -> Option<usize> {
        let fixed = self.lengths.0.iter().map(|length| usize::from(*length));
        fixed.filter(|length| *length <= bytes.len()).max().max(self.separated(bytes).last())
    }

    /// The length of the longest stored prefix of a key.
    #[inline]
    pub(crate) fn longest_of_key(&self, key: &[u8]) -> Option<usize> {
        self.lengths.0.last().map(|length| usize::from(*length)).max(self.separated(key).last())
    }
}

impl Lengths {
    pub(super) fn is_possible(&self) -> bool {
        self.0.len() <= LENGTHS_MAX
            && self.0.first().is_none_or(|first| *first > 0)
            && self.0.is_sorted_by(|left, right| left < right)
    }
}

impl FromStr for Lengths {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut lengths = text.split('+').map(str::parse).collect::<Result<Vec<u16>, _>>().map_err(|_| ())?;
        lengths.sort_unstable();
        lengths.dedup();
        Ok(Self(lengths))
    }
}

impl Separators {
    pub(super) fn is_possible(&self) -> bool {
        self.0.len() <= SEPARATORS_MAX && self.0.is_sorted_by(|left, right| left < right)
    }
}

impl FromStr for Separators {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let byte = |text: &str| match (text.strip_prefix("0x"), text.as_bytes()) {
            (Some(digits), _) => u8::from_str_radix(digits, 16).map_err(|_| ()),
            (None, [byte]) if byte.is_ascii_graphic() => Ok(*byte),
            _ => Err(()),
        };
        let mut separators = text.split('+').map(byte).collect::<Result<Vec<u8>, ()>>()?;
        separators.sort_unstable();
        separators.dedup();
        Ok(Self(separators))
    }
}

/// The lengths and separators, for people.
impl fmt::Display for PrefixSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joint = "";
        for length in &self.lengths.0 {
            write!(formatter, "{joint}{length}")?;
            joint = ", ";
        }
        if !self.lengths.0.is_empty() {
            write!(formatter, " bytes")?;
        }
        for separator in &self.separators.0 {
            write!(formatter, "{joint}up to 0x{separator:02x}")?;
            joint = ", ";
        }
        if self.has_points { write!(formatter, "{joint}whole keys") } else { Ok(()) }
    }
}

/// Bytes that all keys of a range begin with: a prefix of the lower bound, the longest one that the bounds determine.
pub(crate) fn common_prefix<'a>(range: &KeyRange<'a>) -> &'a [u8] {
    let lower = match range.lower {
        Bound::Unbounded => return &[],
        Bound::Included(lower) | Bound::Excluded(lower) => lower,
    };
    let Some(upper) = range.upper_bytes() else { return &[] };
    let same = tamis_bits::common_prefix_length(lower, upper);
    let mut length = same;
    // An excluded bound that is the successor of a prefix: keys below it continue as the lower bound does, with
    // its next byte and all bytes of 255 after that.
    if let (Upper::Excluded(upper), Some(byte)) = (range.upper, lower.get(same))
        && upper.len() == same + 1
        && upper.last().copied() == byte.checked_add(1)
    {
        length += 1;
        length += lower.iter().skip(length).take_while(|byte| **byte == 0xff).count();
    }
    lower.get(..length).unwrap_or_default()
}
