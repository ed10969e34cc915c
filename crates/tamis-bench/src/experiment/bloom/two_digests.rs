//! A filter in units that is asked with two digests, as ElasticBF does: the bit in unit `i` is that of the first digest and `i` times the
//! second (double hashing; hash sharing paper, Section 4). For comparison only: the store asks all units with one digest.

use std::hint::black_box;

use tamis_filter::{Digester, KeySet};

use super::single::BITS_PER_KEY;
use crate::{
    BenchError, Context, Row,
    filter::{FilterInput, median_of_passes},
};

const UNIT_COUNT: usize = 7;

struct TwoDigests {
    digesters: [Digester; 2],
    bit_count: u64,
    /// One bit set by a key in each.
    units: [Vec<u8>; UNIT_COUNT],
}

impl TwoDigests {
    fn of(keys: &KeySet, seed: u64) -> Self {
        let bit_count = ((keys.len() as f64 * BITS_PER_KEY / UNIT_COUNT as f64).ceil() as u64).max(1);
        let unit = vec![0; bit_count.div_ceil(8) as usize];
        let digesters = [seed, seed.wrapping_add(1)].map(Digester::new);
        let mut filter = Self { digesters, bit_count, units: std::array::from_fn(|_| unit.clone()) };
        for key in keys.iter() {
            let digests = filter.digests(key);
            for (number, unit) in (0..).zip(&mut filter.units) {
                let place = place(digests, number, bit_count);
                if let Some(byte) = unit.get_mut((place / 8) as usize) {
                    *byte |= 1 << (place % 8);
                }
            }
        }
        filter
    }

    fn digests(&self, key: &[u8]) -> [u64; 2] {
        self.digesters.each_ref().map(|digester| digester.digest(key))
    }

    fn may_contain(&self, key: &[u8]) -> bool {
        let digests = self.digests(key);
        (0..).zip(&self.units).all(|(number, unit)| {
            let place = place(digests, number, self.bit_count);
            unit.get((place / 8) as usize).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
        })
    }
}

/// The bit of a key in the unit of a number.
fn place([first, second]: [u64; 2], number: u64, bit_count: u64) -> u64 {
    let mixed = first.wrapping_add(number.wrapping_mul(second));
    ((u128::from(mixed) * u128::from(bit_count)) >> 64) as u64
}

/// Rate and time of a question, as other filters' rows have them.
pub(super) fn measure(input: &FilterInput, context: &Context<'_>) -> Result<Row, BenchError> {
    let filter = TwoDigests::of(&input.keys, context.seed());
    if !input.keys.iter().all(|key| filter.may_contain(key)) {
        return Err(BenchError::other("a key is denied"));
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
        .with("predicted_fpr", (1.0 - (-(UNIT_COUNT as f64) / BITS_PER_KEY).exp()).powi(UNIT_COUNT as i32))
        .with("bits_per_key", bytes as f64 * 8.0 / (input.keys.len() as f64).max(1.0))
        .with("false_positives", false_positives)
        .with("query_ns", query_ns))
}
