//! Windows of symbols: numbers of bytes among those that the keys have.
//!
//! Keys that are text use few of the 256 byte values. The window of such a key is a number with one digit per byte: the
//! rank of the byte in the alphabet of all keys. So 64 bits hold 16 hexadecimal or 19 decimal digits, or about 12
//! letters, instead of 8 bytes. Positions at which all keys have the same byte (separators, leading zeros) have no
//! digit. If keys end inside the window, the end is the least digit.
//!
//! Windows have the order of their keys. Bounds that no key can have are rounded: a lower bound to the next window that
//! a key could have, an upper bound to the previous one.

use std::cmp::Ordering;
use std::ops::Bound;

use super::bounds::{greatest_window, least_window};
use super::rests::Rests;
use crate::{KeyRange, KeySet, Upper};

/// The most bytes of a window.
pub(super) const POSITIONS_MAX: usize = 64;

/// Bytes of the alphabet and of the set of fixed positions.
pub(super) const FRONT_BYTES: usize = ALPHABET_BYTES + 8;
const ALPHABET_BYTES: usize = 32;

/// The symbols take at most this share of the budget.
const BUDGET_DIVISOR: u64 = 16;

/// Keys whose bytes are counted first: mostly these show that the windows would not be better.
const SAMPLED_KEYS: usize = 1024;

/// The stored description of the windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbols {
    pub(super) position_count: usize,
    /// Bit `b % 8` of byte `b / 8` is set if keys have the byte `b`.
    alphabet: [u8; ALPHABET_BYTES],
    /// Bit i is set if all keys have the same byte at position i.
    fixed: u64,
    fixed_bytes: Vec<u8>,
    pub(super) ends_inside: bool,
}

/// A position of a window.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// The number of windows that agree up to and with this position; 0 for a fixed position.
    weight: u64,
    /// The number of windows that agree before this position, less one.
    below: u64,
    /// The byte of a fixed position.
    byte: u8,
}

/// Windows of symbols, ready for queries.
#[derive(Debug, Clone)]
pub(crate) struct SymbolWindow {
    positions: Vec<Position>,
    /// For each byte twice the digit of the least symbol that is not less, plus 1 if the byte is in the alphabet.
    digits: [u16; 256],
    ends_inside: bool,
    /// No key continues after its window.
    is_whole: bool,
    greatest: u64,
}

/// The position of a byte string among the windows.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// It has a window.
    Window(u64),
    /// It ends before a position. Windows of longer strings begin at `least`.
    Inside { least: u64, position: Position },
    /// It has a byte that no key has there: all windows from this one on are greater, all others less. `None`: no window is
    /// greater.
    Between(Option<u64>),
}

impl Symbols {
    /// The symbols for keys; `None` if windows of bytes are as good.
    pub(super) fn of_keys(keys: &KeySet, rests: &Rests) -> Option<Self> {
        let sampled = Self::of_sample(keys, rests)?;
        if keys.len() <= SAMPLED_KEYS {
            return Some(sampled);
        }
        // All keys can only have more symbols than the sample, and so a shorter window.
        Self::of_bytes(keys.iter(), sampled.position_count, rests)
    }

    /// The symbols of some of the keys.
    pub(super) fn of_sample(keys: &KeySet, rests: &Rests) -> Option<Self> {
        let step = keys.len().div_ceil(SAMPLED_KEYS).max(1);
        let sample = (0..keys.len()).step_by(step).filter_map(|index| keys.get(index));
        Self::of_bytes(sample, rests.longest.min(rests.window_max).min(POSITIONS_MAX), rests)
    }

    fn of_bytes<'k>(
        keys: impl Iterator<Item = &'k [u8]>,
        positions_max: usize,
        rests: &Rests,
    ) -> Option<Self> {
        let mut seen = vec![[false; 256]; positions_max];
        for key in keys {
            for (seen, byte) in seen.iter_mut().zip(key.get(rests.shared_bytes..).unwrap_or_default()) {
                if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                    *seen = true;
                }
            }
        }
        let symbols = Self::longest(&seen, rests.shortest);
        symbols.are_better_than_bytes(rests.byte_count() as u32).then_some(symbols)
    }

    /// The longest window that fits into 64 bits.
    fn longest(seen: &[[bool; 256]], shortest: usize) -> Self {
        let mut symbols = Self {
            position_count: 0,
            alphabet: [0; ALPHABET_BYTES],
            fixed: 0,
            fixed_bytes: Vec::new(),
            ends_inside: false,
        };
        for (position, seen) in seen.iter().enumerate() {
            let mut extended = symbols.clone();
            extended.position_count += 1;
            let mut bytes = (0..=255_u8).zip(seen).filter(|(_, seen)| **seen).map(|(byte, _)| byte);
            let first = bytes.next();
            if let (Some(byte), None, true) = (first, bytes.next(), position < shortest) {
                extended.fixed |= 1 << position;
                extended.fixed_bytes.push(byte);
            } else {
                for (byte, _) in seen.iter().enumerate().filter(|(_, seen)| **seen) {
                    if let Some(bits) = extended.alphabet.get_mut(byte / 8) {
                        *bits |= 1 << (byte % 8);
                    }
                }
                extended.ends_inside |= position >= shortest;
            }
            if extended.greatest().is_none() {
                break;
            }
            symbols = extended;
        }
        symbols
    }

    /// Whether they hold more bytes than windows of bytes, or as many with at least a bit less per byte.
    fn are_better_than_bytes(&self, byte_count: u32) -> bool {
        let bits = self.greatest().map_or(u64::BITS, |greatest| u64::BITS - greatest.leading_zeros());
        match (self.position_count as u32).cmp(&byte_count) {
            Ordering::Less => false,
            Ordering::Equal => byte_count > 0 && bits <= 7 * byte_count,
            Ordering::Greater => true,
        }
    }

    /// Reads the symbols at the start of bytes; `None` if they are not valid.
    pub(super) fn decode(bytes: &[u8], position_count: usize, ends_inside: bool) -> Option<Self> {
        let (alphabet, rest) = bytes.split_first_chunk::<ALPHABET_BYTES>()?;
        let (fixed, rest) = rest.split_first_chunk::<8>()?;
        let fixed = u64::from_le_bytes(*fixed);
        let fixed_bytes = rest.get(..fixed.count_ones() as usize)?.to_vec();
        if !(1..=POSITIONS_MAX).contains(&position_count)
            || fixed.checked_shr(position_count as u32).unwrap_or(0) != 0
        {
            return None;
        }
        let symbols = Self { position_count, alphabet: *alphabet, fixed, fixed_bytes, ends_inside };
        symbols.greatest().map(|_| symbols)
    }

    pub(super) fn encode(&self, target: &mut Vec<u8>) {
        target.extend_from_slice(&self.alphabet);
        target.extend_from_slice(&self.fixed.to_le_bytes());
        target.extend_from_slice(&self.fixed_bytes);
    }

    /// The most bytes of the symbols in a filter of so many bytes.
    pub(super) const fn bytes_max(allowed: u64) -> u64 {
        allowed / BUDGET_DIVISOR
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        FRONT_BYTES + self.fixed_bytes.len()
    }

    /// Number of digits, the end of a key included.
    pub(super) fn radix(&self) -> u32 {
        self.alphabet.iter().map(|bits| bits.count_ones()).sum::<u32>() + u32::from(self.ends_inside)
    }

    /// The greatest window; `None` if there are no windows or they do not fit into 64 bits.
    fn greatest(&self) -> Option<u64> {
        let digits = self.position_count as u32 - self.fixed.count_ones();
        let count = u128::from(self.radix()).checked_pow(digits)?;
        u64::try_from(count.checked_sub(1)?).ok()
    }

    /// The windows of keys.
    pub(super) fn window(&self, rests: &Rests) -> SymbolWindow {
        self.symbol_window(rests.longest <= self.position_count)
    }

    /// The windows; `is_whole`: no key continues after its window.
    pub(super) fn symbol_window(&self, is_whole: bool) -> SymbolWindow {
        let mut digits = [0; 256];
        let mut rank = u16::from(self.ends_inside);
        for (byte, digit) in digits.iter_mut().enumerate() {
            let is_symbol = self.alphabet.get(byte / 8).is_some_and(|bits| bits >> (byte % 8) & 1 == 1);
            *digit = rank << 1 | u16::from(is_symbol);
            rank += u16::from(is_symbol);
        }
        let radix = u128::from(self.radix());
        let (mut count, mut fixed_bytes) = (1_u128, self.fixed_bytes.iter().rev());
        let mut positions: Vec<Position> = (0..self.position_count)
            .rev()
            .map(|position| {
                let fixed = (self.fixed >> position & 1 == 1).then(|| fixed_bytes.next().copied()).flatten();
                let weight = if fixed.is_some() { 0 } else { count as u64 };
                count *= if fixed.is_some() { 1 } else { radix };
                Position { weight, below: (count - 1) as u64, byte: fixed.unwrap_or(0) }
            })
            .collect();
        positions.reverse();
        let greatest = (count - 1) as u64;
        SymbolWindow { positions, digits, ends_inside: self.ends_inside, is_whole, greatest }
    }
}

impl SymbolWindow {
    pub(super) const fn position_count(&self) -> usize {
        self.positions.len()
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Number of digits, the end of a key included.
    pub(super) fn radix(&self) -> u16 {
        self.digits.last().map_or(0, |digit| (digit >> 1) + (digit & 1))
    }

    /// The window of a key without the shared prefix.
    #[inline]
    pub(super) fn number(&self, rest: &[u8]) -> u64 {
        match self.place(rest) {
            Place::Window(number) | Place::Inside { least: number, .. } => number,
            // No key has such a byte.
            Place::Between(next) => next.unwrap_or(0),
        }
    }

    #[inline(always)]
    fn place(&self, rest: &[u8]) -> Place {
        let mut number = 0;
        let mut bytes = rest.iter();
        for position in &self.positions {
            let Some(byte) = bytes.next() else {
                return Place::Inside { least: number, position: *position };
            };
            if position.weight == 0 {
                match byte.cmp(&position.byte) {
                    Ordering::Equal => continue,
                    Ordering::Less => return Place::Between(Some(number)),
                    Ordering::Greater => return Place::Between(after(number, position.below)),
                }
            }
            let digit = self.digits.get(usize::from(*byte)).copied().unwrap_or(0);
            if digit & 1 == 0 {
                let step = u64::from(digit >> 1).checked_mul(position.weight);
                return Place::Between(step.and_then(|step| number.checked_add(step)));
            }
            number += u64::from(digit >> 1) * position.weight;
        }
        Place::Window(number)
    }

    /// The window that a key has if it is present; `None` if it is certainly absent.
    #[inline(never)]
    pub(super) fn of_point(&self, shared: &[u8], key: &[u8]) -> Option<u64> {
        let rest = key.strip_prefix(shared)?;
        match self.place(rest) {
            Place::Window(number) => (!self.is_whole || rest.len() == self.positions.len()).then_some(number),
            Place::Inside { least, position } => self.can_end(position).then_some(least),
            Place::Between(_) => None,
        }
    }

    /// The least and the greatest window of keys in a range; `None` if no key can be in the range.
    #[inline(never)]
    pub(super) fn of_range(&self, shared: &[u8], range: &KeyRange<'_>) -> Option<(u64, u64)> {
        let lower = self.lower(shared, range.lower)?;
        let upper = self.upper(shared, range.upper)?;
        // Windows of an empty range are never in ascending order, but may be equal.
        (lower < upper || (lower == upper && !range.is_empty())).then_some((lower, upper))
    }

    /// Whether a key may end before a position.
    const fn can_end(&self, position: Position) -> bool {
        self.ends_inside && position.weight > 0
    }

    #[inline(always)]
    fn lower(&self, shared: &[u8], lower: Bound<&[u8]>) -> Option<u64> {
        least_window(shared, lower, |rest, is_excluded| match self.place(rest) {
            Place::Window(number) => {
                let is_after = rest.len() > self.positions.len() || is_excluded;
                if self.is_whole && is_after { number.checked_add(1) } else { Some(number) }
            }
            Place::Inside { least, position } if is_excluded && self.can_end(position) => {
                least.checked_add(position.weight)
            }
            Place::Inside { least, .. } => Some(least),
            Place::Between(next) => next,
        })
    }

    #[inline(always)]
    fn upper(&self, shared: &[u8], upper: Upper<'_>) -> Option<u64> {
        greatest_window(shared, upper, self.greatest, |rest| match (self.place(rest), upper) {
            // A smaller key with this window would be a prefix of the bound.
            (Place::Window(number), Upper::Excluded(_)) if rest.len() == self.positions.len() => {
                number.checked_sub(1)
            }
            (Place::Window(number), _) => Some(number),
            (Place::Inside { least, position }, Upper::Prefix(_)) => Some(least + position.below),
            (Place::Inside { least, position }, Upper::Included(_)) if self.can_end(position) => Some(least),
            (Place::Inside { least, .. }, _) => least.checked_sub(1),
            (Place::Between(Some(next)), _) => next.checked_sub(1),
            (Place::Between(None), _) => Some(self.greatest),
        })
    }
}

/// The window after those from `least` to `least + below`.
const fn after(least: u64, below: u64) -> Option<u64> {
    match least.checked_add(below) {
        Some(last) => last.checked_add(1),
        None => None,
    }
}

#[cfg(test)]
mod tests;
