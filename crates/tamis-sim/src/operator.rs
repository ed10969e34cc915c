//! The merge operator of simulated keyspaces: operands are affine functions of numbers, so that each lost, doubled or exchanged operand changes the value.

use tamis::{Merge, MergeOperator};
use xxhash_rust::xxh3::xxh3_64;

/// The length of merged values.
pub const MERGED_LENGTH: usize = 8;

/// The function `factor * number + addend`.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    factor: u64,
    addend: u64,
}

/// The number of a value: that of a merged one, or else its hash.
pub fn number_of(value: &[u8]) -> u64 {
    <[u8; MERGED_LENGTH]>::try_from(value).map_or_else(|_| xxh3_64(value), u64::from_be_bytes)
}

impl Operand {
    /// The operand of a number.
    pub const fn of(number: u64) -> Self {
        Self { factor: number | 1, addend: number.rotate_left(32) }
    }

    /// The bytes.
    pub fn encode(self) -> Vec<u8> {
        [self.factor.to_be_bytes(), self.addend.to_be_bytes()].concat()
    }

    /// Bytes of another length are the function that changes nothing.
    pub fn decode(bytes: &[u8]) -> Self {
        match bytes.as_chunks() {
            ([factor, addend], []) => {
                Self { factor: u64::from_be_bytes(*factor), addend: u64::from_be_bytes(*addend) }
            }
            _ => Self { factor: 1, addend: 0 },
        }
    }

    /// The changed number.
    pub const fn apply(self, number: u64) -> u64 {
        self.factor.wrapping_mul(number).wrapping_add(self.addend)
    }

    /// This function, and then another one.
    const fn then(self, next: Self) -> Self {
        Self { factor: self.factor.wrapping_mul(next.factor), addend: next.apply(self.addend) }
    }
}

struct Affine {
    combines: bool,
}

impl Merge for Affine {
    fn merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let number = base.map_or(0, number_of);
        let merged = operands.iter().fold(number, |number, operand| Operand::decode(operand).apply(number));
        Ok(merged.to_be_bytes().to_vec())
    }

    fn combine(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let all = operands.iter().map(|operand| Operand::decode(operand));
        if self.combines { all.reduce(Operand::then).map(Operand::encode) } else { None }
    }
}

/// The operators: one combines operands, the other one keeps them.
pub fn operators() -> [MergeOperator; 2] {
    [("affine", true), ("affine, apart", false)]
        .map(|(name, combines)| MergeOperator::new(name, Affine { combines }))
}
