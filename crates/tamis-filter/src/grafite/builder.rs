//! Builds Grafite: windows, hashes, sorted, in Elias-Fano, with the largest modulus that the budget permits.

use std::sync::Arc;

use tamis_bits::elias_fano;

use super::hash::{self, BlockHash};
use super::rests::Rests;
use super::symbols::{self, Symbols};
use super::window::{ByteWindow, Window};
use super::{FLAG_ENDS_INSIDE, FLAG_EXACT, FLAG_FIXED, FLAG_SYMBOLS, FLAG_WHOLE, FRONT_BYTES, MODULUS_MAX};
use crate::bloom::empty_filter;
use crate::envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES, set_parameter};
use crate::key_set::KeptKeys;
use crate::parameters::Parameters;
use crate::{Budget, BuildError, Family, FilterBuilder, KeySet, Samples};

/// Bytes by which the payload may exceed the budget: 128 less the envelope.
const SLACK_BYTES: u64 = 64;

/// The least modulus, per hash: an absent key passes half of the time.
const MODULUS_PER_HASH_MIN: u64 = 2;

/// The shared prefix takes at most this many bytes, or this share of the budget.
const SHARED_BYTES_MAX: u64 = 16;
const SHARED_BUDGET_DIVISOR: u64 = 16;

/// Builder of [`Family::Grafite`].
#[derive(Debug)]
pub struct GrafiteBuilder {
    keys: KeptKeys,
    /// The most bytes of a window.
    window_max: usize,
    seed: u64,
}

/// The windows of all keys.
#[derive(Debug)]
struct Windows {
    shared_bytes: usize,
    window: Window,
    symbols: Option<Symbols>,
    /// Distinct, ascending.
    numbers: Vec<u64>,
    /// Share of the keys whose window another key has, too.
    ambiguous: f64,
}

impl GrafiteBuilder {
    /// A builder with a seed for the hash.
    pub const fn new(seed: u64) -> Self {
        Self { keys: KeptKeys::new(), window_max: symbols::POSITIONS_MAX, seed }
    }

    pub(crate) fn with_parameters(parameters: &mut Parameters<'_>, seed: u64) -> Result<Self, BuildError> {
        let possible = |bytes: &usize| (1..=symbols::POSITIONS_MAX).contains(bytes);
        let window_max = parameters.take("window", "1 to 64 bytes", possible)?;
        parameters.finish("window")?;
        let builder = Self::new(seed);
        Ok(Self { window_max: window_max.unwrap_or(builder.window_max), ..builder })
    }

    /// The bytes that all keys share.
    fn shared_prefix(&self) -> &[u8] {
        let first = self.keys.get(0).unwrap_or_default();
        let last = self.keys.len().checked_sub(1).and_then(|last| self.keys.get(last)).unwrap_or_default();
        let length = tamis_bits::common_prefix_length(first, last);
        first.get(..length).unwrap_or_default()
    }

    /// The windows after the shared bytes; with symbols if these take at most `symbols_max` bytes.
    fn windows(&self, shared_bytes: usize, symbols_max: u64) -> Windows {
        let rests = Rests::of(self.keys.lengths(), shared_bytes, self.window_max);
        let symbols = if symbols_max < symbols::FRONT_BYTES as u64 {
            None
        } else {
            let symbols = Symbols::of_keys(&self.keys, &rests);
            symbols.filter(|symbols| symbols.encoded_bytes() as u64 <= symbols_max)
        };
        let window = match &symbols {
            Some(symbols) => Window::Symbols(Box::new(symbols.window(&rests))),
            None => Window::Bytes(ByteWindow::new(&rests)),
        };
        let rest_of = |key: &[u8]| window.number(key.get(shared_bytes..).unwrap_or_default());
        let mut numbers: Vec<u64> = self.keys.iter().map(rest_of).collect();
        let single_count =
            numbers.chunk_by(|left, right| left == right).filter(|same| same.len() == 1).count();
        let ambiguous = 1.0 - single_count as f64 / (numbers.len() as f64).max(1.0);
        numbers.dedup();
        Windows { shared_bytes, window, symbols, numbers, ambiguous }
    }
}

impl Windows {
    /// Bytes of the payload if the greatest hash is `last`; `None` beyond 64 bits.
    fn payload_bytes(&self, last: u64) -> Option<u64> {
        let symbols = self.symbols.as_ref().map_or(0, Symbols::encoded_bytes);
        payload_bytes(self.numbers.len() as u64, last, symbols + self.shared_bytes)
    }

    /// The greatest window, and the least hash range that the family builds.
    fn bounds(&self) -> (u64, u64) {
        let greatest = self.numbers.last().copied().unwrap_or(0);
        let least = self.numbers.len() as u64 * MODULUS_PER_HASH_MIN - 1;
        (greatest, least.min(greatest))
    }

    /// The greatest hash of the largest modulus that fits: the greatest window itself if all windows fit unhashed.
    fn fitting_last(&self, allowed: u64) -> Option<u64> {
        let (greatest, least) = self.bounds();
        let fits = |last: u64| self.payload_bytes(last).is_some_and(|bytes| bytes <= allowed);
        if fits(greatest) {
            return Some(greatest);
        }
        let (mut found, mut end) = (fits(least).then_some(least)?, greatest.min(MODULUS_MAX));
        while found + 1 < end {
            let middle = u64::midpoint(found, end);
            if fits(middle) { found = middle } else { end = middle }
        }
        Some(found)
    }

    /// The parameters, and the sorted hashes.
    fn hashes(&self, seed: u64, last: u64) -> ([u8; PARAMETER_BYTES], Vec<u64>) {
        let (greatest, _) = self.bounds();
        let is_exact = last == greatest;
        let hashes = if is_exact {
            self.numbers.clone()
        } else {
            let hash = BlockHash::new(seed, last + 1);
            hash::sort(self.numbers.iter().map(|number| hash.hash(*number)).collect(), last)
        };
        let hashed_fpr = if is_exact { 0.0 } else { hashes.len() as f64 / (last as f64 + 1.0) };
        let predicted_fpr = self.ambiguous + (1.0 - self.ambiguous) * hashed_fpr;
        let mut parameters = [0; PARAMETER_BYTES];
        let has = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let form = match (&self.window, &self.symbols) {
            (Window::Bytes(window), _) => has(FLAG_FIXED, window.is_fixed),
            (_, symbols) => {
                let ends_inside = symbols.as_ref().is_some_and(|symbols| symbols.ends_inside);
                FLAG_SYMBOLS | has(FLAG_ENDS_INSIDE, ends_inside)
            }
        };
        parameters[0] = self.window.byte_count() as u8;
        parameters[1] = has(FLAG_WHOLE, self.window.is_whole()) | has(FLAG_EXACT, is_exact) | form;
        set_parameter(&mut parameters, 2, (self.shared_bytes as u16).to_le_bytes());
        set_parameter(&mut parameters, 4, (predicted_fpr.min(1.0) as f32).to_le_bytes());
        set_parameter(&mut parameters, 8, last.to_le_bytes());
        (parameters, hashes)
    }
}

fn payload_bytes(count: u64, last: u64, other_bytes: usize) -> Option<u64> {
    elias_fano::encoded_bytes(count, last)?.checked_add((FRONT_BYTES + other_bytes) as u64)
}

impl FilterBuilder for GrafiteBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.keys.push(key)
    }

    fn add_all(&mut self, keys: &Arc<KeySet>) -> Result<(), BuildError> {
        self.keys.push_all(keys)
    }

    fn key_count(&self) -> u64 {
        self.keys.len() as u64
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    fn finish(&self, budget: Budget, _samples: Samples<'_>) -> Result<Vec<u8>, BuildError> {
        let given = budget.require(Family::Grafite.name())?;
        let key_count = self.keys.len() as u64;
        if key_count == 0 {
            let mut filter = empty_filter(0)?;
            Envelope::new(Family::Grafite, self.seed, 0, [0; PARAMETER_BYTES]).seal(&mut filter);
            return Ok(filter);
        }
        let allowed = (key_count as f64 * given / 8.0) as u64 + SLACK_BYTES;
        let shared = self.shared_prefix();
        // The prefix never takes room that the least hashes of as many windows need.
        let least = payload_bytes(key_count, key_count.saturating_mul(MODULUS_PER_HASH_MIN) - 1, 0);
        let room = least.map_or(0, |least| allowed.saturating_sub(least));
        let shared_max =
            room.min(SHARED_BYTES_MAX.max(allowed / SHARED_BUDGET_DIVISOR)).min(u64::from(u16::MAX));
        let shared_bytes = shared.len().min(shared_max as usize);
        let symbols_max = (room - shared_bytes as u64).min(Symbols::bytes_max(allowed));
        let windows = self.windows(shared_bytes, symbols_max);
        let Some(last) = windows.fitting_last(allowed) else {
            let needed = windows.payload_bytes(windows.bounds().1).unwrap_or(u64::MAX);
            return Err(BuildError::BudgetTooSmall {
                family: Family::Grafite.name(),
                given,
                least_bits_per_key: needed.saturating_sub(SLACK_BYTES) as f64 * 8.0 / key_count as f64,
            });
        };
        let (parameters, hashes) = windows.hashes(self.seed, last);
        let mut filter = empty_filter(FRONT_BYTES as u64)?;
        let target = filter.get_mut(ENVELOPE_BYTES..).unwrap_or_default();
        target.copy_from_slice(&(hashes.len() as u64).to_le_bytes());
        elias_fano::encode(&mut filter, hashes.len() as u64, last, hashes.iter().copied());
        if let Some(symbols) = &windows.symbols {
            symbols.encode(&mut filter);
        }
        filter.extend_from_slice(shared.get(..windows.shared_bytes).unwrap_or_default());
        Envelope::new(Family::Grafite, self.seed, key_count, parameters).seal(&mut filter);
        Ok(filter)
    }
}
