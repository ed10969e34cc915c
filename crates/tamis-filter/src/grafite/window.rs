//! The window of a key: the number that Grafite hashes.
//!
//! A window of bytes is the `byte_count` bytes after the prefix that all keys share, big-endian, with zeros after the end of a
//! shorter key. So windows keep the order of the keys, and bounds become bounds of windows: rounded outwards if keys
//! continue after the window, exact if all keys end there. Windows of symbols (`symbols.rs`) replace it for keys of few byte values.

use std::ops::Bound;

use tamis_bits::key_head;

use super::bounds::{greatest_window, least_window};
use super::rests::Rests;
use super::symbols::{SymbolWindow, Symbols};
use crate::{KeyRange, KeySet, Upper};

/// The windows of a filter.
#[derive(Debug, Clone)]
pub(crate) enum Window {
    Bytes(ByteWindow),
    Symbols(Box<SymbolWindow>),
}

impl Window {
    /// The windows of a filter with a budget, by the symbols of some of the keys.
    pub(crate) fn of_sample(keys: &KeySet, bits_per_key: f64, rests: &Rests) -> Self {
        let bytes_max = Symbols::bytes_max((keys.len() as f64 * bits_per_key / 8.0) as u64);
        match Symbols::of_sample(keys, rests) {
            Some(symbols) if symbols.encoded_bytes() as u64 <= bytes_max => {
                Self::Symbols(Box::new(symbols.window(rests)))
            }
            _ => Self::Bytes(ByteWindow::new(rests)),
        }
    }

    /// The window of a key without the shared prefix.
    #[inline(always)]
    pub(super) fn number(&self, rest: &[u8]) -> u64 {
        match self {
            Self::Bytes(window) => window.number(rest),
            Self::Symbols(window) => window.number(rest),
        }
    }

    /// The window that a key has if it is present; `None` if it is certainly absent.
    #[inline(always)]
    pub(super) fn of_point(&self, shared: &[u8], key: &[u8]) -> Option<u64> {
        match self {
            Self::Bytes(window) => window.of_point(shared, key),
            Self::Symbols(window) => window.of_point(shared, key),
        }
    }

    /// The least and the greatest window of keys in a range; `None` if no key can be in the range.
    #[inline(always)]
    pub(crate) fn of_range(&self, shared: &[u8], range: &KeyRange<'_>) -> Option<(u64, u64)> {
        match self {
            Self::Bytes(window) => window.of_range(shared, range),
            Self::Symbols(window) => window.of_range(shared, range),
        }
    }

    /// Bytes of the window.
    pub(crate) fn byte_count(&self) -> usize {
        match self {
            Self::Bytes(window) => window.byte_count as usize,
            Self::Symbols(window) => window.position_count(),
        }
    }

    /// No key continues after its window.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Bytes(window) => window.is_whole,
            Self::Symbols(window) => window.is_whole(),
        }
    }
}

/// Position and kind of windows of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteWindow {
    /// Bytes of the window, 0 to 8.
    pub(super) byte_count: u32,
    /// No key continues after its window.
    pub(super) is_whole: bool,
    /// Each key ends exactly after its window. Implies `is_whole`.
    pub(super) is_fixed: bool,
}

impl ByteWindow {
    pub(super) fn new(rests: &Rests) -> Self {
        let byte_count = rests.byte_count();
        let is_whole = rests.longest <= byte_count;
        Self {
            byte_count: byte_count as u32,
            is_whole,
            is_fixed: is_whole && rests.shortest == rests.longest,
        }
    }

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
    pub(super) fn of_range(&self, shared: &[u8], range: &KeyRange<'_>) -> Option<(u64, u64)> {
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
        least_window(shared, lower, |rest, is_excluded| {
            let number = self.number(rest);
            let byte_count = self.byte_count as usize;
            if self.is_whole && (rest.len() > byte_count || (is_excluded && rest.len() == byte_count)) {
                return number.checked_add(1);
            }
            Some(number)
        })
    }

    #[inline(always)]
    fn upper(&self, shared: &[u8], upper: Upper<'_>) -> Option<u64> {
        greatest_window(shared, upper, self.below(0), |rest| {
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
        })
    }

    /// All bits of the window after a number of bytes.
    #[inline(always)]
    fn below(&self, byte_count: usize) -> u64 {
        let bits = 8 * self.byte_count.saturating_sub(byte_count.min(8) as u32);
        u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }
}
