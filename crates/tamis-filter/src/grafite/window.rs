//! The window of a key: the number that Grafite hashes.
//!
//! A window is the `byte_count` bytes after the prefix that all keys share, big-endian, with zeros after the end of a
//! shorter key. So windows keep the order of the keys, and bounds become bounds of windows: rounded outwards if keys
//! continue after the window, exact if all keys end there.

use std::ops::Bound;

use tamis_bits::key_head;

use crate::{KeyRange, Upper};

/// Position and kind of the windows of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Bytes of the window, 0 to 8.
    pub(crate) byte_count: u32,
    /// No key continues after its window.
    pub(crate) is_whole: bool,
    /// Each key ends exactly after its window. Implies `is_whole`.
    pub(crate) is_fixed: bool,
}

impl Window {
    /// The window of the bytes after the shared prefix.
    #[inline(always)]
    pub(super) fn number(&self, rest: &[u8]) -> u64 {
        key_head(rest).checked_shr(64 - 8 * self.byte_count).unwrap_or(0)
    }

    /// The window that a key has if it is present; `None` if it is certainly absent.
    #[inline(always)]
    pub(super) fn of_point(&self, shared: &[u8], key: &[u8]) -> Option<u64> {
        let rest = key.strip_prefix(shared)?;
        let byte_count = self.byte_count as usize;
        let is_possible =
            if self.is_fixed { rest.len() == byte_count } else { !self.is_whole || rest.len() <= byte_count };
        is_possible.then(|| self.number(rest))
    }

    /// The least and the greatest window of keys in a range; `None` if no key can be in the range.
    #[inline(always)]
    pub(crate) fn of_range(&self, shared: &[u8], range: &KeyRange<'_>) -> Option<(u64, u64)> {
        let lower = self.lower(shared, range.lower)?;
        let upper = self.upper(shared, range.upper)?;
        // Windows of an empty range are never in ascending order, but may be equal.
        if lower < upper {
            return Some((lower, upper));
        }
        if lower > upper || range.is_empty() {
            return None;
        }
        match range.as_point() {
            Some(point) => self.of_point(shared, point).map(|number| (number, number)),
            None => Some((lower, upper)),
        }
    }

    #[inline(always)]
    fn lower(&self, shared: &[u8], lower: Bound<&[u8]>) -> Option<u64> {
        let (bound, is_excluded) = match lower {
            Bound::Unbounded => return Some(0),
            Bound::Included(bound) => (bound, false),
            Bound::Excluded(bound) => (bound, true),
        };
        let Some(rest) = bound.strip_prefix(shared) else {
            return (bound < shared).then_some(0);
        };
        let number = self.number(rest);
        let byte_count = self.byte_count as usize;
        if self.is_whole && (rest.len() > byte_count || (is_excluded && rest.len() == byte_count)) {
            return number.checked_add(1);
        }
        Some(number)
    }

    #[inline(always)]
    fn upper(&self, shared: &[u8], upper: Upper<'_>) -> Option<u64> {
        let greatest = self.below(0);
        let bound = match upper {
            Upper::Open => return Some(greatest),
            Upper::Prefix(bound) if shared.starts_with(bound) => return Some(greatest),
            Upper::Included(bound) | Upper::Excluded(bound) | Upper::Prefix(bound) => bound,
        };
        let Some(rest) = bound.strip_prefix(shared) else {
            return (bound > shared).then_some(greatest);
        };
        let number = self.number(rest);
        let is_short = rest.len() < self.byte_count as usize;
        let is_inside = rest.len() <= self.byte_count as usize;
        match upper {
            Upper::Prefix(_) => Some(number | self.below(rest.len())),
            Upper::Included(_) if self.is_fixed && is_short => number.checked_sub(1),
            // A smaller key with this window is the bound without zeros at its end, or continues after the window.
            Upper::Excluded(_) if is_inside && (self.is_fixed || !rest.ends_with(&[0])) => {
                number.checked_sub(1)
            }
            _ => Some(number),
        }
    }

    /// All bits of the window after a number of bytes.
    #[inline(always)]
    fn below(&self, byte_count: usize) -> u64 {
        let bits = 8 * self.byte_count.saturating_sub(byte_count.min(8) as u32);
        u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }
}
