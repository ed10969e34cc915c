//! Bloom filters over one array, with the methods of the hash-sharing paper to derive the bits of a key.

use std::fmt;

use tamis_filter::{
    DecodeError, Digester, Filter, KeySet, Probe,
    bloom::formula::{standard_best_k, standard_fpr},
};
use tamis_workload::mix64;

/// Bits that a key sets, where the budget does not determine them.
const PROBE_COUNT: u32 = 7;
const PROBE_COUNT_MAX: u32 = 64;

/// How the bits of a key are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// One digest `h`: bit `i` from `h + i * mix(h)`. The budget determines the number of bits.
    DoubleHashing,
    /// The same with seven bits.
    SevenOfDoubleHashing,
    /// Each bit from a digest with a separate seed: no sharing.
    IndependentDigests,
    /// One digest `h`: bit `i` from `h + i * rotate_left(h, 17)`.
    RotatedDigest,
    /// Seven filters with one bit each, as in ElasticBF: bit `i` from `h1 + i * h2`, with two digests of the key (Section 4 of the paper).
    UnitsOfTwoDigests,
}

impl Scheme {
    /// All schemes, with the values of the parameter `family`.
    pub(super) const ALL: [(Self, &str); 5] = [
        (Self::DoubleHashing, "bloom"),
        (Self::SevenOfDoubleHashing, "bloom:probes=7"),
        (Self::IndependentDigests, "independent digests"),
        (Self::RotatedDigest, "rotated digest"),
        (Self::UnitsOfTwoDigests, "units of two digests"),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, own)| *own == name).map(|(scheme, _)| scheme)
    }

    const fn digest_count(self) -> u32 {
        match self {
            Self::DoubleHashing | Self::SevenOfDoubleHashing | Self::RotatedDigest => 1,
            Self::UnitsOfTwoDigests => 2,
            Self::IndependentDigests => PROBE_COUNT,
        }
    }

    const fn unit_count(self) -> u32 {
        if matches!(self, Self::UnitsOfTwoDigests) { PROBE_COUNT } else { 1 }
    }
}

/// A Bloom filter.
pub(crate) struct Bloom {
    scheme: Scheme,
    key_count: u64,
    digesters: Vec<Digester>,
    probe_count: u32,
    /// Bits of a unit.
    bit_count: u64,
    units: Vec<Vec<u8>>,
}

impl Bloom {
    pub(super) fn build(scheme: Scheme, bits_per_key: f64, keys: &KeySet, seed: u64) -> Self {
        let unit_count = scheme.unit_count();
        let bit_count = ((keys.len() as f64 * bits_per_key / f64::from(unit_count)).ceil() as u64).max(1);
        let seeds = (0..u64::from(scheme.digest_count())).map(|number| seed.wrapping_add(number));
        let probe_count = match scheme {
            Scheme::DoubleHashing => standard_best_k(bits_per_key, PROBE_COUNT_MAX),
            _ => PROBE_COUNT,
        };
        let mut filter = Self {
            scheme,
            key_count: keys.len() as u64,
            digesters: seeds.map(Digester::new).collect(),
            probe_count,
            bit_count,
            units: vec![vec![0; bit_count.div_ceil(8) as usize]; unit_count as usize],
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
        if self.scheme == Scheme::IndependentDigests {
            return self.digesters.iter().map(|digester| digester.digest(key)).collect();
        }
        let (first, step) = self.start_and_step(key);
        (0..u64::from(self.probe_count)).map(|number| first.wrapping_add(number.wrapping_mul(step))).collect()
    }

    fn start_and_step(&self, key: &[u8]) -> (u64, u64) {
        match self.digesters.as_slice() {
            [one] => {
                let digest = one.digest(key);
                let is_rotated = self.scheme == Scheme::RotatedDigest;
                (digest, if is_rotated { digest.rotate_left(17) } else { mix64(digest) | 1 })
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
}

impl Filter for Bloom {
    /// Stops at the first bit that is not set; independent digests are computed one by one.
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        let mut units = self.units.iter().cycle();
        let mut has_bit = |value| units.next().is_some_and(|unit| self.has_bit(unit, value));
        if self.scheme == Scheme::IndependentDigests {
            return self.digesters.iter().all(|digester| has_bit(digester.digest(probe.key())));
        }
        let (mut value, step) = self.start_and_step(probe.key());
        for _ in 0..self.probe_count {
            if !has_bit(value) {
                return false;
            }
            value = value.wrapping_add(step);
        }
        true
    }

    fn key_count(&self) -> u64 {
        self.key_count
    }

    fn encoded_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.len() as u64).sum()
    }

    fn predicted_fpr(&self) -> Option<f64> {
        let bits = self.bit_count as f64 * self.units.len() as f64;
        Some(standard_fpr(bits / (self.key_count as f64).max(1.0), self.probe_count))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        write!(target, "{:?}, {} bits set by a key", self.scheme, self.probe_count)
    }

    fn verify(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}
