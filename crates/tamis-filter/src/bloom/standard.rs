//! Standard Bloom filters: family 2 of `docs/format/filter.md`.
//!
//! The bits of a key are spread over the whole filter: the least rate for a budget, at a cache miss per bit. Beside the
//! blocked family this one is for measuring, and for cold data with a very low rate.

mod builder;
mod reader;

pub use builder::StandardBuilder;
pub use reader::StandardFilter;

use std::str::FromStr;

pub(crate) use tamis_bits::kernel::place;

use crate::{Digester, mix64};

/// Most bits that a key may set.
const PROBE_MAX: u32 = 64;

/// How the places of a key's bits are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `k` digests of the key, each with a seed of its own: no sharing. For comparison only.
    Independent = 0,
    /// One digest `h`: place `i` follows from `h + i * rotate_left(h, 17)`.
    Rotated = 1,
    /// Two digests, the second mixed from the first: place `i` follows from `h1 + i * h2`, `h2` odd.
    Double = 2,
}

impl FromStr for Scheme {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "independent" => Ok(Self::Independent),
            "rotated" => Ok(Self::Rotated),
            "double" => Ok(Self::Double),
            _ => Err(()),
        }
    }
}

impl Scheme {
    const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Independent),
            1 => Some(Self::Rotated),
            2 => Some(Self::Double),
            _ => None,
        }
    }

    /// First value and step of the schemes with one digest.
    #[inline(always)]
    pub(crate) const fn start_and_step(self, digest: u64) -> (u64, u64) {
        match self {
            Self::Rotated => (digest, digest.rotate_left(17)),
            Self::Independent | Self::Double => (digest, mix64(digest, 0) | 1),
        }
    }
}

/// The digesters of [`Scheme::Independent`]: seeds mixed from the filter's.
fn independent_digesters(seed: u64, probe_count: u32) -> Vec<Digester> {
    (0..u64::from(probe_count)).map(|number| Digester::new(mix64(seed, number))).collect()
}

#[cfg(test)]
mod tests;
