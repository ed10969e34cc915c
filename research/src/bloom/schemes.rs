//! Bloom filters of the hash-sharing paper that the store does not use: other methods to derive the bits of a key.
//!
//! They have the rate of the family `bloom` of the store (double hashing of one digest). The experiments on Tables 2 and 3 and
//! Figures 2 and 3 compare rates and times.

use std::hint::black_box;

use tamis_filter::{Digester, KeySet, bloom::formula::standard_fpr};

use tamis_bench::{
    BenchError, Context, Row,
    filter::{FilterInput, median_of_passes},
};

/// Bits that a key sets.
const PROBE_COUNT: u32 = 7;
/// The size of all compared filters.
pub(super) const BITS_PER_KEY: f64 = 10.0;

/// How the bits of a key are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Each bit from a digest with a separate seed: no sharing.
    IndependentDigests,
    /// One digest `h`: bit `i` from `h + i * rotate_left(h, 17)`.
    RotatedDigest,
    /// Seven filters with one bit each, as in ElasticBF: bit `i` from `h1 + i * h2`, with two digests of the key (Section 4 of the paper).
    UnitsOfTwoDigests,
}

impl Scheme {
    pub(super) const ALL: [Self; 3] =
        [Self::IndependentDigests, Self::RotatedDigest, Self::UnitsOfTwoDigests];

    /// The value of the parameter `family` for this scheme.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::IndependentDigests => "independent digests",
            Self::RotatedDigest => "rotated digest",
            Self::UnitsOfTwoDigests => "units of two digests",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    const fn digest_count(self) -> u32 {
        match self {
            Self::IndependentDigests => PROBE_COUNT,
            Self::RotatedDigest => 1,
            Self::UnitsOfTwoDigests => 2,
        }
    }

    const fn unit_count(self) -> u32 {
        match self {
            Self::IndependentDigests | Self::RotatedDigest => 1,
            Self::UnitsOfTwoDigests => PROBE_COUNT,
        }
    }
}

struct SchemeFilter {
    scheme: Scheme,
    digesters: Vec<Digester>,
    /// Bits of a unit.
    bit_count: u64,
    units: Vec<Vec<u8>>,
}

impl SchemeFilter {
    fn build(scheme: Scheme, keys: &KeySet, seed: u64) -> Self {
        let unit_count = scheme.unit_count();
        let bit_count = ((keys.len() as f64 * BITS_PER_KEY / f64::from(unit_count)).ceil() as u64).max(1);
        let seeds = (0..u64::from(scheme.digest_count())).map(|number| seed.wrapping_add(number));
        let unit = vec![0; bit_count.div_ceil(8) as usize];
        let mut filter = Self {
            scheme,
            digesters: seeds.map(Digester::new).collect(),
            bit_count,
            units: vec![unit; unit_count as usize],
        };
        for key in keys.iter() {
            for (number, value) in filter.values(key).into_iter().enumerate() {
                let place = filter.place(value);
                let unit = filter.units.get_mut(number % unit_count as usize);
                if let Some(byte) = unit.and_then(|unit| unit.get_mut((place / 8) as usize)) {
                    *byte |= 1 << (place % 8);
                }
            }
        }
        filter
    }

    /// The values that the bits of a key are derived from.
    fn values(&self, key: &[u8]) -> Vec<u64> {
        match self.scheme {
            Scheme::IndependentDigests => {
                self.digesters.iter().map(|digester| digester.digest(key)).collect()
            }
            Scheme::RotatedDigest | Scheme::UnitsOfTwoDigests => {
                let (first, step) = self.start_and_step(key);
                (0..u64::from(PROBE_COUNT))
                    .map(|number| first.wrapping_add(number.wrapping_mul(step)))
                    .collect()
            }
        }
    }

    fn start_and_step(&self, key: &[u8]) -> (u64, u64) {
        match self.digesters.as_slice() {
            [one] => {
                let digest = one.digest(key);
                (digest, digest.rotate_left(17))
            }
            [first, second, ..] => (first.digest(key), second.digest(key)),
            [] => (0, 0),
        }
    }

    const fn place(&self, value: u64) -> u64 {
        ((value as u128 * self.bit_count as u128) >> 64) as u64
    }

    fn has_bit(&self, unit: &[u8], value: u64) -> bool {
        let place = self.place(value);
        unit.get((place / 8) as usize).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
    }

    /// Stops at the first bit that is not set; independent digests are computed one by one.
    fn may_contain(&self, key: &[u8]) -> bool {
        let mut units = self.units.iter().cycle();
        let mut has_bit = |value| units.next().is_some_and(|unit| self.has_bit(unit, value));
        if self.scheme == Scheme::IndependentDigests {
            return self.digesters.iter().all(|digester| has_bit(digester.digest(key)));
        }
        let (mut value, step) = self.start_and_step(key);
        for _ in 0..PROBE_COUNT {
            if !has_bit(value) {
                return false;
            }
            value = value.wrapping_add(step);
        }
        true
    }
}

/// Rate and query time of a scheme, as columns of the rows of other filters.
pub(super) fn measure(scheme: Scheme, input: &FilterInput, context: &Context<'_>) -> Result<Row, BenchError> {
    let filter = SchemeFilter::build(scheme, &input.keys, context.seed());
    if !input.keys.iter().all(|key| filter.may_contain(key)) {
        return Err(BenchError::other(format!("the filter with {} rejected a stored key", scheme.name())));
    }
    let query_count = input.queries.len();
    let positives = || input.queries.iter().filter(|(key, _)| filter.may_contain(black_box(key))).count();
    let query_ns = median_of_passes(context.clock(), query_count, || {
        black_box(positives());
    });
    let false_positives = positives();
    let bytes: usize = filter.units.iter().map(Vec::len).sum();
    Ok(Row::new()
        .with("fpr", false_positives as f64 / query_count.max(1) as f64)
        .with("predicted_fpr", standard_fpr(BITS_PER_KEY, PROBE_COUNT))
        .with("bits_per_key", bytes as f64 * 8.0 / (input.keys.len() as f64).max(1.0))
        .with("false_positives", false_positives)
        .with("query_ns", query_ns))
}

#[cfg(test)]
mod tests;
