//! Skewed choices among `n` items, as YCSB draws them (Gray et al., "Quickly generating billion-record synthetic
//! databases", 1994).
//!
//! [`Zipfian`] makes item 0 the most popular, item 1 the next, and so on; [`ScrambledZipfian`] scatters the popular
//! items over all numbers by a hash. Both use the system's `powf`: another C library may draw a few other items. Cost:
//! one `powf` per draw; [`Zipfian::new`] takes one `powf` per item.

use crate::prng::SplitMix64;

#[cfg(test)]
mod tests;

/// The skew that YCSB uses.
const THETA: f64 = 0.99;

/// Number of items that [`ScrambledZipfian`] draws from before they are hashed.
const SCRAMBLED_ITEM_COUNT: u64 = 10_000_000_000;
/// The sum of `1 / i^0.99` for `i` from 1 to [`SCRAMBLED_ITEM_COUNT`].
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Draws numbers below `n`, the `i`-th with a probability proportional to `1 / (i + 1)^0.99`.
///
/// ```
/// use tamis_workload::{SplitMix64, Zipfian};
/// let (zipf, mut random) = (Zipfian::new(1000), SplitMix64::new(42));
/// assert!((0..100).all(|_| zipf.draw(&mut random) < 1000));
/// ```
#[derive(Debug, Clone)]
pub struct Zipfian {
    item_count: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// A choice among `item_count` items (0 counts as 1).
    pub fn new(item_count: u64) -> Self {
        let item_count = item_count.max(1);
        Self::with_zeta(item_count, zeta(item_count))
    }

    fn with_zeta(item_count: u64, zeta_all: f64) -> Self {
        let eta =
            (1.0 - (2.0 / item_count as f64).powf(1.0 - THETA)) / (1.0 - zeta(item_count.min(2)) / zeta_all);
        Self { item_count, zeta: zeta_all, eta }
    }

    /// The next item.
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        let item = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            (self.item_count as f64 * (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64
        };
        item.min(self.item_count - 1)
    }
}

/// The newest items most often, as YCSB's `latest` draws them: the age of an item is Zipfian, and the sum of the ranks
/// grows with the items. Cost: a `powf` per draw and one per added item.
#[derive(Debug, Clone)]
pub struct Latest {
    zipf: Zipfian,
}

impl Latest {
    /// A choice among `item_count` items so far.
    pub fn new(item_count: u64) -> Self {
        Self { zipf: Zipfian::new(item_count) }
    }

    /// The age of the drawn item: the number of newer ones among `item_count` items. The count must not decrease.
    pub fn draw(&mut self, item_count: u64, random: &mut SplitMix64) -> u64 {
        let before = self.zipf.item_count;
        if item_count > before {
            let added: f64 = (before + 1..=item_count).map(|rank| (rank as f64).powf(-THETA)).sum();
            self.zipf = Zipfian::with_zeta(item_count, self.zipf.zeta + added);
        }
        self.zipf.draw(random)
    }
}

/// The Zipfian-composite choice of the REMIX paper: of a key of 16 hexadecimal digits the first 12 are Zipfian and the
/// other 4 uniform. It represents stores whose keys begin with an attribute of the real world.
#[derive(Debug, Clone)]
pub struct ZipfianComposite {
    prefixes: Zipfian,
}

/// Keys with one prefix: 4 hexadecimal digits.
const COMPOSITE_SUFFIXES: u64 = 1 << 16;

impl ZipfianComposite {
    /// A choice among `prefix_count` prefixes (0 counts as 1), at most 2^48.
    pub fn new(prefix_count: u64) -> Self {
        Self { prefixes: Zipfian::new(prefix_count.min(1 << 48)) }
    }

    /// The next key's number; [`crate::operations::hex_digits`] writes it out.
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        let prefix = self.prefixes.draw(random);
        prefix * COMPOSITE_SUFFIXES + random.below(COMPOSITE_SUFFIXES)
    }
}

/// The sum of `1 / i^theta` for `i` from 1 to `item_count`.
fn zeta(item_count: u64) -> f64 {
    (1..=item_count).map(|rank| (rank as f64).powf(-THETA)).sum()
}

/// A Zipfian choice whose popular items are scattered over all `n` numbers, as YCSB's `scrambled_zipfian` does.
#[derive(Debug, Clone)]
pub struct ScrambledZipfian {
    item_count: u64,
    ranks: Zipfian,
}

impl ScrambledZipfian {
    /// A choice among `item_count` items (0 counts as 1). Costs nothing: the sum of the ranks is a constant.
    pub fn new(item_count: u64) -> Self {
        let ranks = Zipfian::with_zeta(SCRAMBLED_ITEM_COUNT, SCRAMBLED_ZETA);
        Self { item_count: item_count.max(1), ranks }
    }

    /// The next item.
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        fnv_hash(self.ranks.draw(random)) % self.item_count
    }
}

/// YCSB's 64-bit FNV hash of a number: over its bytes from the least significant on, with the sign removed.
pub fn fnv_hash(number: u64) -> u64 {
    let hash = number.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    });
    hash.cast_signed().unsigned_abs()
}
