//! Sets of distinct 64-bit keys, sorted ascending.
//!
//! The definitions are exact: name, count and seed determine a set, and its file has a known SHA-256. `Normal` uses
//! the system's `ln` and `cos`; with a C library other than glibc 2.36 a few keys may differ. Cost: one sort of all
//! keys; memory: 8 bytes per key.

use std::{f64::consts::PI, fmt, str::FromStr};

use crate::{prng::SplitMix64, zipf::Zipfian};

#[cfg(test)]
mod tests;

/// The seed of the published key files.
pub const PUBLIC_KEY_SEED: u64 = 42;

/// First key of [`KeySet::Gaps`] and [`KeySet::Zipf`].
const GAPS_FIRST: u64 = 1_000_000_000_000;
/// Largest distance of two neighbours of [`KeySet::Gaps`].
const GAP_MAX: u64 = 2048;
/// Largest distance of two neighbours of [`KeySet::Zipf`].
const ZIPF_GAP_MAX: u64 = 1 << 20;
/// Standard deviation of [`KeySet::Normal`], as a share of the key space.
const NORMAL_DEVIATION: f64 = 0.01;
/// 2^64 as a double.
const KEY_SPACE: f64 = 18_446_744_073_709_551_616.0;

/// A distribution of 64-bit keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeySet {
    /// Uniform over all 64-bit numbers.
    Uniform,
    /// Normal around 2^63 with a deviation of 1 % of the key space. Keys are multiples of 1024.
    Normal,
    /// Dense user ids: from 10^12 on, with gaps of 1 to 2048.
    Gaps,
    /// From 10^12 on, with Zipfian gaps of 1 to 2^20: dense clusters with wide gaps between them.
    Zipf,
}

impl KeySet {
    /// All sets, in the order in which they are listed to users.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Normal, Self::Gaps, Self::Zipf];

    /// The set's name in file names and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Gaps => "gaps",
            Self::Zipf => "zipf",
        }
    }

    /// `count` distinct keys, ascending.
    pub fn generate(self, count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        match self {
            Self::Uniform => distinct(count, || random.next_u64()),
            Self::Normal => distinct(count, || normal_key(&mut random)),
            Self::Gaps => spaced(count, || 1 + random.below(GAP_MAX)),
            Self::Zipf => {
                let gaps = Zipfian::new(ZIPF_GAP_MAX);
                spaced(count, || 1 + gaps.draw(&mut random))
            }
        }
    }
}

/// Draws until there are exactly `count` distinct keys. A round draws the missing number: as each draw adds at most
/// one key, no round exceeds the draw that completes the set.
fn distinct(count: usize, mut draw: impl FnMut() -> u64) -> Vec<u64> {
    let mut keys = Vec::with_capacity(count);
    while keys.len() < count {
        for _ in keys.len()..count {
            keys.push(draw());
        }
        keys.sort_unstable();
        keys.dedup();
    }
    keys
}

/// One key from two draws: the cosine half of the Box-Muller transform.
fn normal_key(random: &mut SplitMix64) -> u64 {
    let u1 = random.unit_above_zero();
    let u2 = random.unit();
    let z = (-2.0 * u1.ln()).sqrt() * ((2.0 * PI) * u2).cos();
    let x = KEY_SPACE / 2.0 + (z * NORMAL_DEVIATION) * KEY_SPACE;
    // `as` truncates and saturates at both ends, as the definition requires.
    x as u64
}

fn spaced(count: usize, mut gap: impl FnMut() -> u64) -> Vec<u64> {
    let mut keys = Vec::with_capacity(count);
    let mut key = GAPS_FIRST;
    for index in 0..count {
        if index > 0 {
            key += gap();
        }
        keys.push(key);
    }
    keys
}

impl fmt::Display for KeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for KeySet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
            format!("no key set named {name:?}; there are {}", names.join(", "))
        })
    }
}
